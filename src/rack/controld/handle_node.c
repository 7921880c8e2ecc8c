/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/nodes: joining, the list, drain and forget. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "base/plant.h"
#include "cd_page_priv.h"
#include "tree_priv.h"

/* What a node says of itself. */
struct joining {
	const char *name, *address, *zone, *incarnation;
	enum cd_kind kind;
	uint64_t size_bytes;
};

static bool is_plain(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text > '~' || *text == '"' ||
		    *text == '\\')
			return false;
	return true;
}

int cd_field_incarnation(const json_t *body, const char **out)
{
	int err = ctl_field_string(body, "incarnation", true, out);

	if (!err &&
	    (strlen(*out) != CTL_INCARNATION_TEXT - 1 ||
	     strspn(*out, "0123456789abcdef") != CTL_INCARNATION_TEXT - 1))
		err = error_set(-EINVAL, "\"incarnation\" has %d hex digits",
				CTL_INCARNATION_TEXT - 1);
	return err;
}

static int parse(const json_t *body, struct joining *j)
{
	const char *kind = NULL, *proto = CTL_PROTO;
	int err = ctl_field_string(body, "name", true, &j->name);

	j->zone = "";
	if (!err)
		err = ctl_field_string(body, "kind", true, &kind);
	if (!err)
		err = cd_kind_parse(kind, &j->kind);
	if (!err)
		err = ctl_field_string(body, "address", true, &j->address);
	if (!err)
		err = ctl_field_string(body, "zone", false, &j->zone);
	if (!err)
		err = cd_field_incarnation(body, &j->incarnation);
	if (!err)
		err = ctl_field_u64(body, "size", false, 0, INT64_MAX,
				    &j->size_bytes);
	if (!err)
		err = ctl_field_string(body, "proto", false, &proto);
	if (!err)
		err = ctl_proto_check(proto);
	if (err)
		return err;
	if (!rundir_rack_is_valid(j->name))
		return error_set(-EINVAL,
				 "\"name\" has 1 to 32 of a-z, 0-9 and '-'");
	if (!j->address[0] || strlen(j->address) > CD_ADDRESS_MAX ||
	    !is_plain(j->address))
		return error_set(-EINVAL,
				 "\"address\" has 1 to %d printable characters",
				 CD_ADDRESS_MAX);
	if (j->zone[0] && !ctl_name_is_valid(j->zone, CD_NAME_MAX))
		return error_set(-EINVAL, "\"zone\" is a name");
	return 0;
}

/* Two processes may not have one name. Who comes from the same address has
 * taken the place of the other; an address is one process's. */
static int check_place(const struct cd_node *n, const struct joining *j)
{
	if (n->kind != j->kind)
		return error_set(-EEXIST, "there is a %s named %s already",
				 cd_kind_name(n->kind), n->name);
	if (n->state == CD_UP && n->has_beaten &&
	    strcmp(n->incarnation, j->incarnation) != 0 &&
	    strcmp(n->address, j->address) != 0)
		return error_set(-EBUSY,
				 "a node named %s is up at %s; choose another "
				 "name",
				 n->name, n->address);
	return 0;
}

/* Of what is down and no memory node there is nothing to remember. */
static void make_room(struct cd_core *core)
{
	for (unsigned i = 0; i < CD_NODES_MAX; i++) {
		struct cd_node *n = core->node[i];

		if (n->kind == CD_MEMORY || n->state != CD_DOWN)
			continue;
		cd_stage(core, "node", n->name, NULL);
		cd_node_free(core, n);
		return;
	}
}

static int join(struct cd_core *core, const struct joining *j,
		struct cd_node **out)
{
	struct cd_node *n = cd_node_find(core, j->name);
	int err;

	if (!n && core->node_count == CD_NODES_MAX)
		make_room(core);
	err = n ? check_place(n, j) : cd_node_add(core, j->name, &n);

