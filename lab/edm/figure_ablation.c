/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each choice in the scheduler is worth, one at a time; and discipline x
 * chunk x X x policy, all combinations, at two loads of two workloads: whether
 * what is found one by one holds together. Those are short runs; the table says
 * for each combination how far it is from the best one.
 */
#include <math.h>
#include <string.h>

#include "edm_figure.h"

enum {
	N_OVER,
	N_OVER_CI,
};

static const double short_load[] = {0.6, 0.9}, long_load[] = {0.4, 0.8};

/* ---- ablation ------------------------------------------------------------ */

const struct figure_column edm_columns_ablation[] = {
	EDM_COLUMN(text[0], "what", 0),
	EDM_COLUMN(name, "value", 0),
	EDM_COLUMN(job[0].c.load, "load", 1),
	EDM_COLUMN(text[1], "workload", 0),
	EDM_COLUMN(job[0].mean.mean_ns, "mean_ns", 1),
	EDM_COLUMN(job[0].mean.common, "common", 3),
	EDM_COLUMN(job[0].common_ci, "common_ci", 3),
	EDM_COLUMN(number[N_OVER], "over_base", 3),
	EDM_COLUMN(number[N_OVER_CI], "over_ci", 3),
	EDM_COLUMN(job[0].growth, "growth", FIGURE_JSON_ONLY),
	EDM_COLUMN(job[0].trend, "trend", 0),
	EDM_COLUMN(timed.common, "timed", 3),
	EDM_COLUMN(timed.trend, "timed_trend", 0),
	EDM_COLUMN(job[0].mean.measured, "counted", FIGURE_JSON_ONLY),
	EDM_COLUMN(job[0].mean.common_p99, "p99", 2),
	EDM_COLUMN(job[0].mean.in_flight_max, "in_flight", 0),
	EDM_COLUMN(job[0].mean.egress_blocks_max, "queue", 0),
	EDM_COLUMN(job[0].mean.events, "events", 0),
	{.name = NULL},
};

/* In the panel "other" each choice has a place by its name, else by value. */
static void add(struct figure_run *r, const struct edm_config *c,
		const char *panel, const char *what, const char *value)
{
	char series[FIGURE_SERIES_MAX];
	struct edm_config timed = *c;
	struct edm_row *row;

	snprintf(series, sizeof(series), "%s, %.1f", edm_row_sizes(c), c->load);
	row = figure_add(r, panel, series, 0);
	row->text[0] = what;
	row->text[1] = edm_row_sizes(c);
	snprintf(row->name, sizeof(row->name), "%s", value);
	row->p.x_name = what; /* see edm_judge_ablation() */
	edm_row_job(row, c);
	timed.timed = true;
	if (!strcmp(panel, "discipline"))
		edm_row_job(row, &timed);
}

static void disciplines(struct figure_run *r, const struct edm_config *base)
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
			add(r, &c, "discipline", "discipline", text);
		}
	}
}

enum {
	VALUES_MAX = 5,
};

/* A number of the configuration, and its values. */
static const struct {
	const char *panel, *what;
	size_t at;
	uint32_t pim_ps; /* with PIM, and this per iteration; 0: not */
	uint32_t value[VALUES_MAX];
} numbers[] = {
#define AT(field) offsetof(struct edm_config, field)
	{"chunk", "chunk", AT(chunk_bytes), 0, {64, 128, 256, 512, 1024}},
	{"x", "X", AT(active_max), 0, {1, 2, 3, 4, 8}},
	{"pim", "PIM iterations, 1 ns", AT(pim_iterations), 1000, {1, 2, 4, 8}},
	{"other", "PIM iterations, 7.68 ns", AT(pim_iterations), 7680, {1}},
	{"channels", "ordered channels", AT(channels), 0, {1, 4, 16}},
};

static void set_free_control(struct edm_config *c)
{
	c->charge_control = false;
}

static void set_memory_first(struct edm_config *c)
{
	c->ip_load_ppm = 900000;
	c->ip_policy = EDM_IP_MEMORY;
}

