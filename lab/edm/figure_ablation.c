/* SPDX-License-Identifier: Apache-2.0 */
/* What each choice in the scheduler is worth, one at a time. */
#include "edm_figure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const head[] = {
	"what",	     "value",	  "load",      "workload", "mean_ns",
	"common",    "common_ci", "over_base", "over_ci",  "p99",
	"in_flight", "queue",	  "events",    NULL};

struct ablation {
	const struct edm_figure_options *o;
	struct edm_jobs jobs;
	struct label {
		const char *what;
		const char *chart;
		unsigned series; /* of that chart */
		char value[24];
	} * label;
	size_t labels, size;
	unsigned series; /* of what is added */
};

static void add(struct ablation *a, const struct edm_config *c,
		const char *chart, const char *what, const char *value)
{
	if (a->labels == a->size) {
		a->size = a->size ? 2 * a->size : 64;
		a->label = realloc(a->label, a->size * sizeof(*a->label));
		ASSERT(a->label);
	}
	a->label[a->labels].what = what;
	a->label[a->labels].chart = chart;
	a->label[a->labels].series = a->series;
	snprintf(a->label[a->labels].value, sizeof(a->label[0].value), "%s",
		 value);
	a->labels++;
	(void)edm_jobs_add(&a->jobs, c);
}

static void add_number(struct ablation *a, const struct edm_config *c,
		       const char *chart, const char *what, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	add(a, c, chart, what, text);
}

static void disciplines(struct ablation *a, const struct edm_config *base)
{
	for (int d = EDM_ASYNC; d <= EDM_PIM; d++) {
		for (int p = EDM_FCFS; p <= EDM_PAIR; p++) {
			struct edm_config c = *base;
			char text[24];

			/* Without differences in size the policies are one. */
			if (c.sizes == EDM_SIZES_FIXED && p != EDM_FCFS)
				continue;
			c.discipline = (enum edm_discipline)d;
			c.policy = (enum edm_policy)p;
			snprintf(text, sizeof(text), "%s %s",
				 edm_discipline_name(c.discipline),
				 edm_policy_name(c.policy));
			add(a, &c, "discipline", "discipline", text);
		}
	}
}

static void numbers(struct ablation *a, const struct edm_config *base)
{
	static const uint32_t chunk[] = {64, 128, 256, 512, 1024};
	static const uint32_t active[] = {1, 2, 3, 4, 8};
	static const uint32_t iterations[] = {1, 2, 4, 8};
	static const uint32_t channel[] = {1, 4, 16};
	struct edm_config c = *base;

	for (unsigned i = 0; i < ARRAY_LEN(chunk); i++) {
		c.chunk_bytes = chunk[i];
		add_number(a, &c, "chunk", "chunk", chunk[i]);
	}
	c = *base;
	for (unsigned i = 0; i < ARRAY_LEN(active); i++) {
		c.active_max = active[i];
		add_number(a, &c, "x", "X", active[i]);
	}
	c = *base;
	c.discipline = EDM_PIM;
	for (unsigned i = 0; i < ARRAY_LEN(iterations); i++) {
		c.pim_iterations = iterations[i];
		c.pim_iteration_ps = 1000;
		add_number(a, &c, "pim", "PIM iterations, 1 ns", iterations[i]);
	}
	c.pim_iteration_ps = 7680;
	c.pim_iterations = 1;
	add_number(a, &c, "other", "PIM iterations, 7.68 ns", 1);
	c = *base;
	for (unsigned i = 0; i < ARRAY_LEN(channel); i++) {
		c.channels = channel[i];
		add_number(a, &c, "channels", "ordered channels", channel[i]);
	}
}

static void others(struct ablation *a, const struct edm_config *base)
{
	struct edm_config c = *base;

	c.nest = true;
	add(a, &c, "other", "requests", "nest");
	c = *base;
	edm_config_best(&c);
	add(a, &c, "other", "all that is best", "together");
	c = *base;
	c.md = EDM_MD_CONTROL;
	add(a, &c, "other", "memory data in", "control blocks");
	c = *base;
	c.batch_bytes = 256;
	add(a, &c, "other", "batching up to", "256");
	c = *base;
	c.charge_control = false;
	add(a, &c, "other", "control blocks", "not charged");
	c = *base;
	c.mem_ps = 82000;
	add(a, &c, "other", "memory access", "82 ns");
	c = *base;
	c.asic = true;
	add(a, &c, "other", "switch clock", "3 GHz");
	c = *base;
	c.ip_load_ppm = 900000;
	add(a, &c, "other", "IP load beside", "0.9");
	if (base->policy == EDM_FCFS)
		return;
	c = *base;
	c.age_cap_ps = 100 * EDM_US;
	add(a, &c, "other", "age cap", "100 us");
}

enum {
	SERIES = 4,
	POINTS_MAX = 16,
};

static const char *point_name(const struct label *l)
{
	return strcmp(l->chart, "other") ? l->value : l->what;
}

