/* SPDX-License-Identifier: Apache-2.0 */
/* Latency and peak of a memory for any mix of reads and writes, between those
 * that were published. */
#include <math.h>

#include "tfig.h"
#include "tfig_costs.h"

const struct tfig_costs tfig_costs = {TFIG_COSTS(MODEL_VALUE)};

/* Writes of each published mix, of all lines. */
static const double writes[TFIG_MIXES] = {0, 1.0 / 3, 0.5, 1};

static double between(double v, double v0, double v1, double w0, double w1)
{
	return w0 + (v - v0) / (v1 - v0) * (w1 - w0);
}

static double peak_of(const double gbs[TFIG_MIXES], double write_share)
{
	unsigned i = 1;

	while (i + 1 < TFIG_MIXES && write_share > writes[i])
		i++;
	return between(write_share, writes[i - 1], writes[i], gbs[i - 1],
		       gbs[i]);
}

/* 0: as many as the published peaks are of, or fewer; 1: a crowd. By factors in
 * between: 16, 32 and 64 threads get 61, 54 and 49 GB/s of two reads to a write
 * from main memory. */
static double crowd_of(const struct tfig_published *p, double threads)
{
	double few = (double)tfig_costs.probe_threads;

	if (p->crowd_threads <= few)
		return 0;
	return fmin(fmax(log(threads / few) / log(p->crowd_threads / few), 0),
		    1);
}

double tfig_memory_peak(enum tfig_memory m, const struct tfig_users *u)
{
	const struct tfig_published *p = &tfig_published[m];

	return u->units * between(crowd_of(p, u->threads / u->units), 0, 1,
				  peak_of(p->peak_gbs, u->write_share),
				  peak_of(p->crowd_gbs, u->write_share));
}

/* Of a published mix, at a part of its own peak. */
static double ns_of(const struct tier_curve *c, double use)
{
	return tier_curve_ns(c, use * tier_curve_peak_gbs(c));
}

double tfig_memory_ns(enum tfig_memory m, const struct tfig_users *u,
		      double gbs)
{
	const struct tfig_published *p = &tfig_published[m];
	double use = gbs / tfig_memory_peak(m, u);
	const struct tier_curve *c = p->curve;

	/* Where only the idle latency is known, load adds nothing to it. */
	if (!c[TFIG_READ].count)
		return p->idle_ns;
	if (u->write_share <= writes[TFIG_2_1])
		return between(u->write_share, 0, writes[TFIG_2_1],
			       ns_of(&c[TFIG_READ], use),
			       ns_of(&c[TFIG_2_1], use));
	return between(u->write_share, writes[TFIG_2_1], 1,
		       ns_of(&c[TFIG_2_1], use), ns_of(&c[TFIG_WRITE], use));
}
