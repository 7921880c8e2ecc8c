/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The replicas of a table in the simulator: memory nodes that may be killed,
 * regions on them, and the connections that clients have to them.
 */
#ifndef AQ_PLAYS_KV_CLUSTER_H
#define AQ_PLAYS_KV_CLUSTER_H

#include "kv/kv.h"
#include "play_client.h"

enum {
	KV_CLUSTER_NODES = 3,
	KV_CLUSTER_REPLICAS = 128,
};

struct kv_cluster_replica {
	struct kv_id id;
	unsigned node;
	struct rig_region *table, *locks;
	bool is_there;
};

struct kv_cluster {
	struct rig_host *node[KV_CLUSTER_NODES];
	unsigned node_count;
	bool is_killed[KV_CLUSTER_NODES];
	struct kv_cluster_replica replica[KV_CLUSTER_REPLICAS];
	unsigned replica_count;
	struct rig_conns conns; /* each leads to a replica */
};

/* One client's view of the cluster. */
struct kv_cluster_client {
	struct kv_cluster *cluster;
	struct rig_host *host;
	bool is_dead; /* connections that it closes stay open */
	/* Of the pauses of walks; of its own, so that runs without walks stay
	 * the same. */
	struct rng walk_rand;
};

struct kv_world kv_cluster_world(struct kv_cluster_client *c);
/* SIGKILL; its memory is gone. */
void kv_cluster_kill(struct kv_cluster *cluster, unsigned node);

#endif
