/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workloads of `aquifer sim mind --figure`: algorithms on simulated memory,
 * as the pages that they touch. A step is some accesses to one page, of which
 * the first decides whether it is here.
 */
#ifndef AQ_FIGURES_MFIG_WORK_H
#define AQ_FIGURES_MFIG_WORK_H

#include "base/rng.h"
#include "mfig.h"
#include "sim/ycsb.h"

struct mfig_step {
	uint32_t page;
	uint32_t accesses;
	uint32_t units; /* of work that are done with it */
	bool writes;
};

/* What all threads share. */
struct mfig_program {
	const struct mfig_config *cfg;
	uint32_t threads; /* of all machines */
	struct ycsb_keys keys;
	/* The parts of the memory, in pages: weights, values, buckets; what
	 * they leave is activations, edges, items. */
	uint32_t shared_pages, rest_pages;
	uint32_t lock_pages, bucket_pages, lru_page;
};

struct mfig_walker {
	const struct mfig_program *program;
	uint32_t index; /* of the thread, of all */
	struct rng rng;
	struct ycsb ycsb;
	uint32_t at, phase; /* of the algorithm */
	uint32_t edge_page;
	uint32_t own, own_count; /* pages of its own, and how many */
	uint64_t own_at, owed;	 /* the next one; parts of one that are due */
	struct ycsb_op op;
};

int mfig_program_init(struct mfig_program *p,
		      const struct mfig_config *cfg) MUST_CHECK;
void mfig_walker_init(struct mfig_walker *w, const struct mfig_program *p,
		      uint32_t index);
struct mfig_step mfig_walker_next(struct mfig_walker *w);

#endif
