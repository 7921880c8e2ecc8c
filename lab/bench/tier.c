/* SPDX-License-Identifier: Apache-2.0 */
/* `bench tier`: the probe of memory tiers beside bare loops, and what the code
 * of tiers costs a program that has one. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/error.h"
#include "bench.h"
#include "offload_bench.h"
#include "probe/probe.h"
#include "run_bench.h"
#include "shield.h"
#include "stats.h"
#include "tier_bench.h"

enum {
	LOCAL_PART = 4, /* of a program's memory that is here */
	PLACES = 2,
	RACK_MORE = 64 << 20,
};

static const enum run_place places[PLACES] = {RUN_PLACE_DIRECT,
					      RUN_PLACE_TIERED};

/* Windows of the probe by number: the first two count. */
enum probe_step {
	STEP_IDLE,
	STEP_READS,
	STEP_CURVE,
};

enum {
	AGAIN_MAX = 24, /* windows of bare loops, in a round, as the probe */
	SIDES = 2,	/* before a window of the probe, and after it */
};

/* What one round found, of all that count. */
struct rounds {
	double latency[BENCH_ROUNDS_MAX], chase[BENCH_ROUNDS_MAX];
	double peak[BENCH_ROUNDS_MAX];
	double read[TIER_BARE_LOOPS][BENCH_ROUNDS_MAX];
	double latency_ratio[BENCH_ROUNDS_MAX], peak_ratio[BENCH_ROUNDS_MAX];
	unsigned count, busy;
	double share; /* the least, of rounds that were too busy */
	struct tier_bare bare;
	/* Of the round under way. */
	uint64_t window_ns;
	double chase_ns[SIDES], gbs[SIDES][TIER_BARE_LOOPS];
	int err; /* of bare loops */
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
	BENCH_NUMBER("run_without_tiers_vs_before",
		     "time of a program under `run` with --local / with the "
		     "same memory as its only tier",
		     "run", ">=", 0.98),
	{.name = NULL},
};

/* ---- the probe ---------------------------------------------------------- */

static void read_loops(struct rounds *r, unsigned side)
{
	for (unsigned i = 0; i < TIER_BARE_LOOPS && !r->err; i++) {
		unsigned loop = side ? TIER_BARE_LOOPS - 1 - i : i;

		r->err = tier_bare_read(&r->bare, loop, r->window_ns,
					&r->gbs[side][loop]);
	}
}

/* Bare loops before and after each window that counts, so that what others do
 * to the memory meanwhile falls on both: the rate of a memory that the host
 * shares out may be another one two seconds later. */
static void run_beside(void *ctx, const char *tier, const char *what,
		       unsigned step, unsigned steps)
{
	struct rounds *r = ctx;

	(void)tier, (void)what, (void)steps;
	if (!r->bare.memory)
		return; /* how much the probe takes is not known yet */
	if (step <= STEP_READS)
		r->chase_ns[step] = tier_bare_chase(&r->bare, r->window_ns);
	if (step == STEP_READS || step == STEP_CURVE)
		read_loops(r, step - STEP_READS);
}

static int probe_once(struct bench *b, struct rounds *r,
		      struct probe_report *report)
{
	const struct probe_options o = {
		.node = TIER_BARE_NODE,
		.has_mix = true,
		.mix = {1, 0},
		.load = {r->bare.memory, r->bare.read_bytes},
		.progress = run_beside,
		.ctx = r};
	const char *why = report->tier[0].why;
	int rc;

	r->bare.share = 1;
	r->bare.again = AGAIN_MAX;
	rc = probe_run(&o, report);
	rc = rc ? rc : report->tier[0].err;
	if (rc)
		return bench_fail(b, rc, "the probe: %s",
				  why[0] ? why : error_last());
	/* With one processor there is no curve before which they would run. */
	if (!report->tier[0].curve.count && r->bare.memory)
		read_loops(r, STEP_CURVE - STEP_READS);
	return r->err ? bench_fail(b, r->err, "bare loops: %s",
				   strerror(-r->err))
		      : 0;
}

/* As much memory as the probe had, which takes less where it is filled slowly.
 * 1: it was made anew, so this round compares nothing. */
