/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Beats of nodes: what they say, and what they are told. A beat waits until
 * there is something to say, CD_HOLD_MS at most. What it says may come late or
 * twice; only what names the epoch of the node's last join is taken. A node
 * that has news sends another beat beside the one that waits, which then ends.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/plant.h"
#include "cd_page_priv.h"
#include "vault_priv.h"

/* ---- what a node says --------------------------------------------------- */

static int find_node(struct cd_core *core, const struct ctl_call *call,
		     struct cd_node **out)
{
	const char *incarnation = NULL;
	uint64_t epoch = 0;
	struct cd_node *n = cd_node_find(core, call->segment[0]);
	int err = cd_field_incarnation(call->body, &incarnation);

	if (!err)
		err = ctl_field_u64(call->body, "epoch", true, 0, INT64_MAX,
				    &epoch);
	if (err)
		return err;
	/* It joins, and all is well. */
	if (!n ||
	    ((strcmp(n->incarnation, incarnation) != 0 || n->epoch != epoch) &&
	     !PLANTED(ctl_any_epoch)))
		return error_set(-ESTALE, "node %s has to join",
				 call->segment[0]);
	*out = n;
	return 0;
}

struct said {
	const char *tenant;
	uint64_t used, limit, version, wish, regions, connections;
};

static int parse_share(const json_t *row, struct said *s)
{
	int err = json_is_object(row)
			  ? ctl_field_string(row, "tenant", true, &s->tenant)
			  : error_set(-EINVAL, "\"shares\" has objects");

	if (!err)
		err = ctl_field_u64(row, "used", false, 0, INT64_MAX, &s->used);
	if (!err)
		err = ctl_field_u64(row, "limit", false, 0, INT64_MAX,
				    &s->limit);
	if (!err)
		err = ctl_field_u64(row, "version", false, 0, INT64_MAX,
				    &s->version);
	if (!err)
		err = ctl_field_u64(row, "wish", false, 0, INT64_MAX, &s->wish);
	if (!err)
		err = ctl_field_u64(row, "regions", false, 0, INT64_MAX,
				    &s->regions);
	return err ? err
		   : ctl_field_u64(row, "connections", false, 0, INT64_MAX,
				   &s->connections);
}

/* A text of that many characters at most; "" where it is none. */
static bool is_text(const json_t *v, size_t max)
{
	return json_is_string(v) && json_string_length(v) <= max &&
	       strlen(json_string_value(v)) == json_string_length(v);
}

static bool is_name_row(const json_t *row)
{
	const json_t *size = json_object_get(row, "size");

	return is_text(json_object_get(row, "name"), CD_NAME_TEXT_MAX) &&
	       is_text(json_object_get(row, "tenant"), CD_NAME_MAX) &&
	       json_object_size(row) == (size ? 3 : 2) &&
	       (!size ||
		(json_is_integer(size) && json_integer_value(size) >= 0));
}

static bool is_share_row(const json_t *row)
{
	struct said s;

	return parse_share(row, &s) == 0;
}

static bool is_own_row(const json_t *row)
{
	return json_is_object(row);
}

static bool is_conflict_row(const json_t *row)
{
	return is_text(row, CD_NAME_MAX);
}

/* Lists are checked before any of them is taken. */
static int check_lists(const json_t *body)
{
	static const struct {
		const char *name, *words;
		size_t max;
		bool (*is_row)(const json_t *row);
	} lists[] = {
		{"shares", "objects with tenant and numbers", CD_TENANTS_MAX,
		 is_share_row},
		{"names", "objects with tenant, name and size", CD_NAMES_MAX,
		 is_name_row},
		{"own", "objects", CD_TENANTS_MAX, is_own_row},
		{"conflicts", "names", CD_TENANTS_MAX, is_conflict_row},
	};

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		const json_t *v = json_object_get(body, lists[i].name), *row;
		bool is_fine = !v || json_is_array(v);
		size_t k;

		if (json_array_size(v) > lists[i].max)
			return error_set(-E2BIG, "\"%s\" has %zu at most",
					 lists[i].name, lists[i].max);
		json_array_foreach(v, k, row) is_fine &= lists[i].is_row(row);
		if (!is_fine)
			return error_set(-EINVAL, "\"%s\" is a list of %s",
					 lists[i].name, lists[i].words);
	}
	return 0;
}

