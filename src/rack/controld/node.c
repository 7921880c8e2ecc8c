/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes: who joins, who is silent. UP, after CD_SUSPECT_MS of silence or when
 * its held request breaks SUSPECT, after CD_DOWN_MS or CD_BROKEN_MS after the
 * break DOWN, by the next beat UP again. Nothing is written for any of that, so
 * a node that flaps makes no work.
 */
#include <errno.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "cd_page_priv.h"

static const char *const kinds[CD_KINDS] = {"memory", "engine", "switch",
					    "gateway"};

const char *cd_kind_name(enum cd_kind kind)
{
	return kinds[kind];
}

int cd_kind_parse(const char *text, enum cd_kind *out)
{
	for (unsigned i = 0; i < CD_KINDS; i++) {
		if (strcmp(text, kinds[i]) != 0)
			continue;
		*out = (enum cd_kind)i;
		return 0;
	}
	return error_set(-EINVAL,
			 "\"kind\" is memory, engine, switch or gateway");
}

const char *cd_state_name(const struct cd_node *n)
{
	static const char *const states[] = {"up", "suspect", "down"};

	if (n->state == CD_UP && n->drain)
		return n->regions || n->used_bytes ? "draining" : "drained";
	return states[n->state];
}

void cd_order(struct cd_node *n)
{
	n->order++;
}

void cd_order_all(struct cd_core *core)
{
	for (unsigned i = 0; i < CD_NODES_MAX; i++)
		if (core->node[i])
			cd_order(core->node[i]);
}

void cd_node_seen(struct cd_core *core, struct cd_node *n)
{
	if (n->state != CD_UP)
		cd_event_seen(core, CD_ABOUT_NODE, n->name, "is up again");
	n->state = CD_UP;
	n->seen_ns = env_now_ns(core->env);
	n->is_broken = n->has_left = false;
}

static uint64_t since_ms(uint64_t then, uint64_t now)
{
	return now > then ? (now - then) / 1000000 : 0;
}

static enum cd_state judge(const struct cd_node *n, uint64_t now)
{
	uint64_t silent_ms = since_ms(n->seen_ns, now);

	if (silent_ms >= CD_DOWN_MS ||
	    (n->is_broken && since_ms(n->broken_ns, now) >= CD_BROKEN_MS))
		return CD_DOWN;
	return n->is_broken || silent_ms >= CD_SUSPECT_MS ? CD_SUSPECT : CD_UP;
}

/* A node whose connection broke may live, and hands out what it may for as long
 * as it takes the controller's last answer for fresh (UP_SILENT_MS), which is
 * less than CD_DOWN_MS. */
int cd_node_is_gone(const struct cd_core *core, const struct cd_node *n)
{
	uint64_t silent_ms = since_ms(n->seen_ns, env_now_ns(core->env));

	if (n->state != CD_DOWN)
		return error_set(-EBUSY,
				 "node %s is %s; only one that is down can be "
				 "forgotten",
				 n->name, cd_state_name(n));
	if (n->has_left || silent_ms >= CD_DOWN_MS)
		return 0;
	return error_set(-EBUSY,
			 "node %s may live and hand out memory; it can be "
			 "forgotten in %llu ms",
			 n->name, (unsigned long long)(CD_DOWN_MS - silent_ms));
}

static void look(struct cd_core *core, struct cd_node *n, uint64_t now)
{
	enum cd_state is = judge(n, now);

	/* Who said goodbye is down until it comes back. */
	if (is <= n->state)
		return;
	n->state = is;
	log_warn("controld", "node %s is %s: %s for %llu ms", n->name,
		 is == CD_DOWN ? "down" : "suspect",
		 n->is_broken ? "not connected" : "silent",
		 (unsigned long long)since_ms(
			 n->is_broken ? n->broken_ns : n->seen_ns, now));
	cd_event_seen(core, CD_ABOUT_NODE, n->name, "is %s: %s",
		      is == CD_DOWN ? "down" : "suspect",
		      n->is_broken ? "not connected" : "silent");
	/* Wishes that counted on it may have to be refused now. */
	for (unsigned i = 0; i < core->tenant_count; i++)
		if (core->tenant[i]->squeeze)
			cd_share_serve(core, core->tenant[i]);
}

void cd_nodes_tick(struct cd_core *core)
{
	uint64_t now = env_now_ns(core->env);

	for (unsigned i = 0; i < CD_NODES_MAX; i++)
		if (core->node[i])
			look(core, core->node[i], now);
}

/* Beats come when there is news, so a rate is of half a second at least. A
 * count that falls is that of a node that was started anew. */
void cd_node_ops(const struct cd_core *core, struct cd_node *n, uint64_t ops)
{
	uint64_t now = env_now_ns(core->env), spent_ns = now - n->ops_ns;

	if (n->ops_ns && ops >= n->ops && spent_ns < CD_OPS_MIN_MS * 1000000ull)
		return;
	n->ops_per_s = n->ops_ns && ops >= n->ops
			       ? (uint64_t)((double)(ops - n->ops) * 1e9 /
					    (double)spent_ns)
			       : 0;
	n->ops = ops;
	n->ops_ns = now;
}

uint64_t cd_node_drain_order(const struct cd_core *core,
			     const struct cd_node *n)
{
	return n->drain_order ? n->drain_order : core->term << 20;
}