/* What is not a number, or has one value beside its own, as options have it. */
static const struct {
	const char *what, *label, *option, *value;
	void (*set)(struct edm_config *c); /* where there is no option */
} others[] = {
	{"requests", "nest", "nest", NULL, NULL},
	{"all that is best", "together", NULL, NULL, edm_config_best},
	{"memory data in", "control blocks", "md", "control", NULL},
	{"batching up to", "256", "batch", "256", NULL},
	{"control blocks", "not charged", NULL, NULL, set_free_control},
	{"memory access", "82 ns", "memory-ns", "82", NULL},
	{"switch clock", "3 GHz", "asic", NULL, NULL},
	{"IP load beside, fair", "0.3", "ip-load", "0.3", NULL},
	{"IP load beside, fair", "0.9", "ip-load", "0.9", NULL},
	{"IP load beside, memory first", "0.9", NULL, NULL, set_memory_first},
	{"a matching", "takes its time", "timed", NULL, NULL},
	{"age cap", "100 us", "age-cap-ns", "100000", NULL},
};

static void add_numbers(struct figure_run *r, const struct edm_config *base)
{
	for (unsigned i = 0; i < ARRAY_LEN(numbers); i++) {
		struct edm_config c = *base;

		if (numbers[i].pim_ps) {
			c.discipline = EDM_PIM;
			c.pim_iteration_ps = numbers[i].pim_ps;
		}
		for (unsigned k = 0; k < VALUES_MAX && numbers[i].value[k];
		     k++) {
			char text[24];

			*(uint32_t *)((char *)&c + numbers[i].at) =
				numbers[i].value[k];
			snprintf(text, sizeof(text), "%u", numbers[i].value[k]);
			add(r, &c, numbers[i].panel, numbers[i].what, text);
		}
	}
}

static void add_others(struct figure_run *r, const struct edm_config *base)
{
	for (unsigned i = 0; i < ARRAY_LEN(others); i++) {
		struct edm_config c = *base;
		int rc = 0;

		if (others[i].set)
			others[i].set(&c);
		else
			rc = edm_option_set(&c, others[i].option,
					    others[i].value);
		ASSERT(!rc);
		/* There is nothing to be old in first come, first served. */
		if (!c.age_cap_ps || base->policy != EDM_FCFS)
			add(r, &c, "other", others[i].what, others[i].label);
	}
}

int edm_plan_ablation(struct figure_run *r)
{
	const struct edm_figure_options *o = edm_options_of(r);

	for (unsigned i = 0; i < ARRAY_LEN(short_load); i++) {
		struct edm_config c = edm_options_of(r)->base;

		c.write_ppm = 500000;
		c.load = short_load[i];
		c.messages = edm_figure_settled(r, o->messages);
		disciplines(r, &c);
		add_numbers(r, &c);
		add_others(r, &c);
		c.sizes = EDM_SIZES_HADOOP;
		c.load = long_load[i];
		c.messages = edm_figure_settled(r, o->long_messages);
		c.policy = EDM_SRPT;
		disciplines(r, &c);
		c.discipline = EDM_RESERVE;
		add_numbers(r, &c);
		add_others(r, &c);
	}
	return 0;
}

/* What everything of a series is held against: its run with nothing changed. */
static const struct edm_job *base_of(const struct figure_run *r,
				     const struct edm_row *row)
{
	for (size_t i = 0;; i++) {
		const struct edm_row *base = figure_row(r, i);

		ASSERT(i < r->count);
		if (!strcmp(base->p.series, row->p.series) &&
		    !strcmp(base->text[0], "chunk") &&
		    base->job[0].c.chunk_bytes == EDM_CHUNK_PAPER)
			return base->job;
	}
}

/* Same seed, same arrivals: the ratio to the base differs from seed to seed
 * much less than the two means do. */
