/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which parts of the arena of shared memory are taken. A part is a power of two
 * at a multiple of its size, so that one entry of a match table covers it;
 * above ARENA_STEP_MAX it is a multiple of that. The first place that is large
 * enough is taken.
 *
 * A part has ARENA_STEP at least, the largest region that the switch's
 * directory has: so no region is ever a part of two segments, and nobody loses
 * pages with somebody else's.
 */
#ifndef AQ_MEM_ARENA_H
#define AQ_MEM_ARENA_H

#include "base/base.h"

#define ARENA_STEP     (2ull << 20)
#define ARENA_STEP_MAX (4ull << 30)

struct arena_part {
	uint64_t at, bytes;
};

struct arena {
	uint64_t size_bytes, taken_bytes;
	unsigned count, max;
	struct arena_part *parts; /* in the order of their places */
};

/* -ENOMEM. `max`: parts at most. */
int arena_init(struct arena *a, uint64_t size_bytes, unsigned max) MUST_CHECK;
void arena_release(struct arena *a);
/* How much is taken for that many bytes, 1 to 2^62. */
uint64_t arena_round(uint64_t size_bytes);
/* -ENOSPC: there is no such place. */
int arena_take(struct arena *a, uint64_t size_bytes,
	       struct arena_part *out) MUST_CHECK;
/* That one. -EEXIST: some of it is taken, or it is outside. */
int arena_take_at(struct arena *a, const struct arena_part *part) MUST_CHECK;
/* It was taken. */
void arena_give(struct arena *a, uint64_t at);

#endif
