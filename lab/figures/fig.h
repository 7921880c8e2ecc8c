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
	FIG_SWITCH,    /* rings and the program of the switch */
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

/* Options of the switch's program; 0: its defaults. */
struct fig_program {
	uint32_t tell, fetch, probe_us, flush_us;
	bool no_filter;
};

struct sim_fabric_choice;

struct fig_config {
	enum fig_device device;
	uint32_t threads;
	uint32_t bytes; /* of a record */
	uint32_t depth; /* requests under way; 0: FIG_DEPTH */
	/* Issue `depth` requests, wait for all, and so on; else go on issuing
	 * while there is room. */
	bool burst;
	uint32_t engines; /* processors; 0: 1 */
	/* The engine's, or of READs in a list; 0: the default, 1: none. */
	uint32_t batch;
	uint64_t flush_ns; /* the engine's; 0: its default */
	uint64_t probe_ns;
	struct fig_program program; /* FIG_SWITCH */
	uint32_t write_ppm;	    /* of far requests; FIG_COW, FIG_SWITCH */
	uint32_t far_ppm;	    /* requests that are not served locally */
	uint64_t app_ps;	    /* the application's work per request */
	bool has_record;	    /* app_ps includes looking at the record */
	/* FIG_COW, FIG_SWITCH: what issue and poll of 64 B cost the caller; 0:
	 * as measured. is_warm: no more than the code itself. */
	uint64_t client_ps;
	bool is_warm;
	bool tcp;	   /* a competing TCP flow out of the same machine */
	bool rdma_first;   /* before TCP, in the NIC and on every wire */
	bool acks_first;   /* TCP's acknowledgements like RDMA */
	uint32_t nic_mpps; /* packets that its NIC takes; 0: no limit */
	uint64_t warm_ps;
	uint64_t span_ps;
	uint64_t seed;
	const struct sim_fabric_choice *fabric; /* NULL: Ethernet */
};

struct fig_result {
	double mops;
	double comm; /* share of the threads' time in communication */
	/* Of the caller for each far request, waiting left out: in all, to
	 * issue it, to poll for it. */
	double caller_ns, issue_ns, poll_ns;
	double p50_us, p99_us; /* of far requests, from issue to being seen */
	double engine_busy;    /* share of the engines' processors, mean */
	double wire_bytes; /* that left or reached the machine, per request */
	double tcp_gbps;
	/* FIG_COW and FIG_SWITCH, per far request: packets that reach or leave
	 * the machine, and of the switch: that its program makes, that tell of
	 * progress, that are one more than the packet before them. */
	double nic_packets, program_packets, told, recirculated;
	double probes_per_us; /* of the switch, all threads */
	uint64_t lost;	      /* times the switch had to send again */
	uint64_t requests;    /* measured */
	uint64_t wrong; /* records with other bytes than they should have */
};

/* 0 or -errno. Sets the process's verbs provider meanwhile. */
int fig_run(const struct fig_config *cfg, struct fig_result *res) MUST_CHECK;

const char *fig_device_name(enum fig_device device);

#endif
