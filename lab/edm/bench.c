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
	LONG_QUICK = 3000,
	FIGURE_7 = 20000, /* requests */
	FIGURE_7_QUICK = 2000,
};

struct events {
	double count, wall_s;
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

/* `j` has the jobs of apps_add only. */
static double worst(const struct edm_jobs *j, unsigned variant)
{
	double most = 0;

	for (unsigned a = 0; a < APPS; a++) {
		double v = j->job[a * VARIANTS + variant].mean.common;

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
		const struct edm_job *cxl = &j->job[a * VARIANTS + CXL];
		double v = cxl->mean.common / best->job[a].mean.common;

		most = v > most ? v : most;
	}
	return most;
}

/* EDM's runs only, and of those all. */
static void add_events(const struct edm_jobs *j, struct events *e)
{
	for (size_t i = 0; i < j->count; i++) {
		if (j->job[i].c.proto != EDM_PROTO_EDM)
			continue;
		e->count += (double)j->job[i].mean.events;
		e->wall_s += j->job[i].mean.wall_s;
	}
}

static int run_short(const struct edm_bench_options *o, struct events *e)
{
	static const char *const name[SHORT_RUNS] = {
		"edm64_at_0.8", "edm64_write_at_0.8", "edm64_read_at_0.8",
		"edm64_at_0.9", "edm64_write_at_0.9", "edm64_read_at_0.9"};
	struct edm_jobs j = {.threads = o->threads,
			     .seeds = 1,
			     .progress = o->has_progress,
			     .title = "bench edm"};
	int rc;

	short_add(&j, o->is_quick ? SHORT_QUICK : SHORT);
	rc = edm_jobs_run(&j);
	for (unsigned i = 0; i < SHORT_RUNS && !rc; i++)
		o->put(o->ctx, name[i], j.job[i].mean.own);
	add_events(&j, e);
	edm_jobs_release(&j);
	return rc;
}

static void put_apps(const struct edm_bench_options *o,
		     const struct edm_jobs *j, const struct edm_jobs *best)
{
	static const char *const app_name[APPS] = {
		"edm_app_hadoop", "edm_app_spark", "edm_app_sparksql",
		"edm_app_graphlab", "edm_app_memcached"};

	o->put(o->ctx, "edm_app_worst", best_worst(best)->mean.common);
	o->put(o->ctx, "edm_app_worst_ci", best_worst(best)->common_ci);
	for (unsigned i = 0; i < APPS; i++)
		o->put(o->ctx, app_name[i], best->job[i].mean.common);
	o->put(o->ctx, "edm_app_worst_pair", worst(j, RESERVE_PAIR));
	o->put(o->ctx, "edm_app_worst_srpt", worst(j, RESERVE));
	o->put(o->ctx, "edm_app_worst_process", worst(j, RESERVE_PROC));
	o->put(o->ctx, "edm_app_worst_literal", worst(j, LITERAL));
	o->put(o->ctx, "cxl_over_edm_app_worst", cxl_worst(j, best));
}

static int run_apps(const struct edm_bench_options *o, struct events *e)
{
	struct edm_jobs j = {.threads = o->threads,
			     .seeds = 1,
			     .progress = o->has_progress,
			     .title = "bench edm"};
	struct edm_jobs best = {.threads = o->threads,
				.seeds = o->seeds,
				.progress = o->has_progress,
				.title = "best of EDM"};
	int rc;

	apps_add(&j, o->is_quick ? LONG_QUICK : LONG);
	best_add(&best, o->is_quick ? LONG_QUICK : BEST);
	rc = edm_jobs_run(&j);
	rc = rc ? rc : edm_jobs_run(&best);
	if (!rc)
		put_apps(o, &j, &best);
	add_events(&j, e);
	edm_jobs_release(&j);
	edm_jobs_release(&best);
	return rc;
}

int edm_bench_run(const struct edm_bench_options *o)
{
	struct events e = {0};
	int rc = o->has_short ? run_short(o, &e) : 0;

	if (!rc && o->has_apps)
		rc = run_apps(o, &e);
	if (!rc && o->has_figure) {
		double worst;

		rc = edm_figure_7_worst(o->is_quick ? FIGURE_7_QUICK : FIGURE_7,
					1, &worst);
		if (!rc)
			o->put(o->ctx, "fig7_edm_over_cxl_worst", worst);
	}
	if (!rc && e.wall_s > 0)
		o->put(o->ctx, "events_per_s", e.count / e.wall_s);
	return rc;
}
