/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closed-loop experiments on the cost model alone: one client host, one
 * memory host, virtual time of their own. No NIC code runs here.
 */
#ifndef AQ_FIGURES_MODEL_DRIVE_H
#define AQ_FIGURES_MODEL_DRIVE_H

#include "sim/model.h"

struct drive_config {
	const struct model_params *params;
	enum model_kind kind;
	uint32_t bytes;
	uint32_t qps;	/* one client thread each; at most DRIVE_QPS_MAX */
	uint32_t depth; /* requests in flight of each thread */
	/* Threads post `depth` requests with one doorbell and wait for all of
	 * them, instead of posting one for each that completes. */
	bool batch;
	uint32_t addrs; /* random ones of so many, a cache line apart */
	bool in_device;
	uint64_t span_ps; /* measured time, after as much again to warm up */
	uint64_t seed;
};

enum drive_limits {
	DRIVE_QPS_MAX = 8192,
	DRIVE_EVENTS_MAX = 1 << 17, /* requests in flight */
};

struct drive_result {
	double mops;
	double mean_us; /* of one request, from its post */
};

/* -EINVAL for a configuration beyond the limits, -ENOMEM. */
int MUST_CHECK drive_closed_loop(const struct drive_config *config,
				 struct drive_result *out);

/*
 * Requests of all kinds, one every `gap_ps`, round robin over `qps` queue
 * pairs: the share of responses that follow their predecessor in the order of
 * the requests, and the largest step between two responses.
 */
struct drive_order {
	double in_order;
	uint32_t max_step;
};
int MUST_CHECK drive_reordering(const struct model_params *params, uint32_t qps,
				uint32_t requests, uint64_t gap_ps,
				uint64_t seed, struct drive_order *out);

/* The page operations of an on-NIC page store, in ODRP's order of steps. */
enum drive_page {
	DRIVE_PAGE_READ,  /* plain 4 KiB READ */
	DRIVE_PAGE_WRITE, /* plain 4 KiB WRITE */
	DRIVE_PAGE_LOAD,
	DRIVE_PAGE_STORE_MAPPED,
	DRIVE_PAGE_STORE_UNMAPPED,
};
/* `workers` queue pairs with one request in flight each. */
int MUST_CHECK drive_pages(const struct model_params *params,
			   enum drive_page what, uint32_t workers,
			   uint64_t span_ps, struct drive_result *out);

#endif
