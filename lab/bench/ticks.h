/* SPDX-License-Identifier: Apache-2.0 */
/* The processor's own clock, read without a system call, and its rate. */
#ifndef AQ_BENCH_TICKS_H
#define AQ_BENCH_TICKS_H

#include <stdint.h>
#include <time.h>

static inline uint64_t bench_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* No fence on purpose: an lfence pair costs more than a direct READ. */
static inline uint64_t bench_ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return bench_now_ns();
#endif
}

/* The same when all stores so far have left this core, where that can be
 * said. */
static inline uint64_t bench_ticks_drained(void)
{
#if defined(__x86_64__)
	__builtin_ia32_mfence();
#endif
	return bench_ticks();
}

/* Compares both clocks for about 20 ms. */
double bench_ticks_per_ns(void);

/* Ticks from one reading to the next: the cost of reading the clock, or its
 * step where that is larger (10 ns on some processors). */
double bench_tick_step(void);

#endif
