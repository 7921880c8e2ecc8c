/* SPDX-License-Identifier: Apache-2.0 */
/* Points of latency over load, and what is read off them. */
#include "curve.h"

void tier_curve_sort(struct tier_curve *c)
{
	for (unsigned i = 1; i < c->count; i++)
		for (unsigned k = i;
		     k > 0 && c->point[k].gbs < c->point[k - 1].gbs; k--) {
			struct tier_point p = c->point[k];

			c->point[k] = c->point[k - 1];
			c->point[k - 1] = p;
		}
}

double tier_curve_idle_ns(const struct tier_curve *c)
{
	return c->point[0].ns;
}

double tier_curve_peak_gbs(const struct tier_curve *c)
{
	return c->point[c->count - 1].gbs;
}

/* Where a value lies between two points of the other axis. */
static double between(double v, double v0, double v1, double w0, double w1)
{
	return v1 > v0 ? w0 + (v - v0) / (v1 - v0) * (w1 - w0) : w1;
}

/* Of the straight line from point i to the next. */
static double slope(const struct tier_point *p, unsigned i)
{
	return (p[i + 1].ns - p[i].ns) / (p[i + 1].gbs - p[i].gbs);
}

/* How steep the curve is at point i, seen from the line that begins at `line`:
 * between the lines on both sides, nearer to the flatter one; flat where they
 * do not go the same way. */
static double tangent(const struct tier_curve *c, unsigned i, unsigned line)
{
	const struct tier_point *p = c->point;
	double before, after, left, right, weight;

	if (i == 0 || i + 1 == c->count || p[i].gbs <= p[i - 1].gbs ||
	    p[i + 1].gbs <= p[i].gbs)
		return slope(p, line);
	before = p[i].gbs - p[i - 1].gbs;
	after = p[i + 1].gbs - p[i].gbs;
	left = slope(p, i - 1);
	right = slope(p, i);
	if (left * right <= 0)
		return 0;
	weight = (2 * after + before) / (3 * (after + before));
	return 1 / (weight / left + (1 - weight) / right);
}

/* Hermite's polynomial between point i and the next. */
static double smooth(const struct tier_curve *c, unsigned i, double gbs)
{
	const struct tier_point *p = &c->point[i];
	double wide = p[1].gbs - p[0].gbs, t = (gbs - p[0].gbs) / wide,
	       u = 1 - t;

	return p[0].ns * (1 + 2 * t) * u * u + p[1].ns * (1 + 2 * u) * t * t +
	       wide * t * u * (tangent(c, i, i) * u - tangent(c, i + 1, i) * t);
}

double tier_curve_ns(const struct tier_curve *c, double gbs)
{
	const struct tier_point *p = c->point;

	if (gbs <= p[0].gbs)
		return p[0].ns;
	for (unsigned i = 1; i < c->count; i++)
		if (gbs < p[i].gbs)
			return smooth(c, i - 1, gbs);
	return p[c->count - 1].ns;
}

double tier_curve_knee_gbs(const struct tier_curve *c)
{
	const double limit_ns = TIER_KNEE_FACTOR * tier_curve_idle_ns(c);
	const struct tier_point *p = c->point;

	for (unsigned i = 1; i < c->count; i++)
		if (p[i].ns > limit_ns)
			return between(limit_ns, p[i - 1].ns, p[i].ns,
				       p[i - 1].gbs, p[i].gbs);
	return tier_curve_peak_gbs(c);
}
