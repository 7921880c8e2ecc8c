/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory at a node: its life, and its way to the switch. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/size.h"
#include "control/ctl_metrics.h"
#include "shared_priv.h"

enum {
	LINE_BYTES = 512,
};

/* ---- life ---------------------------------------------------------------- */

static int check_config(const struct mem_node *node,
			const struct mem_node_config *c)
{
	if (!c->switch_path)
		return error_set(-EINVAL,
				 "shared memory is kept coherent by a switch: "
				 "set nic.port = switch:NAME");
	if (node->has_auth)
		return error_set(-EOPNOTSUPP,
				 "nic.auth = psk does not go with shared "
				 "memory, whose connections end in the switch");
	if (c->shared_bytes % ARENA_STEP ||
	    c->shared_bytes > 1ull << COHERENCE_NODE_SHIFT)
		return error_set(-EINVAL,
				 "shared memory has a multiple of %s, up to %s",
				 SIZE_TEXT(ARENA_STEP),
				 SIZE_TEXT(1ull << COHERENCE_NODE_SHIFT));
	if (strlen(node->name) >= MEM_SHARED_NAME ||
	    (c->shared_lead && strlen(c->shared_lead) >= MEM_SHARED_NAME))
		return error_set(-EINVAL,
				 "a node with shared memory has a name of up "
				 "to %d characters",
				 MEM_SHARED_NAME - 1);
	return 0;
}

int shared_open(struct mem_node *node, const struct mem_node_config *c)
{
	struct mem_shared *s;
	int err = check_config(node, c);

	if (err)
		return err;
	s = calloc(1, sizeof(*s));
	if (!s)
		return error_set(-ENOMEM, "no memory left");
	node->shared = s;
	s->size_bytes = c->shared_bytes;
	if (c->shared_lead && strcmp(c->shared_lead, node->name) != 0)
		snprintf(s->lead, sizeof(s->lead), "%s", c->shared_lead);
	env_random(node->env, &s->id, sizeof(s->id));
	s->id >>= 2; /* JSON has numbers of 63 bits */
	snprintf(s->why, sizeof(s->why), "no switch has answered yet");
	s->lost = calloc(MEM_LOST_MAX, sizeof(*s->lost));
	err = s->lost ? shared_node_open(s, node->name, s->size_bytes)
		      : -ENOMEM;
	if (err)
		return error_set(err, "no memory left");
	s->pd = ibv_alloc_pd(node->context);
	if (!s->pd)
		return error_set(-errno, "no protection domain: %s",
				 strerror(errno));
	err = memory_make_sparse(node, s->pd, s->size_bytes, &s->memory);
	return err ? err : shared_file_load(node);
}

void shared_close(struct mem_node *node)
{
	struct mem_shared *s = node->shared;

	if (!s)
		return;
	if (s->saved)
		shared_file_remove(node);
	for (unsigned i = 0; i < MEM_SEGMENT_MAX; i++)
		if (s->segments[i])
			segment_free(node, s->segments[i]);
	if (s->qp)
		(void)ibv_destroy_qp(s->qp);
	if (s->memory.mr)
		memory_free(node, &s->memory);
	if (s->pd)
		(void)ibv_dealloc_pd(s->pd);
	shared_node_close(s);
	free(s->lost);
	free(s->saved);
	free(s);
	node->shared = NULL;
}

void shared_tenant_end(struct mem_node *node, struct mem_tenant *t)
{
	struct mem_shared *s = node->shared;

	for (unsigned i = 0; s && i < COH_MACHINES_MAX; i++) {
		struct mem_member *m = &s->members[i];

		if (!m->used || m->tenant != t)
			continue;
		member_expel(m, "its tenant was deleted");
		m->tenant = NULL;
	}
	for (unsigned i = 0; s && i < MEM_SEGMENT_MAX; i++) {
		struct mem_segment *g = s->segments[i];

		if (!g)
			continue;
		/* If the switch is not told, no machine has keys of the tenant
		 * any more. */
		(void)!segment_allow(
			node, g,
			&(struct mem_allow){.tenant = t,
					    .length = g->part.bytes,
					    .right = COH_NONE});
		if (g->tenant == t && !g->is_leaving)
			(void)!segment_delete(node, g);
	}
	/* Else the tick does it. */
	if (s && s->is_ready)
		(void)!lead_free_segments(node);
}

