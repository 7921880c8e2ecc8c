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

double tier_curve_ns(const struct tier_curve *c, double gbs)
{
	const struct tier_point *p = c->point;

	if (gbs <= p[0].gbs)
		return p[0].ns;
	for (unsigned i = 1; i < c->count; i++)
		if (gbs < p[i].gbs)
			return between(gbs, p[i - 1].gbs, p[i].gbs, p[i - 1].ns,
				       p[i].ns);
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
