/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the rate of the processor's clock; the kernel does not export it. */
#include "ticks.h"

enum {
	CALIBRATE_NS = 20 * 1000 * 1000,
	STEP_READS = 100,
	STEP_TRIES = 50,
};

double bench_ticks_per_ns(void)
{
	uint64_t ns0 = bench_now_ns();
	uint64_t t0 = bench_ticks();
	uint64_t ns1;

	do {
		ns1 = bench_now_ns();
	} while (ns1 - ns0 < CALIBRATE_NS);
	return (double)(bench_ticks() - t0) / (double)(ns1 - ns0);
}

double bench_tick_step(void)
{
	uint64_t best = UINT64_MAX;

	/* The least of many: whoever is interrupted measures the others. */
	for (int k = 0; k < STEP_TRIES; k++) {
		uint64_t t0 = bench_ticks();
		uint64_t t1 = t0;

		for (int i = 0; i < STEP_READS; i++)
			t1 = bench_ticks();
		best = t1 - t0 < best ? t1 - t0 : best;
	}
	return (double)best / STEP_READS;
}
