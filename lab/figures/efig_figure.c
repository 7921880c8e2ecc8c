/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of elastic memory: their axes and columns. efig_plan.c has their
 * points, efig_claims.c what was published. */
#include "efig.h"
#include "efig_costs.h"
#include "figures.h"

#define C(member, name, decimals) \
	FIGURE_COLUMN(struct efig_row, member, name, decimals)
#define R(name, decimals) C(res.name, #name, decimals)
#define END                  \
	{                    \
		.name = NULL \
	}

/* All that any figure has; for the columns of one, see below. */
static const struct figure_column columns[] = {C(p.series, "series", 0),
					       C(p.x, "x", 0),
					       R(jobs, 0),
					       R(mean_gb, 1),
					       R(peak_gb, 1),
					       R(of_peak, 3),
					       R(of_peaks, 3),
					       R(peaky, 0),
					       R(times, 3),
					       R(slowdown, 2),
					       R(use, 3),
					       R(allocated, 3),
					       R(spilled, 3),
					       R(requests, 0),
					       R(used_mb, 1),
					       R(allocated_mb, 1),
					       R(surplus, 3),
					       R(moves, 0),
					       R(ms, 2),
					       R(moved_mb, 1),
					       R(messages, 0),
					       R(p50_us, 1),
					       R(p99_us, 1),
					       R(p50_during_us, 1),
					       R(p99_during_us, 1),
					       R(write_us, 2),
					       R(read_us, 2),
					       R(mean_us, 1),
					       R(last_us, 1),
					       END};

static const struct figure_column workload_columns[] = {R(jobs, 0),
							R(mean_gb, 1),
							R(peak_gb, 1),
							R(of_peak, 3),
							R(of_peaks, 3),
							R(peaky, 0),
							END};

static const struct figure_column jobs_columns[] = {C(p.series, "series", 0),
						    C(p.x, "capacity", 0),
						    R(slowdown, 2),
						    R(times, 3),
						    R(use, 3),
						    R(allocated, 3),
						    R(spilled, 3),
						    R(jobs, 0),
						    R(requests, 0),
						    END};

static const struct figure_column life_columns[] = {C(p.series, "series", 0),
						    C(p.x, "s", 0),
						    R(used_mb, 1),
						    R(allocated_mb, 1),
						    R(surplus, 3),
						    R(moves, 0),
						    END};

static const struct figure_column sweep_columns[] = {C(p.panel, "swept", 0),
						     C(p.series, "series", 0),
						     C(p.x, "value", 2),
						     R(surplus, 3),
						     R(moves, 0),
						     END};

static const struct figure_column split_columns[] = {C(p.series, "series", 0),
						     R(ms, 2),
						     R(moved_mb, 1),
						     R(messages, 0),
						     R(p50_us, 1),
						     R(p99_us, 1),
						     R(p50_during_us, 1),
						     R(p99_during_us, 1),
						     END};

static const struct figure_column chain_columns[] = {
	C(p.x, "members", 0), R(write_us, 2), R(read_us, 2), END};

static const struct figure_column tell_columns[] = {
	C(p.x, "subscribers", 0), R(mean_us, 1), R(last_us, 1), END};

static const struct figure figures[] = {
	{"workload",
	 "the generated workload, beside what Snowset is said to be", "",
	 FIGURE_BARS, "of_peak of_peaks", efig_plan_workload, NULL,
	 workload_columns},
	{"slowdown", "jobs on less memory than their peak, and its use",
	 "% of the peak", 0, "slowdown use", efig_plan_jobs, efig_judge_jobs,
	 jobs_columns},
	{"life", "one object that follows the workload: allocated and used",
	 "s", FIGURE_TOGETHER, "allocated_mb used_mb", efig_plan_life, NULL,
	 life_columns},
	{"sweep", "block, lease and high mark: what is allocated and not used",
	 "MiB, s, %", 0, "surplus", efig_plan_sweep, efig_judge_sweep,
	 sweep_columns},
	{"repartition", "growing and splitting, and gets of 100 KB meanwhile",
	 "", FIGURE_BARS | FIGURE_LOG_Y, "ms", efig_plan_repartition,
	 efig_judge_split, split_columns},
	{"chain", "a change with one to five copies", "members", 0,
	 "write_us read_us", efig_plan_chain, NULL, chain_columns},
	{"subscribers", "until all who watch a queue have a put", "subscribers",
	 FIGURE_LOG_X | FIGURE_LOG_Y, "last_us mean_us", efig_plan_subscribers,
	 NULL, tell_columns},
	END,
};

static void print_costs(void)
{
	static const struct model_constant rows[] = {
		EFIG_COSTS(MODEL_CONSTANT)};

	model_constants_print(rows, ARRAY_LEN(rows), NULL);
}

static int take_costs(void *args, const char *word)
{
	((struct figure_options *)args)->print = print_costs;
	return 0;
}

static const struct efig_figure_options defaults = {.f = {.jobs = 1},
						    .seed = 1};

static const struct opt options[] = {
	OPT_U64(struct efig_figure_options, seed, "seed", "N", 0, UINT64_MAX,
		"of all randomness (1)"),
	OPT_CALL(take_costs, "costs", NULL,
		 "only print what machines and workloads are, and the sources"),
	OPT_END,
};

#define OF_ALL "costs"

/* A change of a chain and the way to subscribers meet no chance. */
static const struct figure_takes takes[] = {
	{"workload", OF_ALL " seed quick"},
	{"slowdown", OF_ALL " seed quick"},
	{"life", OF_ALL " seed quick"},
	{"sweep", OF_ALL " seed quick"},
	{"repartition", OF_ALL " seed"},
	{"chain", OF_ALL},
	{"subscribers", OF_ALL},
	{NULL, OF_ALL " seed quick"},
	{NULL, NULL},
};

const struct figure_system elastic_figures = {
	.name = "elastic",
	.source = "Jiffy, EuroSys 2022; Y. Tang's dissertation, 2",
	.summary = "Elastic memory at the scale of the paper on Jiffy: names, "
		   "leases, placement, blocks,\nchains and watches are shipped "
		   "code on virtual time; machines, disks and rivals are "
		   "models.",
	.figures = figures,
	.columns = columns,
	.claims = efig_claims,
	.claim_count = EFIG_CLAIMS,
	.options = options,
	.defaults = &defaults.f,
	.takes = takes,
	.options_bytes = sizeof(defaults),
	.row_bytes = sizeof(struct efig_row),
	.run = figure_points_run,
	.point = efig_point,
	.result_at = offsetof(struct efig_row, res),
	.result_bytes = sizeof(struct efig_result),
};
