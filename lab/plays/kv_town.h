/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The leaves of a table in the simulator: memory nodes that may be killed,
 * regions on them, and the connections that clients have to them.
 */
#ifndef AQ_SCENARIO_KV_TOWN_H
#define AQ_SCENARIO_KV_TOWN_H

#include "kv/kv.h"
#include "rig/stage.h"

enum {
	KV_TOWN_NODES = 3,
	KV_TOWN_LEAVES = 128,
	KV_TOWN_CONNS = 4096,
};

struct kv_town_leaf {
	struct kv_id id;
	unsigned node;
	struct scenario_region *table, *locks;
	bool is_there;
};

struct kv_town_conn {
	struct client_link *link; /* NULL: given back */
	const struct kv_town_leaf *leaf;
	bool is_dead; /* its client is */
};

struct kv_town {
	struct scenario_host *node[KV_TOWN_NODES];
	unsigned node_count;
	bool is_killed[KV_TOWN_NODES];
	struct kv_town_leaf leaf[KV_TOWN_LEAVES];
	unsigned leaf_count;
	struct kv_town_conn conn[KV_TOWN_CONNS];
	unsigned conn_count;
};

/* One client's view of it. */
struct kv_town_visitor {
	struct kv_town *town;
	struct scenario_host *host;
	bool is_dead; /* what it closes from now on stays as it is */
};

struct kv_world kv_town_world(struct kv_town_visitor *v);
/* SIGKILL; its memory is gone. */
void kv_town_kill(struct kv_town *t, unsigned node);

#endif
