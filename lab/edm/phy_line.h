/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line between two ends: scrambler, the bits on the cable with errors at a
 * given rate, descrambler, block lock.
 */
#ifndef AQ_EDM_PHY_LINE_H
#define AQ_EDM_PHY_LINE_H

#include "base/rng.h"
#include "phy.h"

struct edm_line {
	struct edm_scrambler tx, rx;
	struct edm_lock lock;
	struct rng rng;
	double error_rate;
	uint64_t next_error; /* bits until then */
	uint64_t bits;
	uint64_t errors;
};

/* error_rate is per bit on the cable, sync headers included; 0: none. */
void edm_line_init(struct edm_line *l, double error_rate, uint64_t seed);
/* Carries one block; returns how many of its bits were flipped on the cable. */
unsigned edm_line_carry(struct edm_line *l, const struct wire_block *in,
			struct wire_block *out);

#endif