json_t *shared_describe(const struct mem_node *node, bool sees_all)
{
	const struct mem_shared *s = node->shared;
	json_t *tree;

	if (!s)
		return NULL;
	tree = json_pack("{s:I, s:I, s:b, s:I}", "size",
			 (json_int_t)s->size_bytes, "va",
			 (json_int_t)coherence_arena(MEM_SHARED_NODE), "ready",
			 s->is_ready, "term", (json_int_t)s->term);
	if (!s->is_ready)
		(void)json_object_set_new(tree, "why", json_string(s->why));
	if (s->lead[0]) {
		(void)json_object_set_new(tree, "lead", json_string(s->lead));
		return tree;
	}
	(void)json_object_set_new(
		tree, "extent",
		json_integer((json_int_t)shared_node_extent(s)));
	(void)json_object_set_new(tree, "nodes", shared_node_describe(s));
	if (sees_all) {
		(void)json_object_set_new(tree, "counters",
					  shared_use_describe(&s->use));
		(void)json_object_set_new(
			tree, "used",
			json_integer((json_int_t)shared_node_used(s)));
		(void)json_object_set_new(
			tree, "segments",
			json_integer((json_int_t)s->segment_count));
	}
	return tree;
}

void shared_metrics(struct ctl_metrics *m, const struct mem_node *node)
{
	const struct mem_shared *s = node->shared;
	uint64_t members = 0, lost = 0;

	if (!s)
		return;
	for (unsigned i = 0; i < COH_MACHINES_MAX; i++)
		members += s->members[i].used && !s->members[i].is_going;
	for (unsigned i = 0; i < MEM_SEGMENT_MAX; i++)
		lost += s->segments[i] ? lost_bytes(s, s->segments[i]) : 0;
	ctl_metrics_one(m, CTL_METRIC_GAUGE, "aquifer_shared_size_bytes",
			"Limit of the shared memory of this node.",
			s->size_bytes);
	if (s->lead[0])
		return;
	ctl_metrics_one(m, CTL_METRIC_GAUGE, "aquifer_shared_used_bytes",
			"Shared memory in segments, of all nodes.",
			shared_node_used(s));
	ctl_metrics_one(m, CTL_METRIC_GAUGE, "aquifer_shared_lost_bytes",
			"Shared memory whose last stores are lost.", lost);
	ctl_metrics_one(m, CTL_METRIC_GAUGE, "aquifer_shared_segments",
			"Segments of all tenants.", s->segment_count);
	ctl_metrics_one(m, CTL_METRIC_GAUGE, "aquifer_shared_machines",
			"Machines that share memory.", members);
	ctl_metrics_one(m, CTL_METRIC_GAUGE, "aquifer_shared_term",
			"Times that a switch was told everything.", s->term);
	shared_use_metrics(m, &s->use);
}

/* ---- the switch ---------------------------------------------------------- */

int shared_check(const struct mem_node *node)
{
	if (!node->shared)
		return error_set(-EOPNOTSUPP,
				 "node %s has no shared memory; 'shared' in "
				 "[memory NAME] of rack.ini gives it some",
				 node->name);
	if (node->shared->lead[0])
		return error_set(-EOPNOTSUPP,
				 "node %s offers shared memory, and node %s "
				 "leads it",
				 node->name, node->shared->lead);
	if (!node->shared->is_ready)
		return error_set(-EHOSTDOWN, "shared memory is not ready: %s",
				 node->shared->why);
	return 0;
}

/* Others wait for a node that leads and is not ready, and the lead for one that
 * follows. */
uint64_t shared_look_ms(const struct mem_node *node)
{
	const struct mem_shared *s = node->shared;

	return s && (s->lead[0] || (s->has_begun && !s->is_ready) ||
		     shared_node_is_busy(s))
		       ? MEM_SHARED_LOOK_MS
		       : MEM_SWITCH_LOOK_MS;
}

uint32_t shared_domain(struct mem_shared *s, struct mem_tenant *t)
{
	if (!t->domain)
		t->domain = ++s->last_domain;
	return t->domain;
}

int shared_ask(struct mem_node *node, const char *line, json_t **out)
{
	int err = ctl_switch_ask(&node->at_switch.ctl, line, out);

	return err ? error_prefix(err == -EREMOTEIO ? -EBUSY : -EHOSTDOWN,
				  "shared memory: ")
		   : 0;
}

int shared_tell(struct mem_node *node, const char *fmt, ...)
{
	char line[LINE_BYTES] = "tell coherence ";
	size_t at = strlen(line);
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(line + at, sizeof(line) - at, fmt, args);
	va_end(args);
	ASSERT(n > 0 && (size_t)n < sizeof(line) - at);
	if (atomic_load_explicit(&node->at_switch.ctl.is_away,
				 memory_order_relaxed))
		return error_set(-EHOSTDOWN, "the switch does not answer");
	return shared_ask(node, line, NULL);
}
