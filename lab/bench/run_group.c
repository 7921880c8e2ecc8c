/* SPDX-License-Identifier: Apache-2.0 */
/* One work in some places, in turns; its medians and ratios. */

#include "run_plan.h"
#include "stats.h"

void run_group_add(struct run_group *g, enum run_place place, unsigned part)
{
	g->cell[g->cells++] = (struct run_cell){.place = place, .part = part};
}

/* ---- running ------------------------------------------------------------ */

static void run_cell(const struct run_group *g, struct run_cell *c,
		     unsigned round)
{
	struct run_work w = g->work;
	uint64_t ns;

	if (c->missing)
		return;
	w.seed = 1 + round;
	if (c->part)
		w.count /= c->part;
	if (run_work_spawn(&w, c->place, g->local_bytes, &ns, &c->missing) == 0)
		c->missing = NULL;
	if (!c->missing)
		c->ns[c->count++] = (double)ns * (c->part ? c->part : 1);
}

void run_group_run(struct run_group *g, unsigned rounds)
{
	if (g->rounds_times)
		rounds = u32_min(rounds * g->rounds_times, RUN_ROUNDS_MAX);
	if (g->rounds_max && rounds > g->rounds_max)
		rounds = g->rounds_max;
	for (unsigned i = 0; i < rounds; i++)
		for (unsigned k = 0; k < g->cells; k++)
			run_cell(g, &g->cell[k], i);
}

/* ---- what it took ------------------------------------------------------- */

static double median_ns(const struct run_cell *c)
{
	return c->missing ? 0 : stats_median((double *)c->ns, c->count);
}

const struct run_cell *run_group_cell(const struct run_group *g,
				      enum run_place place)
{
	for (unsigned i = 0; i < g->cells; i++)
		if (g->cell[i].place == place)
			return &g->cell[i];
	return NULL;
}

bool run_group_is_per_fault(const struct run_group *g)
{
	return g->work.kind <= RUN_WORK_FLOOR_SIGNAL;
}

double run_group_median(const struct run_group *g, const struct run_cell *c)
{
	double missing = 1 - (double)g->local_bytes / (double)g->work.bytes;
	double ns = median_ns(c);

	if (!run_group_is_per_fault(g))
		return ns / 1e9;
	if (g->work.kind != RUN_WORK_TOUCH)
		missing = 1;
	return ns / 1e3 / (double)g->work.count / missing;
}

double run_group_ratio(const struct run_group *g, enum run_place ours,
		       enum run_place theirs)
{
	const struct run_cell *a = run_group_cell(g, ours);
	const struct run_cell *b = run_group_cell(g, theirs);

	return a && b && !a->missing && !b->missing
		       ? median_ns(a) / median_ns(b)
		       : 0;
}
