/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the tiers of memory of this machine and its rack: NUMA nodes, and
 * the memory nodes of the rack by every way that leads there.
 *
 *	idle	loads that depend on each other, one at a time, on huge pages
 *		where they can be had; of far memory READs of 64 bytes
 *	mixes	threads that read and write blocks as fast as they can, at
 *		several ratios; writes of NUMA nodes are non-temporal
 *	curve	the same loads as idle beside threads that wait between their
 *		blocks, less and less from point to point
 *
 * It needs no right. One run at a time; SIGINT and SIGTERM that the caller has
 * blocked end it early.
 */
#ifndef AQ_PROBE_H
#define AQ_PROBE_H

#include "base/base.h"
#include "tier/curve.h"
#include "tier/place.h"

struct aq_rack;

enum {
	PROBE_MIXES = 6,
	PROBE_THREADS_MAX = 64,
	PROBE_TIERS_MAX = 256,
	PROBE_NAME_MAX = 64,
	PROBE_WHY_MAX = 200,
	PROBE_WINDOW_MS = 150,	    /* of one measurement, at most */
	PROBE_RUN_MS = 45000,	    /* of all windows together */
	PROBE_LIMIT_MS = 50000,	    /* after which no window begins */
	PROBE_FAR_BYTES = 64 << 20, /* region that is measured on a node */
};

/* Below this share of its time on a processor a thread measured others' work,
 * too. */
#define PROBE_SHARE_MIN 0.9

enum probe_way {
	PROBE_NUMA,
	PROBE_DIRECT, /* far memory that is mapped here */
	PROBE_FRAMES, /* far memory through the NICs */
};

/* What the system says about a NUMA node; 0 where it says nothing. */
struct probe_facts {
	uint64_t size_bytes, free_bytes;
	bool has_cpus;
	uint32_t cpu_node;    /* whose processors measure it */
	uint32_t distance;    /* from there; 10 is local */
	uint32_t memory_tier; /* the kernel's */
	/* From the firmware's table (HMAT). */
	uint32_t hmat_read_ns, hmat_write_ns;
	uint32_t hmat_read_mbs, hmat_write_mbs;
};

struct probe_rate {
	struct tier_ratio mix; /* reads in `top`, writes in `slow` */
	double gbs;
};

struct probe_idle {
	double p50_ns, p90_ns, p99_ns;
	uint32_t samples;
};

struct probe_tier {
	enum probe_way way;
	char name[PROBE_NAME_MAX]; /* "node 0", "m0 direct", "m0 cable" */
	uint32_t node;		   /* of PROBE_NUMA */
	struct probe_facts facts;
	int err; /* it could not be measured; `why` says why */
	char why[PROBE_WHY_MAX];
	uint64_t arena_bytes; /* that the loads of `idle` are spread over */
	uint64_t load_bytes;  /* that threads read and write blocks of */
	double huge_share;    /* of it in huge pages; below 0: not known */
	struct probe_idle idle;
	struct probe_rate rate[PROBE_MIXES];
	unsigned rate_count;
	struct tier_ratio curve_mix;
	/* count 0: not measured, because there is one processor only. */
	struct tier_curve curve;
	unsigned threads, curve_threads;
	double share; /* of their time that threads had a processor */
};

struct probe_far_node {
	const char *name;
	const char *frames; /* what they go through: "cable", "udp" */
};

/* Memory of the caller's, in pages that are there already. */
struct probe_memory {
	uint8_t *memory; /* NULL: none */
	uint64_t bytes;
};

struct probe_options {
	int64_t node;	  /* only this NUMA node; -1: all */
	bool is_far_only; /* no NUMA node */
	bool has_mix;	  /* only this one, also for the curve */
	struct tier_ratio mix;
	/* That load; 0: as many as there are processors. More than those are
	 * refused, but where they wait for packets. */
	uint32_t threads;
	/* Threads that load have this memory of a NUMA node, and change it, so
	 * that others can be measured in the same pages. */
	struct probe_memory load;
	/* The rack, and its memory nodes; NULL: no far memory. */
	struct aq_rack *rack;
	const struct probe_far_node *far_node;
	unsigned far_count;
	/* Called before each step of `steps`; may be NULL. */
	void (*progress)(void *ctx, const char *tier, const char *what,
			 unsigned step, unsigned steps);
	void *ctx;
	uint32_t limit_ms; /* 0: PROBE_LIMIT_MS */
};

/* What was measured, the quickest first, those that failed last. */
struct probe_report {
	struct probe_tier tier[PROBE_TIERS_MAX];
	unsigned count;
	double share; /* the least of all tiers */
};

/* 0 also if some tiers failed, with -ETIME where a machine that is busy left no
 * time for them. -ENODEV with words: there is no such node, or
 * none at all; -EINTR: a signal is pending. */
int probe_run(const struct probe_options *options,
	      struct probe_report *report) MUST_CHECK;
/* Whether the threads had the processors for themselves. */
bool probe_is_quiet(const struct probe_report *report);

/* ---- numa.c -------------------------------------------------------------- */

/* Whether this machine has that NUMA node, with memory. -ENODEV with words that
 * name those that it has. */
int probe_node_check(uint32_t node) MUST_CHECK;
/* What the system says about it; `root` is "/sys" except in tests. */
void probe_node_read(const char *root, uint32_t node, struct probe_facts *out);

#endif
