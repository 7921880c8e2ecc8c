/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One point of a figure: application threads of one machine read records of a
 * memory node in one of several ways, on hardware's costs, for a span of
 * virtual time. NICs, rings and engine are the shipped code; what processors
 * cost comes from offload_costs.h.
 */
#ifndef AQ_RIG_FIG_H
#define AQ_RIG_FIG_H

#include "base/base.h"

enum fig_device {
	FIG_LOCAL,     /* no far memory at all */
	FIG_COW,       /* rings and an engine */
	FIG_ASYNC,     /* one-sided READs, many under way */
	FIG_SYNC,      /* one-sided READs, one under way */
	FIG_TWO_SIDED, /* request and answer, one under way */
	FIG_REDY,      /* I/O threads that batch, a server that executes */
	FIG_P4,	       /* rings and a switch */
	FIG_BLOCKING,  /* messages over TCP, the thread blocks, as AIFM's do */
	FIG_DEVICES,
};

enum {
	FIG_THREADS_MAX = 16,
	FIG_DEPTH_MAX = 256,
	/* Two of the paper's batches of 100: one is computed while the other
	 * is under way. */
	FIG_DEPTH = 200,
};

struct fig_config {
	enum fig_device device;
	uint32_t threads;
	uint32_t bytes; /* of a record */
	uint32_t depth; /* requests under way; 0: FIG_DEPTH */
	/* Issue `depth` requests, wait for all, and so on; else go on issuing
	 * while there is room. */
	bool burst;
	uint32_t engines;  /* processors; 0: 1 */
	uint32_t batch;	   /* the engine's; 0: its default, 1: none */
	uint64_t flush_ns; /* the engine's; 0: its default */
	uint64_t probe_ns;
	uint32_t far_ppm;   /* requests that are not served locally */
	uint64_t app_ps;    /* the application's work per request */
	bool has_record;    /* app_ps includes looking at the record */
	uint64_t client_ps; /* FIG_COW: at least so much per issue and poll */
	bool tcp;	    /* a competing TCP flow out of the same machine */
	uint64_t warm_ps;
	uint64_t span_ps;
	uint64_t seed;
};

struct fig_result {
	double mops;
	double comm;	       /* share of the threads' time in communication */
	double p50_us, p99_us; /* of far requests, from issue to being seen */
	double engine_busy;    /* share of the engines' processors, mean */
	double wire_bytes; /* that left or reached the machine, per request */
	double tcp_gbps;
	uint64_t requests; /* measured */
	uint64_t wrong;	   /* records with other bytes than they should have */
};

/* 0 or -errno. Sets the process's verbs provider meanwhile. */
int fig_run(const struct fig_config *cfg, struct fig_result *res) MUST_CHECK;

const char *fig_device_name(enum fig_device device);

#endif
