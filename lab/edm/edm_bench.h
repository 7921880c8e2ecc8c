/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers that must hold, measured. */
#ifndef AQ_EDM_BENCH_H
#define AQ_EDM_BENCH_H

#include "base/base.h"

struct edm_bench_options {
	bool is_quick; /* an order of magnitude shorter: not settled */
	uint32_t threads;
	uint32_t seeds; /* of the applications with the best discipline */
	bool has_progress;
	/* Parts: 64 bytes, five applications, figure 7. */
	bool has_short, has_apps, has_figure;
	void (*put)(void *ctx, const char *name, double value);
	void *ctx;
};

int edm_bench_run(const struct edm_bench_options *o) MUST_CHECK;

#endif
