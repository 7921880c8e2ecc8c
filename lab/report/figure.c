/* SPDX-License-Identifier: Apache-2.0 */
/* The points of a figure, its claims, and how both are printed. */
#include "figure.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json_out.h"

void figure_init(struct figure_run *r, const struct figure_system *system,
		 const struct figure *figure, const struct figure_options *o)
{
	*r = (struct figure_run){
		.system = system, .figure = figure, .options = o};
}

void figure_release(struct figure_run *r)
{
	free(r->rows);
}

void *figure_add(struct figure_run *r, const char *panel, const char *series,
		 double x)
{
	struct figure_point *p;

	if (r->count == r->size) {
		r->size = r->size ? 2 * r->size : 64;
		r->rows = realloc(r->rows, r->size * r->system->row_bytes);
		ASSERT(r->rows);
	}
	p = figure_row(r, r->count++);
	memset(p, 0, r->system->row_bytes);
	p->panel = panel;
	p->x = x;
	snprintf(p->series, sizeof(p->series), "%s", series);
	return p;
}

const void *figure_find(const struct figure_run *r, const char *panel,
			const char *series, double x)
{
	for (size_t i = 0; i < r->count; i++) {
		const struct figure_point *p = figure_row(r, i);

		if (!p->err && p->x == x && !strcmp(p->series, series) &&
		    (!panel || (p->panel && !strcmp(p->panel, panel))))
			return p;
	}
	return NULL;
}

static const struct figure_column *columns_of(const struct figure_run *r)
{
	return r->figure->columns ? r->figure->columns : r->system->columns;
}

double figure_value(const struct figure_run *r, const void *row,
		    const char *column)
{
	const struct figure_column *c = columns_of(r);
	char text[64];

	while (c->name && strcmp(c->name, column))
		c++;
	ASSERT(c->name); /* a table names a column that there is not */
	if (c->type == FIGURE_REAL)
		return *(const double *)((const char *)row + c->at);
	return strtod(figure_cell(c, row, text, sizeof(text)), NULL);
}

/* ---- claims -------------------------------------------------------------- */

static double or_none(double v)
{
	return v > 0 ? v : NAN; /* 0 stands for none in tables */
}

static struct figure_verdict *verdict_add(struct figure_run *r,
					  const struct figure_claim *c,
					  double ours)
{
	struct figure_verdict *v = &r->verdict[r->verdicts++];

	ASSERT(r->verdicts <= FIGURE_CLAIMS_MAX);
	*v = (struct figure_verdict){
		.published = or_none(c->published),
		.least = or_none(c->least),
		.most = or_none(c->most),
		.ours = ours,
		.unit = c->unit,
		.note = c->note,
		.holds = -1,
	};
	/* Small points say nothing about the publication's; and what is not a
	 * number holds nothing. */
	if ((c->least > 0 || c->most > 0) && !r->options->quick)
		v->holds = !isnan(ours) && !(ours < v->least || ours > v->most);
	snprintf(v->what, sizeof(v->what), "%s%s%s%s%s",
		 c->series ? c->series : "", c->under ? " / " : "",
		 c->under ? c->under : "", c->series ? ": " : "", c->what);
	return v;
}

void figure_claim_add(struct figure_run *r, const struct figure_claim *c,
		      double ours)
{
	(void)verdict_add(r, c, ours);
}

void figure_claim_at(struct figure_run *r, const struct figure_claim *c)
{
	const void *at = figure_find(r, NULL, c->series, c->x);
	const void *under =
		c->under ? figure_find(r, NULL, c->under, c->under_x) : NULL;
	double scale = !strcmp(c->unit, "%") ? 100 : 1, below = 1;
	struct figure_verdict *v;

	if (!at || (c->under && !under))
		return;
	if (under)
		below = figure_value(r, under, c->column);
	if (!(below > 0))
		return;
	v = verdict_add(r, c, scale * figure_value(r, at, c->column) / below);
	v->at = at;
	v->column = c->column;
	v->mark = c->published * below / scale;
}

void figure_judge(struct figure_run *r)
{
	r->verdicts = 0;
	if (r->figure->judge)
		r->figure->judge(r);
	for (size_t i = 0; i < r->system->claim_count; i++)
		if (!strcmp(r->system->claims[i].figure, r->figure->name))
			figure_claim_at(r, &r->system->claims[i]);
}

