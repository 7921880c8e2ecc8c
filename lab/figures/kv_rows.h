/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the systems `kv` and `index` share: their rows are points of
 * kv_fig_run(), with the same columns and options.
 */
#ifndef AQ_FIGURES_KV_ROWS_H
#define AQ_FIGURES_KV_ROWS_H

#include "figures.h"

/* Reads of YCSB's mixes, in a million. */
enum {
	READS_A = 500000,
	READS_B = 950000,
	READS_C = 1000000,
};

struct kv_rows_args {
	struct figure_options f;
	uint64_t seed;
};

extern const struct figure_column kv_rows_columns[];
extern const struct opt kv_rows_options[];
extern const struct kv_rows_args kv_rows_defaults;

/* Adds a line of a figure: a member of the configuration goes through a list,
 * times `scale`. With --quick every so many of them, and small ones. */
void kv_rows_line(struct figure_run *r, const char *panel, const char *series,
		  struct kv_fig_config *c, uint32_t *member, uint32_t scale,
		  const uint32_t *x, size_t count, size_t quick_step);

/* The systems' `point`. */
int kv_rows_point(void *row);

#endif
