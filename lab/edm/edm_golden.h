/* SPDX-License-Identifier: Apache-2.0 */
/* The published simulator's rules for 64 B writes as a model of its own. */
#ifndef AQ_EDM_GOLDEN_H
#define AQ_EDM_GOLDEN_H

#include "base/base.h"

struct edm_golden {
	double slowdown;   /* by its rules of counting */
	double mean_slots; /* of all messages, from arrival to the last block */
	uint32_t counted;  /* messages in `slowdown` */
};

int edm_golden_run(double payload_load, uint32_t messages, uint64_t seed,
		   struct edm_golden *out) MUST_CHECK;

#endif
