/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `aquifer bench edm`: the simulated fabric's promises. Times are virtual, so
 * they are the same on every machine; only events_per_s is not.
 */
#include "edm/edm_bench.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "bench.h"
#include "edm/edm_jobs.h"

static const struct bench_ratio ratios[] = {
	BENCH_NUMBER("edm64_at_0.8", "64 B half reads, load 0.8, over unloaded",
		     "edm64", "<=", 1.12),
	BENCH_NUMBER("edm64_write_at_0.8", "64 B writes", "edm64", NULL, 0),
	BENCH_NUMBER("edm64_read_at_0.8", "64 B reads", "edm64", NULL, 0),
	BENCH_NUMBER("edm64_at_0.9", "64 B half reads, load 0.9, over unloaded",
		     "edm64", "<=", 1.30),
	BENCH_NUMBER("edm64_write_at_0.9", "64 B writes", "edm64", NULL, 0),
	BENCH_NUMBER("edm64_read_at_0.9", "64 B reads", "edm64", NULL, 0),
	BENCH_NUMBER("events_per_s", "simulated events per second of one core",
		     "edm64", ">=", 5e6),
	BENCH_NUMBER("edm_app_worst",
		     "worst of five applications at 0.4, order per pair of "
		     "nodes, best "
		     "discipline, over all seeds",
		     "edm_app", "<=", 1.25),
	BENCH_NUMBER("edm_app_worst_ci", "half width of its 95 % interval",
		     "edm_app", NULL, 0),
	BENCH_NUMBER("edm_app_hadoop", "this one of them", "edm_app", NULL, 0),
	BENCH_NUMBER("edm_app_spark", "this one of them", "edm_app", NULL, 0),
	BENCH_NUMBER("edm_app_sparksql", "this one of them", "edm_app", NULL,
		     0),
	BENCH_NUMBER("edm_app_graphlab", "this one of them", "edm_app", NULL,
		     0),
	BENCH_NUMBER("edm_app_memcached", "this one of them", "edm_app", NULL,
		     0),
	BENCH_NUMBER("edm_app_worst_pair",
		     "the same, a fifth as long, with reserve, policy pair and "
		     "the paper's "
		     "wire format",
		     "edm_app", NULL, 0),
	BENCH_NUMBER("edm_app_worst_srpt", "that with SRPT", "edm_app", NULL,
		     0),
	BENCH_NUMBER("edm_app_worst_process",
		     "that with SRPT and order per process", "edm_app", NULL,
		     0),
	BENCH_NUMBER("edm_app_worst_literal",
		     "that with SRPT and the published matching", "edm_app",
		     NULL, 0),
	BENCH_NUMBER("cxl_over_edm_app_worst",
		     "CXL's time over EDM's (best), worst application",
		     "edm_app", NULL, 0),
	BENCH_NUMBER("fig7_edm_over_cxl_worst",
		     "figure 7, simulated: mean time over EDM by that over CXL",
		     "fig7", "<=", 1.3),
	{.name = NULL},
};

static void put(void *ctx, const char *name, double value)
{
	const struct bench_ratio *r = ratios;
	struct bench *b = ctx;

	while (strcmp(r->name, name) != 0)
		r++;
	if (!bench_wants_ratio(b, r))
		return;
	(void)bench_row(b, r->group, name, value,
			strcmp(name, "events_per_s") ? "ratio" : "events/s",
			r->meaning);
	bench_ratio_add(b, name, value);
}

static int run(struct bench *b)
{
	uint64_t jobs = bench_number(b, "jobs");
	struct edm_bench_options o = {
		.is_quick = b->quick,
		.threads = (uint32_t)(jobs ? jobs
					   : (uint64_t)sysconf(
						     _SC_NPROCESSORS_ONLN)),
		.seeds = b->rounds,
		.has_progress = true,
		.has_short = bench_wants(b, "edm64"),
		.has_apps = bench_wants(b, "edm_app"),
		.has_figure = bench_wants(b, "fig7"),
		.put = put,
		.ctx = b,
	};
	int rc;

	if (b->rounds > EDM_SEEDS_MAX)
		return bench_fail(b, -EINVAL, "at most %d rounds",
				  EDM_SEEDS_MAX);
	rc = edm_bench_run(&o);
	return rc ? bench_fail(b, rc, "%s", error_last()) : 0;
}

static const struct bench_option options[] = {
	BENCH_OPTION("jobs", "N", "threads; all processors unless given", 1, 64,
		     0, 0),
	{.name = NULL},
};

const struct bench_def bench_edm = {
	.name = "edm",
	.summary = "the simulated memory fabric and its promises",
	.about = "Simulates EDM at 64 B and with five applications and prints "
		 "ratios to unloaded times.\nA round is a run of the "
		 "applications with a seed of its own. Times are virtual.\n",
	.rounds = 5,
	.rounds_quick = 5,
	.options = options,
	.ratios = ratios,
	.run = run,
};
