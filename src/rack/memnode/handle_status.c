/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/status and /metrics. */
#include <aquifer/aqdv.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/env.h"
#include "base/release.h"
#include "blocks.h"
#include "census.h"
#include "control/ctl_metrics.h"
#include "spill.h"
#include "walks_priv.h"

static uint64_t uptime_s(const struct mem_node *node)
{
	return (env_now_ns(node->env) - node->start_ns) / 1000000000;
}

/* What all tenants have together is for who may see all of them; a tenant sees
 * what there is for it, and a stranger only whom it has reached. */
void handle_status(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	const struct mem_tenant *t = call->sees_all ? NULL : call->caller;
	uint64_t size = node->pool_bytes, used = node->used_bytes;
	uint64_t left = node->is_drained ? 0 : size - used;
	json_t *tree = json_pack("{s:s, s:s, s:s}", "node", node->name, "proto",
				 CTL_PROTO, "incarnation", node->incarnation);

	if (t) {
		used = t->used_bytes + t->page_bytes;
		size = t->quota_bytes ? t->quota_bytes : size;
		left = u64_min(left, size > used ? size - used : 0);
	}
	if (t || call->sees_all) {
		(void)json_object_set_new(tree, "version",
					  json_string(AQ_RELEASE));
		(void)json_object_set_new(
			tree, "uptime_s",
			json_integer((json_int_t)uptime_s(node)));
		(void)json_object_set_new(tree, "pool",
					  json_pack("{s:I, s:I, s:I}", "size",
						    (json_int_t)size, "used",
						    (json_int_t)used, "free",
						    (json_int_t)left));
		if (node->spill)
			(void)json_object_set_new(
				tree, "spill",
				json_pack(
					"{s:I, s:I, s:I}", "size",
					(json_int_t)spill_size(node->spill),
					"used",
					(json_int_t)spill_used(node->spill),
					"errors",
					(json_int_t)spill_errors(node->spill)));
		if (node->has_numa)
			(void)json_object_set_new(
				tree, "numa",
				json_integer((json_int_t)node->numa));
		(void)json_object_set_new(
			tree, "regions",
			json_integer(t ? (json_int_t)t->taken[MEM_LIMIT_REGIONS]
				       : (json_int_t)node->region_count));
		(void)json_object_set_new(
			tree, "connections",
			json_integer(t ? (json_int_t)t->taken[MEM_LIMIT_CONNS]
				       : (json_int_t)node->conn_count));
	}
	if ((t || call->sees_all) && node->shared)
		(void)json_object_set_new(
			tree, "shared", shared_describe(node, call->sees_all));
	if ((t || call->sees_all) && node->walks)
		(void)json_object_set_new(tree, "walk", walks_describe(node));
	/* Whoever has a token may know whose it is. */
	if (call->caller)
		(void)json_object_set_new(
			tree, "tenant",
			json_string(((struct mem_tenant *)call->caller)->name));
	if (call->sees_all) {
		(void)json_object_set_new(tree, "pid", json_integer(getpid()));
		(void)json_object_set_new(
			tree, "tenants",
			json_integer((json_int_t)node->tenant_count));
	}
	ctl_reply_json(call->reply, 200, tree);
}

static void node_metrics(struct ctl_metrics *m, const struct mem_node *node)
{
	ctl_metrics_build(m);
	ctl_metrics_one(m, CTL_METRIC_GAUGE, "aquifer_uptime_seconds",
			"Time since the node started.", uptime_s(node));
	ctl_metrics_one(m, CTL_METRIC_GAUGE, "aquifer_pool_size_bytes",
			"Limit of the memory pool.", node->pool_bytes);
	ctl_metrics_one(m, CTL_METRIC_GAUGE, "aquifer_pool_used_bytes",
			"Memory in regions.", node->used_bytes);
	ctl_metrics_one(m, CTL_METRIC_GAUGE, "aquifer_tenants",
			"Tenants of the node.", node->tenant_count);
	ctl_metrics_one(m, CTL_METRIC_GAUGE, "aquifer_regions",
			"Regions of all tenants.", node->region_count);
	ctl_metrics_one(m, CTL_METRIC_GAUGE, "aquifer_connections",
			"Connections of all tenants.", node->conn_count);
	ctl_metrics_one(m, CTL_METRIC_GAUGE, "aquifer_grants",
			"Grants of all connections.", node->grant_count);
	ctl_metrics_one(m, CTL_METRIC_GAUGE, "aquifer_walks",
			"Walks that the node keeps, of all tenants.",
			node->walks ? node->walks->count : 0);
	ctl_metrics_one(m, CTL_METRIC_COUNTER,
			"aquifer_connections_started_total",
			"Connections ever made.", node->conns_started);
	ctl_metrics_one(m, CTL_METRIC_COUNTER, "aquifer_scrubbed_bytes_total",
			"Memory given back and cleared.", node->bytes_scrubbed);
	shared_metrics(m, node);
	mem_blocks_metrics(m, node);
	ctl_metrics_family(m, CTL_METRIC_COUNTER,
			   "aquifer_connections_ended_total",
			   "Connections that ended, by reason.");
	for (unsigned i = 0; i < MEM_END_COUNT; i++) {
		const char *labels[] = {"reason",
					conn_end_name((enum mem_end)i)};

		ctl_metrics_sample(m, node->conns_ended[i], labels, 1);
	}
}

