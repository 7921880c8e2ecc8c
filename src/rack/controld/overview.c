/* SPDX-License-Identifier: Apache-2.0 */
/* All that the page shows, in one answer. A tenant sees what is its own. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/release.h"
#include "cd_page_priv.h"

/* Whose things are shown; NULL: everybody's. False: nobody's, nodes have no
 * use for this. */
static bool scope_of(const struct ctl_call *call, const struct cd_tenant **only)
{
	const struct cd_who *who = call->caller;

	*only = who->tenant;
	if (who->role == CD_ROLE_ADMIN || who->role == CD_ROLE_LOOK ||
	    who->role == CD_ROLE_TENANT)
		return true;
	ctl_reply_error(call->reply, -EACCES,
			"only tenants and the administrator may look");
	return false;
}

static void set(json_t *row, const char *key, uint64_t n)
{
	(void)json_object_set_new(row, key, json_integer(cd_int(n)));
}

static json_t *controllers(const struct cd_core *core)
{
	uint64_t up_s = (env_now_ns(core->env) - core->start_ns) / 1000000000;
	json_t *rows = json_array();
	json_t *self = json_pack(
		"{s:s, s:s, s:I, s:I, s:s}", "name", core->name, "state",
		core->leads ? "leads" : "waits", "term", cd_int(core->term),
		"uptime_s", cd_int(up_s), "version", AQ_RELEASE);

	if (!core->leads)
		(void)json_object_set_new(self, "why", json_string(core->why));
	(void)json_array_append_new(rows, self);
	if (!core->leads && core->leader[0])
		(void)json_array_append_new(
			rows, json_pack("{s:s, s:s}", "name", core->leader,
					"state", "leads"));
	return rows;
}

/* ---- nodes --------------------------------------------------------------- */

/* What a tenant has there is all that it learns of a node's memory. */
static json_t *node_row(const struct cd_core *core, const struct cd_node *n,
			const struct cd_tenant *only)
{
	uint64_t now = env_now_ns(core->env);
	json_t *row =
		json_pack("{s:s, s:s, s:s, s:s, s:s}", "name", n->name, "kind",
			  cd_kind_name(n->kind), "state", cd_state_name(n),
			  "zone", n->zone, "address", n->address);

	set(row, "silent_ms",
	    now > n->seen_ns ? (now - n->seen_ns) / 1000000 : 0);
	if (n->kind != CD_MEMORY)
		return row;
	if (!only) {
		set(row, "size", n->size_bytes);
		set(row, "ops_per_s", n->state == CD_UP ? n->ops_per_s : 0);
	}
	set(row, "used", only ? only->share[n->slot].used : n->used_bytes);
	set(row, "regions", only ? only->share[n->slot].regions : n->regions);
	set(row, "connections",
	    only ? only->share[n->slot].connections : n->connections);
	return row;
}

static json_t *nodes(const struct cd_core *core, const struct cd_tenant *only)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < CD_NODES_MAX; i++)
		if (core->node[i])
			(void)json_array_append_new(
				rows, node_row(core, core->node[i], only));
	return rows;
}

/* ---- tenants ------------------------------------------------------------- */

static json_t *tenant_row(const struct cd_core *core, const struct cd_tenant *t)
{
	uint64_t regions = 0, connections = 0;
	json_t *row = json_pack("{s:s}", "name", t->name);

	for (unsigned i = 0; i < CD_NODES_MAX; i++) {
		regions += core->node[i] ? t->share[i].regions : 0;
		connections += core->node[i] ? t->share[i].connections : 0;
	}
	if (t->quota)
		set(row, "quota", t->quota);
	set(row, "allocated", cd_tenant_allocated(core, t));
	set(row, "used", cd_tenant_used(core, t));
	set(row, "regions", regions);
	set(row, "connections", connections);
	return row;
}

static json_t *tenants(const struct cd_core *core, const struct cd_tenant *only)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < core->tenant_count; i++)
		if (!only || only == core->tenant[i])
			(void)json_array_append_new(
				rows, tenant_row(core, core->tenant[i]));
	return rows;
}

/* ---- names --------------------------------------------------------------- */

/* As many as an answer may have; the page says how many are not there. */
static void names(const struct cd_core *core, const struct cd_tenant *only,
		  json_t *tree)
{
	json_t *rows = json_array(), *row;
	uint64_t left_off = 0;
	size_t k;

	for (unsigned i = 0; i < CD_NODES_MAX; i++) {
		const struct cd_node *n = core->node[i];

		if (!n)
			continue;
		json_array_foreach(n->names, k, row)
		{
			const char *of = json_string_value(
				json_object_get(row, "tenant"));
			json_t *copy;

			if (only && strcmp(of, only->name) != 0)
				continue;
			if (json_array_size(rows) >= CD_NAMES_SHOWN) {
				left_off++;
				continue;
			}
			copy = json_pack("{s:O, s:s, s:s}", "name",
					 json_object_get(row, "name"), "tenant",
					 of, "node", n->name);
			set(copy, "size",
			    (uint64_t)json_integer_value(
				    json_object_get(row, "size")));
			(void)json_array_append_new(rows, copy);
		}
	}
	(void)json_object_set_new(tree, "names", rows);
	set(tree, "names_left_off", left_off);
}

/* ---- routes -------------------------------------------------------------- */

void cd_handle_overview(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	const struct cd_tenant *only = NULL;
	json_t *tree;

	if (!scope_of(call, &only))
		return;
	tree = json_pack("{s:I, s:s, s:o, s:o, s:o, s:o}", "at",
			 cd_int(core->wall_s), "sees", only ? only->name : "",
			 "controllers", controllers(core), "nodes",
			 nodes(core, only), "tenants", tenants(core, only),
			 "events", cd_events_json(core, only));
	names(core, only, tree);
	cd_overview_tree(core, only, tree);
	cd_overview_moves(core, only, tree);
	ctl_reply_json(call->reply, 200, tree);
}

static int parse_seconds(const char *text, unsigned *out)
{
	char *end = NULL;
	unsigned long n = strtoul(text, &end, 10);

	if (text[strspn(text, "0123456789")] || strlen(text) > 5 || !n ||
	    n > CD_HISTORY_S)
		return error_set(-EINVAL,
				 "'%.20s' is no number of seconds from 1 to %d",
				 text, CD_HISTORY_S);
	*out = (unsigned)n;
	return 0;
}

void cd_handle_history(void *ctx, struct ctl_call *call)
{
	const struct cd_core *core = ctx;
	const struct cd_tenant *only = NULL;
	unsigned seconds = 0;
	json_t *tree = NULL;
	int err;

	if (!scope_of(call, &only))
		return;
	err = parse_seconds(call->segment[1], &seconds);
	if (!err)
		err = cd_history_json(core, only, call->segment[0], seconds,
				      &tree);
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_json(call->reply, 200, tree);
}
