/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures 8a and 8b: seven fabrics under load, each mean time with its ratio to
 * the same fabric unloaded (own) and to unloaded EDM (common), beside what the
 * authors' simulator published. Nothing here is fitted to those.
 */
#include "edm_figure.h"

#include <stdlib.h>

enum {
	LOADS = 5,
	MIXES = 3,
	APPS = 5,
	FASTPASS_SHORT = 100000,
	FASTPASS_LONG = 4000,
};

static const double load[LOADS] = {0.2, 0.4, 0.6, 0.8, 0.9};
static const char *const load_name[LOADS] = {"0.2", "0.4", "0.6", "0.8", "0.9"};

/* [load][protocol in the order of enum edm_proto] */
static const double golden_write[LOADS][EDM_PROTO_COUNT] = {
	{1.01, 1.00, 1.16, 1.02, 1.21, 1.05, 6.59},
	{1.05, 1.12, 1.28, 1.37, 1.37, 1.16, 17.99},
	{1.17, 1.44, 1.48, 1.51, 1.67, 1.42, 19.54},
	{1.35, 1.61, 1.79, 1.90, 1.93, 1.90, 28.99},
	{1.38, 1.69, 1.81, 1.98, 2.07, 2.02, 38.94},
};
static const double golden_read[LOADS][EDM_PROTO_COUNT] = {
	{1.02, 1.09, 1.10, 1.05, 1.08, 1.05, 5.02},
	{1.06, 1.20, 1.20, 1.26, 1.20, 1.27, 14.06},
	{1.11, 1.25, 1.38, 1.32, 1.40, 1.46, 15.37},
	{1.20, 1.50, 1.61, 1.51, 1.71, 1.66, 25.11},
	{1.22, 1.60, 1.69, 1.55, 1.80, 1.73, 34.04},
};
/* Write fractions 0.2, 0.5, 0.8 at load 0.8; published sorted by value. */
static const double golden_mix[MIXES][EDM_PROTO_COUNT] = {
	{1.23, 1.63, 1.69, 1.71, 1.78, 1.72, 22.3},
	{1.24, 1.64, 1.77, 1.81, 1.89, 1.79, 22.6},
	{1.30, 1.66, 1.81, 1.83, 1.99, 1.84, 25.1},
};
static const double golden_app[APPS][EDM_PROTO_COUNT] = {
	{1.31, 1.31, 1.34, 6.33, 4.66, 6.84, 12.26},
	{1.37, 1.39, 1.37, 6.81, 5.98, 8.37, 14.22},
	{1.38, 1.42, 1.44, 7.51, 6.24, 8.68, 14.74},
	{1.39, 1.45, 1.50, 7.60, 6.68, 8.71, 15.40},
	{1.39, 1.57, 1.71, 8.27, 7.12, 11.02, 16.58},
};

enum {
	APPS_ONLY = 1,
	PAIR = 2, /* EDM_PAIR in place of SRPT */
	BEST = 4, /* edm_config_best() */
	VOQ = 8,
};

/* The columns of fabrics: EDM several times, then the rivals. */
static const struct variant {
	const char *name;
	enum edm_proto proto;
	enum edm_discipline discipline;
	uint32_t channels;
	unsigned flags;
} variant[] = {
	{"edm literal", EDM_PROTO_EDM, EDM_ASYNC, 1, 0},
	{"edm best", EDM_PROTO_EDM, EDM_ASYNC, 1, BEST},
	{"edm reserve", EDM_PROTO_EDM, EDM_RESERVE, 1, APPS_ONLY},
	{"edm reserve pair", EDM_PROTO_EDM, EDM_RESERVE, 1, APPS_ONLY | PAIR},
	{"edm reserve/proc", EDM_PROTO_EDM, EDM_RESERVE, 16, APPS_ONLY},
	{"edm slot", EDM_PROTO_EDM, EDM_SLOT, 1, 0},
	{"edm pim", EDM_PROTO_EDM, EDM_PIM, 1, 0},
	{"ird", EDM_PROTO_IRD, EDM_ASYNC, 1, 0},
	{"pfabric", EDM_PROTO_PFABRIC, EDM_ASYNC, 1, 0},
	{"pfc+dcqcn", EDM_PROTO_PFC, EDM_ASYNC, 1, 0},
	{"dctcp", EDM_PROTO_DCTCP, EDM_ASYNC, 1, 0},
	{"cxl", EDM_PROTO_CXL, EDM_ASYNC, 1, 0},
	{"cxl voq", EDM_PROTO_CXL, EDM_ASYNC, 1, VOQ},
	{"fastpass", EDM_PROTO_FASTPASS, EDM_ASYNC, 1, 0},
};

