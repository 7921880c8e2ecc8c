/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a run: which tiers, which measurements of each, in which order.
 */
#include "probe.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "probe_priv.h"

enum {
	/* Windows of a tier: idle, one for each mix, one for each point. */
	IDLE_WINDOWS = 1,
	/* Windows of a run that may be measured again, some seconds. */
	AGAIN_MAX = 24,
};

/* Reads to writes. */
static const struct tier_ratio mixes[PROBE_MIXES] = {{1, 0}, {4, 1}, {3, 1},
						     {2, 1}, {1, 1}, {0, 1}};

/* How long a thread of the curve waits after a block, in blocks at full speed.
 */
static const double waits[PROBE_POINTS] = {60, 30,  15,	 8,   5,   3,
					   2,  1.3, 0.8, 0.4, 0.2, 0};

STATIC_ASSERT(ARRAY_LEN(waits) + 1 <= TIER_CURVE_MAX, "points of a curve");

struct run {
	const struct probe_options *o;
	struct probe_report *report;
	unsigned step, steps;
	uint32_t again; /* windows that may still be measured again */
	uint64_t window_ns, end_ns;
};

/* Where others have the processors each window takes longer than it should, and
 * a probe of a few tiers took more than a minute. -ETIME with words. */
static int check_time(const struct run *r)
{
	return clock_mono_ns() < r->end_ns
		       ? 0
		       : error_set(-ETIME, "not measured in time: this machine "
					   "is too busy");
}

/* -EINTR: the user wants an end; -ETIME: there must be one. */
static int tell(struct run *r, const struct probe_tier *t, const char *what)
{
	sigset_t pending;

	if (r->o->progress)
		r->o->progress(r->o->ctx, t->name, what, r->step, r->steps);
	r->step++;
	sigemptyset(&pending);
	(void)sigpending(&pending); /* then none is seen */
	return sigismember(&pending, SIGINT) == 1 ||
			       sigismember(&pending, SIGTERM) == 1
		       ? error_set(-EINTR, "a signal ended the probe")
		       : check_time(r);
}

static unsigned mix_count(const struct probe_options *o)
{
	return o->has_mix ? 1 : PROBE_MIXES;
}

static struct tier_ratio mix_of(const struct probe_options *o, unsigned i)
{
	return o->has_mix ? o->mix : mixes[i];
}

/* ---- one tier ----------------------------------------------------------- */

static int run_window(struct run *r, struct probe_tier *t, struct probe_load *l)
{
	int err;

	l->window_ns = r->window_ns;
	/* Threads that wait for packets sleep, and say nothing by that. */
	if (t->way == PROBE_FRAMES)
		return probe_load_run(l);
	err = probe_load_run_quiet(l, &r->again);
	t->share = fmin(t->share, l->share);
	return err;
}

static int measure_mixes(struct run *r, struct probe_tier *t,
			 struct probe_port *port)
{
	int err = 0;

	for (unsigned i = 0; !err && i < mix_count(r->o); i++) {
		struct probe_load l = {.port = port,
				       .mix = mix_of(r->o, i),
				       .threads = t->threads};

		err = tell(r, t, "bandwidth");
		if (!err)
			err = run_window(r, t, &l);
		if (!err)
			t->rate[t->rate_count++] =
				(struct probe_rate){l.mix, l.gbs};
	}
	return err;
}

static int measure_curve(struct run *r, struct probe_tier *t,
			 struct probe_port *port)
{
	/* What one thread takes for a block when nothing waits. */
	double block_ns = port->block_bytes * (double)t->threads /
			  fmax(t->rate[0].gbs, 1e-6);
	int err = 0;

	t->curve_mix = t->rate[0].mix;
	t->curve.point[0] = (struct tier_point){0, t->idle.p50_ns};
	t->curve.count = 1;
	for (unsigned i = 0; !err && i < PROBE_POINTS; i++) {
		struct probe_load l = {.port = port,
				       .mix = t->curve_mix,
				       .threads = t->curve_threads,
				       .wait_ns =
					       (uint64_t)(waits[i] * block_ns),
				       .has_chase = true};

		err = tell(r, t, "latency at a load");
		if (!err)
			err = run_window(r, t, &l);
		if (!err)
			t->curve.point[t->curve.count++] =
				(struct tier_point){l.gbs, l.idle.p50_ns};
	}
	tier_curve_sort(&t->curve);
	/* A curve of fewer points is one. */
	return err == -ETIME && t->curve.count > 1 ? 0 : err;
}

static int measure_tier(struct run *r, struct probe_tier *t,
			struct probe_port *port)
{
	struct probe_load idle = {.port = port, .has_chase = true};
	int err = tell(r, t, "idle latency");

	t->share = t->way == PROBE_FRAMES ? probe_load_spin() : 1;
	if (!err)
		err = run_window(r, t, &idle);
	t->idle = idle.idle;
	if (!err)
		err = measure_mixes(r, t, port);
	return err || !t->curve_threads ? err : measure_curve(r, t, port);
}

/* One more tier, measured or with why it was not. -EINTR only. */
static int keep(struct run *r, struct probe_tier *t, int err)
{
	if (err == -EINTR)
		return err;
	t->err = err;
	if (err)
		(void)snprintf(t->why, sizeof(t->why), "%.*s",
			       (int)sizeof(t->why) - 1,
			       error_last_code() == err ? error_last()
							: error_text(err));
	if (r->report->count < PROBE_TIERS_MAX)
		r->report->tier[r->report->count++] = *t;
	return 0;
}

/* ---- all tiers ---------------------------------------------------------- */