static uint64_t used_of(const struct mem_tenant *t)
{
	return t->used_bytes;
}

static uint64_t quota_of(const struct mem_tenant *t)
{
	return t->quota_bytes;
}

static uint64_t regions_of(const struct mem_tenant *t)
{
	return t->taken[MEM_LIMIT_REGIONS];
}

static uint64_t walks_of(const struct mem_tenant *t)
{
	return t->taken[MEM_LIMIT_WALKS];
}

static uint64_t conns_of(const struct mem_tenant *t)
{
	return t->taken[MEM_LIMIT_CONNS];
}

/* A tenant sees its own numbers, the administrator and who may use the node's
 * own socket everybody's. */
static void tenant_metrics(struct ctl_metrics *m, const struct mem_node *node,
			   const struct mem_tenant *only)
{
	static const struct {
		const char *name, *help;
		uint64_t (*get)(const struct mem_tenant *);
	} families[] = {
		{"aquifer_tenant_used_bytes", "Memory in the tenant's regions.",
		 used_of},
		{"aquifer_tenant_quota_bytes",
		 "The tenant's quota; 0: only the pool is the limit.",
		 quota_of},
		{"aquifer_tenant_regions", "Regions of the tenant.",
		 regions_of},
		{"aquifer_tenant_connections", "Connections of the tenant.",
		 conns_of},
		{"aquifer_tenant_walks", "Walks that the node keeps for it.",
		 walks_of},
	};

	for (size_t f = 0; f < ARRAY_LEN(families); f++) {
		ctl_metrics_family(m, CTL_METRIC_GAUGE, families[f].name,
				   families[f].help);
		for (unsigned i = 0; i < node->tenant_count; i++) {
			const struct mem_tenant *t = node->tenants[i];
			const char *labels[] = {"tenant", t->name};

			if (!only || only == t)
				ctl_metrics_sample(m, families[f].get(t),
						   labels, 1);
		}
	}
}

static void request_metrics(struct ctl_metrics *m, const struct mem_node *node)
{
	ctl_metrics_family(m, CTL_METRIC_COUNTER, "aquifer_requests_total",
			   "Requests by method, route and status.");
	for (unsigned r = 0; r <= node_route_count; r++) {
		const struct mem_request_count *c = &node->requests[r];
		bool known = r < node_route_count;

		for (unsigned i = 0; i < MEM_STATUS_COUNT && c->count[i]; i++) {
			char status[16];
			const char *labels[] = {
				"method",
				known ? ctl_method_name(node_routes[r].method) : "other",
				"route",
				known ? node_routes[r].pattern : "other",
				"status",
				status,
			};

			(void)snprintf(status, sizeof(status), "%u",
				       c->status[i]);
			ctl_metrics_sample(m, c->count[i], labels, 3);
		}
	}
}

static void nic_metrics(struct ctl_metrics *m, const struct mem_node *node)
{
	const char *name;

	ctl_metrics_family(m, CTL_METRIC_COUNTER, "aquifer_nic_events_total",
			   "Counters of the node's NIC.");
	for (unsigned i = 0; (name = aqdv_counter_name(i)); i++) {
		const char *labels[] = {"counter", name};
		uint64_t value;

		if (aqdv_get_counter(node->context, name, &value) == 0)
			ctl_metrics_sample(m, value, labels, 1);
	}
}

/* A client says itself whose it is; a tenant is told of those that say they are
 * its own. Files are read, so without the node's lock. */
static void client_metrics(struct ctl_metrics *m, struct mem_node *node,
			   const struct mem_tenant *only)
{
	char name[MEM_TENANT_NAME_MAX + 1] = "";

	if (!node->census)
		return;
	if (only)
		(void)snprintf(name, sizeof(name), "%s", only->name);
	pthread_mutex_unlock(&node->lock);
	census_metrics(node->census, m, only ? name : NULL,
		       env_now_ns(node->env));
	/* A machine's cache serves programs of any tenant of its user. */
	if (!only)
		shared_caches_metrics(m, census_rundir(node->census));
	pthread_mutex_lock(&node->lock);
}

void handle_metrics(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	struct ctl_metrics m;
	size_t text_bytes;
	char *text;
	int err = ctl_metrics_init(&m);

	if (!err) {
		client_metrics(&m, node, call->sees_all ? NULL : call->caller);
		tenant_metrics(&m, node, call->sees_all ? NULL : call->caller);
		/* The NIC's counters say how far others' packets are. */
		if (call->sees_all) {
			node_metrics(&m, node);
			request_metrics(&m, node);
			nic_metrics(&m, node);
		}
		err = ctl_metrics_end(&m, &text, &text_bytes);
	}
	if (err)
		ctl_reply_error(call->reply, err, "no memory for the metrics");
	else
		ctl_reply_text(call->reply, text, text_bytes, CTL_METRICS_TYPE);
}
