/* SPDX-License-Identifier: Apache-2.0 */
/* The ratios of `bench offload`: medians over rounds of what two subjects did
 * in the same round. */
#include <stdio.h>
#include <string.h>

#include "offload_plan.h"
#include "stats.h"

double offload_metric_of(const struct side_result *r, enum offload_metric m)
{
	switch (m) {
	case METRIC_RATE:
		return conduct_round_rate(r);
	case METRIC_CALLER:
		return r->series[0].p50_ns + r->series[1].p50_ns;
	case METRIC_P50:
		return r->series[0].p50_ns;
	case METRIC_P99:
		return r->series[0].p99_ns;
	case METRIC_COMM_BUSY:
		return (r->more[OFFLOAD_MORE_COMM] -
			r->more[OFFLOAD_MORE_EMPTY]) /
		       (1 - r->more[OFFLOAD_MORE_EMPTY]);
	case METRIC_COMM:
		break;
	}
	return r->more[OFFLOAD_MORE_COMM];
}

double offload_median(const struct conduct_track *t, enum offload_metric m)
{
	double v[CONDUCT_ROUNDS_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < CONDUCT_ROUNDS_MAX; i++)
		if (t->is_clean[i])
			v[n++] = offload_metric_of(&t->round[i], m);
	return stats_median(v, n);
}

double offload_median_more(const struct conduct_track *t, unsigned more)
{
	double v[CONDUCT_ROUNDS_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < CONDUCT_ROUNDS_MAX; i++)
		if (t->is_clean[i])
			v[n++] = t->round[i].more[more];
	return stats_median(v, n);
}

/* Neighbouring rounds see the same machine, two medians need not. */
static double paired(const struct conduct_track *ours,
		     const struct conduct_track *peer, enum offload_metric m)
{
	double v[CONDUCT_ROUNDS_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < CONDUCT_ROUNDS_MAX; i++) {
		double y;

		if (!ours->is_clean[i] || !peer->is_clean[i])
			continue;
		y = offload_metric_of(&peer->round[i], m);
		if (y > 0)
			v[n++] = offload_metric_of(&ours->round[i], m) / y;
	}
	return stats_median(v, n);
}

static const struct conduct_track *find(const struct offload_plan *plan,
					const char *group, const char *name)
{
	for (unsigned i = 0; i < plan->group_count; i++) {
		const struct offload_group *g = &plan->group[i];

		if (!g->is_run || strcmp(g->name, group) != 0)
			continue;
		for (unsigned k = 0; k < g->subject_count; k++)
			if (strcmp(g->subject[k].desc.name, name) == 0)
				return &g->track[k];
	}
	return NULL;
}

static bool refuse(const struct conduct_track *t, unsigned rounds,
		   struct plan_verdict *v)
{
	if (!t)
		snprintf(v->why, sizeof(v->why), "not measured");
	else if (t->why[0])
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

void offload_judge(const struct offload_plan *plan,
		   const struct offload_ratio *r, unsigned rounds,
		   struct plan_verdict *out)
{
	const struct conduct_track *ours = find(plan, r->group, r->ours);
	const struct conduct_track *peer =
		r->peer ? find(plan, r->group, r->peer) : NULL;
	struct plan_verdict v = {0};

	if (refuse(ours, rounds, &v) || (r->peer && refuse(peer, rounds, &v))) {
		*out = v;
		return;
	}
	v.ratio = peer ? paired(ours, peer, r->metric)
		       : offload_median(ours, r->metric);
	v.is_kept = !r->is_barred ||
		    (r->at_most ? v.ratio <= r->bound : v.ratio >= r->bound);
	*out = v;
}
