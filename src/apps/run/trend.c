/* SPDX-License-Identifier: Apache-2.0 */
/* Majority vote over distances, and the window of a stream. */
#include "trend.h"

/* Boyer and Moore's vote over the newest n, then a count; 0: no majority. */
static int64_t majority(const struct trend *t, uint32_t n)
{
	int64_t candidate = 0;
	uint32_t votes = 0, count = 0;

	for (uint32_t i = 1; i <= n; i++) {
		int64_t d = t->distance[(t->count - i) % TREND_HISTORY];

		if (votes == 0)
			candidate = d;
		votes += d == candidate ? 1 : -1u;
	}
	for (uint32_t i = 1; i <= n; i++)
		count += t->distance[(t->count - i) % TREND_HISTORY] ==
			 candidate;
	return count > n / 2 ? candidate : 0;
}

static int64_t find(const struct trend *t)
{
	for (uint32_t n = TREND_FIRST; n <= TREND_HISTORY && n <= t->count;
	     n *= 2) {
		int64_t d = majority(t, n);

		if (d)
			return d;
	}
	return 0;
}

static struct trend *place(struct trends *ts, uint64_t key)
{
	return &ts->at[(key * 0x9e3779b97f4a7c15ull >> 32) % TRENDS];
}

static bool is_foretold(const struct trend *t, uint64_t key, uint64_t page)
{
	return t->key == key && t->window && t->next == page;
}

/* A thread may follow several streams (a partition has two): those in different
 * neighbourhoods do not meet. One that leaves its own goes on in the next. */
struct trend *run_trend_of(struct trends *ts, uint32_t tid, uint64_t page)
{
	uint64_t key = (uint64_t)tid << 32 | page >> TREND_SHIFT;
	struct trend *t = place(ts, key);
	struct trend comes = {.key = key};

	if (is_foretold(t, key, page))
		return t;
	if (is_foretold(place(ts, key - 1), key - 1, page))
		comes = *place(ts, key - 1);
	else if (is_foretold(place(ts, key + 1), key + 1, page))
		comes = *place(ts, key + 1);
	else if (t->key == key)
		return t;
	*t = comes;
	t->key = key;
	return t;
}

uint32_t run_trend_fault(struct trend *t, uint64_t page, uint32_t max,
			 int64_t *stride)
{
	if (t->window && page == t->next) {
		t->window = u32_min(2 * t->window, max);
	} else {
		t->distance[t->count++ % TREND_HISTORY] =
			(int64_t)(page - t->last);
		t->stride = find(t);
		/* A stream that was just lost starts small again. */
		t->window = t->stride ? u32_min(2, max) : 0;
	}
	t->last = page;
	t->next = page + (uint64_t)t->stride;
	*stride = t->stride;
	return t->window;
}

void run_trend_fetched(struct trend *t, uint64_t page, uint32_t count)
{
	t->last = page + (uint64_t)t->stride * count;
	t->next = t->last + (uint64_t)t->stride;
}
