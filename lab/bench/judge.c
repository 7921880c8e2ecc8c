/* SPDX-License-Identifier: Apache-2.0 */
/* The judgement on a ratio: its value, whether it counts, whether it is kept.
 */
#include <stdio.h>

#include "plan.h"
#include "stats.h"

static double value_of(const struct plan_group *g,
		       const struct conduct_track *t)
{
	struct conduct_summary sum;

	conduct_summarize(t, 0, &sum);
	return g->unit == PLAN_RATE ? sum.rate : sum.p50_ns;
}

/*
 * The median over the rounds of ours / peer in the same round. Hosts move their
 * guests' cores about, and a cache line then takes up to four times as long;
 * two neighbouring rounds see the same placement, two medians need not.
 */
static double paired_ratio(const struct plan_group *g,
			   const struct conduct_track *ours,
			   const struct conduct_track *peer)
{
	double v[CONDUCT_ROUNDS_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < CONDUCT_ROUNDS_MAX; i++) {
		const struct side_result *a = &ours->round[i];
		const struct side_result *b = &peer->round[i];
		double x, y;

		if (!ours->is_clean[i] || !peer->is_clean[i])
			continue;
		x = g->unit == PLAN_RATE ? conduct_round_rate(a)
					 : a->series[0].p50_ns;
		y = g->unit == PLAN_RATE ? conduct_round_rate(b)
					 : b->series[0].p50_ns;
		if (y > 0)
			v[n++] = x / y;
	}
	return stats_median(v, n);
}

static bool refuse_unsound(const struct conduct_track *t, unsigned rounds,
			   struct plan_verdict *v)
{
	if (t->why[0])
		snprintf(v->why, sizeof(v->why), "%s", t->why);
	else if (!conduct_is_sound(t, rounds))
		snprintf(v->why, sizeof(v->why),
			 "%s: foreign load in all but %u of %u rounds",
			 t->desc->name, t->kept, rounds);
	else
		return false;
	v->is_void = true;
	return true;
}

void plan_judge(const struct plan_group *g, const struct conduct_track *tracks,
		unsigned rounds, struct plan_verdict *out)
{
	struct plan_verdict v = {0};
	double peer = value_of(g, &tracks[1]);

	v.ratio = paired_ratio(g, &tracks[0], &tracks[1]);
	if (!refuse_unsound(&tracks[0], rounds, &v) &&
	    !refuse_unsound(&tracks[1], rounds, &v) && g->figure &&
	    stats_is_off(peer, g->figure->value, FLOOR_TOLERANCE)) {
		v.is_void = true;
		snprintf(v.why, sizeof(v.why),
			 "%s is %.4g %s, off its own figure of %.4g (%s) by "
			 "%+.0f %%",
			 tracks[1].desc->name, peer,
			 g->unit == PLAN_RATE ? "op/s" : "ns", g->figure->value,
			 g->figure->source,
			 (peer / g->figure->value - 1) * 100);
	}
	v.is_kept = !v.is_void &&
		    (g->at_most ? v.ratio <= g->bound : v.ratio >= g->bound);
	*out = v;
}
