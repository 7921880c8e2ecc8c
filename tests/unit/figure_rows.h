/* SPDX-License-Identifier: Apache-2.0 */
/* Results of figures' points that were not run. */
#ifndef AQ_TEST_FIGURE_ROWS_H
#define AQ_TEST_FIGURE_ROWS_H

#include "report/figure.h"

/* Some result for every point: any number that is not 0. */
static inline void figure_rows_make_up(struct figure_run *r)
{
	const struct figure_system *s = r->system;

	for (size_t i = 0; i < r->count; i++) {
		char *row = figure_row(r, i);

		for (const struct figure_column *c = s->columns; c && c->name;
		     c++) {
			size_t n = 1 + (7 * i + c->at) % 50;

			if (c->at < s->result_at ||
			    c->at >= s->result_at + s->result_bytes)
				continue;
			if (c->type == FIGURE_REAL)
				*(double *)(row + c->at) = (double)n;
			else if (c->type == FIGURE_U64)
				*(uint64_t *)(row + c->at) = n;
		}
	}
}

#endif
