/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A figure as SVG, by hand: a chart for each panel and each column that is
 * shown, then the claims. Ours is filled, what was published is hollow.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
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
	COLUMNS_MAX = 8,
	COLUMN_BYTES = 40,
	CLAIM = 20, /* height of its line, and where its marks are */
	CLAIM_LEFT = 470,
	CLAIM_RIGHT = 690,
};

struct axis {
	double low, high;
	bool log;
};

struct chart {
	FILE *f;
	const struct figure_run *r;
	const char *panel;	      /* NULL: points without */
	char (*column)[COLUMN_BYTES]; /* one, or all that are shown together */
	unsigned columns;
	double top;
	const char *series[SERIES_MAX];
	unsigned series_count;
	const struct figure_point *x[XS_MAX]; /* one of each */
	unsigned x_count;
	double ours[SERIES_MAX][XS_MAX]; /* NaN: none */
	double published[SERIES_MAX][XS_MAX];
	struct axis across, up;
};

/* Text inside of a tag or between tags: nothing in it ends what it is in. */
static void PRINTF(5, 6) put_text(FILE *f, double x, double y,
				  const char *attributes, const char *fmt, ...)
{
	static const char *const name[] = {
		['<'] = "&lt;", ['>'] = "&gt;", ['&'] = "&amp;"};
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(f, "<text x='%.1f' y='%.1f' %s>", x, y, attributes);
	for (const char *c = text; *c; c++) {
		size_t at = (unsigned char)*c;

		if (at < ARRAY_LEN(name) && name[at])
			fputs(name[at], f);
		else
			fputc(*c, f);
	}
	fputs("</text>\n", f);
}

/* What was published is hollow, so that ours is seen behind it. */
static void put_mark(FILE *f, double x, double y, const char *colour,
		     bool published)
{
	fprintf(f,
		published ? "<circle cx='%.1f' cy='%.1f' class='published' "
			    "r='5' fill='white' fill-opacity='0.5' "
			    "stroke='%s' stroke-width='1.5'/>\n"
			  : "<circle cx='%.1f' cy='%.1f' class='ours' r='3' "
			    "fill='%s'/>\n",
		x, y, colour);
}

static const char *colour_of(unsigned series)
{
	static const char *const colour[] = {
		"#1b4f9c", "#d1495b", "#2e933c", "#edae49", "#7b4fa3",
		"#00798c", "#8d6346", "#444444", "#e07be0", "#5aa9e6",
		"#a4c639", "#ff7f0e", "#999999", "#c0c000", "#800000",
	};

	return colour[series % ARRAY_LEN(colour)];
}

/* ---- what a chart shows -------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool is_shown(const struct chart *c, const struct figure_point *p)
{
	return !p->err && *p->series && same_text(c->panel, p->panel);
}

/* The cell of a point and a column, which is new if there was none; NULL: it is
 * not in this chart, or there is no room. */
static double *cell_of(struct chart *c, double cells[SERIES_MAX][XS_MAX],
		       const struct figure_point *p, const char *column)
{
	const char *series = c->columns > 1 ? column : p->series;
	unsigned k = 0, i = 0, n = 0;

	while (n < c->columns && strcmp(c->column[n], column))
		n++;
	if (n == c->columns || !is_shown(c, p))
		return NULL;
	while (k < c->series_count && strcmp(c->series[k], series))
		k++;
	while (i < c->x_count &&
	       (c->x[i]->x != p->x || !same_text(c->x[i]->x_name, p->x_name)))
		i++;
	if (k == SERIES_MAX || i == XS_MAX)
		return NULL;
	c->series[k] = k < c->series_count ? c->series[k] : series;
	c->series_count += k == c->series_count;
	c->x[i] = i < c->x_count ? c->x[i] : p;
	c->x_count += i == c->x_count;
	return &cells[k][i];
}

static void axis_take(struct axis *a, double v)
{
	if (isfinite(v) && (v > 0 || !a->log)) {
		a->low = fmin(a->low, v);
		a->high = fmax(a->high, v);
	}
}