static const char *const head[] = {
	"workload",   "load",	   "fabric", "mean_ns",	  "p99_ns",
	"own",	      "own_ci",	   "common", "common_ci", "golden",
	"unfinished", "in_flight", "queue",  NULL};

static size_t variant_add(struct edm_jobs *j, const struct edm_config *base,
			  const struct variant *v)
{
	struct edm_config c = *base;

	c.proto = v->proto;
	c.discipline = v->discipline;
	c.channels = v->channels;
	c.cxl_voq = v->flags & VOQ;
	if (v->flags & PAIR)
		c.policy = EDM_PAIR;
	if (v->flags & BEST)
		edm_config_best(&c);
	/* Overloaded whatever the length; what waits in its arbiter's port is
	 * all that a longer run adds: 3 GB for 125,000 long messages. */
	if (v->proto == EDM_PROTO_FASTPASS)
		c.messages = u64_min(c.messages, c.sizes == EDM_SIZES_FIXED
							 ? FASTPASS_SHORT
							 : FASTPASS_LONG);
	return edm_jobs_add(j, &c);
}

static void row_add(struct edm_table *t, const char *workload,
		    const char *load_text, const struct variant *v,
		    const struct edm_job *job, double golden)
{
	const struct edm_point *p = &job->mean;

	edm_table_text(t, "%s", workload);
	edm_table_text(t, "%s", load_text);
	edm_table_text(t, "%s", v->name);
	edm_table_number(t, p->mean_ns, 1);
	edm_table_number(t, p->p99_ns, 0);
	edm_table_number(t, p->own, 3);
	edm_table_number(t, job->own_ci, job->seeds > 1 ? 3 : -1);
	edm_table_number(t, p->common, 3);
	edm_table_number(t, job->common_ci, job->seeds > 1 ? 3 : -1);
	edm_table_number(t, golden, 2);
	edm_table_number(t, (double)(p->measured - p->completed), 0);
	edm_table_number(t, (double)p->in_flight_max, 0);
	edm_table_number(t, (double)p->egress_blocks_max, 0);
}

/* One part of figure 8a: a write fraction over loads. */
struct part {
	const char *name;
	uint32_t write_ppm;
	const double *loads;
	const char *const *load_names;
	unsigned count;
	const double (*golden)[EDM_PROTO_COUNT];
};

static int part_chart(const struct edm_figure_options *o, const struct part *p,
		      const struct edm_jobs *j, size_t first, unsigned variants)
{
	double *y = malloc(variants * p->count * sizeof(*y));
	struct edm_chart c = {
		.x_label = "load of the busiest port",
		.y_label = "mean time over unloaded time of the same fabric",
		.x = p->load_names,
		.points = p->count,
		.title = p->name,
		.y = y,
		.log_y = true,
	};
	char name[64];
	int rc;

	ASSERT(y);
	for (unsigned v = 0; v < ARRAY_LEN(variant); v++) {
		if (variant[v].flags & APPS_ONLY)
			continue;
		for (unsigned i = 0; i < p->count; i++)
			y[c.series * p->count + i] =
				j->job[first + i * variants + c.series]
					.mean.own;
		c.name[c.series++] = variant[v].name;
	}
	snprintf(name, sizeof(name), "figure8a-%s", p->name);
	rc = edm_chart_write(&c, o->out, name);
	free(y);
	return rc;
}

static int part_make(const struct edm_figure_options *o, const struct part *p,
		     struct edm_table *t)
{
	struct edm_jobs j;
	struct edm_config c = o->base;
	unsigned variants = 0;
	size_t at = 0;
	int rc;

