/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes: who joins, who is silent. UP, after CD_SUSPECT_MS of silence SUSPECT,
 * after CD_DOWN_MS DOWN, by the next beat UP again. Nothing is written for any
 * of that, so a node that flaps makes no work.
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

static void look(struct cd_core *core, struct cd_node *n, uint64_t now)
{
	uint64_t silent_ms =
		now > n->seen_ns ? (now - n->seen_ns) / 1000000 : 0;
	enum cd_state is = silent_ms >= CD_DOWN_MS	? CD_DOWN
			   : silent_ms >= CD_SUSPECT_MS ? CD_SUSPECT
							: CD_UP;

	/* Who said goodbye is down until it comes back. */
	if (is <= n->state)
		return;
	n->state = is;
	log_warn("controld", "node %s is %s: silent for %llu ms", n->name,
		 is == CD_DOWN ? "down" : "suspect",
		 (unsigned long long)silent_ms);
	cd_event_seen(core, CD_ABOUT_NODE, n->name, "is %s: silent for %llu s",
		      is == CD_DOWN ? "down" : "suspect",
		      (unsigned long long)silent_ms / 1000);
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
