/* SPDX-License-Identifier: Apache-2.0 */
/* A point of a figure while it runs. */
#ifndef AQ_RIG_KV_FIG_PRIV_H
#define AQ_RIG_KV_FIG_PRIV_H

#include "base/hist.h"
#include "base/rng.h"
#include "kv/kv.h"
#include "kv_fig.h"
#include "rig/conns.h"
#include "sim/fiber.h"
#include "sim/ycsb.h"

struct kvf;

/* One client: a host with one thread. */
struct kvf_client {
	struct kvf *f;
	uint32_t index;
	struct rig_host *host;
	struct rng rng;
	uint64_t inserted; /* numbers of its own keys */
	struct aq_kv_client *kv;
	unsigned doom; /* requests until it dies; 0: it lives */
	bool in_change;
	void *rival; /* the store's */
};

struct kvf {
	struct kv_fig_config cfg;
	struct kv_fig_result *res;
	struct rig_stage *stage;
	struct sim *sim;
	struct rig_host *node[KV_FIG_NODES];
	uint32_t nodes;
	struct rig_region *table, *locks;
	struct kv_geometry g;
	struct ycsb_keys keys;
	uint64_t records; /* that are there from the start */
	uint64_t added;	  /* keys, since */
	struct kvf_client *client;
	uint32_t running;
	uint32_t loading; /* clients that are not ready yet */
	bool is_stopping;
	bool is_measuring;
	int err; /* of a client that could not start */
	uint64_t ops, reads, changes, requests;
	uint64_t tries, searches, searches_failed;
	struct hist read_ns, change_ns, trips, lock_tries;
	struct rig_conns *conns;  /* of the table */
	struct kvf_client loader; /* loads the initial contents */
	void *rival;		  /* the store's */
};

/* How a store is opened and used, from a client's fiber. 0 or -errno. */
struct kvf_ops {
	const char *name;
	bool waits_at_home; /* its clients for others of their machine */
	int (*prepare)(struct kvf *f); /* memory, before the clients start */
	int (*open)(struct kvf_client *c);
	int (*read)(struct kvf_client *c, uint64_t record);
	int (*change)(struct kvf_client *c, uint64_t record);
	void (*close)(struct kvf_client *c);
	void (*release)(struct kvf *f);
};

extern const struct kvf_ops kvf_table_ops, kvf_fusee_ops, kvf_vlist_ops,
	kvf_tree_ops, kvf_tree8_ops;

/* Runs `load` in a fiber of a host of its own, f->loader, to its end. */
int kvf_load(struct kvf *f, int (*load)(struct kvf_client *c)) MUST_CHECK;

/* For remotes of stores whose clients never die. */
int kvf_fence_nobody(void *ctx, const char *conn);
int kvf_all_are_alive(void *ctx, const char *conn);

#endif
