/* SPDX-License-Identifier: Apache-2.0 */
/* The table for people. */
#include "offload_report.h"

#include "bench_commit.h"
#include "guard.h"
#include "stats.h"

const char *offload_unit(enum offload_metric m)
{
	return m == METRIC_RATE ? "op/s" : m == METRIC_COMM ? "share" : "ns";
}

/* What the rack sent in a round, of one operation. */
static double per_op(const struct conduct_track *t, unsigned more)
{
	double v[CONDUCT_ROUNDS_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < CONDUCT_ROUNDS_MAX; i++)
		if (t->is_clean[i] && t->round[i].ops_all)
			v[n++] = t->round[i].more[more] /
				 (double)t->round[i].ops_all;
	return stats_median(v, n);
}

void offload_row_read(const struct offload_group *g,
		      const struct conduct_track *t, struct offload_row *out)
{
	struct conduct_summary sum;
	bool rate = g->metric == METRIC_RATE;

	conduct_summarize(t, 0, &sum);
	*out = (struct offload_row){
		.median = offload_median(t, g->metric),
		.min = rate ? sum.rate_min : sum.p50_min_ns,
		.max = rate ? sum.rate_max : sum.p50_max_ns,
		.p50_ns = sum.p50_ns,
		.p99_ns = sum.p99_ns,
		.p999_ns = sum.p999_ns,
		.far_share = offload_median_more(t, OFFLOAD_MORE_FAR),
		.packets = per_op(t, SUBJECT_MORE_READ),
		.wire_bytes = per_op(t, SUBJECT_MORE_READ + 1),
		.memory_cpu = offload_median_more(t, SUBJECT_MORE_CPU),
		.engine_cpu = offload_median_more(t, SUBJECT_MORE_CPU + 1),
		.comm = offload_median_more(t, OFFLOAD_MORE_COMM),
		.empty = offload_median_more(t, OFFLOAD_MORE_EMPTY),
	};
}

void offload_report_head(const struct offload_report *r, FILE *to)
{
	const struct machine *m = &r->machine;

	fprintf(to, "aquifer bench offload, commit %s%s\n", BENCH_COMMIT,
		r->quick ? ", quick: for a look, not for a verdict" : "");
	fprintf(to, "%s, %ld cores, TSC %.3f GHz, kernel %s\n", m->cpu,
		m->cpu_count, m->tsc_ghz, m->kernel);
	fprintf(to,
		"%u rounds of %.0f ms, in turns; the application's thread on "
		"core %d; its NIC, the engine and the\nmemory node share core "
		"%d; the application is on the shm cable, the engine beside\n"
		"the memory node (cow_apart: it sends packets to it)\n",
		r->opt.rounds, (double)r->opt.window_ns / 1e6, GUARD_CPU_CLIENT,
		GUARD_CPU_SERVER);
	fprintf(to,
		"probe: %llu records, one in 20 local; store: %llu MB of "
		"records, 5/18 (64 B) or 5/24 (512 B) local\n",
		(unsigned long long)r->plan->cfg.probe_records,
		(unsigned long long)r->plan->cfg.log_bytes >> 20);
	fprintf(to, "\n%-10s %-12s %12s %-5s %9s %9s %8s %8s %7s %7s %6s\n",
		"group", "subject", "median", "unit", "p50 ns", "p99 ns",
		"pkt/op", "B/op", "memory", "engine", "rounds");
}

void offload_report_group(const struct offload_report *r,
			  const struct offload_group *g, FILE *to)
{
	for (unsigned i = 0; i < g->subject_count; i++) {
		const struct conduct_track *t = &g->track[i];
		struct offload_row row;

		if (t->why[0]) {
			fprintf(to, "%-10s %-12s failed: %s\n", g->name,
				t->desc->name, t->why);
			continue;
		}
		offload_row_read(g, t, &row);
		fprintf(to, "%-10s %-12s ", g->name, t->desc->name);
		fprintf(to, g->metric == METRIC_RATE ? "%12.0f " : "%12.1f ",
			row.median);
		fprintf(to,
			"%-5s %9.0f %9.0f %8.2f %8.0f %6.0f%% %6.0f%% "
			"%3u-%u\n",
			offload_unit(g->metric), row.p50_ns, row.p99_ns,
			row.packets, row.wire_bytes, row.memory_cpu * 100,
			row.engine_cpu * 100, t->kept, t->discarded);
		if (g->subject[i].param.is_timed)
			fprintf(to,
				"%-10s %-12s %.1f %% of the time in the "
				"library, %.1f %% in polls that brought "
				"nothing\n",
				"", "", row.comm * 100, row.empty * 100);
	}
	if (g->ops == &offload_probe_ops && g->track[0].kept)
		fprintf(to,
			"%-10s the application's own work with local records: "
			"%.0f ns\n",
			"", 1e9 / offload_median(&g->track[0], METRIC_RATE));
	fflush(to);
}

static const char *verdict_word(const struct offload_ratio *q,
				const struct plan_verdict *v)
{
	return v->is_void      ? "void"
	       : !q->is_barred ? "-"
	       : v->is_kept    ? "kept"
			       : "MISSED";
}

void offload_report_tail(const struct offload_report *r, FILE *to)
{
	struct plan_verdict v;

	fprintf(to, "\n%-29s %9s %9s  %-7s %s\n", "ratio", "measured",
		"must be", "verdict", "the paper");
	for (unsigned i = 0; i < offload_ratio_count; i++) {
		const struct offload_ratio *q = &offload_ratios[i];
		char bound[16] = "";

		if (!offload_ratio_wanted(r->only, q))
			continue;
		offload_judge(r->plan, q, r->opt.rounds, &v);
		if (q->is_barred)
			snprintf(bound, sizeof(bound), "%s %.2f",
				 q->at_most ? "<=" : ">=", q->bound);
		fprintf(to, "%-29s %9.3f %9s  %-7s %s\n", q->name, v.ratio,
			bound, verdict_word(q, &v), q->paper ? q->paper : "");
		if (v.is_void)
			fprintf(to, "%-29s %s\n", "", v.why);
	}
}
