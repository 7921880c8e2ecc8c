/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures. Published numbers are from S. Grant's dissertation, chapter 2:
 * its text, captions and section 2.4; where it gives none the claim has none.
 */
#include "vfig_figure.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/batch.h"
#include "sim/sim.h"

enum {
	THREADS = 392, /* seven machines with 56 each */
	PARTIAL_THREADS = 336,
	CAS_THREADS = 112, /* beyond the published 24: to find the limits */
	THETA = 990,
	PARTIAL_THETA = 1500,
};

/* ---- points -------------------------------------------------------------- */

static void add(struct vfig_grid *g, enum vfig_system system, uint32_t threads,
		uint32_t write_percent)
{
	g->config[g->count++] =
		(struct vfig_config){.system = system,
				     .threads = threads,
				     .write_percent = write_percent,
				     .theta_milli = THETA,
				     .seed = 1};
}

static void points_success(struct vfig_grid *g)
{
	static const uint32_t threads[] = {8, 60, 120, 180, 240};

	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		add(g, VFIG_PLAIN, threads[i], 50);
}

/* All want one lock, in host memory and in the NIC's. */
static void points_cas(struct vfig_grid *g)
{
	static const uint32_t threads[] = {1, 8, 24, CAS_THREADS};

	for (unsigned device = 0; device < 2; device++)
		for (unsigned s = VFIG_CAS; s < VFIG_SYSTEMS; s++)
			for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
				add(g, (enum vfig_system)s, threads[i], 100);
				g->config[g->count - 1].in_device = device;
			}
}

static void points_rate(struct vfig_grid *g, uint32_t write_percent)
{
	static const uint32_t threads[] = {14, 112, 224, THREADS};

	for (unsigned s = 0; s < VFIG_STORES; s++)
		for (size_t i = 0; i < ARRAY_LEN(threads); i++)
			add(g, (enum vfig_system)s, threads[i], write_percent);
}

static void points_0(struct vfig_grid *g)
{
	points_rate(g, 0);
}

static void points_5(struct vfig_grid *g)
{
	points_rate(g, 5);
}

static void points_50(struct vfig_grid *g)
{
	points_rate(g, 50);
}

static void points_100(struct vfig_grid *g)
{
	points_rate(g, 100);
}

static void points_cost(struct vfig_grid *g)
{
	static const uint32_t percent[] = {5, 50, 100};

	for (unsigned s = 0; s < VFIG_FUSEE; s++)
		for (size_t i = 0; i < ARRAY_LEN(percent); i++)
			add(g, (enum vfig_system)s, THREADS, percent[i]);
}

static void points_partial(struct vfig_grid *g)
{
	static const uint32_t keys[] = {8, 16, 32, 64, 128, 1024};

	add(g, VFIG_PLAIN, PARTIAL_THREADS, 50);
	g->config[0].theta_milli = PARTIAL_THETA;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		add(g, VFIG_FULL, PARTIAL_THREADS, 50);
		g->config[g->count - 1].theta_milli = PARTIAL_THETA;
		g->config[g->count - 1].steer_keys = keys[i];
	}
}

/* ---- claims -------------------------------------------------------------- */

static const struct vfig_result *point(const struct vfig_grid *g,
				       enum vfig_system system,
				       uint32_t threads, uint32_t write_percent,
				       uint32_t keys)
{
	static const struct vfig_result none;

	for (unsigned i = 0; i < g->count; i++) {
		const struct vfig_config *c = &g->config[i];

		if (c->system == system && c->threads == threads &&
		    c->write_percent == write_percent && c->steer_keys == keys)
			return &g->point[i];
	}
	return &none;
}

static void claim(struct vfig_grid *g, const char *what, double published,
		  double ours, const char *unit, bool at_most, const char *note)
{
	struct vfig_claim *c = &g->claim[g->claim_count++];

	*c = (struct vfig_claim){.published = published,
				 .ours = ours,
				 .unit = unit,
				 .at_most = at_most,
				 .note = note};
	snprintf(c->what, sizeof(c->what), "%s", what);
}

static double ratio(double a, double b)
{
	return b > 0 ? a / b : 0;
}

bool vfig_claim_holds(const struct vfig_claim *c)
{
	if (isnan(c->published))
		return true;
	return c->at_most ? c->ours <= c->published
			  : c->ours >= c->published / 2;
}

