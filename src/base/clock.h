/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's clocks, for who has no env. Neither can fail. */
#ifndef AQ_BASE_CLOCK_H
#define AQ_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	(void)clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Of the machine, since some time in the past. */
static inline uint64_t clock_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Since 1970; people set it. */
static inline uint64_t clock_wall_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

#endif
