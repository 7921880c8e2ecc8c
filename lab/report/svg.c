/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A figure as SVG, by hand: a chart for each panel and each column that is
 * shown, then the claims. Ours is filled, what was published is hollow.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "figure.h"

enum {
	WIDTH = 940,
	LEFT = 70,
	RIGHT = 690, /* the legend is beside it */
	CHART = 430, /* height, and where the axes are in it */
	TOP = 40,
	BOTTOM = 350,
	TICKS = 5,
	UPRIGHT = 8, /* more names at the axis lean */
	SERIES_MAX = 24,
	XS_MAX = 64,
	CLAIM = 20, /* height of its line, and where its marks are */
	CLAIM_LEFT = 470,
	CLAIM_RIGHT = 690,
};

static const char *const colour[] = {
	"#1b4f9c", "#d1495b", "#2e933c", "#edae49", "#7b4fa3", "#00798c",
	"#8d6346", "#444444", "#e07be0", "#5aa9e6", "#a4c639", "#ff7f0e",
	"#999999", "#c0c000", "#800000", "#008080",
};

struct axis {
	double low, high;
	bool log;
};

struct chart {
	FILE *f;
	const struct figure_run *r;
	const struct figure_y *y;
	const char *panel; /* NULL: points without */
	double top;
	const char *series[SERIES_MAX];
	unsigned series_count;
	const struct figure_point *x[XS_MAX]; /* one of each */
	unsigned x_count;
	struct axis across, up;
	bool has_published;
};

/* Text inside or outside of tags: nothing in it ends what it stands in. */
static void put_escaped(FILE *f, const char *text)
{
	for (; *text; text++) {
		const char *name = *text == '<'	   ? "&lt;"
				   : *text == '>'  ? "&gt;"
				   : *text == '&'  ? "&amp;"
				   : *text == '\'' ? "&apos;"
						   : NULL;

		if (name)
			fputs(name, f);
		else
			fputc(*text, f);
	}
}

static void PRINTF(5, 6) put_text(FILE *f, double x, double y,
				  const char *attributes, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(f, "<text x='%.1f' y='%.1f' %s>", x, y, attributes);
	put_escaped(f, text);
	fputs("</text>\n", f);
}

/* What was published: hollow, so that ours is seen behind it. */
static void put_published(FILE *f, double x, double y, const char *stroke)
{
	fprintf(f,
		"<circle class='published' cx='%.1f' cy='%.1f' r='5' "
		"fill='none' stroke='%s' stroke-width='1.5'/>\n",
		x, y, stroke);
}

/* ---- what a chart shows -------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same_x(const struct figure_point *a, const struct figure_point *b)
{
	return a->x == b->x && same_text(a->x_name, b->x_name);
}

static bool shows(const struct chart *c, const struct figure_point *p)
{
	return !p->err && *p->series && same_text(c->panel, p->panel);
}

static bool has_columns(const struct chart *c)
{
	return c->r->figure->look & FIGURE_TOGETHER;
}

/* The series of a point, or of a column. */
static unsigned series_of(const struct chart *c, const struct figure_point *p,
			  const char *column)
{
	unsigned k = 0;

	if (has_columns(c))
		while (k < c->series_count && strcmp(c->y[k].column, column))
			k++;
	else
		while (k < c->series_count && strcmp(c->series[k], p->series))
			k++;
	return k;
}

static unsigned place_of(const struct chart *c, const struct figure_point *p)
{
	unsigned i = 0;

	while (i < c->x_count && !same_x(c->x[i], p))
		i++;
	return i;
}

/* Points with the same series and x add up; NaN: there is none. */
static double value_at(const struct chart *c, unsigned series, unsigned place)
{
	double sum = NAN;

	for (size_t i = 0; i < c->r->count; i++) {
		const struct figure_point *p = figure_row(c->r, i);
		double v;

		if (!shows(c, p) || !same_x(p, c->x[place]) ||
		    (!has_columns(c) && strcmp(p->series, c->series[series])))
			continue;
		v = figure_value(c->r, p,
				 c->y[has_columns(c) ? series : 0].column);
		sum = isnan(sum) ? v : sum + v;
	}
	return sum;
}

static void axis_take(struct axis *a, double v)
{
	if (!isfinite(v) || (a->log && v <= 0))
		return;
	a->low = fmin(a->low, v);
	a->high = fmax(a->high, v);
}