void edm_judge_ablation(struct figure_run *r)
{
	edm_rows_timed(r);
	for (size_t i = 0; i < r->count; i++) {
		struct edm_row *row = figure_row(r, i);
		const struct edm_job *job = row->job, *base = base_of(r, row);
		double ratio[EDM_SEEDS_MAX], sum = 0;

		for (uint32_t k = 0; k < job->seeds; k++)
			sum += ratio[k] = job->common[k] / base->common[k];
		row->number[N_OVER] = sum / job->seeds;
		row->number[N_OVER_CI] =
			job->seeds > 1 ? edm_half_width(ratio, job->seeds)
				       : NAN;
		/* Rows stay where they are now. */
		if (strcmp(row->p.panel, "other"))
			row->p.x_name = row->name;
	}
}

/* ---- cross --------------------------------------------------------------- */

const struct figure_column edm_columns_cross[] = {
	EDM_COLUMN(text[1], "workload", 0),
	EDM_COLUMN(job[0].c.load, "load", 1),
	EDM_COLUMN(text[0], "discipline", 0),
	EDM_COLUMN(text[2], "policy", 0),
	EDM_COLUMN(job[0].c.chunk_bytes, "chunk", 0),
	EDM_COLUMN(job[0].c.active_max, "X", 0),
	EDM_COLUMN(job[0].mean.mean_ns, "mean_ns", 1),
	EDM_COLUMN(job[0].mean.common, "common", 3),
	EDM_COLUMN(number[N_OVER], "over_best", 2),
	EDM_COLUMN(job[0].mean.egress_blocks_max, "queue", 0),
	{.name = NULL},
};

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

/* The picture shows what has the paper's X, first come first served. */
static void cross_add(struct figure_run *r, const char *panel,
		      struct edm_config *c, const struct choice *choice)
{
	enum edm_policy last =
		c->sizes == EDM_SIZES_FIXED ? EDM_FCFS : EDM_PAIR;

	c->discipline = choice->discipline;
	c->pim_iterations = choice->iterations;
	for (int p = EDM_FCFS; p <= (int)last; p++) {
		bool shown = c->active_max == 3 && p == EDM_FCFS;
		struct edm_row *row = figure_add(
			r, panel, shown ? choice->name : "", c->chunk_bytes);

		c->policy = (enum edm_policy)p;
		row->text[0] = choice->name;
		row->text[1] = edm_row_sizes(c);
		row->text[2] = edm_policy_name(c->policy);
		edm_row_job(row, c);
	}
}

static void workload_add(struct figure_run *r, const char *panel,
			 struct edm_config c)
{
	static const uint32_t chunk[] = {64, 128, 256, 512, 1024};
	static const uint32_t active[] = {1, 2, 3, 8};

	for (unsigned d = 0; d < ARRAY_LEN(choices); d++)
		for (unsigned k = 0; k < ARRAY_LEN(chunk); k++)
			for (unsigned a = 0; a < ARRAY_LEN(active); a++) {
				c.chunk_bytes = chunk[k];
				c.active_max = active[a];
				cross_add(r, panel, &c, &choices[d]);
			}
}

int edm_plan_cross(struct figure_run *r)
{
	static const char *const panel[] = {"64 B at 0.6", "hadoop at 0.4",
					    "64 B at 0.9", "hadoop at 0.8"};

	for (unsigned i = 0; i < ARRAY_LEN(short_load); i++) {
		struct edm_config c = edm_options_of(r)->base;

		c.write_ppm = 500000;
		c.load = short_load[i];
		c.messages = edm_figure_messages(r) / 8 + 1;
		workload_add(r, panel[2 * i], c);
		c.sizes = EDM_SIZES_HADOOP;
		c.load = long_load[i];
		c.messages = edm_figure_long_messages(r) / 8 + 1;
		workload_add(r, panel[2 * i + 1], c);
	}
	return 0;
}

/* How far each is from the best of its workload and load. */
void edm_judge_cross(struct figure_run *r)
{
	struct edm_row *rows = figure_row(r, 0);
	size_t end;

	for (size_t from = 0; from < r->count; from = end) {
		double best = INFINITY;

		for (end = from;
		     end < r->count && rows[end].p.panel == rows[from].p.panel;
		     end++)
			best = fmin(best, rows[end].job[0].mean.common);
		for (size_t i = from; i < end; i++)
			rows[i].number[N_OVER] =
				rows[i].job[0].mean.common / best;
	}
}