	edm_figure_jobs(o, p->name, &j);
	c.sizes = EDM_SIZES_FIXED;
	c.fixed_bytes = 64;
	c.policy = EDM_FCFS;
	c.messages = edm_figure_messages(o);
	for (unsigned i = 0; i < p->count; i++) {
		c.load = p->golden == golden_mix ? 0.8 : p->loads[i];
		c.write_ppm = p->golden == golden_mix
				      ? (uint32_t)(p->loads[i] * 1e6)
				      : p->write_ppm;
		variants = 0;
		for (unsigned v = 0; v < ARRAY_LEN(variant); v++) {
			if (variant[v].flags & APPS_ONLY)
				continue;
			(void)variant_add(&j, &c, &variant[v]);
			variants++;
		}
	}
	rc = edm_jobs_run(&j);
	for (unsigned i = 0; !rc && i < p->count; i++) {
		for (unsigned v = 0; v < ARRAY_LEN(variant); v++) {
			if (!(variant[v].flags & APPS_ONLY))
				row_add(t, p->name, p->load_names[i],
					&variant[v], &j.job[at++],
					p->golden[i][variant[v].proto]);
		}
	}
	if (!rc && o->out)
		rc = part_chart(o, p, &j, 0, variants);
	edm_jobs_release(&j);
	return rc;
}

int edm_figure_8a(const struct edm_figure_options *o)
{
	static const double mix[MIXES] = {0.2, 0.5, 0.8};
	static const char *const mix_name[MIXES] = {"w 0.2", "w 0.5", "w 0.8"};
	const struct part parts[] = {
		{"write", 1000000, load, load_name, LOADS, golden_write},
		{"read", 0, load, load_name, LOADS, golden_read},
		{"mix", 0, mix, mix_name, MIXES, golden_mix},
	};
	struct edm_table t;
	int rc = 0;

	edm_table_init(&t, "figure8a",
		       "Figure 8a: 64 B accesses, uniform. own, common: mean "
		       "time over this fabric's and over EDM's unloaded time; "
		       "golden: published; queue: deepest, in 8 B",
		       head);
	for (unsigned i = 0; !rc && i < ARRAY_LEN(parts); i++)
		rc = part_make(o, &parts[i], &t);
	if (rc) {
		edm_table_release(&t);
		return rc;
	}
	edm_figure_emit(o, &t);
	if (!o->json)
		puts("paper: EDM reads within 1.2, writes and mixes within "
		     "1.3 at all loads.");
	return 0;
}

static int apps_chart(const struct edm_figure_options *o,
		      const struct edm_jobs *j, const char *const *names)
{
	double y[ARRAY_LEN(variant) * APPS];
	struct edm_chart c = {
		.title = "Figure 8b: mean time over unloaded EDM, load 0.4",
		.x_label = "application",
		.y_label = "ratio",
		.x = names,
		.points = APPS,
		.series = ARRAY_LEN(variant),
		.y = y,
		.log_y = true,
		.bars = true,
	};

	for (unsigned v = 0; v < ARRAY_LEN(variant); v++) {
		c.name[v] = variant[v].name;
		for (unsigned a = 0; a < APPS; a++)
			y[v * APPS + a] =
				j->job[a * ARRAY_LEN(variant) + v].mean.common;
	}
	return edm_chart_write(&c, o->out, "figure8b");
}

int edm_figure_8b(const struct edm_figure_options *o)
{
	struct edm_jobs j;
	struct edm_table t;
	struct edm_config c = o->base;
	const char *names[APPS];
	char load_text[16];
	int rc;

	edm_figure_jobs(o, "figure 8b", &j);
	c.policy = EDM_SRPT;
	c.write_ppm = 500000;
	c.load = 0.4;
	c.messages = edm_figure_long_messages(o);
	snprintf(load_text, sizeof(load_text), "%.1f", c.load);
	for (unsigned a = 0; a < APPS; a++) {
		c.sizes = (enum edm_sizes)(EDM_SIZES_HADOOP + a);
		names[a] = edm_sizes_name(c.sizes);
		for (unsigned v = 0; v < ARRAY_LEN(variant); v++)
			(void)variant_add(&j, &c, &variant[v]);
	}
	rc = edm_jobs_run(&j);
	if (!rc) {
		edm_table_init(&t, "figure8b",
			       "Figure 8b: applications at load 0.4, half "
			       "reads, SRPT. /proc: order per process (16 of a "
			       "node), else per node pair",
			       head);
		for (size_t i = 0; i < j.count; i++) {
			size_t a = i / ARRAY_LEN(variant);
			const struct variant *v =
				&variant[i % ARRAY_LEN(variant)];

			row_add(&t, names[a], load_text, v, &j.job[i],
				golden_app[a][v->proto]);
		}
		edm_figure_emit(o, &t);
		rc = o->out ? apps_chart(o, &j, names) : 0;
	}
	edm_jobs_release(&j);
	return rc;
}
