/* SPDX-License-Identifier: Apache-2.0 */
/* Order statistics of measured values. */
#ifndef AQ_BENCH_STATS_H
#define AQ_BENCH_STATS_H

#include <stddef.h>
#include <stdint.h>

/* The value below which `fraction` (0..1) of the samples lie; reorders v.
 * 0 when there are none. */
uint32_t stats_quantile_u32(uint32_t *v, size_t count, double fraction);

/*
 * The median of times read from a clock that moves in steps: the mean of all
 * samples within `reach` of the median. A time of 14 ns on a clock of 10 ns
 * steps is seen as 10 or 20; the plain median would be wrong by a third.
 */
double stats_center_u32(uint32_t *v, size_t count, double reach);

/* Reorders v. The mean of the middle two when count is even; 0 for none. */
double stats_median(double *v, size_t count);

#endif
