/* SPDX-License-Identifier: Apache-2.0 */
/* Tables: cells in reading order, columns as wide as they must be. */
#include "edm_table.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void edm_table_init(struct edm_table *t, const char *name, const char *title,
		    const char *const *head)
{
	*t = (struct edm_table){.name = name};
	snprintf(t->title, sizeof(t->title), "%s", title);
	while (head[t->columns] && t->columns < EDM_TABLE_COLUMNS) {
		t->head[t->columns] = head[t->columns];
		t->columns++;
	}
}

void edm_table_release(struct edm_table *t)
{
	free(t->cell);
}

static struct edm_cell *cell_add(struct edm_table *t)
{
	if (t->cells == t->size) {
		t->size = t->size ? 2 * t->size : 64;
		t->cell = realloc(t->cell, t->size * sizeof(*t->cell));
		ASSERT(t->cell);
	}
	t->cell[t->cells] = (struct edm_cell){.text = ""};
	return &t->cell[t->cells++];
}

void edm_table_text(struct edm_table *t, const char *fmt, ...)
{
	struct edm_cell *c = cell_add(t);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->text, sizeof(c->text), fmt, ap);
	va_end(ap);
}

void edm_table_number(struct edm_table *t, double value, int decimals)
{
	struct edm_cell *c = cell_add(t);

	if (decimals < 0 || !isfinite(value))
		return;
	c->number = true;
	c->value = value;
	snprintf(c->text, sizeof(c->text), "%.*f", decimals, value);
}

void edm_table_print(const struct edm_table *t, FILE *f)
{
	size_t width[EDM_TABLE_COLUMNS];

	for (unsigned k = 0; k < t->columns; k++)
		width[k] = strlen(t->head[k]);
	for (size_t i = 0; i < t->cells; i++) {
		size_t n = strlen(t->cell[i].text);

		if (n > width[i % t->columns])
			width[i % t->columns] = n;
	}
	fprintf(f, "%s\n", t->title);
	for (unsigned k = 0; k < t->columns; k++)
		fprintf(f, "%s%*s", k ? "  " : "", (int)width[k], t->head[k]);
	for (size_t i = 0; i < t->cells; i++) {
		unsigned k = (unsigned)(i % t->columns);

		fprintf(f, "%s%*s", k ? "  " : "\n", (int)width[k],
			t->cell[i].text);
	}
	fputs("\n\n", f);
}

void edm_table_json(const struct edm_table *t, struct json_out *j)
{
	json_out_array(j, t->name);
	for (size_t i = 0; i < t->cells; i++) {
		const struct edm_cell *c = &t->cell[i];
		unsigned k = (unsigned)(i % t->columns);

		if (!k)
			json_out_object(j, NULL);
		if (c->number)
			json_out_double(j, t->head[k], c->value);
		else if (*c->text)
			json_out_string(j, t->head[k], c->text);
		else
			json_out_null(j, t->head[k]);
		if (k + 1 == t->columns)
			json_out_close(j);
	}
	json_out_close(j);
}
