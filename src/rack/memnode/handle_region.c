/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/regions. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "move.h"

json_t *handle_region_describe(const struct mem_node *node,
			       const struct mem_region *r)
{
	char birth[CTL_INCARNATION_TEXT];
	json_t *row;

	ctl_incarnation_format(r->birth, birth);
	row = json_pack("{s:s, s:I, s:i, s:I, s:s, s:s, s:s, s:s}", "name",
			r->name, "size", (json_int_t)r->size_bytes, "id",
			(int)r->id, "epoch", (json_int_t)r->epoch, "node",
			node->name, "incarnation", node->incarnation, "memory",
			r->dm ? "device" : "host", "birth", birth);

	if (r->part_of[0])
		(void)json_object_set_new(row, "part_of",
					  json_string(r->part_of));
	return row;
}

/* What the region is a part of, "kv users": the command that has such things,
 * and the thing's name. "" when nothing is said. */
static int part_field(const struct ctl_call *call,
		      char out[MEM_PART_NAME_MAX + 1])
{
	const char *text = "";
	size_t kind;
	int err = ctl_field_string(call->body, "part_of", false, &text);

	if (err)
		return err;
	kind = strspn(text, "abcdefghijklmnopqrstuvwxyz");
	if (text[0] &&
	    (kind == 0 || text[kind] != ' ' ||
	     strlen(text) > MEM_PART_NAME_MAX ||
	     !ctl_name_is_valid(text + kind + 1, MEM_REGION_NAME_MAX)))
		return error_set(-EINVAL,
				 "\"part_of\" is a command and a name, as in "
				 "\"kv users\"");
	(void)snprintf(out, MEM_PART_NAME_MAX + 1, "%s", text);
	return 0;
}

/* Whoever has made something of several regions relies on all of them. */
static int check_part(const struct ctl_call *call, const struct mem_region *r)
{
	const json_t *force = json_object_get(call->body, "force");
	const char *name = strchr(r->part_of, ' ');

	if (force && !json_is_boolean(force))
		return error_set(-EINVAL, "\"force\" is true or false");
	if (!name || json_is_true(force))
		return 0;
	return error_set(-EPERM,
			 "region %s is a part of %s; 'aquifer %.*s drop%s' "
			 "removes it, and only force changes it alone",
			 r->name, r->part_of, (int)(name - r->part_of),
			 r->part_of, name);
}

/* The region in the path, which must not be in somebody's hands. */
static int find(struct mem_node *node, struct ctl_call *call,
		struct mem_region **out)
{
	struct mem_region *r =
		region_find(node, call->caller, call->segment[0]);

	int err = narrow_check_region(call, call->segment[0], false);

	if (err)
		return err;
	err = move_check(node, call->caller, call->segment[0], r);
	if (err)
		return err;
	*out = r;
	return 0;
}

static int size_field(const struct ctl_call *call, uint64_t *size_bytes)
{
	return ctl_field_u64(call->body, "size", true, 1,
			     (1ull << MEM_OFFSET_BITS) - 1, size_bytes);
}

/* "host" when nothing is said. */
static int memory_field(const struct ctl_call *call, bool *on_device)
{
	const char *text = NULL;
	int err = ctl_field_string(call->body, "memory", false, &text);

	if (err)
		return err;
	*on_device = text && strcmp(text, "device") == 0;
	if (text && !*on_device && strcmp(text, "host") != 0)
		return error_set(-EINVAL,
				 "\"memory\" is \"host\" or \"device\"");
	return 0;
}

/* A connection of the caller, with which the region shall end; NULL: none. */
static int owner_field(const struct mem_node *node, const struct ctl_call *call,
		       struct mem_conn **owner)
{
	const char *text = NULL;
	int err = ctl_field_string(call->body, "owner", false, &text);

	*owner = NULL;
	return err || !text ? err : conn_find(node, call->caller, text, owner);
}

