/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the simulations behind the promised numbers and sums them up. */
#include "edm_bench.h"

#include "edm_figure.h"

enum {
	APPS = 5,
	SHORT_RUNS = 6, /* write, read, mix at two loads */
	SHORT = 1250000,
	SHORT_QUICK = 125000,
	LONG = 25000,
	LONG_QUICK = 3000,
};

static void short_add(struct edm_jobs *j, uint64_t messages)
{
	static const double load[] = {0.8, 0.9};
	static const uint32_t write_ppm[] = {500000, 1000000, 0};
	struct edm_config c;

	edm_config_init(&c);
	c.messages = messages;
	for (unsigned l = 0; l < 2; l++) {
		for (unsigned w = 0; w < 3; w++) {
			c.load = load[l];
			c.write_ppm = write_ppm[w];
			(void)edm_jobs_add(j, &c);
		}
	}
}

/* Per application. */
enum {
	LITERAL,
	RESERVE,      /* order per pair of nodes, SRPT */
	RESERVE_PAIR, /* the same order, the first message hurries for others */
	RESERVE_PROC, /* order per process, SRPT */
	CXL,
	VARIANTS,
};

static void apps_add(struct edm_jobs *j, uint64_t messages)
{
	struct edm_config c;

	for (unsigned a = 0; a < APPS; a++) {
		edm_config_init(&c);
		c.sizes = (enum edm_sizes)(EDM_SIZES_HADOOP + a);
		c.policy = EDM_SRPT;
		c.load = 0.4;
		c.write_ppm = 500000;
		c.messages = messages;
		(void)edm_jobs_add(j, &c);
		c.discipline = EDM_RESERVE;
		(void)edm_jobs_add(j, &c);
		c.policy = EDM_PAIR;
		(void)edm_jobs_add(j, &c);
		c.policy = EDM_SRPT;
		c.channels = 16;
		(void)edm_jobs_add(j, &c);
		c.channels = 1;
		c.proto = EDM_PROTO_CXL;
		(void)edm_jobs_add(j, &c);
	}
}

static void put(struct edm_bench_row *rows, unsigned *n, const char *name,
		const char *what, double value, double bound)
{
	rows[(*n)++] = (struct edm_bench_row){name, what, value, bound, false};
}

static double worst(const struct edm_jobs *j, unsigned variant)
{
	double most = 0;

	for (unsigned a = 0; a < APPS; a++) {
		double v =
			j->job[SHORT_RUNS + a * VARIANTS + variant].mean.common;

		most = v > most ? v : most;
	}
	return most;
}

static double cxl_worst(const struct edm_jobs *j)
{
	double most = 0;

	for (unsigned a = 0; a < APPS; a++) {
		const struct edm_job *app = &j->job[SHORT_RUNS + a * VARIANTS];
		double v = app[CXL].mean.common / app[RESERVE_PAIR].mean.common;

		most = v > most ? v : most;
	}
	return most;
}

static double events_per_s(const struct edm_jobs *j)
{
	double events = 0, wall = 0;

	/* EDM's runs only, and of those all. */
	for (size_t i = 0; i < j->count; i++) {
		if (j->job[i].c.proto != EDM_PROTO_EDM)
			continue;
		events += (double)j->job[i].mean.events;
		wall += j->job[i].mean.wall_s;
	}
	return events / wall;
}

int edm_bench_run(bool quick, uint32_t threads, bool progress,
		  struct edm_bench_row rows[EDM_BENCH_MAX], unsigned *count)
{
	struct edm_jobs j = {.threads = threads,
			     .seeds = 1,
			     .progress = progress,
			     .title = "bench edm"};
	unsigned n = 0;
	int rc;

	short_add(&j, quick ? SHORT_QUICK : SHORT);
	apps_add(&j, quick ? LONG_QUICK : LONG);
	rc = edm_jobs_run(&j);
	if (rc)
		goto out;
	put(rows, &n, "edm64_at_0.8",
	    "64 B half reads, load 0.8, over unloaded", j.job[0].mean.own,
	    1.12);
	put(rows, &n, "edm64_at_0.9",
	    "64 B half reads, load 0.9, over unloaded", j.job[3].mean.own,
	    1.30);
	put(rows, &n, "edm64_write_at_0.8", "64 B writes", j.job[1].mean.own,
	    0);
	put(rows, &n, "edm64_read_at_0.8", "64 B reads", j.job[2].mean.own, 0);
	put(rows, &n, "edm64_write_at_0.9", "64 B writes", j.job[4].mean.own,
	    0);
	put(rows, &n, "edm64_read_at_0.9", "64 B reads", j.job[5].mean.own, 0);
	put(rows, &n, "edm_app_worst",
	    "worst of five applications at 0.4, reserve, order per process",
	    worst(&j, RESERVE_PROC), 1.25);
	put(rows, &n, "edm_app_worst_node_order",
	    "the same with order per pair of nodes, best policy (pair)",
	    worst(&j, RESERVE_PAIR), 1.25);
	put(rows, &n, "edm_app_worst_node_order_srpt",
	    "the same with order per pair of nodes, SRPT", worst(&j, RESERVE),
	    0);
	put(rows, &n, "edm_app_worst_literal",
	    "the same with the published matching", worst(&j, LITERAL), 0);
	put(rows, &n, "cxl_over_edm_app_worst",
	    "CXL's time over EDM's (reserve pair, node order), worst "
	    "application",
	    cxl_worst(&j), 0);
	put(rows, &n, "fig7_edm_over_cxl_worst",
	    "figure 7 in the paper's metric", edm_figure_7_worst(), 1.3);
	rows[n++] = (struct edm_bench_row){
		"events_per_s", "simulated events per second of one core",
		events_per_s(&j), 5e6, true};
	*count = n;
out:
	edm_jobs_release(&j);
	return rc;
}
