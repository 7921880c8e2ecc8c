/* SPDX-License-Identifier: Apache-2.0 */
/* One object that grows and shrinks: what it has, and what is in it. */
#ifndef AQ_FIGURES_EFIG_LIFE_H
#define AQ_FIGURES_EFIG_LIFE_H

#include "base/base.h"

enum efig_structure {
	EFIG_FILE,
	EFIG_QUEUE,
	EFIG_EKV,
	EFIG_STRUCTURES,
};

struct efig_life_config {
	enum efig_structure structure;
	uint64_t block_bytes;
	uint64_t lease_ms;
	uint32_t high; /* thousandths: when a store's block is split */
	double seconds;
	uint64_t seed;
};

struct efig_life_result {
	double used_mb, allocated_mb; /* at the end */
	double surplus; /* mean allocated beyond the mean used, of that */
	double moves;	/* splits and merges of a store */
};

/* -ENOMEM, -EPROTO. */
int efig_life_run(const struct efig_life_config *c,
		  struct efig_life_result *out) MUST_CHECK;

#endif