static int chart(const struct ablation *a, const char *name)
{
	const char *x[POINTS_MAX];
	double at[SERIES][POINTS_MAX], y[SERIES * POINTS_MAX];
	struct edm_chart c = {
		.title = "Ablation: one choice at a time",
		.x_label = name,
		.y_label = "mean time over unloaded EDM",
		.x = x,
		.series = SERIES,
		.name = {"64 B, 0.6", "64 B, 0.9", "hadoop, 0.4",
			 "hadoop, 0.8"},
		.y = y,
		.log_y = true,
		.bars = true,
	};
	char file[64];

	for (size_t i = 0; i < a->labels; i++) {
		const struct label *l = &a->label[i];
		unsigned p = 0;

		if (strcmp(l->chart, name))
			continue;
		while (p < c.points && strcmp(x[p], point_name(l)))
			p++;
		ASSERT(p < POINTS_MAX);
		if (p == c.points) {
			x[c.points++] = point_name(l);
			for (unsigned k = 0; k < SERIES; k++)
				at[k][p] = NAN;
		}
		at[l->series][p] = a->jobs.job[i].mean.common;
	}
	for (unsigned k = 0; k < SERIES; k++)
		memcpy(y + k * c.points, at[k], c.points * sizeof(*y));
	snprintf(file, sizeof(file), "ablation-%s", name);
	return edm_chart_write(&c, a->o->out, file);
}

static int charts(const struct ablation *a)
{
	static const char *const name[] = {"discipline", "chunk",    "x",
					   "pim",	 "channels", "other"};
	int rc = 0;

	for (unsigned i = 0; !rc && i < ARRAY_LEN(name); i++)
		rc = chart(a, name[i]);
	return rc;
}

/* What everything of a series is held against: its run with nothing changed. */
static const struct edm_job *base_of(const struct ablation *a, unsigned series)
{
	size_t i = 0;

	while (a->label[i].series != series ||
	       strcmp(a->label[i].what, "chunk") ||
	       a->jobs.job[i].c.chunk_bytes != EDM_CHUNK_PAPER)
		i++;
	return &a->jobs.job[i];
}

/* Same seed, same arrivals: the ratio to the base differs from seed to seed
 * much less than the two means do. */
static void ratio_add(struct edm_table *t, const struct edm_job *job,
		      const struct edm_job *base)
{
	double ratio[EDM_SEEDS_MAX], sum = 0;

	for (uint32_t k = 0; k < job->seeds; k++)
		sum += ratio[k] = job->common[k] / base->common[k];
	edm_table_number(t, sum / job->seeds, 3);
	edm_table_number(t, edm_half_width(ratio, job->seeds),
			 job->seeds > 1 ? 3 : -1);
}

int edm_figure_ablation(const struct edm_figure_options *o)
{
	static const double short_load[] = {0.6, 0.9}, long_load[] = {0.4, 0.8};
	struct ablation a = {.o = o};
	struct edm_table t;
	int rc;

	edm_figure_jobs(o, "ablation", &a.jobs);
	for (unsigned i = 0; i < 2; i++) {
		struct edm_config c = o->base;

		c.write_ppm = 500000;
		c.load = short_load[i];
		c.messages = edm_figure_messages(o) / 2;
		a.series = i;
		disciplines(&a, &c);
		numbers(&a, &c);
		others(&a, &c);
		c.sizes = EDM_SIZES_HADOOP;
		c.load = long_load[i];
		c.messages = edm_figure_long_messages(o) / 2;
		c.policy = EDM_SRPT;
		a.series = 2 + i;
		disciplines(&a, &c);
		c.discipline = EDM_RESERVE;
		numbers(&a, &c);
		others(&a, &c);
	}
	rc = edm_jobs_run(&a.jobs);
	edm_table_init(&t, "ablation",
		       "Ablation, half reads; hadoop with reserve and SRPT "
		       "unless said. common: over unloaded EDM as published; "
		       "over_base: over the same without the change",
		       head);
	for (size_t i = 0; !rc && i < a.labels; i++) {
		const struct edm_job *job = &a.jobs.job[i];

		edm_table_text(&t, "%s", a.label[i].what);
		edm_table_text(&t, "%s", a.label[i].value);
		edm_table_number(&t, job->c.load, 1);
		edm_table_text(&t, "%s",
			       job->c.sizes == EDM_SIZES_FIXED
				       ? "64 B"
				       : edm_sizes_name(job->c.sizes));
		edm_table_number(&t, job->mean.mean_ns, 1);
		edm_table_number(&t, job->mean.common, 3);
		edm_table_number(&t, job->common_ci, job->seeds > 1 ? 3 : -1);
		ratio_add(&t, job, base_of(&a, a.label[i].series));
		edm_table_number(&t, job->mean.common_p99, 2);
		edm_table_number(&t, (double)job->mean.in_flight_max, 0);
		edm_table_number(&t, (double)job->mean.egress_blocks_max, 0);
		edm_table_number(&t, (double)job->mean.events, 0);
	}
	if (!rc)
		edm_figure_emit(o, &t);
	else
		edm_table_release(&t);
	if (!rc && o->out)
		rc = charts(&a);
	free(a.label);
	edm_jobs_release(&a.jobs);
	return rc;
}
