/* SPDX-License-Identifier: Apache-2.0 */
/* Charts as SVG, by hand: lines or bars over named points, linear or log. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "edm_table.h"

enum {
	WIDTH = 860,
	HEIGHT = 450,
	LEFT = 70,
	RIGHT = 690, /* the legend is beside it */
	TOP = 40,
	BOTTOM = 380,
	TICKS = 5,
	POINTS_UPRIGHT = 8,
};

static const char *const colour[EDM_CHART_SERIES] = {
	"#1b4f9c", "#d1495b", "#2e933c", "#edae49", "#7b4fa3", "#00798c",
	"#8d6346", "#444444", "#e07be0", "#5aa9e6", "#a4c639", "#ff7f0e",
	"#999999", "#c0c000", "#800000", "#008080",
};

struct scale {
	double low, high;
	bool log;
};

static double at(const struct scale *s, double v)
{
	double part = s->log ? (log10(v) - log10(s->low)) /
				       (log10(s->high) - log10(s->low))
			     : (v - s->low) / (s->high - s->low);

	return BOTTOM - part * (BOTTOM - TOP);
}

static struct scale scale_of(const struct edm_chart *c)
{
	struct scale s = {.low = INFINITY, .high = 0, .log = c->log_y};

	for (unsigned i = 0; i < c->series * c->points; i++) {
		if (!isfinite(c->y[i]) || (c->log_y && c->y[i] <= 0))
			continue;
		s.low = fmin(s.low, c->y[i]);
		s.high = fmax(s.high, c->y[i]);
	}
	if (!isfinite(s.low))
		s.low = s.high = 1;
	if (c->log_y) {
		s.low = pow(10, floor(log10(s.low)));
		s.high = pow(10, ceil(log10(s.high * 1.001)));
	} else {
		s.low = 0;
		s.high *= 1.08;
	}
	return s;
}

static double x_of(const struct edm_chart *c, unsigned point)
{
	return LEFT + (point + 0.5) * (RIGHT - LEFT) / c->points;
}

/* Names of many points lean, or they would stand in each other's way. */
static void point_name(FILE *f, const struct edm_chart *c, unsigned point)
{
	double x = x_of(c, point);

	if (c->points <= POINTS_UPRIGHT)
		fprintf(f,
			"<text x='%.0f' y='%d' text-anchor='middle'>%s"
			"</text>\n",
			x, BOTTOM + 18, c->x[point]);
	else
		fprintf(f,
			"<text x='%.0f' y='%d' text-anchor='end' "
			"font-size='10' transform='rotate(-22 %.0f %d)'>%s"
			"</text>\n",
			x + 8, BOTTOM + 14, x + 8, BOTTOM + 14, c->x[point]);
}

static void axes(FILE *f, const struct edm_chart *c, const struct scale *s)
{
	fprintf(f,
		"<text x='%d' y='22' font-size='15'>%s</text>\n"
		"<text x='%d' y='%d' text-anchor='middle'>%s</text>\n"
		"<text x='18' y='%d' transform='rotate(-90 18 %d)' "
		"text-anchor='middle'>%s</text>\n"
		"<path d='M%d %dV%dH%d' fill='none' stroke='black'/>\n",
		LEFT, c->title, (LEFT + RIGHT) / 2, HEIGHT - 12, c->x_label,
		(TOP + BOTTOM) / 2, (TOP + BOTTOM) / 2, c->y_label, LEFT, TOP,
		BOTTOM, RIGHT);
	for (unsigned p = 0; p < c->points; p++)
		point_name(f, c, p);
	for (unsigned k = 0; k <= TICKS; k++) {
		double part = (double)k / TICKS;
		double v = s->log ? pow(10,
					log10(s->low) + part * (log10(s->high) -
								log10(s->low)))
				  : s->low + part * (s->high - s->low);

		fprintf(f,
			"<path d='M%d %.1fH%d' stroke='#dddddd'/>"
			"<text x='%d' y='%.1f' text-anchor='end'>%.3g"
			"</text>\n",
			LEFT, at(s, v), RIGHT, LEFT - 6, at(s, v) + 4, v);
	}
}

static void series_bars(FILE *f, const struct edm_chart *c,
			const struct scale *s, unsigned k)
{
	double slot = (double)(RIGHT - LEFT) / c->points;
	double width = slot * 0.85 / c->series;

	for (unsigned p = 0; p < c->points; p++) {
		double v = c->y[k * c->points + p];
		double x = x_of(c, p) - slot * 0.425 + k * width;

		if (isfinite(v) && (v > 0 || !s->log))
			fprintf(f,
				"<rect x='%.1f' y='%.1f' width='%.1f' "
				"height='%.1f' fill='%s'/>\n",
				x, at(s, v), width, BOTTOM - at(s, v),
				colour[k]);
	}
}

static void series_line(FILE *f, const struct edm_chart *c,
			const struct scale *s, unsigned k)
{
	bool begun = false;

	fprintf(f, "<path fill='none' stroke='%s' stroke-width='2' d='",
		colour[k]);
	for (unsigned p = 0; p < c->points; p++) {
		double v = c->y[k * c->points + p];

		if (!isfinite(v) || (s->log && v <= 0))
			continue;
		fprintf(f, "%c%.1f %.1f", begun ? 'L' : 'M', x_of(c, p),
			at(s, v));
		begun = true;
	}
	fputs(begun ? "'/>\n" : "M0 0'/>\n", f);
}

int edm_chart_write(const struct edm_chart *c, const char *dir,
		    const char *name)
{
	struct scale s = scale_of(c);
	char path[4096];
	FILE *f;

	if (snprintf(path, sizeof(path), "%s/%s.svg", dir, name) >=
	    (int)sizeof(path))
		return error_set(-ENAMETOOLONG, "--out: path too long");
	f = fopen(path, "we");
	if (!f)
		return error_set(-errno, "--out: cannot write %s", path);
	fprintf(f,
		"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' "
		"font-family='sans-serif' font-size='12'>\n"
		"<rect width='%d' height='%d' fill='white'/>\n",
		WIDTH, HEIGHT, WIDTH, HEIGHT);
	axes(f, c, &s);
	for (unsigned k = 0; k < c->series; k++) {
		if (c->bars)
			series_bars(f, c, &s, k);
		else
			series_line(f, c, &s, k);
		fprintf(f,
			"<rect x='%d' y='%u' width='12' height='12' "
			"fill='%s'/><text x='%d' y='%u'>%s</text>\n",
			RIGHT + 14, TOP + 18 * k, colour[k], RIGHT + 32,
			TOP + 10 + 18 * k, c->name[k]);
	}
	fputs("</svg>\n", f);
	if (fclose(f))
		return error_set(-EIO, "--out: cannot write %s", path);
	return 0;
}
