/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A histogram with fixed log-linear buckets: values below 32 are exact, above,
 * each power of two is cut into 32 equal parts, so a value read back is off by
 * at most 1/32 (1.6 % from the middle). Covers 0 to 2^48 - 1, in nanoseconds 78
 * hours; larger values land in the last bucket.
 *
 * The struct is also the layout inside a counter file (host byte order, one
 * machine). One thread records; another process may copy the struct meanwhile.
 * It computes everything from the buckets, so a torn copy is off only by the
 * few values recorded during the copy.
 */
#ifndef AQ_HIST_H
#define AQ_HIST_H

#include "base.h"

enum {
	HIST_SUB_BITS = 5,
	HIST_SUB = 1 << HIST_SUB_BITS,
	HIST_TOP_BITS = 48,
	HIST_BUCKETS = (HIST_TOP_BITS - HIST_SUB_BITS + 1) * HIST_SUB,
};

struct hist {
	uint64_t sum; /* of the values; wraps after 2^64 */
	uint64_t min; /* both 0 while empty */
	uint64_t max;
	uint64_t reserved[5];
	uint64_t bucket[HIST_BUCKETS];
};

STATIC_ASSERT(sizeof(struct hist) == 64 + 8 * HIST_BUCKETS, "hist layout");
STATIC_ASSERT(HIST_BUCKETS == 1408, "hist buckets are part of the layout");
STATIC_ASSERT(sizeof(struct hist) % CACHE_LINE == 0, "hist in cache lines");

static inline unsigned hist_index(uint64_t v)
{
	unsigned top, shift;

	if (v < HIST_SUB)
		return (unsigned)v;
	if (v >> HIST_TOP_BITS)
		return HIST_BUCKETS - 1;
	top = 63 - (unsigned)__builtin_clzll(v);
	shift = top - HIST_SUB_BITS;
	return (shift << HIST_SUB_BITS) + (unsigned)(v >> shift);
}

/* The smallest value of a bucket, and how many values it holds. */
uint64_t hist_bucket_low(unsigned index);
uint64_t hist_bucket_width(unsigned index);

void hist_init(struct hist *h);
void hist_record(struct hist *h, uint64_t value);
void hist_record_many(struct hist *h, uint64_t value, uint64_t times);
/* Adds `from` to `into`. */
void hist_merge(struct hist *into, const struct hist *from);

/* How many values were recorded. Walks the buckets. */
uint64_t hist_count(const struct hist *h);
/* The value that is not exceeded by `ppm` of a million values: 500000 is the
 * median, 999000 is p99.9. 0 when empty. Interpolates inside the bucket. */
uint64_t hist_percentile(const struct hist *h, uint32_t ppm);
double hist_mean(const struct hist *h);

enum hist_ppm {
	HIST_MEDIAN = 500000,
	HIST_P99 = 990000,
	HIST_P999 = 999000,
};

#endif