static int open_bare(struct tier_bare *bare, const struct probe_tier *t)
{
	int rc;

	if (bare->memory && bare->chase_bytes == t->arena_bytes &&
	    bare->read_bytes == t->load_bytes)
		return 0;
	tier_bare_close(bare);
	rc = tier_bare_open(bare, t->arena_bytes, t->load_bytes, t->threads);
	return rc ? rc : 1;
}

/* Windows, threads, memory and samples of the bare loops are the probe's. */
static int run_round(struct bench *b, struct rounds *r,
		     struct probe_report *report)
{
	const struct probe_tier *t = &report->tier[0];
	unsigned n = r->count;
	double share;
	int rc = probe_once(b, r, report);

	if (rc)
		return rc;
	rc = open_bare(&r->bare, t);
	if (rc < 0)
		return bench_fail(b, rc, "bare loops: %s", strerror(-rc));
	share = rc ? 0 : fmin(report->share, r->bare.share);
	if (rc || (share < PROBE_SHARE_MIN && !b->busy)) {
		r->busy++;
		r->share = fmin(r->share, share);
		return 0;
	}
	r->latency[n] = t->idle.p50_ns;
	r->chase[n] = (r->chase_ns[0] + r->chase_ns[1]) / SIDES;
	r->peak[n] = t->rate[0].gbs;
	for (unsigned i = 0; i < TIER_BARE_LOOPS; i++)
		r->read[i][n] = (r->gbs[0][i] + r->gbs[1][i]) / SIDES;
	r->latency_ratio[n] = r->latency[n] / r->chase[n];
	r->count++;
	return 0;
}

