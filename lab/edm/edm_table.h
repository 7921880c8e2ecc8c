/* SPDX-License-Identifier: Apache-2.0 */
/* A table of results, for a terminal and for JSON, and charts as SVG files. */
#ifndef AQ_EDM_TABLE_H
#define AQ_EDM_TABLE_H

#include <stdio.h>

#include "base/base.h"
#include "base/json_out.h"

enum {
	EDM_TABLE_COLUMNS = 16,
	EDM_TABLE_TEXT = 40,
	EDM_CHART_SERIES = 16,
};

struct edm_cell {
	char text[EDM_TABLE_TEXT]; /* as printed; "" : nothing to say */
	double value;
	bool number;
};

struct edm_table {
	const char *name; /* the JSON member */
	char title[240];
	const char *head[EDM_TABLE_COLUMNS];
	unsigned columns;
	struct edm_cell *cell;
	size_t cells, size;
};

/* `head` is a list of column names that ends with NULL; static text. */
void edm_table_init(struct edm_table *t, const char *name, const char *title,
		    const char *const *head);
void edm_table_release(struct edm_table *t);
void edm_table_text(struct edm_table *t, const char *fmt, ...) PRINTF(2, 3);
/* decimals < 0: an empty cell. */
void edm_table_number(struct edm_table *t, double value, int decimals);
void edm_table_print(const struct edm_table *t, FILE *f);
void edm_table_json(const struct edm_table *t, struct json_out *j);

struct edm_chart {
	const char *title, *x_label, *y_label;
	const char *const *x; /* names of the points */
	unsigned points, series;
	const char *name[EDM_CHART_SERIES];
	/* [series * points + point]; NaN: none */
	const double *y;
	bool log_y;
	bool bars;
};

/* Writes dir/name.svg. 0 or -errno. */
int edm_chart_write(const struct edm_chart *c, const char *dir,
		    const char *name) MUST_CHECK;

#endif