	if (err)
		return err;
	n->kind = j->kind;
	(void)snprintf(n->address, sizeof(n->address), "%s", j->address);
	(void)snprintf(n->zone, sizeof(n->zone), "%s", j->zone);
	(void)snprintf(n->incarnation, sizeof(n->incarnation), "%s",
		       j->incarnation);
	n->size_bytes = j->size_bytes;
	n->epoch = core->term << 20 | (++core->joins & 0xfffff);
	cd_node_seen(core, n);
	n->has_beaten = false;
	n->is_drained = false; /* this run has not said so */
	for (unsigned i = 0; PLANTED(ctl_join_resets) && i < core->tenant_count;
	     i++)
		core->tenant[i]->share[n->slot] =
			(struct cd_share){.open = true};
	cd_order(n);
	cd_stage_node(core, n);
	cd_blocks_lose(core, n);
	log_info("controld", "%s %s joins from %s", cd_kind_name(n->kind),
		 n->name, n->address);
	cd_event_staged(core, CD_ABOUT_NODE, n->name, "joins from %.80s",
			n->address);
	*out = n;
	return 0;
}

void cd_handle_node_join(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	struct joining j = {0};
	struct cd_node *n = NULL;
	int err = parse(call->body, &j);

	if (!err)
		err = join(core, &j, &n);
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	ctl_reply_json(call->reply, 200,
		       json_pack("{s:s, s:I, s:I, s:i}", "node", n->name,
				 "term", cd_int(core->term), "epoch",
				 cd_int(n->epoch), "hold_ms", CD_HOLD_MS));
}

static int node_of_call(const struct cd_core *core, const struct ctl_call *call,
			struct cd_node **out)
{
	*out = cd_node_find(core, call->segment[0]);
	return *out ? 0
		    : error_set(-ENOENT, "there is no node %s",
				call->segment[0]);
}

/* A clean end: it need not be missed for ten seconds. Only of memory nodes is
 * there something to remember. */
void cd_handle_node_leave(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	const char *incarnation = NULL;
	struct cd_node *n = NULL;
	int err = node_of_call(core, call, &n);

	if (!err)
		err = cd_field_incarnation(call->body, &incarnation);
	if (!err && strcmp(incarnation, n->incarnation) != 0)
		err = error_set(-ESTALE, "node %s was started anew", n->name);
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	log_info("controld", "%s %s has left", cd_kind_name(n->kind), n->name);
	cd_event_seen(core, CD_ABOUT_NODE, n->name, "has left");
	ctl_reply_none(call->reply);
	if (n->kind != CD_MEMORY) {
		cd_stage(core, "node", n->name, NULL);
		cd_node_free(core, n);
		return;
	}
	n->state = CD_DOWN;
	n->has_left = true;
	cd_order(n); /* a beat that waits need not */
	n->used_bytes = n->regions = n->connections = 0;
	json_decref(n->names);
	n->names = NULL;
}

/* ---- the list ----------------------------------------------------------- */

static json_t *describe(const struct cd_core *core, const struct cd_node *n,
			bool sees_all)
{
	uint64_t now = env_now_ns(core->env);
	json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:s, s:b}", "name",
				n->name, "kind", cd_kind_name(n->kind), "state",
				cd_state_name(n), "address", n->address, "zone",
				n->zone, "drain", n->drain);

	if (!sees_all)
		return row;
	(void)json_object_set_new(row, "incarnation",
				  json_string(n->incarnation));
	(void)json_object_set_new(
		row, "silent_ms",
		json_integer(cd_int(
			now > n->seen_ns ? (now - n->seen_ns) / 1000000 : 0)));
	(void)json_object_set_new(row, "conflicts", json_incref(n->conflicts));
	if (n->kind != CD_MEMORY)
		return row;
	(void)json_object_set_new(row, "tenants", json_string(n->tenants));
	(void)json_object_set_new(row, "size",
				  json_integer(cd_int(n->size_bytes)));
	(void)json_object_set_new(row, "used",
				  json_integer(cd_int(n->used_bytes)));
	if (n->spill_bytes)
		(void)json_object_set_new(
			row, "spill",
			json_pack("{s:I, s:I}", "size", cd_int(n->spill_bytes),
				  "used", cd_int(n->spilled_bytes)));
	(void)json_object_set_new(row, "regions",
				  json_integer(cd_int(n->regions)));
	(void)json_object_set_new(row, "connections",
				  json_integer(cd_int(n->connections)));
	(void)json_object_set_new(row, "moving",
				  json_integer(cd_int(n->moving)));
	(void)json_object_set_new(row, "moved", json_integer(cd_int(n->moved)));
	return row;
}

