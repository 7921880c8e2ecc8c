/* SPDX-License-Identifier: Apache-2.0 */
/* What can only be looked at: status, metrics, and where names are. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "base/piece_name.h"
#include "base/release.h"
#include "cd_page_priv.h"
#include "control/ctl_metrics.h"
#include "vault_priv.h"

static uint64_t uptime_s(const struct cd_core *core)
{
	return (env_now_ns(core->env) - core->start_ns) / 1000000000;
}

static unsigned count_state(const struct cd_core *core, enum cd_state state)
{
	unsigned count = 0;

	for (unsigned i = 0; i < CD_NODES_MAX; i++)
		count += core->node[i] && core->node[i]->state == state;
	return count;
}

void cd_handle_status(void *ctx, struct ctl_call *call)
{
	const struct cd_core *core = ctx;
	const struct cd_who *who = call->caller;
	json_t *tree = json_pack("{s:s, s:s, s:b}", "controller", core->name,
				 "proto", CTL_PROTO, "leads", core->leads);

	if (!core->leads)
		(void)json_object_set_new(tree, "why", json_string(core->why));
	if (core->leader[0])
		(void)json_object_set_new(tree, "leader",
					  json_string(core->leader));
	if (call->sees_all || who->role != CD_ROLE_NONE) {
		(void)json_object_set_new(tree, "version",
					  json_string(AQ_RELEASE));
		(void)json_object_set_new(tree, "term",
					  json_integer(cd_int(core->term)));
		(void)json_object_set_new(tree, "uptime_s",
					  json_integer(cd_int(uptime_s(core))));
		(void)json_object_set_new(tree, "nodes",
					  json_integer(core->node_count));
		(void)json_object_set_new(
			tree, "nodes_up",
			json_integer(count_state(core, CD_UP)));
	}
	if (call->sees_all || who->role != CD_ROLE_NONE)
		(void)json_object_set_new(tree, "vault",
					  cd_vault_json(core, call->sees_all));
	if (call->sees_all) {
		(void)json_object_set_new(tree, "tenants",
					  json_integer(core->tenant_count));
		(void)json_object_set_new(tree, "pid", json_integer(getpid()));
	}
	ctl_reply_json(call->reply, 200, tree);
}

/* ---- metrics ------------------------------------------------------------ */

static void core_metrics(struct ctl_metrics *m, const struct cd_core *core)
{
	static const char *const states[] = {"up", "suspect", "down"};

	ctl_metrics_build(m);
	ctl_metrics_one(m, CTL_METRIC_GAUGE, "aquifer_control_leads",
			"1: this controller leads.", core->leads);
	ctl_metrics_one(m, CTL_METRIC_GAUGE, "aquifer_control_term",
			"The leader's term.", core->term);
	ctl_metrics_one(m, CTL_METRIC_COUNTER, "aquifer_control_requests_total",
			"Requests, beats among them.", core->requests);
	ctl_metrics_one(m, CTL_METRIC_COUNTER, "aquifer_control_refused_total",
			"Requests that were refused.", core->refused);
	ctl_metrics_one(m, CTL_METRIC_COUNTER, "aquifer_control_too_many_total",
			"Of them, those of callers that ask too often.",
			core->too_many);
	ctl_metrics_one(m, CTL_METRIC_COUNTER, "aquifer_control_beats_total",
			"Beats of nodes.", core->beats);
	ctl_metrics_one(m, CTL_METRIC_COUNTER, "aquifer_control_commits_total",
			"Transactions of the ledger.", core->commits);
	ctl_metrics_one(m, CTL_METRIC_COUNTER,
			"aquifer_control_commits_failed_total",
			"Transactions that failed or whose end is unknown.",
			core->failures);
	ctl_metrics_one(m, CTL_METRIC_GAUGE, "aquifer_control_jobs",
			"Jobs and root folders.", core->tree->job_count);
	ctl_metrics_one(m, CTL_METRIC_GAUGE, "aquifer_control_objects",
			"Files and queues.", core->tree->objects.count);
	ctl_metrics_one(m, CTL_METRIC_COUNTER, "aquifer_control_expired_total",
			"Names whose lease ran out.", core->tree->expired);
	ctl_metrics_one(m, CTL_METRIC_GAUGE, "aquifer_control_vault_moving",
			"Files and queues on their way to or from the vault.",
			core->tree->moving.count);
	ctl_metrics_one(m, CTL_METRIC_GAUGE, "aquifer_control_vault_failing",
			"Of them, those that the vault does not take.",
			cd_vault_failing(core));
	ctl_metrics_one(m, CTL_METRIC_COUNTER, "aquifer_control_flushed_total",
			"Files and queues that came to the vault.",
			core->tree->flushed);
	ctl_metrics_one(m, CTL_METRIC_COUNTER, "aquifer_control_loaded_total",
			"Files and queues that came back from it.",
			core->tree->loaded);
	ctl_metrics_one(
		m, CTL_METRIC_COUNTER, "aquifer_control_vault_errors_total",
		"What went wrong with either.", core->tree->vault_errors);
	ctl_metrics_family(m, CTL_METRIC_GAUGE, "aquifer_control_nodes",
			   "Nodes by state.");
	for (unsigned i = 0; i < ARRAY_LEN(states); i++) {
		const char *labels[] = {"state", states[i]};

		ctl_metrics_sample(m, count_state(core, (enum cd_state)i),
				   labels, 1);
	}
}

