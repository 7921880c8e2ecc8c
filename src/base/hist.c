/* SPDX-License-Identifier: Apache-2.0 */
/* Log-linear histogram: recording, merging, and what it says. */
#include "hist.h"

#include <string.h>

enum {
	MILLION = 1000000,
};

/* Where the index of a bucket holds both its shift and its top bits. */
static unsigned shift_of(unsigned index)
{
	return index < 2 * HIST_SUB ? 0 : (index >> HIST_SUB_BITS) - 1;
}

uint64_t hist_bucket_low(unsigned index)
{
	unsigned shift = shift_of(index);

	ASSERT(index < HIST_BUCKETS);
	return (uint64_t)(index - (shift << HIST_SUB_BITS)) << shift;
}

uint64_t hist_bucket_width(unsigned index)
{
	ASSERT(index < HIST_BUCKETS);
	return 1ull << shift_of(index);
}

void hist_init(struct hist *h)
{
	memset(h, 0, sizeof(*h));
}

/* A value above 0 raises max, a 0 goes to the first bucket. */
static bool is_empty(const struct hist *h)
{
	return h->max == 0 && h->bucket[0] == 0;
}

void hist_record_many(struct hist *h, uint64_t value, uint64_t times)
{
	if (times == 0)
		return;
	h->min = is_empty(h) ? value : u64_min(h->min, value);
	h->max = u64_max(h->max, value);
	h->sum += value * times;
	h->bucket[hist_index(value)] += times;
}

void hist_record(struct hist *h, uint64_t value)
{
	hist_record_many(h, value, 1);
}

void hist_merge(struct hist *into, const struct hist *from)
{
	unsigned i;

	if (is_empty(from))
		return;
	into->min = is_empty(into) ? from->min : u64_min(into->min, from->min);
	into->max = u64_max(into->max, from->max);
	into->sum += from->sum;
	for (i = 0; i < HIST_BUCKETS; i++)
		into->bucket[i] += from->bucket[i];
}

uint64_t hist_count(const struct hist *h)
{
	uint64_t count = 0;
	unsigned i;

	for (i = 0; i < HIST_BUCKETS; i++)
		if (__builtin_add_overflow(count, h->bucket[i], &count))
			return UINT64_MAX; /* only in a corrupted file */
	return count;
}

double hist_mean(const struct hist *h)
{
	uint64_t count = hist_count(h);

	return count ? (double)h->sum / (double)count : 0;
}

/* The rank-th of n values spread evenly over a bucket; rank is 1 to n. */
static uint64_t inside(unsigned index, uint64_t rank, uint64_t n)
{
	unsigned __int128 part = hist_bucket_width(index);

	part = part * (2 * (unsigned __int128)rank - 1) /
	       (2 * (unsigned __int128)n);
	return hist_bucket_low(index) + (uint64_t)part;
}

uint64_t hist_percentile(const struct hist *h, uint32_t ppm)
{
	uint64_t count = hist_count(h), rank, value;
	unsigned i;

	if (count == 0)
		return 0;
	rank = (uint64_t)(((unsigned __int128)count * u32_min(ppm, MILLION) +
			   MILLION - 1) /
			  MILLION);
	rank = u64_max(rank, 1);
	for (i = 0; i < HIST_BUCKETS - 1 && rank > h->bucket[i]; i++)
		rank -= h->bucket[i];
	/* Values past the top have no bucket that could place them. */
	if (i == HIST_BUCKETS - 1)
		return h->max;
	value = inside(i, rank, h->bucket[i]);
	/* In a torn copy max may be older than the buckets: then it is 0. */
	if (h->max >= hist_bucket_low(i))
		value = u64_min(value, h->max);
	return u64_max(value, h->min);
}