static void claims_success(struct vfig_grid *g)
{
	claim(g, "operations that succeed, 240 threads", 4,
	      100 * point(g, VFIG_PLAIN, 240, 50, 0)->success, "%", true, "");
}

static double cas_mops(const struct vfig_grid *g, enum vfig_system system,
		       bool in_device)
{
	for (unsigned i = 0; i < g->count; i++)
		if (g->config[i].system == system &&
		    g->config[i].threads == CAS_THREADS &&
		    g->config[i].in_device == in_device)
			return g->point[i].mops;
	return 0;
}

/* The published middlebox stopped at 2.8 Mops, what one of its cores forwards;
 * so the bound is what figure 2.3 measured without it. */
static void claims_cas(struct vfig_grid *g)
{
	static const struct {
		const char *what;
		enum vfig_system system;
		bool in_device;
		double published;
	} row[] = {
		{"replaced against CAS, host", VFIG_CAS_REPLACED, false, 6.2},
		{"moved and replaced, host", VFIG_CAS_MOVED, false, 6.2},
		{"replaced against CAS, device", VFIG_CAS_REPLACED, true, 2.5},
		{"moved and replaced, device", VFIG_CAS_MOVED, true, 2.5},
	};

	claim(g, "CAS on one host word", 2.9, cas_mops(g, VFIG_CAS, false),
	      "Mops", false, "figure 1.2: about 3");
	claim(g, "CAS on one word of the NIC", 9, cas_mops(g, VFIG_CAS, true),
	      "Mops", false, "figure 1.2: about 9");
	for (size_t i = 0; i < ARRAY_LEN(row); i++)
		claim(g, row[i].what, row[i].published,
		      ratio(cas_mops(g, row[i].system, row[i].in_device),
			    cas_mops(g, VFIG_CAS, row[i].in_device)),
		      "x", false, "bound of figure 2.3");
}

static void claims_rate(struct vfig_grid *g, uint32_t percent, double gain)
{
	double plain = point(g, VFIG_PLAIN, THREADS, percent, 0)->mops;
	double full = point(g, VFIG_FULL, THREADS, percent, 0)->mops;
	double fusee = point(g, VFIG_FUSEE, THREADS, percent, 0)->mops;

	claim(g, "steering against none", gain, ratio(full, plain), "x", false,
	      "");
	claim(g, "steering against the FUSEE-like one", 1.9, ratio(full, fusee),
	      "x", false, "published: 1.9 to 2.5");
}

static void claims_0(struct vfig_grid *g)
{
	claim(g, "READs per second, no steering", 40,
	      point(g, VFIG_PLAIN, THREADS, 0, 0)->mops, "Mops", false, "");
	claims_rate(g, 0, 1);
}

static void claims_5(struct vfig_grid *g)
{
	claims_rate(g, 5, 2.8);
}

static void claims_50(struct vfig_grid *g)
{
	claims_rate(g, 50, 35);
	claim(g, "steering of writes alone against none", 2,
	      ratio(point(g, VFIG_WRITES, THREADS, 50, 0)->mops,
		    point(g, VFIG_PLAIN, THREADS, 50, 0)->mops),
	      "x", false, "published: almost doubles");
}

static void claims_100(struct vfig_grid *g)
{
	claims_rate(g, 100, 46);
}

static void claims_bytes(struct vfig_grid *g)
{
	static const struct {
		uint32_t percent;
		double published;
	} row[] = {{5, 2.5}, {50, 16}};

	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		char what[VFIG_TEXT_MAX];

		snprintf(what, sizeof(what),
			 "fewer bytes per operation, %u %% writes",
			 row[i].percent);
		claim(g, what, row[i].published,
		      ratio(point(g, VFIG_PLAIN, THREADS, row[i].percent, 0)
				    ->bytes,
			    point(g, VFIG_FULL, THREADS, row[i].percent, 0)
				    ->bytes),
		      "x", false, "");
	}
}