static void fill_row(struct chart *c, const struct figure_point *p)
{
	for (unsigned n = 0; n < c->columns; n++) {
		double *ours = cell_of(c, c->ours, p, c->column[n]);
		double v = figure_value(c->r, p, c->column[n]);

		if (!ours)
			return;
		*ours = isnan(*ours) ? v : *ours + v;
		axis_take(&c->up, *ours);
		axis_take(&c->across, p->x);
		/* That is of the first column of all. */
		if (p->published > 0 && !n &&
		    !strncmp(c->r->figure->y, c->column[0],
			     strlen(c->column[0]))) {
			*cell_of(c, c->published, p, c->column[0]) =
				p->published;
			axis_take(&c->up, p->published);
		}
	}
}

static void fill(struct chart *c)
{
	unsigned look = c->r->figure->look;

	c->up = (struct axis){INFINITY, -INFINITY, look & FIGURE_LOG_Y};
	c->across = (struct axis){INFINITY, -INFINITY, look & FIGURE_LOG_X};
	for (unsigned k = 0; k < SERIES_MAX; k++)
		for (unsigned i = 0; i < XS_MAX; i++)
			c->ours[k][i] = c->published[k][i] = NAN;
	for (size_t i = 0; i < c->r->count; i++)
		fill_row(c, figure_row(c->r, i));
	for (unsigned i = 0; i < c->r->verdicts; i++) {
		const struct figure_verdict *v = &c->r->verdict[i];
		double *cell =
			v->at && v->published > 0
				? cell_of(c, c->published, v->at, v->column)
				: NULL;

		if (cell)
			axis_take(&c->up, *cell = v->mark);
	}
	/* Round ends. */
	if (!(c->up.low <= c->up.high))
		c->up.low = c->up.high = 1;
	c->up.low = c->up.log ? pow(10, floor(log10(c->up.low)))
			      : fmin(0, c->up.low);
	c->up.high = c->up.log ? pow(10, ceil(log10(c->up.high * 1.001)))
			       : fmax(c->up.high * 1.08, 1e-9);
	if (c->across.low >= c->across.high)
		c->across.high = c->across.low + 1;
}

static double part_of(const struct axis *a, double v)
{
	if (a->log)
		return log(fmax(v, a->low) / a->low) / log(a->high / a->low);
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

/* The width of all bars of a place. */
static double bars_width(const struct chart *c)
{
	return (RIGHT - LEFT) * 0.85 / c->x_count;
}

/* Where a series' mark or bar stands; its middle of all is half a count. */
static double x_of(const struct chart *c, double series, unsigned place)
{
	if (has_bars(c))
		return LEFT + (place + 0.5) * (RIGHT - LEFT) / c->x_count +
		       (series / c->series_count - 0.5) * bars_width(c);
	return LEFT + 20 +
	       part_of(&c->across, c->x[place]->x) * (RIGHT - LEFT - 40);
}

/* ---- drawing ------------------------------------------------------------- */

/* Many names lean, or they would stand in each other's way. */
static void draw_name(const struct chart *c, unsigned place)
{
	const struct figure_point *p = c->x[place];
	double x = x_of(c, c->series_count / 2.0, place);
	double y = c->top + BOTTOM + 16;
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
	const struct axis *a = &c->up;
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
		 c->columns > 1 ? "" : c->column[0]);
	fprintf(c->f,
		"<path d='M%d %.0fV%.0fH%d' fill='none' stroke='black'/>\n",
		LEFT, c->top + TOP, c->top + BOTTOM, RIGHT);
	for (unsigned i = 0; i < c->x_count; i++)
		draw_name(c, i);
	for (double v = a->low; v <= a->high * 1.001;
	     v = a->log ? 10 * v : v + (a->high - a->low) / TICKS) {
		fprintf(c->f, "<path d='M%d %.1fH%d' stroke='#dddddd'/>\n",
			LEFT, y_of(c, v), RIGHT);
		put_text(c->f, LEFT - 6, y_of(c, v) + 4, "text-anchor='end'",
			 "%.3g", v);
	}
}

