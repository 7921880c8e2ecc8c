/* SPDX-License-Identifier: Apache-2.0 */
/* The list of figures, and how their simulations are run. */
#include "edm_figure.h"

#include <math.h>

enum {
	SHORT_QUICK = 60000,
	SHORT_FULL = 1250000, /* a fifth is warm-up: a million count */
	LONG_QUICK = 4000,
	LONG_FULL = 125000,
	SETTLED = 60000, /* of which 48,000 count */
	LOG_BARS = FIGURE_BARS | FIGURE_LOG_Y,
	LOG_XY = FIGURE_LOG_X | FIGURE_LOG_Y,
};

uint64_t edm_figure_messages(const struct figure_run *r)
{
	const struct edm_figure_options *o = edm_options_of(r);

	return o->messages ? o->messages : o->full ? SHORT_FULL : SHORT_QUICK;
}

uint64_t edm_figure_long_messages(const struct figure_run *r)
{
	const struct edm_figure_options *o = edm_options_of(r);

	return o->long_messages ? o->long_messages
	       : o->full	? LONG_FULL
				: LONG_QUICK;
}

uint64_t edm_figure_settled(const struct figure_run *r, uint64_t asked)
{
	return asked ? asked : edm_options_of(r)->full ? 2 * SETTLED : SETTLED;
}

void edm_row_job(struct edm_row *row, const struct edm_config *c)
{
	ASSERT(row->jobs < ARRAY_LEN(row->job));
	row->job[row->jobs++].c = *c;
}

const char *edm_row_sizes(const struct edm_config *c)
{
	return c->sizes == EDM_SIZES_FIXED ? "64 B" : edm_sizes_name(c->sizes);
}

void edm_rows_timed(struct figure_run *r)
{
	for (size_t i = 0; i < r->count; i++) {
		struct edm_row *x = figure_row(r, i);

		x->timed = (struct edm_timed_cells){NAN, NAN, NULL};
		if (x->jobs == 2)
			x->timed = (struct edm_timed_cells){
				x->job[1].mean.own, x->job[1].mean.common,
				x->job[1].trend};
	}
}

/* All simulations of all rows; a mean of one run has no interval. */
int edm_figures_run(struct figure_run *r)
{
	const struct edm_figure_options *o = edm_options_of(r);
	struct edm_jobs j = {.threads = o->f.jobs,
			     .seeds = o->seeds,
			     .progress = !o->quiet,
			     .title = r->figure->name};
	size_t next = 0;
	int rc;

	for (size_t i = 0; i < r->count; i++) {
		struct edm_row *row = figure_row(r, i);

		for (unsigned k = 0; k < row->jobs; k++)
			(void)edm_jobs_add(&j, &row->job[k].c);
	}
	rc = j.count ? edm_jobs_run(&j) : 0;
	for (size_t i = 0; !rc && i < r->count; i++) {
		struct edm_row *row = figure_row(r, i);

		for (unsigned k = 0; k < row->jobs; k++) {
			row->job[k] = j.job[next++];
			if (row->job[k].seeds < 2)
				row->job[k].own_ci = row->job[k].common_ci =
					NAN;
			if (!k)
				row->unfinished = row->job[k].mean.measured -
						  row->job[k].mean.completed;
		}
	}
	edm_jobs_release(&j);
	return rc;
}

const struct figure edm_figure_list[] = {
	{"table1",
	 "latency of an idle fabric, four stacks; first block only, no "
	 "serialization, no DRAM",
	 "stack", LOG_BARS, "total_ns", edm_plan_table1, NULL,
	 edm_columns_table1},
	{"5", "where a 64 B access spends its time", "r: read, w: write",
	 FIGURE_BARS, "ns", edm_plan_5, NULL, edm_columns_5},
	{"6",
	 "EDM over RoCEv2, requests per second of YCSB at 25 Gb/s; paper and "
	 "formula: M writes/s, both and sim: M requests/s",
	 "YCSB workload", FIGURE_BARS | FIGURE_TOGETHER,
	 "requests both_ratio sim_ratio", edm_plan_6, edm_judge_6,
	 edm_columns_6},
	{"7",
	 "latency of YCSB A at 25 Gb/s, ns, simulated; sd: standard deviation",
	 "keys local:remote", FIGURE_LOG_Y | FIGURE_TOGETHER, "edm cxl rdma",
	 edm_plan_7, edm_judge_7, edm_columns_7},
	{"8a", "64 B accesses under load, seven fabrics; queue: in 8 B",
	 "load of the busiest port", FIGURE_LOG_Y, "own timed_own", edm_plan_8a,
	 edm_judge_8a, edm_columns_8},
	{"8a-payload",
	 "8a at the payload loads of the published points, which stand beside "
	 "it; what grows with the run is overload",
	 "payload load of the busiest port", FIGURE_LOG_Y, "own timed_own",
	 edm_plan_8a_payload, edm_judge_8a, edm_columns_8},
	{"8b",
	 "five applications at load 0.4, half reads, SRPT, seven fabrics; "
	 "/proc: order per process",
	 "application", LOG_BARS, "common timed_common", edm_plan_8b,
	 edm_judge_8b, edm_columns_8},
	{"golden", "8a with the published simulator's settings and rules",
	 "load", FIGURE_LOG_Y, "over_80_slots", edm_plan_golden,
	 edm_judge_golden, edm_columns_golden},
	{"ablation",
	 "discipline, chunk, X, PIM iterations, policy, one at a time",
	 "choice", LOG_BARS, "common", edm_plan_ablation, edm_judge_ablation,
	 edm_columns_ablation},
	{"cross",
	 "all combinations of these, short runs; in the picture FCFS and X = 3",
	 "chunk, bytes", LOG_XY, "common", edm_plan_cross, edm_judge_cross,
	 edm_columns_cross},
	{"scale",
	 "to 1,024 ports and 800 Gb/s, smallest chunk for a scheduler of 3 GHz",
	 "Gb/s", FIGURE_LOG_X | FIGURE_TOGETHER, "common app_common",
	 edm_plan_scale, edm_judge_scale, edm_columns_scale},
	{"fault", "lost blocks, a dead switch, link and node; 64 B, load 0.6",
	 "fault", LOG_BARS | FIGURE_TOGETHER, "mean_ns p99.9_ns",
	 edm_plan_fault, NULL, edm_columns_fault},
	{"ip", "memory traffic beside IP frames on one link; times in blocks",
	 "IP load", FIGURE_BARS, "rise_mean_blocks", edm_plan_ip, edm_judge_ip,
	 edm_columns_ip},
	{"frames",
	 "frames of a capture (--pcap) through one link, memory messages "
	 "between",
	 "policy", FIGURE_BARS, "waited", edm_plan_frames, NULL,
	 edm_columns_frames},
	{"errors",
	 "bit errors with and without a check sum; wrong: with other bytes "
	 "than were sent",
	 "bit error rate", FIGURE_BARS, "lost wrong", edm_plan_errors, NULL,
	 edm_columns_errors},
	{.name = NULL},
};