void cd_handle_node_list(void *ctx, struct ctl_call *call)
{
	const struct cd_core *core = ctx;
	json_t *rows = json_array();
	char tenants[32];

	for (unsigned i = 0; i < CD_NODES_MAX; i++)
		if (core->node[i])
			(void)json_array_append_new(
				rows,
				describe(core, core->node[i], call->sees_all));
	cd_tenants_name(core, tenants);
	ctl_reply_json(call->reply, 200,
		       json_pack("{s:o, s:I, s:b, s:s}", "nodes", rows, "term",
				 cd_int(core->term), "leads", core->leads,
				 "tenants", tenants));
}

/* ---- drain, forget ------------------------------------------------------ */

void cd_handle_node_get(void *ctx, struct ctl_call *call)
{
	const struct cd_core *core = ctx;
	struct cd_node *n = NULL;
	int err = node_of_call(core, call, &n);

	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_json(call->reply, 200,
			       cd_left_add(core, n, describe(core, n, true)));
}

/* What is there stays there until somebody moves it; the answer says what. */
void cd_handle_node_drain(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	const json_t *wish = json_object_get(call->body, "drain");
	struct cd_node *n = NULL;
	int err = node_of_call(core, call, &n);

	if (!err && wish && !json_is_boolean(wish))
		err = error_set(-EINVAL, "\"drain\" is true or false");
	if (!err && n->kind != CD_MEMORY)
		err = error_set(-EINVAL, "only memory nodes can be drained");
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	n->drain = !wish || json_is_true(wish);
	n->drain_order = core->term << 20 | (++core->joins & 0xfffff);
	n->is_drained = false;
	if (!PLANTED(ctl_drain_unsaved))
		cd_stage_node(core, n);
	cd_order(n);
	cd_event_staged(core, CD_ABOUT_NODE, n->name, "%s",
			n->drain ? "takes nothing new" : "takes memory again");
	ctl_reply_json(call->reply, 200,
		       cd_left_add(core, n, describe(core, n, true)));
}

/* Its memory is taken for gone: what it could hand out returns to the quotas.
 */
void cd_handle_node_forget(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	char key[2 * CD_NAME_MAX + 2];
	struct cd_node *n = NULL;
	int err = node_of_call(core, call, &n);

	if (!err && !PLANTED(ctl_forget_up))
		err = cd_node_is_gone(core, n);
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	cd_stage(core, "node", n->name, NULL);
	for (unsigned i = 0; i < core->tenant_count; i++) {
		const struct cd_tenant *t = core->tenant[i];

		if (!t->share[n->slot].version && !t->share[n->slot].bytes)
			continue;
		/* Transactions of their own: what is left of a forgotten node
		 * is struck off by the next leader. */
		if (i % 32 == 31)
			cd_stage_group(core);
		(void)snprintf(key, sizeof(key), "%s/%s", t->name, n->name);
		cd_stage(core, "allowance", key, NULL);
	}
	cd_given_forget(core, n);
	n->incarnation[0] = 0;
	cd_blocks_lose(core, n);
	log_info("controld", "node %s is forgotten", n->name);
	cd_event_staged(core, CD_ABOUT_NODE, n->name, "is forgotten");
	cd_node_free(core, n);
	ctl_reply_none(call->reply);
}
