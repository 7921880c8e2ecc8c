/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as text, in columns as wide as they must be, and as JSON. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json_out.h"
#include "figure.h"

enum {
	COLUMNS_MAX = 96,
	CELL_MAX = 128,
};

#define MEMBER(type, row, at) (*(const type *)((const char *)(row) + (at)))

const char *figure_cell(const struct figure_column *c, const void *row,
			char *text, size_t size)
{
	double real;

	*text = 0;
	switch (c->type) {
	case FIGURE_REAL:
		real = MEMBER(double, row, c->at);
		if (!isnan(real))
			snprintf(text, size, "%.*f", c->decimals, real);
		break;
	case FIGURE_INT:
		snprintf(text, size, "%d", MEMBER(int, row, c->at));
		break;
	case FIGURE_U32:
		snprintf(text, size, "%" PRIu32, MEMBER(uint32_t, row, c->at));
		break;
	case FIGURE_U64:
		snprintf(text, size, "%" PRIu64, MEMBER(uint64_t, row, c->at));
		break;
	case FIGURE_BOOL:
		return MEMBER(bool, row, c->at) ? "yes" : "no";
	case FIGURE_TEXT:
		return MEMBER(const char *, row, c->at)
			       ? MEMBER(const char *, row, c->at)
			       : "";
	case FIGURE_CHARS:
		return (const char *)row + c->at;
	case FIGURE_ANSWER:
		if (MEMBER(int, row, c->at) >= 0)
			return MEMBER(int, row, c->at) ? "holds" : "short";
		break;
	}
	return text;
}

void figure_cell_json(struct json_out *j, const char *key,
		      const struct figure_column *c, const void *row)
{
	const char *text;
	char cell[CELL_MAX];

	switch (c->type) {
	case FIGURE_REAL:
		json_out_double(j, key, MEMBER(double, row, c->at));
		return;
	case FIGURE_INT:
		json_out_i64(j, key, MEMBER(int, row, c->at));
		return;
	case FIGURE_U32:
		json_out_u64(j, key, MEMBER(uint32_t, row, c->at));
		return;
	case FIGURE_U64:
		json_out_u64(j, key, MEMBER(uint64_t, row, c->at));
		return;
	case FIGURE_BOOL:
		json_out_bool(j, key, MEMBER(bool, row, c->at));
		return;
	case FIGURE_ANSWER:
		if (MEMBER(int, row, c->at) < 0)
			json_out_null(j, key);
		else
			json_out_bool(j, key, MEMBER(int, row, c->at));
		return;
	case FIGURE_TEXT:
	case FIGURE_CHARS:
		break;
	}
	text = figure_cell(c, row, cell, sizeof(cell));
	if (*text)
		json_out_string(j, key, text);
	else
		json_out_null(j, key);
}

void figure_table(FILE *out, const struct figure_column *columns,
		  const void *rows, size_t row_bytes, size_t count)
{
	size_t width[COLUMNS_MAX];
	char cell[CELL_MAX];

	for (unsigned k = 0; columns[k].name; k++) {
		ASSERT(k < COLUMNS_MAX);
		width[k] = strlen(columns[k].name);
		for (size_t i = 0; i < count; i++) {
			const char *row = (const char *)rows + i * row_bytes;
			size_t n = strlen(figure_cell(&columns[k], row, cell,
						      sizeof(cell)));

			width[k] = n > width[k] ? n : width[k];
		}
	}
	/* The head is one row more. Words begin at the left, numbers end at
	 * the right. */
	for (size_t i = 0; i <= count; i++) {
		const char *gap = "";

		for (unsigned k = 0; columns[k].name; k++) {
			const struct figure_column *c = &columns[k];
			bool words = c->type >= FIGURE_BOOL;

			if (c->decimals == FIGURE_JSON_ONLY)
				continue;
			fprintf(out, "%s%*s", gap,
				(words ? -1 : 1) * (int)width[k],
				i ? figure_cell(c,
						(const char *)rows +
							(i - 1) * row_bytes,
						cell, sizeof(cell))
				  : c->name);
			gap = "  ";
		}
		fputc('\n', out);
	}
}

void figure_table_json(struct json_out *j, const char *key,
		       const struct figure_column *columns, const void *rows,
		       size_t row_bytes, size_t count)
{
	json_out_array(j, key);
	for (size_t i = 0; i < count; i++) {
		json_out_object(j, NULL);
		for (const struct figure_column *c = columns; c->name; c++)
			figure_cell_json(j, c->name, c,
					 (const char *)rows + i * row_bytes);
		json_out_close(j);
	}
	json_out_close(j);
}
