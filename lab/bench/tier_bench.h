/* SPDX-License-Identifier: Apache-2.0 */
/* What the probe of memory tiers is compared with: the barest loops that do the
 * same, which share no code with it. */
#ifndef AQ_BENCH_TIER_BENCH_H
#define AQ_BENCH_TIER_BENCH_H

#include <stdint.h>

/* Nanoseconds of a load that depends on the one before, over that much memory:
 * the median of pieces of the window. 0 or -errno. */
int tier_bare_chase(uint64_t bytes, uint64_t window_ns, double *ns)
	__attribute__((warn_unused_result));
enum {
	TIER_BARE_LOOPS = 4,
};

const char *tier_bare_loop_name(unsigned loop);
/* 10^9 bytes a second that `threads` read with each of the plain loops, each
 * thread of its part of that much memory. 0 or -errno. */
int tier_bare_read(uint32_t threads, uint64_t bytes, uint64_t window_ns,
		   double gbs[TIER_BARE_LOOPS])
	__attribute__((warn_unused_result));

#endif
