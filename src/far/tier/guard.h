/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bandwidth guard: nothing is promoted while the top node moves more than
 * 75 % of what it can, because above that its latency grows past that of the
 * slow node, and the slow node's bandwidth would be wasted. Pure: the caller
 * reads a counter of bytes.
 */
#ifndef AQ_TIER_GUARD_H
#define AQ_TIER_GUARD_H

#include "base/base.h"

enum {
	TIER_GUARD_PERCENT = 75,
	TIER_GUARD_WINDOW_MS = 100, /* over which the rate is taken */
	TIER_GUARD_BLIND_MS = 1000, /* after which an old rate says nothing */
};

/* One thread at a time. */
struct tier_guard {
	uint64_t peak_bytes_s; /* 0: not known, so it never closes */
	uint64_t since_ns, since_bytes;
	uint64_t rate_bytes_s; /* of the last window */
	bool has_begun;
};

void tier_guard_init(struct tier_guard *g, uint64_t peak_bytes_s);
/* The counter's value now. Values within a window change nothing; one that
 * went back, as after a reset, begins a new window. */
void tier_guard_count(struct tier_guard *g, uint64_t now_ns, uint64_t bytes);
/* The counter could not be read now. For a while the last rate counts; then the
 * guard is open, as it is where nothing is counted. */
void tier_guard_miss(struct tier_guard *g, uint64_t now_ns);
bool tier_guard_is_closed(const struct tier_guard *g);

#endif