/* What else a beat says, before any of it is taken. */
static int check_soft(const json_t *body)
{
	static const char *const numbers[] = {
		"used",	       "regions", "connections", "ops",
		"drain_order", "spill",	  "spilled"};
	const json_t *complete = json_object_get(body, "names_complete");
	const json_t *drained = json_object_get(body, "drained");
	const json_t *tenants = json_object_get(body, "tenants");
	uint64_t n;
	int err = 0;

	for (size_t i = 0; !err && i < ARRAY_LEN(numbers); i++)
		err = ctl_field_u64(body, numbers[i], false, 0, INT64_MAX, &n);
	if (!err && complete && !json_is_boolean(complete))
		err = error_set(-EINVAL, "\"names_complete\" is true or false");
	if (!err && drained && !json_is_boolean(drained))
		err = error_set(-EINVAL, "\"drained\" is true or false");
	if (!err && tenants && !is_text(tenants, CD_LIST_NAME_MAX))
		err = error_set(-EINVAL,
				"\"tenants\" has %d characters at most",
				CD_LIST_NAME_MAX);
	return err;
}

static void take_shares(struct cd_core *core, struct cd_node *n,
			const json_t *rows)
{
	const json_t *row;
	size_t i;

	for (i = 0; i < core->tenant_count; i++) {
		struct cd_share *s = &core->tenant[i]->share[n->slot];

		s->used = s->regions = s->connections = s->wish = 0;
	}
	json_array_foreach(rows, i, row)
	{
		struct said said = {0};
		struct cd_tenant *t =
			parse_share(row, &said)
				? NULL
				: cd_tenant_find(core, said.tenant);
		struct cd_share *s = t ? &t->share[n->slot] : NULL;

		if (!s)
			continue;
		if (said.wish && !s->waits)
			cd_share_ask_anew(core, t);
		s->waits = said.wish != 0;
		s->gave |= s->told;
		s->used = said.used;
		s->regions = said.regions;
		s->connections = said.connections;
		s->wish = said.wish;
		s->is_refused = false;
		cd_share_report(core, t, n, said.version, said.limit);
	}
	for (i = 0; i < core->tenant_count; i++)
		if (core->tenant[i]->quota &&
		    (core->tenant[i]->share[n->slot].wish ||
		     core->tenant[i]->squeeze))
			cd_share_serve(core, core->tenant[i]);
}

static uint64_t number_of(const json_t *body, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(body, name));
}

static void take_soft(struct cd_core *core, struct cd_node *n,
		      const json_t *body)
{
	json_t *names = json_object_get(body, "names");
	json_t *conflicts = json_object_get(body, "conflicts");

	n->used_bytes = number_of(body, "used");
	n->spill_bytes = number_of(body, "spill");
	n->spilled_bytes = number_of(body, "spilled");
	n->regions = number_of(body, "regions");
	n->connections = number_of(body, "connections");
	cd_node_ops(core, n, number_of(body, "ops"));
	n->promised_bytes = 0;
	n->is_drained =
		json_is_true(json_object_get(body, "drained")) &&
		number_of(body, "drain_order") == cd_node_drain_order(core, n);
	n->has_beaten = true;
	cd_node_seen(core, n);
	if (names) {
		json_decref(n->names);
		n->names = json_incref(names);
		n->names_complete =
			json_is_true(json_object_get(body, "names_complete"));
	}
	if (conflicts) {
		json_decref(n->conflicts);
		n->conflicts = json_incref(conflicts);
	}
}

void cd_handle_node_beat(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	struct cd_who *who = call->caller;
	struct cd_held *held = who->held;
	const char *tenants =
		json_string_value(json_object_get(call->body, "tenants"));
	struct cd_node *n = NULL;
	int err = find_node(core, call, &n);

	if (!err)
		err = check_soft(call->body);
	if (!err)
		err = check_lists(call->body);
	if (!err)
		err = cd_blocks_check(call->body);
	if (!err)
		err = cd_tasks_check(call->body);
	if (!err)
		err = cd_chains_check(call->body);
	if (!err)
		err = cd_given_check(call->body);
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	core->beats++;
	held->is_held = true;
	held->node = n->slot;
	held->epoch = n->epoch;
	held->order = n->order;
	held->beat = ++n->beat;
	/* The first one of a leader is answered at once: the node learns that
	 * it is known, and says its names. */
	held->is_due = !n->has_beaten;
	held->since_ns = env_now_ns(core->env);
	(void)snprintf(held->tenants, sizeof(held->tenants), "%s",
		       tenants ? tenants : "");
	(void)snprintf(n->tenants, sizeof(n->tenants), "%s", held->tenants);
	take_soft(core, n, call->body);
	if (n->kind != CD_MEMORY)
		return;
	cd_tenant_adopt(core, json_object_get(call->body, "own"));
	take_shares(core, n, json_object_get(call->body, "shares"));
	cd_stage_group(core);
	cd_blocks_hear(core, n, call->body);
	cd_tasks_hear(core, n, call->body);
	cd_stage_group(core);
	cd_chains_hear(core, n, call->body);
	cd_given_hear(core, n, call->body);
}

