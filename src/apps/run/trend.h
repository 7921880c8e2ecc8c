/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pages a thread will want next: the majority of its last distances
 * between faults, as in Leap, and a window that doubles while it is right.
 *
 * Prefetched pages are mapped and do not fault, so a stream that goes on faults
 * again one window further.
 */
#ifndef AQ_RUN_TREND_H
#define AQ_RUN_TREND_H

#include "base/base.h"

enum {
	TREND_HISTORY = 32,
	TREND_FIRST = 4, /* distances looked at first; doubled until decided */
	TRENDS = 64,
	TREND_SHIFT = 11, /* pages of a neighbourhood, as a power of 2 */
};

/* Zero-initialised. */
struct trend {
	int64_t distance[TREND_HISTORY];
	uint32_t count; /* ever */
	uint32_t window;
	uint64_t last;
	uint64_t next; /* the fault that shows that the stream goes on */
	int64_t stride;
	uint64_t key; /* thread and neighbourhood */
};

/* The trends of a space, by the hash of their keys. Zero-initialised. */
struct trends {
	struct trend at[TRENDS];
};

/* The trend that the fault belongs to. */
struct trend *run_trend_of(struct trends *ts, uint32_t tid, uint64_t page);

/*
 * Notes a fault; *stride and the result say what to fetch: page + stride, page
 * + 2 * stride, ... Not more than `max`.
 */
uint32_t run_trend_fault(struct trend *t, uint64_t page, uint32_t max,
			 int64_t *stride);
/* How many were really fetched, so that it knows where to look next. */
void run_trend_fetched(struct trend *t, uint64_t page, uint32_t count);

#endif