static void draw_series(const struct chart *c, unsigned k)
{
	double width = bars_width(c) / c->series_count;
	int before = -1;

	for (unsigned i = 0; i < c->x_count; i++) {
		double v = c->ours[k][i], x = x_of(c, k + 0.5, i);

		if (!isfinite(v) || (c->up.log && v <= 0))
			continue;
		if (has_bars(c))
			fprintf(c->f,
				"<rect class='ours' x='%.1f' y='%.1f' "
				"width='%.1f' height='%.1f' fill='%s'/>\n",
				x - width / 2, y_of(c, v), width,
				c->top + BOTTOM - y_of(c, v), colour_of(k));
		else
			put_mark(c->f, x, y_of(c, v), colour_of(k), false);
		if (!has_bars(c) && before >= 0)
			fprintf(c->f,
				"<path d='M%.1f %.1fL%.1f %.1f' stroke='%s' "
				"stroke-width='2'/>\n",
				x_of(c, k + 0.5, (unsigned)before),
				y_of(c, c->ours[k][before]), x, y_of(c, v),
				colour_of(k));
		before = (int)i;
	}
	for (unsigned i = 0; i < c->x_count; i++)
		if (isfinite(c->published[k][i]))
			put_mark(c->f, x_of(c, k + 0.5, i),
				 y_of(c, c->published[k][i]),
				 has_bars(c) ? "black" : colour_of(k), true);
	fprintf(c->f,
		"<rect x='%d' y='%.0f' width='12' height='12' fill='%s'/>\n",
		RIGHT + 14, c->top + TOP + 18 * k, colour_of(k));
	put_text(c->f, RIGHT + 32, c->top + TOP + 18 * k + 10, "", "%s",
		 c->series[k]);
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
	put_mark(f, CLAIM_LEFT + part_of(&a, ratio) * span, y, colour_of(0),
		 false);
	put_mark(f, CLAIM_LEFT + part_of(&a, 1) * span, y, "black", true);
	put_text(f, CLAIM_RIGHT + 14, y + 4, "", "%.3g beside %.3g %s%s",
		 v->ours, other, v->unit,
		 v->holds < 0 ? ""
		 : v->holds   ? ": holds"
			      : ": short");
}

/* Lists the figure's panels; one without a name counts, too. */
static unsigned panels_of(const struct figure_run *r, const char **panel)
{
	unsigned n = 0, k;

	for (size_t i = 0; i < r->count && n < XS_MAX; i++) {
		const struct figure_point *p = figure_row(r, i);

		for (k = 0; k < n && !same_text(panel[k], p->panel); k++)
			;
		if (k == n && !p->err && *p->series)
			panel[n++] = p->panel;
	}
	return n;
}

static void draw(FILE *f, const struct figure_run *r)
{
	char column[COLUMNS_MAX][COLUMN_BYTES];
	const char *panel[XS_MAX];
	bool together = r->figure->look & FIGURE_TOGETHER;
	unsigned panels = panels_of(r, panel), columns = 0, charts;
	double top = 0;
	int n = 0;

	for (const char *y = r->figure->y;
	     columns < COLUMNS_MAX &&
	     sscanf(y, "%39s%n", column[columns], &n) == 1;
	     y += n)
		columns++;
	charts = together ? 1 : columns;
	fprintf(f,
		"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %u' "
		"font-family='sans-serif' font-size='12'>\n"
		"<rect width='100%%' height='100%%' fill='white'/>\n",
		WIDTH, panels * charts * CHART + (r->verdicts + 3) * CLAIM);
	for (unsigned i = 0; i < panels * charts; i++, top += CHART) {
		struct chart c = {.f = f,
				  .r = r,
				  .column = &column[i % charts],
				  .columns = together ? columns : 1,
				  .panel = panel[i / charts],
				  .top = top};

		fill(&c);
		draw_axes(&c);
		for (unsigned k = 0; k < c.series_count; k++)
			draw_series(&c, k);
	}
	put_text(f, 16, top + CLAIM, "fill='#777777'",
		 "Filled: ours. Hollow: published (%s).%s%s", r->system->source,
		 r->verdicts ? " Claims: from a tenth of it to ten times." : "",
		 r->options->quick
			 ? " Quick: small points, which prove nothing."
			 : "");
	for (unsigned i = 0; i < r->verdicts; i++)
		draw_claim(f, &r->verdict[i], top + (i + 2) * CLAIM);
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
