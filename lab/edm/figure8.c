/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures 8a and 8b: seven fabrics under load, each mean time with its ratio to
 * the same fabric unloaded (own) and to unloaded EDM (common), beside what the
 * authors' simulator published. Nothing here is fitted to those.
 *
 * Loads are of the busiest port in EDM's blocks, with everything around the
 * payload; "8a-payload" has the loads of the published points, which count the
 * payload only, and only there do the published points stand beside ours. Each
 * EDM is simulated with a scheduler that matches in no time, and with one that
 * takes 3 log2(ports) cycles of 3 GHz (timed).
 */
#include <math.h>
#include <string.h>

#include "edm_figure.h"

enum {
	LOADS = EDM_LOADS,
	MIXES = 3,
	AT_MIX = 3, /* the load of the mixes, 0.8 */
	APPS = 5,
	FASTPASS_SHORT = 100000,
	FASTPASS_LONG = 4000,
};

const double edm_payload[EDM_LOADS] = {0.128, 0.299, 0.512, 0.811, 0.896};

static const double load[LOADS] = {0.2, 0.4, 0.6, 0.8, 0.9};

/* [load][protocol in the order of enum edm_proto] */
const double edm_golden_write[LOADS][EDM_PROTO_COUNT] = {
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

const struct figure_column edm_columns_8[] = {
	EDM_COLUMN(text[0], "workload", 0),
	EDM_COLUMN(name, "load", 0),
	EDM_COLUMN(p.series, "fabric", 0),
	EDM_COLUMN(job[0].mean.payload_load, "payload", 3),
	EDM_COLUMN(job[0].mean.mean_ns, "mean_ns", 1),
	EDM_COLUMN(job[0].mean.p99_ns, "p99_ns", 0),
	EDM_COLUMN(job[0].mean.own, "own", 3),
	EDM_COLUMN(job[0].own_ci, "own_ci", 3),
	EDM_COLUMN(job[0].mean.common, "common", 3),
	EDM_COLUMN(job[0].common_ci, "common_ci", 3),
	EDM_COLUMN(job[0].growth, "growth", FIGURE_JSON_ONLY),
	EDM_COLUMN(job[0].trend, "trend", 0),
	EDM_COLUMN(timed.own, "timed_own", 3),
	EDM_COLUMN(timed.common, "timed_common", 3),
	EDM_COLUMN(timed.trend, "timed_trend", 0),
	EDM_COLUMN(p.published, "golden", 2),
	EDM_COLUMN(unfinished, "unfinished", 0),
	EDM_COLUMN(job[0].mean.in_flight_max, "in_flight", 0),
	EDM_COLUMN(job[0].mean.egress_blocks_max, "queue", 0),
	{.name = NULL},
};

static struct edm_row *variant_add(struct figure_run *r, const char *panel,
				   double x, const struct variant *v,
				   const struct edm_config *base)
{
	struct edm_row *row = figure_add(r, panel, v->name, x);
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
	edm_row_job(row, &c);
	c.timed = true;
	if (c.proto == EDM_PROTO_EDM)
		edm_row_job(row, &c);
	return row;
}

/* A part of figure 8a: over loads, or over write fractions. */
static void part_add(struct figure_run *r, const char *name, const double *x,
		     unsigned count, const double (*golden)[EDM_PROTO_COUNT],
		     bool is_payload)
{
	bool mix = golden == golden_mix;
	struct edm_config c = edm_options_of(r)->base;

	c.load_is_payload = is_payload;

	c.sizes = EDM_SIZES_FIXED;
	c.fixed_bytes = 64;
	c.policy = EDM_FCFS;
	c.messages = edm_figure_messages(r);
	for (unsigned i = 0; i < count; i++) {
		c.load = !mix ? x[i] : is_payload ? edm_payload[AT_MIX] : 0.8;
		c.write_ppm = mix ? (uint32_t)(x[i] * 1e6)
			      : golden == edm_golden_write ? 1000000
							   : 0;
		for (unsigned v = 0; v < ARRAY_LEN(variant); v++) {
			struct edm_row *row;

			if (variant[v].flags & APPS_ONLY)
				continue;
			row = variant_add(r, name, x[i], &variant[v], &c);
			row->text[0] = name;
			if (is_payload)
				row->p.published = golden[i][variant[v].proto];
			snprintf(row->name, sizeof(row->name),
				 mix	      ? "w %.1f"
				 : is_payload ? "%.3f"
					      : "%.1f",
				 x[i]);
		}
	}
}

static const double mix[MIXES] = {0.2, 0.5, 0.8};

int edm_plan_8a(struct figure_run *r)
{
	part_add(r, "write", load, LOADS, edm_golden_write, false);
	part_add(r, "read", load, LOADS, golden_read, false);
	part_add(r, "mix", mix, MIXES, golden_mix, false);
	return 0;
}

int edm_plan_8a_payload(struct figure_run *r)
{
	part_add(r, "write", edm_payload, LOADS, edm_golden_write, true);
	part_add(r, "read", edm_payload, LOADS, golden_read, true);
	part_add(r, "mix", mix, MIXES, golden_mix, true);
	return 0;
}

/* The worst of a panel's literal EDM; of those that take their time, or not. */
static double worst_of(const struct figure_run *r, const char *panel,
		       bool timed)
{
	double worst = 0;

	for (size_t i = 0; i < r->count; i++) {
		const struct edm_row *x = figure_row(r, i);

		if (!strcmp(x->p.panel, panel) &&
		    !strcmp(x->p.series, variant[0].name))
			worst = fmax(worst,
				     timed ? x->timed.own : x->job[0].mean.own);
	}
	return worst;
}

void edm_judge_8a(struct figure_run *r)
{
	static const struct {
		const char *panel, *what;
		double published;
	} row[] = {{"write", "EDM's writes at all loads", 1.3},
		   {"read", "EDM's reads at all loads", 1.2},
		   {"mix", "EDM's mixes", 1.3}};
	bool is_payload = !strcmp(r->figure->name, "8a-payload");

	edm_rows_timed(r);
	for (unsigned k = 0; k < ARRAY_LEN(row); k++)
		for (int timed = 0; timed < 2; timed++)
			figure_claim_add(
				r,
				&(struct figure_claim){
					.what = row[k].what,
					.published = row[k].published,
					.most = row[k].published,
					.unit = "x",
					.note = is_payload
							? timed ? "payload "
								  "load, timed"
								: "payload load"
						: timed ? "port load, timed"
							: "port load"},
				worst_of(r, row[k].panel, timed));
}

/* Over unloaded EDM, which the paper calls ideal, the worst application. */
static double app_worst(const struct figure_run *r, const char *series,
			bool timed)
{
	double worst = 0;

	for (size_t i = 0; i < r->count; i++) {
		const struct edm_row *x = figure_row(r, i);

		if (!strcmp(x->p.series, series))
			worst = fmax(worst, timed ? x->timed.common
						  : x->job[0].mean.common);
	}
	return worst;
}

/* How many times EDM's the time over CXL is, at most. */
static double cxl_over(const struct figure_run *r, const char *series)
{
	double most = 0;

	for (unsigned a = 0; a < APPS; a++) {
		const struct edm_row *edm = figure_find(r, NULL, series, a);
		const struct edm_row *cxl = figure_find(r, NULL, "cxl", a);

		if (edm && cxl)
			most = fmax(most, cxl->job[0].mean.mean_ns /
						  edm->job[0].mean.mean_ns);
	}
	return most;
}

void edm_judge_8b(struct figure_run *r)
{
	static const struct {
		const char *series, *note;
		bool timed;
	} row[] = {{"edm literal", "published matching", false},
		   {"edm literal", "published matching, timed", true},
		   {"edm best", "best discipline", false}};

	edm_rows_timed(r);
	for (unsigned i = 0; i < ARRAY_LEN(row); i++)
		figure_claim_add(
			r,
			&(struct figure_claim){
				.what = "EDM over the ideal, worst application",
				.published = 1.4,
				.most = 1.4,
				.unit = "x",
				.note = row[i].note},
			app_worst(r, row[i].series, row[i].timed));
	for (unsigned i = 0; i < ARRAY_LEN(row); i += 2)
		figure_claim_add(
			r,
			&(struct figure_claim){.what = "CXL over EDM, most",
					       .published = 8,
					       .least = 4,
					       .most = 16,
					       .unit = "x",
					       .note = row[i].note},
			cxl_over(r, row[i].series));
}

int edm_plan_8b(struct figure_run *r)
{
	struct edm_config c = edm_options_of(r)->base;

	c.policy = EDM_SRPT;
	c.write_ppm = 500000;
	c.load = 0.4;
	c.messages = edm_figure_long_messages(r);
	for (unsigned a = 0; a < APPS; a++) {
		c.sizes = (enum edm_sizes)(EDM_SIZES_HADOOP + a);
		for (unsigned v = 0; v < ARRAY_LEN(variant); v++) {
			struct edm_row *row =
				variant_add(r, NULL, a, &variant[v], &c);

			row->text[0] = row->p.x_name = edm_sizes_name(c.sizes);
			row->p.published = golden_app[a][variant[v].proto];
			snprintf(row->name, sizeof(row->name), "%.1f", c.load);
		}
	}
	return 0;
}