/* Round ends. */
static void axis_end(struct axis *a, bool from_zero)
{
	if (!(a->low <= a->high))
		a->low = a->high = 1;
	if (a->log && from_zero) {
		a->low = pow(10, floor(log10(a->low)));
		a->high = pow(10, ceil(log10(a->high * 1.001)));
	} else if (from_zero) {
		a->low = fmin(0, a->low);
		a->high = a->high > 0 ? a->high * 1.08 : 1;
	} else if (a->low == a->high) {
		a->high = a->low + 1;
	}
}

static double part_of(const struct axis *a, double v)
{
	if (a->log)
		return log(v / a->low) / log(a->high / a->low);
	return (v - a->low) / (a->high - a->low);
}

static double y_of(const struct chart *c, double v)
{
	return c->top + BOTTOM - part_of(&c->up, v) * (BOTTOM - TOP);
}

static bool has_bars(const struct chart *c)
{
	return c->r->figure->look & FIGURE_BARS;
}

static double x_of(const struct chart *c, unsigned place)
{
	if (has_bars(c))
		return LEFT + (place + 0.5) * (RIGHT - LEFT) / c->x_count;
	return LEFT + 20 +
	       part_of(&c->across, c->x[place]->x) * (RIGHT - LEFT - 40);
}

/* Where a series' bar stands, or its line. */
static double x_of_mark(const struct chart *c, unsigned series, unsigned place)
{
	double slot = (double)(RIGHT - LEFT) / c->x_count;

	if (!has_bars(c))
		return x_of(c, place);
	return x_of(c, place) - slot * 0.425 +
	       (series + 0.5) * slot * 0.85 / c->series_count;
}

/* The published value that stands at a verdict's point; NaN: elsewhere. */
static double mark_of(const struct chart *c, const struct figure_verdict *v)
{
	bool here = v->at && v->published > 0 && shows(c, v->at) &&
		    (has_columns(c) || !strcmp(v->column, c->y->column)) &&
		    series_of(c, v->at, v->column) < c->series_count;

	return here ? v->mark : NAN;
}

static bool shows_published(const struct chart *c, const struct figure_point *p)
{
	return shows(c, p) && p->published > 0 && c->y == c->r->figure->y;
}

static void chart_fill(struct chart *c)
{
	c->up = (struct axis){INFINITY, 0, c->r->figure->look & FIGURE_LOG_Y};
	c->across = (struct axis){INFINITY, -INFINITY,
				  c->r->figure->look & FIGURE_LOG_X};
	while (has_columns(c) && c->y[c->series_count].column) {
		c->series[c->series_count] = c->y[c->series_count].label;
		c->series_count++;
	}
	for (size_t i = 0; i < c->r->count; i++) {
		const struct figure_point *p = figure_row(c->r, i);

		if (!shows(c, p))
			continue;
		if (series_of(c, p, c->y->column) == c->series_count &&
		    c->series_count < SERIES_MAX)
			c->series[c->series_count++] = p->series;
		if (place_of(c, p) == c->x_count && c->x_count < XS_MAX)
			c->x[c->x_count++] = p;
		axis_take(&c->across, p->x);
		if (shows_published(c, p))
			axis_take(&c->up, p->published);
	}
	for (unsigned k = 0; k < c->series_count; k++)
		for (unsigned i = 0; i < c->x_count; i++)
			axis_take(&c->up, value_at(c, k, i));
	for (unsigned i = 0; i < c->r->verdicts; i++)
		axis_take(&c->up, mark_of(c, &c->r->verdict[i]));
	axis_end(&c->up, true);
	axis_end(&c->across, false);
}

/* ---- drawing ------------------------------------------------------------- */

/* Many names lean, or they would stand in each other's way. */
static void draw_name(const struct chart *c, unsigned place)
{
	const struct figure_point *p = c->x[place];
	double x = x_of(c, place), y = c->top + BOTTOM + 16;
	char number[32], lean[96];

	snprintf(number, sizeof(number), "%g", p->x);
	snprintf(lean, sizeof(lean),
		 "text-anchor='end' font-size='10' "
		 "transform='rotate(-22 %.0f %.0f)'",
		 x + 8, y - 4);
	put_text(c->f, x, y,
		 c->x_count > UPRIGHT && p->x_name ? lean
						   : "text-anchor='middle'",
		 "%s", p->x_name ? p->x_name : number);
}

