/* SPDX-License-Identifier: Apache-2.0 */
/* What the probe of memory tiers is compared with: the barest loops that do the
 * same, which share no code with it. */
#ifndef AQ_BENCH_TIER_BENCH_H
#define AQ_BENCH_TIER_BENCH_H

#include <stdint.h>

enum {
	TIER_BARE_NODE = 0, /* every machine has it */
	TIER_BARE_LOOPS = 5,
};

/* Memory of the bare loops, made once for all rounds. */
struct tier_bare {
	uint32_t threads;
	uint64_t chase_bytes, read_bytes;
	struct cell *cells, *at; /* the one that is followed next */
	uint8_t *memory;
	double *sample; /* ns of a load, of one window */
	/* The least share of their time that its threads had a processor in a
	 * window, since the caller set it; and how many windows may still be
	 * measured again, as the probe does it, because that was too little. */
	double share;
	uint32_t again;
};

/* As much as the probe has, for so many threads that read. 0 or -errno. */
int tier_bare_open(struct tier_bare *b, uint64_t chase_bytes,
		   uint64_t read_bytes, uint32_t threads)
	__attribute__((warn_unused_result));
void tier_bare_close(struct tier_bare *b);

/* Nanoseconds of a load that depends on the one before: the median of pieces of
 * the window, which are as long as the probe's samples; on the processor that
 * the probe has. Goes on where it ended. */
double tier_bare_chase(struct tier_bare *b, uint64_t window_ns);

const char *tier_bare_loop_name(unsigned loop);
/* 10^9 bytes a second that the threads read with that plain loop, each thread
 * of its part of the memory. 0 or -errno. */
int tier_bare_read(struct tier_bare *b, unsigned loop, uint64_t window_ns,
		   double *gbs) __attribute__((warn_unused_result));

#endif
