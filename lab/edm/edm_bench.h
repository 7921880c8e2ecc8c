/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers that must hold, measured. */
#ifndef AQ_EDM_BENCH_H
#define AQ_EDM_BENCH_H

#include "base/base.h"

enum {
	EDM_BENCH_MAX = 24,
};

struct edm_bench_row {
	const char *name;
	const char *what;
	double value;
	double bound;  /* 0: printed only */
	bool at_least; /* the bound is a lower one */
};

/* quick: an order of magnitude shorter; averages are not settled then. */
int edm_bench_run(bool quick, uint32_t threads, bool progress,
		  struct edm_bench_row rows[EDM_BENCH_MAX],
		  unsigned *count) MUST_CHECK;

#endif
