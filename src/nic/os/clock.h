/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Monotonic nanoseconds. Where the kernel itself trusts an invariant TSC, one
 * read costs 10 ns instead of clock_gettime's 22; the rate is measured against
 * CLOCK_MONOTONIC once, good to some 30 ppm, which is enough for timers.
 */
#ifndef AQ_OS_CLOCK_H
#define AQ_OS_CLOCK_H

#include "base/base.h"
#include "base/clock.h"

struct os_clock {
	uint64_t base_tsc;
	uint64_t base_ns;
	uint64_t ns_per_tick_32; /* 32 fraction bits; 0: no TSC */
};

/* Sleeps about a millisecond when it has to measure. */
void os_clock_init(struct os_clock *c);

static inline uint64_t os_clock_ns(const struct os_clock *c)
{
#ifdef __x86_64__
	if (LIKELY(c->ns_per_tick_32 != 0)) {
		uint64_t ticks = __builtin_ia32_rdtsc() - c->base_tsc;

		return c->base_ns + (uint64_t)(((unsigned __int128)ticks *
						c->ns_per_tick_32) >>
					       32);
	}
#endif
	return clock_mono_ns();
}

#endif
