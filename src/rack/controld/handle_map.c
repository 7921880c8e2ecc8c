/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/map/PATH: where an object's blocks are, and what opens them there;
 * /v1/blocks/PATH: more of them. */
#include <errno.h>
#include <stdio.h>

#include "base/error.h"
#include "vault_priv.h"

static const char *state_of(const struct cd_block *b)
{
	if (!cd_chain_is_up(b))
		return "lost";
	return b->is_made ? "ready" : "making";
}

static json_t *blocks_json(const struct cd_object *o)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < o->block_count; i++) {
		const struct cd_block *b = o->block[i];
		json_t *row = json_pack(
			"{s:I, s:s, s:s, s:i, s:I, s:s}", "number",
			cd_int(b->number), "node", b->node->name, "address",
			b->node->address, "index", (int)b->index, "generation",
			cd_int(cd_block_identity(b)), "state", state_of(b));

		if (b->identity)
			(void)json_object_set_new(row, "chain",
						  cd_chain_json(b));
		(void)json_array_append_new(rows, row);
	}
	return rows;
}

static int map_json(struct cd_core *core, const struct cd_who *who,
		    const struct cd_object *o, json_t **out)
{
	const char *lost = cd_object_lost(o);
	char ticket[CTL_TICKET_TEXT], path[CTL_PATH_MAX];
	bool reads = cd_scope_reads(core);
	uint64_t end_s = 0;
	int err = cd_key_sign(core, o,
			      reads ? CTL_TICKET_READ
				    : CTL_TICKET_READ | CTL_TICKET_CHANGE,
			      who->by, ticket, &end_s);

	if (err)
		return err;
	cd_path_show(core, o->prefix, o, path);
	*out = json_pack(
		"{s:I, s:s, s:s, s:s, s:I, s:I, s:i, s:i, s:I, s:o, s:s, s:I, "
		"s:s}",
		"object", cd_int(o->id), "path", path, "kind",
		cd_object_kind_name(o->kind), "state", lost ? "lost" : "ready",
		"block_bytes", cd_int(o->block_bytes), "bound",
		cd_int(o->bound), "copies", (int)o->copies, "lease_ms",
		(int)o->prefix->job->lease_ms, "epoch", cd_int(o->epoch),
		"blocks", blocks_json(o), "ticket", ticket, "ticket_end",
		cd_int(end_s), "rights", reads ? "r" : "rw");
	if (lost)
		(void)json_object_set_new(*out, "why", json_string(lost));
	return 0;
}

static int find_object(struct cd_core *core, const struct ctl_call *call,
		       struct cd_object **out)
{
	struct cd_tenant *t = NULL;
	struct cd_at at = {0};
	int err = cd_tenant_of_names(call, &t);

	if (!err)
		err = cd_path_find(core, t->name, call->rest, &at);
	if (!err && !at.object)
		err = error_set(-EISDIR, "/%.200s is a %s, no file or queue",
				call->rest,
				at.prefix ? cd_prefix_kind(at.prefix)
					  : "folder");
	if (!err) {
		err = cd_object_usable(at.object);
		if (err)
			err = error_prefix(err, "/%.200s: ", call->rest);
	}
	*out = at.object;
	return err;
}

static void reply_map(struct cd_core *core, struct ctl_call *call, int err,
		      const struct cd_object *o)
{
	json_t *tree = NULL;

	if (!err)
		err = map_json(core, call->caller, o, &tree);
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_json(call->reply, 200, tree);
}

/* Who opens it wants it to live; who may only read does not decide that. */
void cd_handle_map_get(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	struct cd_object *o = NULL;
	int err = find_object(core, call, &o);

	if (!err && !cd_scope_reads(core))
		cd_lease_renew(core, o->prefix);
	reply_map(core, call, err, o);
}

void cd_handle_map_grow(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	const json_t *v = json_object_get(call->body, "after");
	int64_t after = v ? json_integer_value(v) : -1;
	uint64_t most = CD_RUN_MAX;
	struct cd_object *o = NULL;
	int err = find_object(core, call, &o);

	if (!err && v && (!json_is_integer(v) || after < -1))
		err = error_set(-EINVAL, "\"after\" is the number of a block, "
					 "or -1");
	if (!err)
		err = ctl_field_u64(call->body, "most", false, 1, INT64_MAX,
				    &most);
	if (!err && cd_object_lost(o))
		err = error_set(-EHOSTDOWN, "/%.200s is lost: %s", call->rest,
				cd_object_lost(o));
	if (!err)
		cd_lease_renew(core, o->prefix);
	if (!err)
		err = cd_object_grow(core, o, after, most);
	reply_map(core, call, err, o);
}