/* ---- printing ------------------------------------------------------------ */

#define CLAIM(member, decimals) \
	FIGURE_COLUMN(struct figure_verdict, member, #member, decimals)

static const struct figure_column claim_columns[] = {
	CLAIM(what, 0),
	CLAIM(published, 3),
	CLAIM(ours, 3),
	CLAIM(unit, 0),
	CLAIM(least, 3),
	CLAIM(most, 3),
	{"holds", offsetof(struct figure_verdict, holds), FIGURE_ANSWER, 0},
	CLAIM(note, 0),
	{.name = NULL},
};

static int print_json(const struct figure_run *r, FILE *out)
{
	struct json_out j;

	/* One object per figure and line. */
	json_out_init(&j, out);
	json_out_object(&j, NULL);
	json_out_string(&j, "sim", r->system->name);
	json_out_string(&j, "commit", report_commit());
	json_out_string(&j, "figure", r->figure->name);
	json_out_string(&j, "what", r->figure->title);
	if (r->options->fabric)
		json_out_string(&j, "fabric", r->options->fabric);
	json_out_string(&j, "along", r->figure->x_label);
	json_out_string(&j, "source", r->system->source);
	json_out_bool(&j, "quick", r->options->quick);
	figure_table_json(&j, "points", columns_of(r), r->rows,
			  r->system->row_bytes, r->count);
	figure_table_json(&j, "claims", claim_columns, r->verdict,
			  sizeof(r->verdict[0]), r->verdicts);
	json_out_close(&j);
	return json_out_end(&j);
}

/* What the table has no room for. */
static void print_detail(const struct figure_run *r, FILE *out)
{
	char cell[128];

	for (size_t i = 0; i < r->count; i++) {
		const struct figure_point *p = figure_row(r, i);

		fprintf(out, "%s, %s %g\n", p->series, r->figure->x_label,
			p->x);
		for (const struct figure_column *c = columns_of(r); c->name;
		     c++)
			if (c->decimals == FIGURE_JSON_ONLY)
				fprintf(out, "    %-32s %s\n", c->name,
					figure_cell(c, p, cell, sizeof(cell)));
	}
}

int figure_print(const struct figure_run *r, FILE *out)
{
	if (r->options->json)
		return print_json(r, out);
	fprintf(out, "%s %s: %s%s%s\n", r->system->name, r->figure->name,
		r->figure->title, r->options->fabric ? "; over " : "",
		r->options->fabric ? r->options->fabric : "");
	figure_table(out, columns_of(r), r->rows, r->system->row_bytes,
		     r->count);
	if (r->options->detail)
		print_detail(r, out);
	if (r->system->more)
		r->system->more(r, out);
	if (r->verdicts) {
		fputc('\n', out);
		figure_table(out, claim_columns, r->verdict,
			     sizeof(r->verdict[0]), r->verdicts);
	}
	fputc('\n', out);
	return ferror(out) ? -EIO : 0;
}

/* ---- all of it ----------------------------------------------------------- */

/* Tells about each point that was not run or is wrong. */
static int complain(const struct figure_run *r)
{
	const char *words;
	int rc = 0;

	for (size_t i = 0; i < r->count; i++) {
		const struct figure_point *p = figure_row(r, i);

		words = p->err		   ? strerror(-p->err)
			: r->system->wrong ? r->system->wrong(p)
					   : NULL;
		if (!words)
			continue;
		fprintf(stderr, "sim %s: %s, %s %g: %s\n", r->system->name,
			p->series, r->figure->x_label, p->x, words);
		rc = -EIO;
	}
	return rc;
}

int figure_make(const struct figure_system *system, const struct figure *figure,
		const struct figure_options *o)
{
	struct figure_run r;
	int bad = 0, rc;

	figure_init(&r, system, figure, o);
	error_clear();
	rc = figure->plan(&r);
	if (!rc && !r.count)
		rc = error_set(-ENOENT, "figure %s has no such point",
			       figure->name);
	rc = rc ? rc : system->run(&r);
	if (!rc) {
		bad = complain(&r);
		figure_judge(&r);
		rc = figure_print(&r, stdout);
	}
	if (!rc && o->out)
		rc = figure_picture(&r, o->out);
	figure_release(&r);
	return rc ? rc : bad;
}
