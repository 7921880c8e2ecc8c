/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the top node has bandwidth left for pages that would be promoted. */
#include "guard.h"

void tier_guard_init(struct tier_guard *g, uint64_t peak_bytes_s)
{
	*g = (struct tier_guard){.peak_bytes_s = peak_bytes_s};
}

static void begin(struct tier_guard *g, uint64_t now_ns, uint64_t bytes)
{
	g->since_ns = now_ns;
	g->since_bytes = bytes;
	g->has_begun = true;
}

void tier_guard_count(struct tier_guard *g, uint64_t now_ns, uint64_t bytes)
{
	uint64_t window_ns = TIER_GUARD_WINDOW_MS * 1000000ull;

	if (!g->has_begun || bytes < g->since_bytes) {
		begin(g, now_ns, bytes);
		return;
	}
	if (now_ns - g->since_ns < window_ns)
		return;
	g->rate_bytes_s = (uint64_t)((double)(bytes - g->since_bytes) * 1e9 /
				     (double)(now_ns - g->since_ns));
	begin(g, now_ns, bytes);
}

void tier_guard_miss(struct tier_guard *g, uint64_t now_ns)
{
	if (now_ns - g->since_ns > TIER_GUARD_BLIND_MS * 1000000ull)
		tier_guard_init(g, g->peak_bytes_s);
}

bool tier_guard_is_closed(const struct tier_guard *g)
{
	return g->peak_bytes_s &&
	       g->rate_bytes_s > g->peak_bytes_s / 100 * TIER_GUARD_PERCENT;
}