/* ---- what it is told ---------------------------------------------------- */

static struct cd_node *node_of(const struct cd_core *core,
			       const struct cd_held *held)
{
	struct cd_node *n = core->node[held->node];

	return n && n->epoch == held->epoch ? n : NULL;
}

static bool is_over(const struct cd_core *core, const struct cd_held *held,
		    uint64_t ms)
{
	return env_now_ns(core->env) - held->since_ns >= ms * 1000000;
}

bool cd_core_is_late(const struct cd_core *core, const struct cd_held *held,
		     uint64_t mark)
{
	return cd_core_settled(core, mark) == CD_PENDING &&
	       (!cd_core_is_sure(core) ||
		is_over(core, held, CD_HOLD_MS + CD_LATE_MS));
}

bool cd_core_is_due(const struct cd_core *core, const struct cd_held *held)
{
	const struct cd_node *n = node_of(core, held);
	char tenants[32];

	cd_tenants_name(core, tenants);
	return !cd_core_is_sure(core) || !n || held->is_due ||
	       cd_blocks_are_due(n) || cd_tasks_are_due(core, n) ||
	       cd_given_is_due(core, n) || n->beat != held->beat ||
	       n->order != held->order ||
	       (n->kind == CD_MEMORY && strcmp(tenants, held->tenants) != 0) ||
	       is_over(core, held, CD_HOLD_MS);
}

static json_t *shares_for(struct cd_core *core, const struct cd_node *n)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < core->tenant_count; i++) {
		struct cd_tenant *t = core->tenant[i];
		struct cd_share *s = &t->share[n->slot];

		if (!t->quota || n->kind != CD_MEMORY)
			continue;
		(void)json_array_append_new(
			rows,
			json_pack("{s:s, s:I, s:I, s:b, s:b}", "tenant",
				  t->name, "bytes", cd_int(s->bytes), "version",
				  cd_int(s->version), "squeeze", t->squeeze,
				  "refused", s->is_refused));
		s->is_refused = false;
		s->told |= t->squeeze;
	}
	return rows;
}

void cd_core_put_off(const struct cd_core *core, struct ctl_reply *reply)
{
	if (cd_core_is_sure(core)) {
		ctl_reply_none(reply);
		return;
	}
	ctl_reply_error(reply, -EHOSTDOWN, "%s",
			core->leads ? "the ledger does not answer" : core->why);
	reply->status = 503;
}

void cd_core_answer(struct cd_core *core, const struct cd_held *held,
		    struct ctl_reply *reply)
{
	struct cd_node *n = node_of(core, held);
	char tenants[32];
	json_t *tree;

	if (!cd_core_is_sure(core)) {
		cd_core_put_off(core, reply);
		return;
	}
	if (!n) {
		ctl_reply_error(reply, -ESTALE, "the node has to join");
		return;
	}
	if (n->beat != held->beat) {
		ctl_reply_none(reply);
		return;
	}
	cd_tenants_name(core, tenants);
	tree = json_pack("{s:I, s:I, s:b, s:I, s:s, s:o, s:b}", "term",
			 cd_int(core->term), "epoch", cd_int(n->epoch), "drain",
			 n->drain, "drain_order",
			 cd_int(cd_node_drain_order(core, n)), "tenants_name",
			 tenants, "shares", shares_for(core, n), "wants_names",
			 !n->names);
	/* Others have no use for hashes of tokens. */
	if (n->kind == CD_MEMORY && strcmp(tenants, held->tenants) != 0)
		(void)json_object_set_new(tree, "tenants",
					  cd_tenants_json(core));
	if (n->kind == CD_MEMORY)
		cd_blocks_say(core, n, tree);
	if (n->kind == CD_MEMORY)
		cd_tasks_say(core, n, tree);
	if (n->kind == CD_MEMORY)
		cd_chains_say(core, n, tree);
	if (n->kind == CD_MEMORY)
		cd_given_say(core, n, tree);
	ctl_reply_json(reply, 200, tree);
}

void cd_core_broke(struct cd_core *core, const struct cd_held *held)
{
	struct cd_node *n = node_of(core, held);

	/* A newer beat shows that it lives. */
	if (!core->leads || !n || n->beat != held->beat || n->state == CD_DOWN)
		return;
	n->is_broken = true;
	n->broken_ns = env_now_ns(core->env);
	cd_nodes_tick(core);
}
