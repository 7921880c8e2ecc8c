/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Discipline x chunk x X x policy, all combinations, at two loads of two
 * workloads: whether what the ablation finds one by one holds together. Short
 * runs; the table says for each combination how far it is from the best one.
 */
#include <stdlib.h>

#include "edm_figure.h"

static const struct choice {
	const char *name;
	enum edm_discipline discipline;
	uint32_t iterations;
} choices[] = {
	{"async", EDM_ASYNC, 8},     {"slot", EDM_SLOT, 8},
	{"reserve", EDM_RESERVE, 8}, {"pim 1", EDM_PIM, 1},
	{"pim 2", EDM_PIM, 2},	     {"pim 4", EDM_PIM, 4},
	{"pim 8", EDM_PIM, 8},
};

static const uint32_t chunk[] = {64, 128, 256, 512, 1024};
static const uint32_t active[] = {1, 2, 3, 8};

struct cross {
	struct edm_jobs jobs;
	struct edm_table t;
};

static void workload_add(struct cross *x, const struct edm_config *base,
			 bool policies)
{
	for (unsigned d = 0; d < ARRAY_LEN(choices); d++) {
		for (unsigned k = 0; k < ARRAY_LEN(chunk); k++) {
			for (unsigned a = 0; a < ARRAY_LEN(active); a++) {
				struct edm_config c = *base;

				c.discipline = choices[d].discipline;
				c.pim_iterations = choices[d].iterations;
				c.chunk_bytes = chunk[k];
				c.active_max = active[a];
				c.policy = EDM_FCFS;
				(void)edm_jobs_add(&x->jobs, &c);
				if (!policies)
					continue;
				c.policy = EDM_SRPT;
				(void)edm_jobs_add(&x->jobs, &c);
				c.policy = EDM_PAIR;
				(void)edm_jobs_add(&x->jobs, &c);
			}
		}
	}
}

static const char *choice_name(const struct edm_config *c)
{
	for (unsigned d = 0; d < ARRAY_LEN(choices); d++)
		if (choices[d].discipline == c->discipline &&
		    choices[d].iterations == c->pim_iterations)
			return choices[d].name;
	return "";
}

static bool same_load(const struct edm_job *a, const struct edm_job *b)
{
	return a->c.sizes == b->c.sizes && a->c.load == b->c.load;
}

/* Of all combinations at this workload and load. */
static double best_of(const struct edm_jobs *j, const struct edm_job *like)
{
	double best = like->mean.common;

	for (size_t i = 0; i < j->count; i++)
		if (same_load(&j->job[i], like) && j->job[i].mean.common < best)
			best = j->job[i].mean.common;
	return best;
}

static void rows_add(struct cross *x)
{
	double best = 0;

	for (size_t i = 0; i < x->jobs.count; i++) {
		const struct edm_job *job = &x->jobs.job[i];

		if (!i || !same_load(job, job - 1))
			best = best_of(&x->jobs, job);
		edm_table_text(&x->t, "%s",
			       job->c.sizes == EDM_SIZES_FIXED
				       ? "64 B"
				       : edm_sizes_name(job->c.sizes));
		edm_table_number(&x->t, job->c.load, 1);
		edm_table_text(&x->t, "%s", choice_name(&job->c));
		edm_table_text(&x->t, "%s", edm_policy_name(job->c.policy));
		edm_table_number(&x->t, job->c.chunk_bytes, 0);
		edm_table_number(&x->t, job->c.active_max, 0);
		edm_table_number(&x->t, job->mean.mean_ns, 1);
		edm_table_number(&x->t, job->mean.common, 3);
		edm_table_number(&x->t, job->mean.common / best, 2);
		edm_table_number(&x->t, (double)job->mean.egress_blocks_max, 0);
	}
}

int edm_figure_cross(const struct edm_figure_options *o)
{
	static const char *const head[] = {
		"workload", "load",   "discipline", "policy", "chunk", "X",
		"mean_ns",  "common", "over_best",  "queue",  NULL};
	static const double short_load[] = {0.6, 0.9}, long_load[] = {0.4, 0.8};
	struct cross x;
	int rc;

	edm_figure_jobs(o, "cross", &x.jobs);
	for (unsigned i = 0; i < 2; i++) {
		struct edm_config c = o->base;

		c.write_ppm = 500000;
		c.load = short_load[i];
		c.messages = edm_figure_messages(o) / 8 + 1;
		workload_add(&x, &c, false);
		c.sizes = EDM_SIZES_HADOOP;
		c.load = long_load[i];
		c.messages = edm_figure_long_messages(o) / 8 + 1;
		workload_add(&x, &c, true);
	}
	rc = edm_jobs_run(&x.jobs);
	if (!rc) {
		edm_table_init(&x.t, "cross",
			       "Discipline x chunk x X x policy, half reads; "
			       "common: over unloaded EDM as published; "
			       "over_best: of its workload and load",
			       head);
		rows_add(&x);
		edm_figure_emit(o, &x.t);
	}
	edm_jobs_release(&x.jobs);
	return rc;
}
