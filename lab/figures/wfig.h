/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One point of the figures of `aquifer sim walk`: an application, a way to
 * traverse its structure in far memory, and a number of memory nodes, on the
 * host cost model. Latency is that of one thread, with the application's own
 * work; the rate is that of many threads without it, as much as memory nodes
 * can serve.
 */
#ifndef AQ_FIGURES_WFIG_H
#define AQ_FIGURES_WFIG_H

#include "wfig_data.h"

enum wfig_system {
	WFIG_WALK,   /* by the accelerator; the client sends it to the next
		      * node */
	WFIG_SWITCH, /* the same, but it goes from node to node; a model */
	WFIG_RPC,    /* by the cores of a server */
	WFIG_RPC_ARM,
	WFIG_READS, /* by the client, a READ for each node */
	WFIG_CACHE, /* by the client, on pages that are swapped in */
	WFIG_SYSTEMS,
};

/* What requests do. */
enum wfig_change {
	WFIG_FIND,
	WFIG_MISS,   /* web: a key that is in no chain, so all of one is seen */
	WFIG_APPEND, /* web, walks, one node: add a node, whose place the
		      * client knows already */
	WFIG_ALLOCATE, /* the same, but it must be asked for first */
};

struct wfig_config {
	struct wfig_data_config data;
	enum wfig_system system;
	enum wfig_change change;
	uint32_t logic, memory; /* pipelines; 0: as published */
	/* A load keeps its memory pipeline all the time, as in the proof of the
	 * paper's appendix. */
	bool is_serial;
	uint64_t step_ps;   /* 0: as published */
	uint32_t cache_ppm; /* of the structure; 0: as published */
	uint32_t ops;	    /* whose latency is taken */
	bool has_rate;	    /* measure it */
	uint64_t seed;
};

struct wfig_result {
	double mean_us, p99_us; /* of a request, with its work */
	double traverse_us;	/* of it, until the structure is traversed */
	double share;		/* the same as a share */
	double kops;		/* requests per ms */
	double visits;		/* nodes per request */
	double trips;		/* requests on the network per request */
	double crossings;	/* changes of memory node per request */
	double crossed;		/* share of requests with one at least */
	double pointers;	/* share of pointers that lead elsewhere */
	double memory_share;	/* of memory's bandwidth, by nodes, at it */
	double network_share;	/* of the client's link */
	double logic_use, memory_use; /* of the pipelines */
	/* Per iteration. */
	double memory_ns, logic_ns, wait_ns, cost;
	uint64_t longest; /* instructions, by the verifier */
	/* Time of instructions over time of loads: as executed, by the longest
	 * path, and that with a cycle for each instruction. */
	double ratio, ratio_longest, ratio_cycle;
	bool offloads; /* the dispatch rule, by the longest path */
	/* Run time over all local, with CXL memory and with walks there. */
	double cxl_slowdown, cxl_walk_slowdown;
	uint64_t wrong; /* answers */
};

/* 0, -ENOMEM, or -EIO: requests failed. */
int wfig_run(const struct wfig_config *cfg, struct wfig_result *res) MUST_CHECK;

void wfig_result_clear(struct wfig_result *res);
/* What requests do, by walking without time: visits, crossings and cost, whose
 * members it sets, and `longest`. */
void wfig_sample(const struct wfig_data *d, uint32_t ops, uint64_t seed,
		 struct wfig_result *res);
/* What the application does beside a traversal. */
uint64_t wfig_work_ps(enum wfig_app app, double visits, double cost);

const char *wfig_system_name(enum wfig_system system);

#endif
