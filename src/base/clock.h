/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's clocks, for everything that is not on the data path and never
 * runs in the simulator. Code that the simulator runs takes its time from its
 * env or from a client_clock; the NIC reads os/clock.h, which is quicker.
 */
#ifndef AQ_CLOCK_H
#define AQ_CLOCK_H

#include <time.h>

#include "base.h"

/* These clocks always exist, so reading them cannot fail. */
static inline uint64_t clock_read_ns(clockid_t id)
{
	struct timespec t;

	(void)clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Since some moment in the past; never set, so it is right for durations. */
static inline uint64_t clock_mono_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

static inline uint64_t clock_mono_ms(void)
{
	return clock_mono_ns() / 1000000;
}

/* Since 1970, as the administrator has set it: for times that people and other
 * machines read. */
static inline uint64_t clock_real_ns(void)
{
	return clock_read_ns(CLOCK_REALTIME);
}

static inline uint64_t clock_real_ms(void)
{
	return clock_real_ns() / 1000000;
}

/* Converts a time for system calls that wait. */
static inline struct timespec clock_timespec(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
				 .tv_nsec = (long)(ns % 1000000000)};
}

#endif
