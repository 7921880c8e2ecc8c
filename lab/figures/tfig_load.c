/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many operations threads do whose memory gets slower the more they do. An
 * operation computes, waits for its dependent misses one after the other, and
 * for its other lines with some of them under way. The rate is where all
 * threads are busy with exactly that many operations, or where a memory moves
 * no more.
 */
#include <math.h>

#include "tfig.h"
#include "tfig_costs.h"

enum {
	STEPS = 60, /* of bisection: to the last digit */
	LINE = 64,
};

static double lines_of(const struct tfig_load *l)
{
	return l->misses + l->lines;
}

/* Bytes in a nanosecond are 10^9 in a second. */
static double place_gbs(const struct tfig_load *l, unsigned i, double ops_ns)
{
	return ops_ns * lines_of(l) * l->place[i].share * LINE +
	       l->place[i].more_gbs;
}

static struct tfig_users users_of(const struct tfig_load *l, unsigned i)
{
	return (struct tfig_users){.units = l->place[i].units,
				   .threads = l->threads,
				   .write_share = l->write_share};
}

static double op_ns_at(const struct tfig_load *l, double ops_ns)
{
	double ns =
		l->compute_ns + l->ssd_reads * (double)tfig_costs.ssd_ps / 1e3;

	for (unsigned i = 0; i < TFIG_PLACES; i++) {
		const struct tfig_place *p = &l->place[i];
		const struct tfig_users u = users_of(l, i);

		if (p->share > 0)
			ns += p->share * (l->misses + l->lines / l->under_way) *
			      tfig_memory_ns(p->memory, &u,
					     place_gbs(l, i, ops_ns));
	}
	return ns;
}

/* The most that memories and SSDs move. */
static double most_ops_ns(const struct tfig_load *l)
{
	double most = l->threads / op_ns_at(l, 0);

	for (unsigned i = 0; i < TFIG_PLACES; i++) {
		const struct tfig_place *p = &l->place[i];
		const struct tfig_users u = users_of(l, i);
		double left;

		if (p->share <= 0)
			continue;
		left = tfig_memory_peak(p->memory, &u) - p->more_gbs;
		most = fmin(most,
			    fmax(left, 0) / (lines_of(l) * p->share * LINE));
	}
	return l->ssd_bytes > 0 ? fmin(most, l->ssd_gbs / l->ssd_bytes) : most;
}

void tfig_load_solve(const struct tfig_load *l, struct tfig_rate *out)
{
	double threads = l->threads * (1 - l->overhead);
	double low = 0, high = most_ops_ns(l);

	for (unsigned i = 0; i < STEPS; i++) {
		double middle = (low + high) / 2;

		if (middle * op_ns_at(l, middle) <= threads)
			low = middle;
		else
			high = middle;
	}
	*out = (struct tfig_rate){.ops_s = low * 1e9,
				  .op_ns = low > 0 ? l->threads / low : 0};
	for (unsigned i = 0; i < TFIG_PLACES; i++) {
		const struct tfig_place *p = &l->place[i];
		const struct tfig_users u = users_of(l, i);

		out->gbs[i] = place_gbs(l, i, low);
		out->ns[i] = p->units > 0 ? tfig_memory_ns(p->memory, &u,
							   out->gbs[i])
					  : NAN;
	}
}