static void draw_axes(const struct chart *c)
{
	double middle = c->top + (TOP + BOTTOM) / 2.0;
	char turned[80];

	put_text(c->f, LEFT, c->top + 24, "font-size='15'", "%s %s: %s%s%s",
		 c->r->system->name, c->r->figure->name, c->r->figure->title,
		 c->panel ? ", " : "", c->panel ? c->panel : "");
	put_text(c->f, (LEFT + RIGHT) / 2.0, c->top + CHART - 24,
		 "text-anchor='middle'", "%s", c->r->figure->x_label);
	snprintf(turned, sizeof(turned),
		 "transform='rotate(-90 16 %.0f)' text-anchor='middle'",
		 middle);
	put_text(c->f, 16, middle, turned, "%s",
		 has_columns(c) ? "" : c->y->label);
	fprintf(c->f,
		"<path d='M%d %.0fV%.0fH%d' fill='none' stroke='black'/>\n",
		LEFT, c->top + TOP, c->top + BOTTOM, RIGHT);
	for (unsigned i = 0; i < c->x_count; i++)
		draw_name(c, i);
	for (unsigned k = 0; k <= TICKS; k++) {
		const struct axis *a = &c->up;
		double part = (double)k / TICKS;
		double v = a->log ? a->low * pow(a->high / a->low, part)
				  : a->low + part * (a->high - a->low);

		fprintf(c->f, "<path d='M%d %.1fH%d' stroke='#dddddd'/>\n",
			LEFT, y_of(c, v), RIGHT);
		put_text(c->f, LEFT - 6, y_of(c, v) + 4, "text-anchor='end'",
			 "%.3g", v);
	}
}

static const char *colour_of(unsigned series)
{
	return colour[series % ARRAY_LEN(colour)];
}

static void draw_series(const struct chart *c, unsigned k)
{
	double width =
		(double)(RIGHT - LEFT) / c->x_count * 0.85 / c->series_count;
	double before = NAN, x_before = 0;

	for (unsigned i = 0; i < c->x_count; i++) {
		double v = value_at(c, k, i), x = x_of_mark(c, k, i), y;

		if (!isfinite(v) || (c->up.log && v <= 0))
			continue;
		y = y_of(c, v);
		if (has_bars(c))
			fprintf(c->f,
				"<rect x='%.1f' y='%.1f' width='%.1f' "
				"height='%.1f' fill='%s'/>\n",
				x - width / 2, y, width, c->top + BOTTOM - y,
				colour_of(k));
		else
			fprintf(c->f,
				"<circle cx='%.1f' cy='%.1f' r='3' "
				"fill='%s'/>\n",
				x, y, colour_of(k));
		if (!has_bars(c) && !isnan(before))
			fprintf(c->f,
				"<path d='M%.1f %.1fL%.1f %.1f' stroke='%s' "
				"stroke-width='2'/>\n",
				x_before, before, x, y, colour_of(k));
		before = y;
		x_before = x;
	}
}

static void draw_published(struct chart *c, const struct figure_point *p,
			   const char *column, double v)
{
	unsigned k = series_of(c, p, column);

	if (isnan(v) || k == c->series_count)
		return;
	put_published(c->f, x_of_mark(c, k, place_of(c, p)), y_of(c, v),
		      has_bars(c) ? "black" : colour_of(k));
	c->has_published = true;
}

static void draw_legend(const struct chart *c)
{
	double y = c->top + TOP;

	for (unsigned k = 0; k < c->series_count; k++, y += 18) {
		fprintf(c->f,
			"<rect x='%d' y='%.0f' width='12' height='12' "
			"fill='%s'/>\n",
			RIGHT + 14, y, colour_of(k));
		put_text(c->f, RIGHT + 32, y + 10, "", "%s", c->series[k]);
	}
	if (!c->has_published)
		return;
	put_published(c->f, RIGHT + 20, y + 6, "black");
	put_text(c->f, RIGHT + 32, y + 10, "", "published");
}

