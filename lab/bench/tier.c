/* SPDX-License-Identifier: Apache-2.0 */
/* `bench tier`: the probe of memory tiers beside bare loops. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bench.h"
#include "probe/probe.h"
#include "stats.h"
#include "tier_bench.h"

enum {
	NODE = 0, /* every machine has it */
};

/* What one round found, of all that count. */
struct rounds {
	double latency[BENCH_ROUNDS_MAX], chase[BENCH_ROUNDS_MAX];
	double peak[BENCH_ROUNDS_MAX], read[BENCH_ROUNDS_MAX];
	double latency_ratio[BENCH_ROUNDS_MAX], peak_ratio[BENCH_ROUNDS_MAX];
	unsigned count, busy;
	double share;	  /* the least, of rounds that were too busy */
	const char *loop; /* the quickest one, last */
};

static const struct bench_ratio ratios[] = {
	BENCH_NUMBER("probe_latency_vs_chase",
		     "idle latency of `tier probe` / that of a bare chase of "
		     "pointers",
		     "probe", "<=", 1.05),
	BENCH_NUMBER("chase_vs_probe_latency", "the reverse", "probe",
		     "<=", 1 / 0.95),
	BENCH_NUMBER("probe_peak_vs_copy",
		     "its peak of reads / that of the quickest plain loop",
		     "probe", ">=", 0.95),
	BENCH_NUMBER("copy_vs_probe_peak", "the reverse", "probe",
		     ">=", 1 / 1.05),
	{.name = NULL},
};

/* ---- the probe ------------------------------------------------------------
 */

static int probe_once(struct probe_report *report)
{
	const struct probe_options o = {
		.node = NODE, .has_mix = true, .mix = {1, 0}};
	int rc = probe_run(&o, report);

	return rc ? rc : report->tier[0].err;
}

/* One after the other, so that both have the same neighbours. */
static int run_round(struct bench *b, struct rounds *r,
		     struct probe_report *report)
{
	const struct probe_tier *t = &report->tier[0];
	uint64_t window_ns = b->window_ms * 1000000ull;
	double chase_ns, read_gbs;
	unsigned n = r->count;
	int rc = probe_once(report);

	if (rc)
		return bench_fail(b, rc, "the probe: %s",
				  t->why[0] ? t->why : error_last());
	rc = tier_bare_chase(t->arena_bytes, window_ns, &chase_ns);
	if (!rc)
		rc = tier_bare_read(t->threads, window_ns, &read_gbs, &r->loop);
	if (rc)
		return bench_fail(b, rc, "bare loops: %s", strerror(-rc));
	if (!probe_is_quiet(report) && !b->busy) {
		r->busy++;
		r->share = fmin(r->share, report->share);
		return 0;
	}
	r->latency[n] = t->idle.p50_ns;
	r->chase[n] = chase_ns;
	r->peak[n] = fmax(t->rate[0].gbs, tier_curve_peak_gbs(&t->curve));
	r->read[n] = read_gbs;
	r->latency_ratio[n] = r->latency[n] / chase_ns;
	r->peak_ratio[n] = r->peak[n] / read_gbs;
	r->count++;
	return 0;
}

static void add_row(struct bench *b, const struct rounds *r, const char *name,
		    double *value, const char *unit, const char *what)
{
	json_t *row;

	if (!r->count) {
		bench_row_failed(b, "probe", name, unit,
				 "too busy in all rounds");
		return;
	}
	row = bench_row(b, "probe", name, stats_median(value, r->count), unit,
			what);
	/* Sorted by now. */
	json_object_update_new(
		row, json_pack("{s:f, s:f, s:i}", "min", value[0], "max",
			       value[r->count - 1], "rounds", (int)r->count));
}

static void add_ratio(struct bench *b, struct rounds *r, const char *name,
		      const char *reverse, double *value)
{
	double median;

	/* More than half of the rounds must count, as everywhere. */
	if (2 * r->count <= b->rounds) {
		bench_void(b, name,
			   "%u of %u rounds were too busy: a thread had %.0f "
			   "%% of its time",
			   r->busy, b->rounds, 100 * r->share);
		bench_void(b, reverse, "as %s", name);
		return;
	}
	median = stats_median(value, r->count);
	bench_ratio_add(b, name, median);
	bench_ratio_add(b, reverse, 1 / median);
}

static int bench_probe(struct bench *b)
{
	struct probe_report *report = calloc(1, sizeof(*report));
	struct rounds *r = calloc(1, sizeof(*r));
	int rc = report && r ? 0 : bench_fail(b, -ENOMEM, "no memory");

	if (!rc)
		r->share = 1;
	for (unsigned i = 0; i < b->rounds && !rc; i++) {
		bench_progress(b, "probe, round %u of %u", i + 1, b->rounds);
		rc = run_round(b, r, report);
	}
	if (!rc) {
		add_row(b, r, "idle", r->latency, "ns", "tier probe");
		add_row(b, r, "chase", r->chase, "ns", "pointers, bare");
		add_row(b, r, "peak", r->peak, "GB/s", "tier probe, reads");
		add_row(b, r, "read", r->read, "GB/s", r->loop);
		add_ratio(b, r, "probe_latency_vs_chase",
			  "chase_vs_probe_latency", r->latency_ratio);
		add_ratio(b, r, "probe_peak_vs_copy", "copy_vs_probe_peak",
			  r->peak_ratio);
	}
	free(report);
	free(r);
	return rc;
}

static int run(struct bench *b)
{
	return bench_wants(b, "probe") ? bench_probe(b) : 0;
}

static const char *const columns[] = {"min", "max", "rounds", NULL};

const struct bench_def bench_tier = {
	.name = "tier",
	.summary = "the probe of memory tiers, beside bare loops",
	.about = "Measures NUMA node 0 with the probe (aquifer tier probe) and "
		 "with loops that do\nnothing but follow pointers or read, in "
		 "turns.\n",
	.rounds = 7,
	.rounds_quick = 1,
	.window_ms = 200,
	.window_ms_quick = 20,
	.ratios = ratios,
	.columns = columns,
	.run = run,
};
