/* SPDX-License-Identifier: Apache-2.0 */
/* What the probe of memory tiers is compared with: the barest loops that do the
 * same, which share no code with it. */
#ifndef AQ_BENCH_TIER_BENCH_H
#define AQ_BENCH_TIER_BENCH_H

#include <stdint.h>

enum {
	TIER_BARE_LOOPS = 4,
};

/* Memory of the bare loops, made once for all rounds. */
struct tier_bare {
	uint32_t threads;
	uint64_t chase_bytes, read_bytes;
	struct cell *cells;
	uint8_t *memory;
};

/* As much as the probe has, for so many threads that read. 0 or -errno. */
int tier_bare_open(struct tier_bare *b, uint64_t chase_bytes,
		   uint64_t read_bytes, uint32_t threads)
	__attribute__((warn_unused_result));
void tier_bare_close(struct tier_bare *b);

/* Nanoseconds of a load that depends on the one before: the median of pieces of
 * the window. */
double tier_bare_chase(const struct tier_bare *b, uint64_t window_ns);

const char *tier_bare_loop_name(unsigned loop);
/* 10^9 bytes a second that the threads read with each of the plain loops, each
 * thread of its part of the memory. 0 or -errno. */
int tier_bare_read(const struct tier_bare *b, uint64_t window_ns,
		   double gbs[TIER_BARE_LOOPS])
	__attribute__((warn_unused_result));

#endif