static void draw_chart(struct chart *c)
{
	chart_fill(c);
	if (!c->x_count)
		return;
	draw_axes(c);
	for (unsigned k = 0; k < c->series_count; k++)
		draw_series(c, k);
	for (size_t i = 0; i < c->r->count; i++) {
		const struct figure_point *p = figure_row(c->r, i);

		if (shows_published(c, p))
			draw_published(c, p, c->y->column, p->published);
	}
	for (unsigned i = 0; i < c->r->verdicts; i++)
		if (c->r->verdict[i].at)
			draw_published(c, c->r->verdict[i].at,
				       c->r->verdict[i].column,
				       mark_of(c, &c->r->verdict[i]));
	draw_legend(c);
}

/* Ours over what was published, or over what is asked where only words were. */
static void draw_claim(FILE *f, const struct figure_verdict *v, double y)
{
	const struct axis a = {0.1, 10, true};
	double other = v->published > 0 ? v->published
		       : v->least > 0	? v->least
					: v->most;
	double ratio = fmin(fmax(v->ours / other, a.low), a.high);
	double span = CLAIM_RIGHT - CLAIM_LEFT;

	put_text(f, 16, y + 4, "", "%s", v->what);
	fprintf(f, "<path d='M%d %.1fH%d' stroke='#dddddd'/>\n", CLAIM_LEFT, y,
		CLAIM_RIGHT);
	if (ratio > 0)
		fprintf(f,
			"<circle cx='%.1f' cy='%.1f' r='4' fill='#1b4f9c'/>\n",
			CLAIM_LEFT + part_of(&a, ratio) * span, y);
	put_published(f, CLAIM_LEFT + part_of(&a, 1) * span, y, "black");
	put_text(f, CLAIM_RIGHT + 14, y + 4, "", "%.3g of %.3g %s%s", v->ours,
		 other, v->unit,
		 v->holds < 0 ? ""
		 : v->holds   ? ": holds"
			      : ": short");
}

/* Lists the figure's panels; one without a name if there is none. */
static unsigned panels_of(const struct figure_run *r, const char **panel)
{
	unsigned n = 0, k;

	for (size_t i = 0; i < r->count && n < XS_MAX; i++) {
		const struct figure_point *p = figure_row(r, i);

		if (p->err || !*p->series)
			continue;
		for (k = 0; k < n && !same_text(panel[k], p->panel); k++)
			;
		if (k == n)
			panel[n++] = p->panel;
	}
	return n;
}

static void draw(FILE *f, const struct figure_run *r)
{
	const char *panel[XS_MAX];
	unsigned panels = panels_of(r, panel), ys = 0;
	double top = 0;

	while (r->figure->y[ys].column &&
	       !(ys && (r->figure->look & FIGURE_TOGETHER)))
		ys++;
	fprintf(f,
		"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %u' "
		"font-family='sans-serif' font-size='12'>\n"
		"<rect width='100%%' height='100%%' fill='white'/>\n",
		WIDTH, panels * ys * CHART + (r->verdicts + 3) * CLAIM);
	for (unsigned i = 0; i < panels * ys; i++, top += CHART) {
		struct chart c = {.f = f,
				  .r = r,
				  .y = &r->figure->y[i % ys],
				  .panel = panel[i / ys],
				  .top = top};

		draw_chart(&c);
	}
	if (r->verdicts)
		put_text(f, 16, top + CLAIM, "",
			 "Claims: filled ours, hollow published, from a tenth "
			 "of it to ten times");
	for (unsigned i = 0; i < r->verdicts; i++)
		draw_claim(f, &r->verdict[i], top + (i + 2) * CLAIM);
	put_text(f, 16, top + (r->verdicts + 2.4) * CLAIM, "fill='#777777'",
		 "Published: %s%s", r->system->source,
		 r->options->quick
			 ? ". Quick: small points, which prove nothing"
			 : "");
	fputs("</svg>\n", f);
}

int figure_picture(const struct figure_run *r, const char *dir)
{
	char path[4096];
	FILE *f;

	if (snprintf(path, sizeof(path), "%s/%s-%s.svg", dir, r->system->name,
		     r->figure->name) >= (int)sizeof(path))
		return error_set(-ENAMETOOLONG, "--out: path too long");
	for (char *c = path + strlen(dir); *c; c++)
		*c = *c == ' ' ? '-' : *c;
	f = fopen(path, "we");
	if (!f)
		return error_set(-errno, "--out: cannot write %s", path);
	draw(f, r);
	if (ferror(f) | fclose(f))
		return error_set(-EIO, "--out: cannot write %s", path);
	return 0;
}
