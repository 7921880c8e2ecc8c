/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a tenant may have of everything that all tenants share, beside bytes of
 * the pool, which is its quota. Where nobody said how much, it is a part of
 * what the node has, so that no tenant can take all; "default" has twice as
 * much as others, because most racks have no other tenant.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/error.h"
#include "base/log.h"
#include "coherence/coherence.h"
#include "mem_priv.h"

static const struct {
	const char *name;
	const char *words;
	unsigned share; /* one in so many is a tenant's */
} kinds[MEM_LIMIT_COUNT] = {
	[MEM_LIMIT_DEVICE] = {"device", "bytes of the NIC's own memory", 4},
	[MEM_LIMIT_REGIONS] = {"regions", "regions", 4},
	[MEM_LIMIT_CONNS] = {"connections", "connections", 8},
	[MEM_LIMIT_SERVERS] = {"servers",
			       "connections that the processor answers", 4},
	[MEM_LIMIT_GRANTS] = {"grants", "grants", 4},
	[MEM_LIMIT_SESSIONS] = {"sessions", "sessions", 4},
	[MEM_LIMIT_WALKS] = {"walks", "walks", 8},
	[MEM_LIMIT_MACHINES] = {"machines", "machines that share memory", 4},
	[MEM_LIMIT_REQUESTS] = {"requests", "requests a second", 4},
};

const char *tenant_limit_name(enum mem_limit kind)
{
	return kinds[kind].name;
}

void tenant_limit_init(struct mem_node *node)
{
	struct ibv_device_attr_ex attr = {0};

	if (ibv_query_device_ex(node->context, NULL, &attr) == 0)
		node->total[MEM_LIMIT_DEVICE] = attr.max_dm_size;
	node->total[MEM_LIMIT_REGIONS] = MEM_REGION_MAX;
	node->total[MEM_LIMIT_CONNS] = MEM_CONN_MAX;
	node->total[MEM_LIMIT_SERVERS] = PFRAME_GUESTS_MAX;
	node->total[MEM_LIMIT_GRANTS] = (uint64_t)node->device.max_mw;
	node->total[MEM_LIMIT_SESSIONS] = MEM_SESSION_MAX;
	node->total[MEM_LIMIT_WALKS] = node->walk_config.programs;
	node->total[MEM_LIMIT_MACHINES] = COH_MACHINES_MAX;
	node->total[MEM_LIMIT_REQUESTS] = MEM_REQUESTS;
}

void tenant_limit_default(const struct mem_node *node, struct mem_tenant *t,
			  bool is_default)
{
	for (unsigned i = 0; i < MEM_LIMIT_COUNT; i++) {
		t->limit[i] =
			node->total[i] / kinds[i].share * (is_default ? 2 : 1);
		t->is_set[i] = false;
	}
}

int tenant_take(struct mem_tenant *t, enum mem_limit kind, uint64_t amount)
{
	if (amount > t->limit[kind] || t->taken[kind] > t->limit[kind] - amount)
		return error_set(kind == MEM_LIMIT_DEVICE ? -EDQUOT : -EAGAIN,
				 "tenant %s has %" PRIu64 " of %" PRIu64 " %s",
				 t->name, t->taken[kind], t->limit[kind],
				 kinds[kind].words);
	t->taken[kind] += amount;
	return 0;
}

void tenant_give(struct mem_tenant *t, enum mem_limit kind, uint64_t amount)
{
	ASSERT(t->taken[kind] >= amount);
	t->taken[kind] -= amount;
}

/* ---- in words ------------------------------------------------------------ */

int tenant_limit_parse(const struct mem_node *node, const json_t *body,
		       struct mem_tenant *t)
{
	const json_t *limits = json_object_get(body, "limits");
	uint64_t value[MEM_LIMIT_COUNT];
	size_t known = 0;

	if (!limits)
		return 0;
	for (unsigned i = 0; i < MEM_LIMIT_COUNT; i++) {
		int err = ctl_field_u64(limits, kinds[i].name, false, 0,
					node->total[i], &value[i]);

		if (err)
			return error_prefix(err, "\"limits\": ");
		known += !!json_object_get(limits, kinds[i].name);
	}
	if (!json_is_object(limits) || known != json_object_size(limits))
		return error_set(-EINVAL,
				 "\"limits\" has device, regions, connections, "
				 "servers, grants, sessions, walks, machines "
				 "and requests");
	for (unsigned i = 0; i < MEM_LIMIT_COUNT; i++) {
		if (!json_object_get(limits, kinds[i].name))
			continue;
		t->limit[i] = value[i];
		t->is_set[i] = true;
	}
	return 0;
}

void tenant_limit_cut(const struct mem_node *node, json_t *row)
{
	const json_t *limits = json_object_get(row, "limits");

	for (unsigned i = 0; i < MEM_LIMIT_COUNT; i++) {
		json_t *n = json_object_get(limits, kinds[i].name);

		if (json_integer_value(n) <= (json_int_t)node->total[i])
			continue;
		log_warn("memnode",
			 "tenant %s may have %" JSON_INTEGER_FORMAT
			 " %s, and this node has %" PRIu64 " by now",
			 json_string_value(json_object_get(row, "name")),
			 json_integer_value(n), kinds[i].words, node->total[i]);
		(void)json_integer_set(n, (json_int_t)node->total[i]);
	}
}

json_t *tenant_limit_json(const struct mem_tenant *t, bool only_set)
{
	json_t *tree = json_object();

	for (unsigned i = 0; i < MEM_LIMIT_COUNT; i++)
		if (!only_set || t->is_set[i])
			(void)json_object_set_new(
				tree, kinds[i].name,
				json_integer((json_int_t)t->limit[i]));
	return tree;
}