/* Threads that share a processor measure each other. Those that wait for
 * packets sleep. -EINVAL with words: there are too few. */
static int set_threads(struct run *r, struct probe_tier *t,
		       const cpu_set_t *set)
{
	bool may_share = t->way == PROBE_FRAMES;
	uint32_t cpus = u32_max((uint32_t)CPU_COUNT(set), 1);

	t->threads = r->o->threads ? r->o->threads
				   : u32_min(cpus, PROBE_THREADS_MAX);
	if (t->threads > cpus && !may_share)
		return error_set(-EINVAL,
				 "%u threads are more than the %u processor%s "
				 "that may measure it",
				 t->threads, cpus, cpus == 1 ? "" : "s");
	/* One processor is left to who measures the latency. */
	t->curve_threads = may_share ? u32_max(t->threads - 1, 1)
				     : u32_min(t->threads, cpus - 1);
	return 0;
}

static int probe_node(struct run *r, uint32_t node)
{
	struct probe_tier *t = calloc(1, sizeof(*t));
	struct probe_port *port;
	cpu_set_t cpus;
	int err;

	if (!t)
		return error_set(-ENOMEM, "no memory for the probe");
	t->way = PROBE_NUMA;
	t->node = node;
	(void)snprintf(t->name, sizeof(t->name), "node %u", node);
	probe_node_read("/sys", node, &t->facts);
	probe_node_cpus(t->facts.cpu_node, &cpus);
	err = set_threads(r, t, &cpus);
	if (!err)
		err = check_time(r);
	if (!err)
		err = probe_numa_open(&t->facts, node, t->threads, &r->o->load,
				      t, &port);
	if (!err) {
		err = measure_tier(r, t, port);
		probe_numa_close(port);
	}
	err = keep(r, t, err);
	free(t);
	return err;
}

static int probe_far(struct run *r, const struct probe_far_node *node,
		     enum probe_way way)
{
	struct probe_tier *t = calloc(1, sizeof(*t));
	struct probe_port *port;
	cpu_set_t cpus;
	int err;

	if (!t)
		return error_set(-ENOMEM, "no memory for the probe");
	t->huge_share = -1;
	t->way = way;
	(void)snprintf(t->name, sizeof(t->name), "%.32s %.24s", node->name,
		       way == PROBE_DIRECT ? "direct" : node->frames);
	CPU_ZERO(&cpus);
	(void)sched_getaffinity(0, sizeof(cpus), &cpus);
	err = check_time(r);
	if (!err)
		err = probe_far_open(r->o->rack, node, t, &port);
	if (err == -EOPNOTSUPP) { /* it is not mapped */
		free(t);
		return 0;
	}
	if (!err) {
		err = set_threads(r, t, &cpus);
		if (err)
			probe_far_close(port);
	}
	if (!err) {
		port->cpus = cpus;
		err = measure_tier(r, t, port);
		probe_far_close(port);
	}
	err = keep(r, t, err);
	free(t);
	return err;
}

static int probe_all(struct run *r, const struct tier_set *nodes)
{
	int err = 0;

	for (uint32_t n = 0; !err && n <= TIER_NODE_MAX; n++)
		if (tier_set_has(nodes, n))
			err = probe_node(r, n);
	for (unsigned i = 0; !err && i < r->o->far_count; i++) {
		err = probe_far(r, &r->o->far_node[i], PROBE_DIRECT);
		if (!err)
			err = probe_far(r, &r->o->far_node[i], PROBE_FRAMES);
	}
	return err;
}

static int compare(const void *a, const void *b)
{
	const struct probe_tier *x = a, *y = b;
	double d = x->idle.p50_ns - y->idle.p50_ns;

	if (!x->err != !y->err)
		return x->err ? 1 : -1;
	return (d > 0) - (d < 0);
}

static void finish(struct probe_report *report)
{
	qsort(report->tier, report->count, sizeof(report->tier[0]), compare);
	report->share = 1;
	for (unsigned i = 0; i < report->count; i++)
		if (!report->tier[i].err || report->tier[i].err == -ETIME)
			report->share =
				fmin(report->share, report->tier[i].share);
}

bool probe_is_quiet(const struct probe_report *report)
{
	return report->share >= PROBE_SHARE_MIN;
}

int probe_run(const struct probe_options *options, struct probe_report *report)
{
	uint64_t limit_ms =
		options->limit_ms ? options->limit_ms : PROBE_LIMIT_MS;
	struct run r = {.o = options,
			.report = report,
			.again = AGAIN_MAX,
			.end_ns = clock_mono_ns() + limit_ms * 1000000};
	struct tier_set nodes = {{0}};
	unsigned tiers;
	int err = options->node >= 0 ? probe_node_check((uint32_t)options->node)
		  : options->is_far_only ? 0
					 : probe_nodes_find(&nodes);

	*report = (struct probe_report){.count = 0};
	if (err)
		return err;
	if (options->node >= 0)
		nodes.word[options->node / 64] = 1ull << options->node % 64;
	/* Each memory node of the rack may be reached in two ways. */
	tiers = tier_set_count(&nodes) + 2 * options->far_count;
	if (!tiers)
		return error_set(-ENODEV, "there is nothing to measure");
	r.steps = tiers * (IDLE_WINDOWS + mix_count(options) + PROBE_POINTS);
	r.window_ns = u64_min(PROBE_WINDOW_MS * 1000000ull,
			      PROBE_RUN_MS * 1000000ull / r.steps);
	err = probe_all(&r, &nodes);
	if (err)
		return err;
	finish(report);
	return 0;
}
