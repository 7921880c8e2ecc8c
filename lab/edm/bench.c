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
	BEST = 125000, /* a fifth is warm-up: 100,000 count */
	BEST_SEEDS = 5,
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

/* Per application, beside the best. All have order per pair of nodes, but one.
 */
enum {
	LITERAL,
	RESERVE, /* SRPT */
	RESERVE_PAIR,
	RESERVE_PROC, /* order per process, SRPT */
	CXL,
	VARIANTS,
};

static struct edm_config app(unsigned a, uint64_t messages)
{
	struct edm_config c;

	edm_config_init(&c);
	c.sizes = (enum edm_sizes)(EDM_SIZES_HADOOP + a);
	c.policy = EDM_SRPT;
	c.load = 0.4;
	c.write_ppm = 500000;
	c.messages = messages;
	return c;
}

static void apps_add(struct edm_jobs *j, uint64_t messages)
{
	for (unsigned a = 0; a < APPS; a++) {
		struct edm_config c = app(a, messages);

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

static void best_add(struct edm_jobs *j, uint64_t messages)
{
	for (unsigned a = 0; a < APPS; a++) {
		struct edm_config c = app(a, messages);

		edm_config_best(&c);
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

static const struct edm_job *best_worst(const struct edm_jobs *best)
{
	const struct edm_job *most = &best->job[0];

	for (unsigned a = 1; a < APPS; a++)
		if (best->job[a].mean.common > most->mean.common)
			most = &best->job[a];
	return most;
}

static double cxl_worst(const struct edm_jobs *j, const struct edm_jobs *best)
{
	double most = 0;

	for (unsigned a = 0; a < APPS; a++) {
		const struct edm_job *cxl =
			&j->job[SHORT_RUNS + a * VARIANTS + CXL];
		double v = cxl->mean.common / best->job[a].mean.common;

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

static void short_put(const struct edm_jobs *j, struct edm_bench_row *rows,
		      unsigned *n)
{
	put(rows, n, "edm64_at_0.8", "64 B half reads, load 0.8, over unloaded",
	    j->job[0].mean.own, 1.12);
	put(rows, n, "edm64_at_0.9", "64 B half reads, load 0.9, over unloaded",
	    j->job[3].mean.own, 1.30);
	put(rows, n, "edm64_write_at_0.8", "64 B writes", j->job[1].mean.own,
	    0);
	put(rows, n, "edm64_read_at_0.8", "64 B reads", j->job[2].mean.own, 0);
	put(rows, n, "edm64_write_at_0.9", "64 B writes", j->job[4].mean.own,
	    0);
	put(rows, n, "edm64_read_at_0.9", "64 B reads", j->job[5].mean.own, 0);
}

static const char *const app_name[APPS] = {
	"edm_app_hadoop", "edm_app_spark", "edm_app_sparksql",
	"edm_app_graphlab", "edm_app_memcached"};

static void apps_put(const struct edm_jobs *j, const struct edm_jobs *best,
		     struct edm_bench_row *rows, unsigned *n)
{
	put(rows, n, "edm_app_worst",
	    "worst of five applications at 0.4, order per pair of nodes, best "
	    "discipline, over five seeds",
	    best_worst(best)->mean.common, 1.25);
	put(rows, n, "edm_app_worst_ci", "half width of its 95 % interval",
	    best_worst(best)->common_ci, 0);
	for (unsigned i = 0; i < APPS; i++)
		put(rows, n, app_name[i], "this one of them",
		    best->job[i].mean.common, 0);
	put(rows, n, "edm_app_worst_pair",
	    "the same, a fifth as long, with reserve, policy pair and the "
	    "paper's wire format",
	    worst(j, RESERVE_PAIR), 0);
	put(rows, n, "edm_app_worst_srpt", "that with SRPT", worst(j, RESERVE),
	    0);
	put(rows, n, "edm_app_worst_process",
	    "that with SRPT and order per process", worst(j, RESERVE_PROC), 0);
	put(rows, n, "edm_app_worst_literal",
	    "that with SRPT and the published matching", worst(j, LITERAL), 0);
	put(rows, n, "cxl_over_edm_app_worst",
	    "CXL's time over EDM's (best), worst application",
	    cxl_worst(j, best), 0);
}

int edm_bench_run(bool quick, uint32_t threads, bool progress,
		  struct edm_bench_row rows[EDM_BENCH_MAX], unsigned *count)
{
	struct edm_jobs j = {.threads = threads,
			     .seeds = 1,
			     .progress = progress,
			     .title = "bench edm"};
	struct edm_jobs best = {.threads = threads,
				.seeds = BEST_SEEDS,
				.progress = progress,
				.title = "best of EDM"};
	unsigned n = 0;
	int rc;

	short_add(&j, quick ? SHORT_QUICK : SHORT);
	apps_add(&j, quick ? LONG_QUICK : LONG);
	best_add(&best, quick ? LONG_QUICK : BEST);
	rc = edm_jobs_run(&j);
	rc = rc ? rc : edm_jobs_run(&best);
	if (rc)
		goto out;
	short_put(&j, rows, &n);
	apps_put(&j, &best, rows, &n);
	put(rows, &n, "fig7_edm_over_cxl_worst",
	    "figure 7 in the paper's metric", edm_figure_7_worst(), 1.3);
	rows[n++] = (struct edm_bench_row){
		"events_per_s", "simulated events per second of one core",
		events_per_s(&j), 5e6, true};
	*count = n;
out:
	edm_jobs_release(&j);
	edm_jobs_release(&best);
	return rc;
}
