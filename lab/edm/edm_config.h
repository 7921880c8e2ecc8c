/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that defines one run of the cluster simulation, and its check. */
#ifndef AQ_EDM_CONFIG_H
#define AQ_EDM_CONFIG_H

#include "edm_sched.h"

enum edm_proto {
	EDM_PROTO_EDM,
	EDM_PROTO_IRD,
	EDM_PROTO_PFABRIC,
	EDM_PROTO_PFC,
	EDM_PROTO_DCTCP,
	EDM_PROTO_CXL,
	EDM_PROTO_FASTPASS,
	EDM_PROTO_COUNT,
};

enum edm_latency_mode {
	EDM_LATENCY_FULL,  /* every protocol with its own stack, Table 1 */
	EDM_LATENCY_SCHED, /* every protocol with the constants of EDM's PHY */
	EDM_LATENCY_HOPS,  /* 10 ns of cable per hop and nothing else */
};

enum edm_framing {
	EDM_FRAMING_PAYLOAD, /* rivals carry no header bytes at all */
	EDM_FRAMING_WIRE,    /* headers, minimum frames, gaps, flits */
};

enum edm_sizes {
	EDM_SIZES_FIXED,
	EDM_SIZES_HADOOP,
	EDM_SIZES_SPARK,
	EDM_SIZES_SPARKSQL,
	EDM_SIZES_GRAPHLAB,
	EDM_SIZES_MEMCACHED,
	EDM_SIZES_YCSB, /* reads of 1 KB, writes of 100 B */
	EDM_SIZES_COUNT,
};

enum edm_pattern {
	EDM_PATTERN_UNIFORM,
	EDM_PATTERN_INCAST, /* all nodes with node 0 */
	EDM_PATTERN_SKEW,   /* the peer by Zipf's law, 0.99 */
	EDM_PATTERN_SPLIT,  /* lower half computes, upper half is memory */
	EDM_PATTERN_COUNT,
};

enum edm_op {
	EDM_WRITE,
	EDM_READ,
	EDM_RMW, /* compare-and-swap; its size is fixed */
};

struct edm_config {
	/* the cluster */
	uint32_t nodes;
	uint32_t gbps;
	enum edm_proto proto;
	enum edm_latency_mode latency;
	enum edm_framing framing;
	bool asic;	 /* switch cycles of 1/3 ns instead of 2.56 ns */
	uint32_t mem_ps; /* memory access before a read is answered */

	/* EDM */
	enum edm_discipline discipline;
	enum edm_policy policy;
	enum edm_md md;
	uint32_t chunk_bytes;
	uint32_t active_max; /* X */
	uint32_t channels; /* order is kept in each of them; 1: per node pair */
	uint32_t batch_bytes; /* 0: no batching */
	bool charge_control;
	bool timed; /* a matching takes its time, in every discipline */
	uint32_t pim_iterations;
	uint32_t pim_iteration_ps;
	uint64_t age_cap_ps;
	uint32_t ip_load_ppm; /* of frames, on every link in each direction */
	enum edm_ip_policy ip_policy;
	bool nest; /* requests may stand inside messages */

	/* failures, EDM only */
	uint32_t loss_ppm;	 /* of notifications, requests and grants */
	bool mirror;		 /* a second switch, everything sent twice */
	uint32_t mirror_skew_ps; /* cables of the second one differ up to */
	uint64_t fail_switch_ps; /* 0: never */
	uint64_t fail_link_ps;	 /* link of fail_port to the first switch */
	uint64_t fail_node_ps;	 /* node fail_port stops answering */
	uint32_t fail_port;
	uint64_t timer_ps; /* of notifications and reads; 0: none */
	uint32_t read_retries;

	/* rivals */
	bool published;	      /* thresholds as published for larger networks,
			       * instead of scaled to this network's delay */
	uint32_t cxl_credits; /* flits of buffer per input port and class */
	bool cxl_voq;	      /* without head-of-line blocking */
	bool cxl_fifo;	    /* hosts send message after message, not in turns */
	bool fastpass_free; /* an arbiter with unlimited link rate */

	/* the workload */
	enum edm_sizes sizes;
	enum edm_pattern pattern;
	uint32_t fixed_bytes;
	double load;	      /* of the busiest port, in EDM's blocks */
	bool load_is_payload; /* load counts payload bytes only */
	uint32_t write_ppm;
	uint32_t rmw_ppm;
	uint64_t messages; /* warm-up included */
	uint32_t warmup_ppm;
	uint64_t seed;
	const char *trace; /* a file instead of all of the above */
};

/* 144 nodes, 100 Gb/s, EDM as published, 64 B writes at load 0.8. */
void edm_config_init(struct edm_config *c);
/* What the ablation finds best for this workload, keeping everything that the
 * paper promises: order per pair of nodes, X. */
void edm_config_best(struct edm_config *c);
/* -EINVAL, and error_last names the option. */
int edm_config_check(const struct edm_config *c) MUST_CHECK;

const char *edm_discipline_name(enum edm_discipline d);
const char *edm_policy_name(enum edm_policy p);
const char *edm_sizes_name(enum edm_sizes s);

/* Sum of the blocks of all chunks of a message, and their number. */
uint32_t edm_data_blocks(const struct edm_config *c, enum edm_op op,
			 uint32_t bytes, uint32_t *chunks);
uint32_t edm_request_blocks(enum edm_md md, enum edm_op op);
/* Slot length for the SLOT discipline: the longest chunk of this workload and
 * a block for control. */
uint32_t edm_slot_blocks(const struct edm_config *c);
/* Fills in the scheduler's settings for this configuration, without upcalls. */
void edm_config_sched(const struct edm_config *c, struct edm_sched_config *s);

#endif
