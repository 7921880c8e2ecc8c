/* SPDX-License-Identifier: Apache-2.0 */
/* The table for people. */
#include "report.h"

#include "bench_commit.h"
#include "guard.h"

void report_head(const struct report *r, FILE *to)
{
	const struct machine *m = &r->machine;

	fprintf(to, "aquifer bench verbs, commit %s%s\n", BENCH_COMMIT,
		r->quick ? ", quick: for a look, not for a verdict" : "");
	fprintf(to, "%s, %ld cores, TSC %.3f GHz, kernel %s\n", m->cpu,
		m->cpu_count, m->tsc_ghz, m->kernel);
	fprintf(to,
		"%u rounds of %.0f ms, in turns; client on core %d, server on "
		"core %d; a look at the clock costs %.1f ns\n",
		r->opt.rounds, (double)r->opt.window_ns / 1e6, GUARD_CPU_CLIENT,
		GUARD_CPU_SERVER, m->tick_cost_ns);
	if (m->rt_runtime_us >= 0)
		fprintf(to, "real-time work may have %ld of 1000000 us here\n",
			m->rt_runtime_us);
	fprintf(to, "\n%-22s %10s %12s %10s %10s %10s %6s  %s\n", "subject",
		"n", "median", "unit", "p99 ns", "p99.9 ns", "rounds", "guard");
}

static void print_row(const struct conduct_track *t, const char *suffix,
		      unsigned series, enum plan_unit unit, FILE *to)
{
	struct conduct_summary sum;
	char name[64];

	snprintf(name, sizeof(name), "%s%s", t->desc->name, suffix);
	if (t->why[0]) {
		fprintf(to, "%-22s failed: %s\n", name, t->why);
		return;
	}
	conduct_summarize(t, series, &sum);
	fprintf(to, "%-22s %10llu ", name, (unsigned long long)sum.op_count);
	if (unit == PLAN_RATE)
		fprintf(to, "%12.0f %10s ", sum.rate, "op/s");
	else
		fprintf(to, "%12.1f %10s ", sum.p50_ns, "ns");
	fprintf(to, "%10.0f %10.0f %3u-%-2u  %s\n", sum.p99_ns, sum.p999_ns,
		t->kept, t->discarded, guard_name((enum guard_kind)t->guard));
}

/* Only the caller's time has a second series: the poll. */
static bool is_caller(const struct conduct_track *t)
{
	return conduct_has_series(t, 1);
}

void report_group(const struct report *r, const struct report_group *g,
		  FILE *to)
{
	for (unsigned i = 0; i < g->plan->subject_count; i++) {
		const struct conduct_track *t = &g->track[i];

		if (is_caller(t)) {
			print_row(t, "_post", 0, PLAN_NS, to);
			print_row(t, "_poll", 1, PLAN_NS, to);
		} else {
			print_row(t, "", 0, g->plan->unit, to);
		}
	}
	fflush(to);
}

/*
 * The breakdown of the caller's time that Cowbird's figure 2 gives for a real
 * RNIC is a picture without numbers; what its text says of it is that a post
 * and a poll together cost an order of magnitude more than the local memory
 * writes that Cowbird needs.
 */
static void print_caller(const struct report_group *g, FILE *to)
{
	struct conduct_summary post, poll, copy;

	if (!is_caller(&g->track[0]) || g->track[2].kept == 0)
		return;
	conduct_summarize(&g->track[2], 0, &copy);
	fprintf(to, "\ncaller's time of one READ (the answer lies ready when "
		    "poll is called)\n");
	for (unsigned i = 0; i < 2; i++) {
		if (!is_caller(&g->track[i]))
			continue;
		conduct_summarize(&g->track[i], 0, &post);
		conduct_summarize(&g->track[i], 1, &poll);
		fprintf(to,
			"  %-14s post %.0f ns + poll %.0f ns = %.0f ns, %.0f "
			"times a local copy of 64 B\n",
			g->track[i].desc->name, post.p50_ns, poll.p50_ns,
			post.p50_ns + poll.p50_ns,
			(post.p50_ns + poll.p50_ns) / copy.p50_ns);
	}
	fprintf(to, "  Cowbird, fig. 2 post + poll on an RNIC: about 10 times "
		    "local memory writes\n"
		    "                 (locks, atomics and mfence/sfence around "
		    "queue and doorbell)\n");
}

/* Last, where test.sh looks for what to show of a run. */
static void print_count(const struct report *r, FILE *to)
{
	unsigned kept = 0, missed = 0, voided = 0;

	for (unsigned i = 0; i < r->group_count; i++) {
		const struct plan_verdict *v = &r->group[i].verdict;

		if (!r->group[i].plan->is_ratio)
			continue;
		if (v->is_void)
			voided++;
		else if (v->is_kept)
			kept++;
		else
			missed++;
	}
	if (kept + missed + voided)
		fprintf(to, "\nratios: %u kept, %u missed, %u void\n", kept,
			missed, voided);
}

void report_tail(const struct report *r, FILE *to)
{
	if (r->group_count > 1 || r->group[0].plan->is_ratio)
		fprintf(to, "\n%-33s %9s %9s  %s\n", "ratio", "measured",
			"must be", "verdict");
	for (unsigned i = 0; i < r->group_count; i++) {
		const struct report_group *g = &r->group[i];

		if (!g->plan->is_ratio)
			continue;
		fprintf(to, "%-33s %9.3f   %s %5.2f  %s\n", g->plan->name,
			g->verdict.ratio,
			g->plan->at_most ? "<=" : ">=", g->plan->bound,
			g->verdict.is_void   ? "void"
			: g->verdict.is_kept ? "kept"
					     : "MISSED");
	}
	for (unsigned i = 0; i < r->group_count; i++)
		if (r->group[i].plan->is_ratio && r->group[i].verdict.is_void)
			fprintf(to, "void: %s: %s\n", r->group[i].plan->name,
				r->group[i].verdict.why);
	for (unsigned i = 0; i < r->group_count; i++)
		if (!r->group[i].plan->is_ratio)
			print_caller(&r->group[i], to);
	print_count(r, to);
}