static uint64_t moved_of(const struct cd_node *n)
{
	return n->moved;
}

static uint64_t moving_of(const struct cd_node *n)
{
	return n->moving;
}

/* Regions that leave drained nodes. */
static void move_metrics(struct ctl_metrics *m, const struct cd_core *core)
{
	static const struct {
		enum ctl_metric_kind kind;
		const char *name, *help;
		uint64_t (*of)(const struct cd_node *n);
	} rows[] = {
		{CTL_METRIC_COUNTER, "aquifer_control_moves_total",
		 "Regions that have moved to another node, since its start.",
		 moved_of},
		{CTL_METRIC_GAUGE, "aquifer_control_moves_under_way",
		 "Regions that are moving to another node.", moving_of},
	};

	for (unsigned k = 0; k < ARRAY_LEN(rows); k++) {
		ctl_metrics_family(m, rows[k].kind, rows[k].name, rows[k].help);
		for (unsigned i = 0; i < CD_NODES_MAX; i++) {
			const struct cd_node *n = core->node[i];
			const char *labels[] = {"node", n ? n->name : ""};

			if (n && n->kind == CD_MEMORY)
				ctl_metrics_sample(m, rows[k].of(n), labels, 1);
		}
	}
}

static uint64_t quota_of(const struct cd_core *core, const struct cd_tenant *t)
{
	(void)core;
	return t->quota;
}

/* A tenant sees its own numbers only. */
static void tenant_metrics(struct ctl_metrics *m, const struct cd_core *core,
			   const struct cd_tenant *only)
{
	static const struct {
		const char *name, *help;
		uint64_t (*get)(const struct cd_core *,
				const struct cd_tenant *);
	} families[] = {
		{"aquifer_rack_tenant_used_bytes",
		 "Memory of the tenant on all nodes.", cd_tenant_used},
		{"aquifer_rack_tenant_quota_bytes",
		 "The tenant's quota for the rack; 0: none.", quota_of},
		{"aquifer_rack_tenant_allowed_bytes",
		 "What nodes may hand out to it without asking.", cd_share_sum},
	};

	for (size_t f = 0; f < ARRAY_LEN(families); f++) {
		ctl_metrics_family(m, CTL_METRIC_GAUGE, families[f].name,
				   families[f].help);
		for (unsigned i = 0; i < core->tenant_count; i++) {
			const struct cd_tenant *t = core->tenant[i];
			const char *labels[] = {"tenant", t->name};

			if (!only || only == t)
				ctl_metrics_sample(m, families[f].get(core, t),
						   labels, 1);
		}
	}
}

void cd_handle_metrics(void *ctx, struct ctl_call *call)
{
	const struct cd_core *core = ctx;
	const struct cd_who *who = call->caller;
	struct ctl_metrics m;
	size_t text_bytes;
	char *text;
	int err = ctl_metrics_init(&m);

	if (!err) {
		tenant_metrics(&m, core, call->sees_all ? NULL : who->tenant);
		if (call->sees_all) {
			core_metrics(&m, core);
			move_metrics(&m, core);
		}
		err = ctl_metrics_end(&m, &text, &text_bytes);
	}
	if (err)
		ctl_reply_error(call->reply, err, "no memory for the metrics");
	else
		ctl_reply_text(call->reply, text, text_bytes, CTL_METRICS_TYPE);
}

/* ---- names -------------------------------------------------------------- */

static bool is_piece(const char *piece, const char *region)
{
	struct piece_name id;

	return strcmp(piece, region) == 0 ||
	       (piece_name_parse(piece, &id) == 0 &&
		strcmp(id.region, region) == 0);
}

static void look_at(const struct cd_node *n, const char *tenant,
		    const char *region, json_t *out)
{
	json_t *row;
	size_t i;

	json_array_foreach(n->names, i, row)
	{
		const char *of =
			json_string_value(json_object_get(row, "tenant"));
		const char *name =
			json_string_value(json_object_get(row, "name"));

		if (strcmp(of, tenant) == 0 && is_piece(name, region))
			(void)json_array_append_new(
				out,
				json_pack("{s:s, s:s, s:s}", "node", n->name,
					  "address", n->address, "name", name));
	}
}

/* Names are what nodes said last: a hint for who then asks the node itself.
 * "complete": what is not listed is not there, or is younger than that. */
void cd_handle_name_get(void *ctx, struct ctl_call *call)
{
	const struct cd_core *core = ctx;
	const struct cd_who *who = call->caller;
	json_t *rows;
	bool complete = core->leads;

	if (who->role != CD_ROLE_TENANT) {
		ctl_reply_error(call->reply, -EACCES,
				"names belong to tenants; use a tenant's "
				"token");
		return;
	}
	rows = json_array();
	for (unsigned i = 0; i < CD_NODES_MAX; i++) {
		const struct cd_node *n = core->node[i];

		if (!n || n->kind != CD_MEMORY)
			continue;
		complete &=
			n->state != CD_UP || (n->names && n->names_complete);
		look_at(n, who->tenant->name, call->segment[0], rows);
	}
	ctl_reply_json(
		call->reply, 200,
		json_pack("{s:o, s:b}", "pieces", rows, "complete", complete));
}
