/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as text, in columns as wide as they must be, and as JSON. */
#include <math.h>
#include <string.h>

#include "base/json_out.h"
#include "figure.h"

enum {
	COLUMNS_MAX = 96,
	CELL_MAX = 128,
};

/* A member that is no text and no double. */
static long long whole_of(const struct figure_column *c, const void *row)
{
	const void *at = (const char *)row + c->at;

	if (c->type == FIGURE_U64)
		return (long long)*(const uint64_t *)at;
	if (c->type == FIGURE_U32)
		return *(const uint32_t *)at;
	return c->type == FIGURE_BOOL ? *(const bool *)at : *(const int *)at;
}

const char *figure_cell(const struct figure_column *c, const void *row,
			char *text, size_t size)
{
	static const char *const answer[] = {"", "short", "holds"};
	const void *at = (const char *)row + c->at;

	*text = 0;
	switch (c->type) {
	case FIGURE_REAL:
		if (!isnan(*(const double *)at))
			snprintf(text, size, "%.*f", c->decimals,
				 *(const double *)at);
		return text;
	case FIGURE_INT:
	case FIGURE_U32:
	case FIGURE_U64:
		snprintf(text, size, "%lld", whole_of(c, row));
		return text;
	case FIGURE_BOOL:
		return whole_of(c, row) ? "yes" : "no";
	case FIGURE_ANSWER:
		return answer[whole_of(c, row) + 1];
	case FIGURE_TEXT:
		return *(const char *const *)at ? *(const char *const *)at : "";
	case FIGURE_CHARS:
		break;
	}
	return at;
}

void figure_cell_json(struct json_out *j, const char *key,
		      const struct figure_column *c, const void *row)
{
	char cell[CELL_MAX];
	const char *text = figure_cell(c, row, cell, sizeof(cell));

	if (!*text)
		json_out_null(j, key);
	else if (c->type == FIGURE_REAL)
		json_out_double(j, key,
				*(const double *)((const char *)row + c->at));
	else if (c->type == FIGURE_BOOL || c->type == FIGURE_ANSWER)
		json_out_bool(j, key, whole_of(c, row));
	else if (c->type == FIGURE_TEXT || c->type == FIGURE_CHARS)
		json_out_string(j, key, text);
	else
		json_out_i64(j, key, whole_of(c, row));
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