/* "switch": "atomics" or "store", and of a store where its versions are. */
static int declared_fields(const struct ctl_call *call, struct mem_declared *d)
{
	const char *text = NULL;
	int err = ctl_field_string(call->body, "switch", false, &text);

	*d = (struct mem_declared){.kind = MEM_DECLARED_NOT};
	if (err || !text)
		return err;
	if (strcmp(text, "atomics") == 0) {
		d->kind = MEM_DECLARED_ATOMICS;
		return 0;
	}
	if (strcmp(text, "store") != 0)
		return error_set(-EINVAL,
				 "\"switch\" is \"atomics\" or \"store\"");
	d->kind = MEM_DECLARED_STORE;
	err = ctl_field_u64(call->body, "nodes_at", true, 0, INT64_MAX,
			    &d->nodes_at);
	if (!err)
		err = ctl_field_u64(call->body, "nodes", true, 1, INT64_MAX,
				    &d->nodes);
	if (!err)
		err = ctl_field_u64(call->body, "node_bytes", true, 1,
				    UINT32_MAX, &d->node_bytes);
	return err;
}

/* Nobody has a key of it yet: the lock was not let go since it is there. */
static int declare(struct mem_node *node, struct mem_region *r,
		   const struct mem_declared *d)
{
	char words[ERROR_TEXT_MAX];
	int err;

	r->declared = *d;
	err = declare_region(node, r);
	if (!err)
		return 0;
	snprintf(words, sizeof(words), "%s", error_last());
	r->declared.kind = MEM_DECLARED_NOT;
	if (region_delete(node, r))
		log_warn("memnode", "%s", error_last());
	return error_set(err, "%s", words);
}

void handle_region_create(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	struct mem_conn *owner;
	uint64_t owner_nonce = 0;
	uint32_t owner_slot = 0;
	struct mem_region *r;
	uint64_t size_bytes;
	struct mem_declared declared;
	char part_of[MEM_PART_NAME_MAX + 1];
	struct mem_move move;
	uint64_t birth = 0;
	const char *name;
	bool on_device = false;
	int err = ctl_field_string(call->body, "name", true, &name);

	if (!err)
		err = size_field(call, &size_bytes);
	if (!err)
		err = memory_field(call, &on_device);
	if (!err)
		err = owner_field(node, call, &owner);
	if (!err)
		err = declared_fields(call, &declared);
	if (!err)
		err = part_field(call, part_of);
	if (!err)
		err = move_arrival_parse(node, call->body, &move, &birth);
	if (!err && owner) { /* it may end while the region is made */
		owner_nonce = owner->nonce;
		owner_slot = owner->slot;
	}
	if (!err)
		err = region_create(node, call->caller, name, size_bytes,
				    on_device, &r);
	if (!err) {
		r->move = move;
		r->birth = birth ? birth : r->birth;
		err = declare(node, r, &declared);
	}
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	r->owner_nonce = owner_nonce;
	r->owner_slot = owner_slot;
	memcpy(r->part_of, part_of, sizeof(part_of));
	ctl_reply_json(call->reply, 201, handle_region_describe(node, r));
}

void handle_region_list(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	json_t *rows = json_array();

	for (unsigned i = 0; i < MEM_REGION_MAX; i++) {
		const struct mem_region *r = node->regions[i];

		if (r && r->tenant == call->caller && !r->busy &&
		    !move_is_hidden(r) &&
		    (!call->scope || narrow_allows(call->scope, r->name)))
			(void)json_array_append_new(
				rows, handle_region_describe(node, r));
	}
	ctl_reply_json(call->reply, 200, json_pack("{s:o}", "regions", rows));
}

void handle_region_get(void *ctx, struct ctl_call *call)
{
	struct mem_region *r;
	int err = find(ctx, call, &r);

	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_json(call->reply, 200,
			       handle_region_describe(ctx, r));
}

void handle_region_patch(void *ctx, struct ctl_call *call)
{
	struct mem_region *r;
	uint64_t size_bytes;
	int err = find(ctx, call, &r);

	if (!err)
		err = size_field(call, &size_bytes);
	if (!err)
		err = check_part(call, r);
	if (!err && size_bytes != r->size_bytes)
		err = region_resize(ctx, r, size_bytes);
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_json(call->reply, 200,
			       handle_region_describe(ctx, r));
}

void handle_region_delete(void *ctx, struct ctl_call *call)
{
	struct mem_region *r;
	int err = find(ctx, call, &r);

	if (!err)
		err = check_part(call, r);
	if (!err)
		err = region_delete(ctx, r);
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_none(call->reply);
}