static void claims_tail(struct vfig_grid *g)
{
	static const struct {
		uint32_t percent;
		double read, write;
	} row[] = {{5, 8, 17}, {50, 300, 189}, {100, NAN, 252}};

	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		const struct vfig_result *plain =
			point(g, VFIG_PLAIN, THREADS, row[i].percent, 0);
		const struct vfig_result *full =
			point(g, VFIG_FULL, THREADS, row[i].percent, 0);
		char what[VFIG_TEXT_MAX];

		snprintf(what, sizeof(what), "lower p99 of reads, %u %% writes",
			 row[i].percent);
		if (row[i].percent < 100)
			claim(g, what, row[i].read,
			      ratio(plain->read_p99_us, full->read_p99_us), "x",
			      false, "");
		snprintf(what, sizeof(what),
			 "lower p99 of writes, %u %% writes", row[i].percent);
		claim(g, what, row[i].write,
		      ratio(plain->write_p99_us, full->write_p99_us), "x",
		      false, "");
	}
}

static void claims_partial(struct vfig_grid *g)
{
	double plain = point(g, VFIG_PLAIN, PARTIAL_THREADS, 50, 0)->mops;

	claim(g, "8 keys steered", 9.5,
	      ratio(point(g, VFIG_FULL, PARTIAL_THREADS, 50, 8)->mops, plain),
	      "x", false, "");
	claim(g, "64 keys steered", 27,
	      ratio(point(g, VFIG_FULL, PARTIAL_THREADS, 50, 64)->mops, plain),
	      "x", false, "");
}

const struct vfig_figure vfig_figures[] = {
	{"2.4", "operations that succeed, 50 % writes, no steering",
	 points_success, claims_success},
	{"2.9", "compare and swap of one word, and what replaces it",
	 points_cas, claims_cas},
	{"2.10", "throughput, reads only", points_0, claims_0},
	{"2.11", "throughput, 5 % writes", points_5, claims_5},
	{"2.12", "throughput, 50 % writes", points_50, claims_50},
	{"2.13", "throughput, writes only", points_100, claims_100},
	{"2.14", "bytes per operation", points_cost, claims_bytes},
	{"2.15", "99th percentile of latencies", points_cost, claims_tail},
	{"2.16", "steering of the keys that are written most, Zipf 1.5",
	 points_partial, claims_partial},
	{NULL, NULL, NULL, NULL},
};

const struct vfig_figure *vfig_figure_find(const char *name)
{
	for (const struct vfig_figure *f = vfig_figures; f->name; f++)
		if (strcmp(f->name, name) == 0)
			return f;
	return NULL;
}

/* ---- running ------------------------------------------------------------- */

static int run_one(void *ctx, uint64_t seed, void *result)
{
	struct vfig_grid *g = ctx;

	return vfig_run(&g->config[seed], result);
}

static const char *take_one(void *ctx, uint64_t seed, const void *result)
{
	struct vfig_grid *g = ctx;

	memcpy(&g->point[seed], result, sizeof(g->point[seed]));
	return NULL;
}

/* Leaves out what is not wanted. */
static void choose(struct vfig_grid *g, const struct vfig_choice *choice)
{
	unsigned n = 0;

	for (unsigned i = 0; i < g->count; i++) {
		const struct vfig_config *c = &g->config[i];

		if ((choice->system == VFIG_SYSTEMS ||
		     c->system == choice->system) &&
		    (!choice->threads || c->threads == choice->threads) &&
		    (!choice->write_percent_1 ||
		     c->write_percent + 1 == choice->write_percent_1))
			g->config[n++] = *c;
	}
	g->count = n;
}

int vfig_figure_run(const struct vfig_figure *f,
		    const struct vfig_choice *choice, unsigned jobs, bool quick,
		    struct vfig_grid *g)
{
	struct sim_batch b = {.jobs = jobs,
			      .ctx = g,
			      .result_bytes = sizeof(struct vfig_result),
			      .run = run_one,
			      .add = take_one};
	struct sim_batch_sum sum;
	int err;

	memset(g, 0, sizeof(*g));
	g->figure = f;
	f->points(g);
	choose(g, choice);
	if (!g->count)
		return -ENOENT;
	for (unsigned i = 0; i < g->count; i++) {
		g->config[i].warm_ps = (quick ? 200 : 3000) * SIM_US;
		g->config[i].span_ps = (quick ? 300 : 2000) * SIM_US;
	}
	b.to = g->count - 1;
	err = sim_batch_run(&b, &sum);
	if (!err && sum.violated)
		err = -EIO;
	/* Claims compare points. */
	if (!err && choice->system == VFIG_SYSTEMS && !choice->threads)
		f->claims(g);
	return err;
}
