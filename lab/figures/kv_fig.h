/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One point of a figure about key-value stores: clients on hardware's costs,
 * each with a NIC of its own, work on one memory node for a span of virtual
 * time. The table and two of its rivals, the version list and the ordered
 * index, are the shipped code. FUSEE is a model: the sequences of one-sided
 * requests that its paper and public code describe, on the same simulated
 * hardware, without its processors' work.
 */
#ifndef AQ_RIG_KV_FIG_H
#define AQ_RIG_KV_FIG_H

#include "base/base.h"

enum kv_fig_store {
	KV_FIG_TABLE, /* ours */
	KV_FIG_FUSEE, /* index of pointers, CAS, values elsewhere */
	KV_FIG_VLIST, /* chains of versions, cached pointers: like Clover */
	KV_FIG_TREE,  /* leaves under locks: like Sherman */
	KV_FIG_PEERS, /* up to here with one memory node */
	/* The tree with as many memory nodes as Sherman was published with. */
	KV_FIG_TREE8 = KV_FIG_PEERS,
	KV_FIG_STORES,
};

enum {
	KV_FIG_CLIENTS_MAX = 400,
	KV_FIG_MACHINES = 8, /* that the clients share, for local locks */
	KV_FIG_NODES = 8,
};

struct sim_fabric_choice;

/* Unset members have their default. */
struct kv_fig_config {
	enum kv_fig_store store;
	uint32_t clients;
	uint32_t read_ppm;
	bool inserts; /* changes are inserts of new keys */
	bool uniform; /* else Zipf over the paper's 90 million records */
	uint32_t theta_milli;	/* its skew; 0: 990 */
	uint64_t capacity;	/* entries; 0: 200000 */
	uint32_t fill_ppm;	/* before the start; 0: 900000 */
	uint32_t entry_bytes;	/* 0: 16 */
	uint32_t value_bytes;	/* 0: 4 */
	uint32_t rows_per_lock; /* 0: 16 */
	bool word_locks;	/* one lock per message */
	bool independent;	/* hashing, and search depth first */
	bool forgets;		/* the cache, before every change */
	bool whole_locks;	/* reads all rows of its locks */
	uint32_t failure_ms;	/* 0: 100 */
	/* Clients that die per second, each in an insert of a new key,
	 * whatever the others do. */
	uint32_t failures;
	uint64_t fill_to_ppm; /* run until the table is this full */
	uint64_t warm_ps;     /* 0: 100 us */
	uint64_t span_ps;     /* 0: 300 us */
	uint64_t seed;
	const struct sim_fabric_choice *fabric; /* NULL: Ethernet */
};

struct kv_fig_result {
	uint64_t ops, reads, changes;
	double mops;
	double read_p50_us, read_p99_us;
	double change_p50_us, change_p99_us;
	double bytes;	 /* that left or reached the memory nodes, per op */
	double messages; /* requests, per op */
	/* Of changes. */
	double trips_p50, trips_p99; /* round trips */
	double locks_p50, locks_p99; /* round trips to acquire the locks */
	double second_share;	     /* second searches that found a path */
	uint64_t deaths;
	uint64_t failed; /* operations with an error */
};

/* 0 or -errno. Sets the process's verbs provider meanwhile. */
int kv_fig_run(const struct kv_fig_config *cfg,
	       struct kv_fig_result *res) MUST_CHECK;

const char *kv_fig_store_name(enum kv_fig_store store);

#endif