/* A row of the median; sorts the values. */
static void add_row(struct bench *b, const char *group, const char *name,
		    double *value, unsigned count, const char *unit,
		    const char *what)
{
	json_t *row;

	if (!count) {
		bench_row_failed(b, group, name, unit,
				 "too busy in all rounds");
		return;
	}
	row = bench_row(b, group, name, stats_median(value, count), unit, what);
	json_object_update_new(row, json_pack("{s:f, s:f, s:i}", "min",
					      value[0], "max", value[count - 1],
					      "rounds", (int)count));
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

/* The loop that is the quickest in the median of all rounds: the best of one
 * round would be the luckiest. */
static unsigned best_loop(const struct rounds *r)
{
	double best_gbs = 0;
	unsigned best = 0;

	for (unsigned i = 0; i < TIER_BARE_LOOPS; i++) {
		double sorted[BENCH_ROUNDS_MAX], gbs;

		memcpy(sorted, r->read[i], sizeof(sorted));
		gbs = r->count ? stats_median(sorted, r->count) : 0;
		if (gbs > best_gbs) {
			best_gbs = gbs;
			best = i;
		}
	}
	return best;
}

static void add_peak(struct bench *b, struct rounds *r)
{
	unsigned best = best_loop(r);

	for (unsigned i = 0; i < r->count; i++)
		r->peak_ratio[i] = r->peak[i] / r->read[best][i];
	add_row(b, "probe", "peak", r->peak, r->count, "GB/s",
		"tier probe, reads");
	add_row(b, "probe", "read", r->read[best], r->count, "GB/s",
		tier_bare_loop_name(best));
	add_ratio(b, r, "probe_peak_vs_copy", "copy_vs_probe_peak",
		  r->peak_ratio);
}

/* One that only tells how much memory the probe takes. */
static int run_first(struct bench *b, struct rounds *r,
		     struct probe_report *report)
{
	int rc;

	r->share = 1;
	r->window_ns = b->window_ms * 1000000ull;
	rc = run_round(b, r, report);
	r->busy = 0;
	r->share = 1;
	return rc;
}

static int bench_probe(struct bench *b)
{
	struct probe_report *report = calloc(1, sizeof(*report));
	struct rounds *r = calloc(1, sizeof(*r));
	int nice = getpriority(PRIO_PROCESS, 0);
	int rc = report && r ? 0 : bench_fail(b, -ENOMEM, "no memory");

	/* Before other programs of the machine, where that is allowed. */
	(void)shield_enter_nice();
	if (!rc)
		rc = run_first(b, r, report);
	for (unsigned i = 0; i < b->rounds && !rc; i++) {
		bench_progress(b, "probe, round %u of %u", i + 1, b->rounds);
		rc = run_round(b, r, report);
	}
	if (!rc) {
		add_row(b, "probe", "idle", r->latency, r->count, "ns",
			"tier probe");
		add_row(b, "probe", "chase", r->chase, r->count, "ns",
			"pointers, bare");
		add_ratio(b, r, "probe_latency_vs_chase",
			  "chase_vs_probe_latency", r->latency_ratio);
		add_peak(b, r);
	}
	(void)setpriority(PRIO_PROCESS, 0, nice); /* or never left */
	if (r)
		tier_bare_close(&r->bare);
	free(report);
	free(r);
	return rc;
}

/* ---- a program under `run` ---------------------------------------------- */

/* The same work in turns, which of them goes first by turns, too. */
static int run_pair(struct bench *b, unsigned round, double ns[PLACES])
{
	const struct run_work w = {.kind = RUN_WORK_TOUCH,
				   .bytes = bench_number(b, "touched") << 20,
				   .count = bench_number(b, "touches"),
				   .seed = round + 1};

	for (unsigned i = 0; i < PLACES; i++) {
		unsigned at = (i + round) % PLACES;
		const char *why;
		uint64_t got;
		int rc = run_work_spawn(&w, places[at], w.bytes / LOCAL_PART,
					&got, &why);

		if (rc)
			return error_set(rc, "%s: it needs %s",
					 run_place_name(places[at]), why);
		ns[at] = (double)got;
	}
	return 0;
}

static int measure_run(struct bench *b)
{
	double ms[PLACES][BENCH_ROUNDS_MAX], ratio[BENCH_ROUNDS_MAX];

	for (unsigned i = 0; i < b->rounds; i++) {
		double ns[PLACES];
		int rc;

		bench_progress(b, "run, round %u of %u", i + 1, b->rounds);
		rc = run_pair(b, i, ns);
		if (rc) {
			bench_row_failed(b, "run", "touch", "ms", error_last());
			bench_void(b, "run_without_tiers_vs_before", "%s",
				   error_last());
			return 0;
		}
		for (unsigned p = 0; p < PLACES; p++)
			ms[p][i] = ns[p] / 1e6;
		ratio[i] = ns[0] / ns[1];
	}
	for (unsigned p = 0; p < PLACES; p++)
		add_row(b, "run", run_place_name(places[p]), ms[p], b->rounds,
			"ms", "random touches, a quarter here");
	bench_ratio_add(b, "run_without_tiers_vs_before",
			stats_median(ratio, b->rounds));
	return 0;
}

static int bench_run(struct bench *b)
{
	struct offload_rack *rack;
	int rc = offload_rack_start(
		(bench_number(b, "touched") << 20) * 2 + RACK_MORE, &rack);

	if (rc)
		return bench_fail(b, rc,
				  "no rack: %s; 'aquifer up' may say why",
				  strerror(-rc));
	rc = measure_run(b);
	offload_rack_stop(rack);
	return rc;
}

static int run(struct bench *b)
{
	int rc = bench_wants(b, "probe") ? bench_probe(b) : 0;

	return !rc && bench_wants(b, "run") ? bench_run(b) : rc;
}

static const struct bench_option options[] = {
	BENCH_OPTION("touched", "MB", "memory of the program under `run`", 4,
		     65536, 256, 8),
	BENCH_OPTION("touches", "N", "that it does", 1, 1000000000, 100000,
		     500),
	{.name = NULL},
};

static const char *const columns[] = {"min", "max", "rounds", NULL};

const struct bench_def bench_tier = {
	.name = "tier",
	.summary = "memory tiers: the probe beside bare loops, and `run`",
	.about = "Measures NUMA node 0 with the probe (aquifer tier probe) and "
		 "with loops that do\nnothing but follow pointers or read, in "
		 "turns. Then runs a program on far memory,\nwith --local and "
		 "with one tier.\n",
	.rounds = 7,
	.rounds_quick = 1,
	.window_ms = PROBE_WINDOW_MS,
	.window_ms_quick = 20,
	.options = options,
	.ratios = ratios,
	.columns = columns,
	.run = run,
};
