/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of memory tiers: their axes and columns. tfig_plan.c has their
 * points, tfig_claims.c what was published. */
#include "figures.h"
#include "tfig.h"
#include "tfig_costs.h"

#define C(member, name, decimals) \
	FIGURE_COLUMN(struct tfig_row, member, name, decimals)
#define R(name, decimals) C(res.name, #name, decimals)
#define JSON		  FIGURE_JSON_ONLY
#define END                  \
	{                    \
		.name = NULL \
	}

/* All that any figure has; for the columns of one, see below. */
static const struct figure_column columns[] = {C(p.series, "series", 0),
					       C(p.x, "x", 0),
					       R(idle_ns, 0),
					       R(peak_gbs, 1),
					       R(knee, 2),
					       R(kops, 1),
					       R(latency_us, 2),
					       R(gbs, 1),
					       R(top_gbs, 1),
					       R(slow_gbs, 1),
					       R(remote_gbs, 1),
					       R(top_ns, 0),
					       R(slow_ns, 0),
					       R(top_share, 3),
					       R(promoted_mbs, 1),
					       R(overhead, 3),
					       R(threshold_ms, 0),
					       R(guarded, 2),
					       R(servers, 4),
					       R(saving, 4),
					       R(revenue, 4),
					       END};

static const struct figure_column memory_columns[] = {C(p.series, "series", 0),
						      C(p.x_name, "mix", 0),
						      R(idle_ns, 0),
						      R(peak_gbs, 1),
						      R(knee, 2),
						      END};

static const struct figure_column keydb_columns[] = {C(p.x_name, "workload", 0),
						     C(p.series, "series", 0),
						     R(kops, 1),
						     R(latency_us, 2),
						     R(top_share, 3),
						     R(top_gbs, 2),
						     R(slow_gbs, 2),
						     R(promoted_mbs, 1),
						     R(overhead, 4),
						     R(threshold_ms, 0),
						     END};

#define LOAD                                                         \
	R(kops, 1), R(gbs, 1), R(top_gbs, 1), R(slow_gbs, 1),        \
		R(remote_gbs, 1), R(top_ns, 0), R(slow_ns, 0),       \
		R(top_share, 3), R(promoted_mbs, 0), R(overhead, 3), \
		R(guarded, 2), END

static const struct figure_column spark_columns[] = {C(p.series, "series", 0),
						     LOAD};
static const struct figure_column llm_columns[] = {C(p.series, "series", 0),
						   C(p.x, "threads", 0), LOAD};
static const struct figure_column guard_columns[] = {
	C(p.panel, "application", 0), C(p.series, "series", 0),
	C(p.x, "threads", 0), LOAD};

static const struct figure_column cost_columns[] = {
	C(p.series, "series", 0), C(p.x, "rc", 0), R(servers, 4), R(saving, 4),
	END};

static const struct figure_column vm_columns[] = {
	C(p.series, "series", 0), C(p.x, "discount", 0), R(revenue, 4), END};

static const struct figure figures[] = {
	{"ladder", "idle latency and peak of four memories", "reads to writes",
	 FIGURE_BARS, "peak_gbs", tfig_plan_ladder, NULL, memory_columns},
	{"knee", "where latency is half more than idle, of the peak",
	 "reads to writes", FIGURE_BARS, "knee", tfig_plan_knee,
	 tfig_judge_knee, memory_columns},
	{"keydb", "a key-value store of 512 GB", "YCSB", FIGURE_BARS, "kops",
	 tfig_plan_keydb, tfig_judge_keydb, keydb_columns},
	{"keydb-cxl", "the same, all of it on CXL memory", "YCSB", FIGURE_BARS,
	 "kops latency_us", tfig_plan_keydb_cxl, NULL, keydb_columns},
	{"spark", "shuffled data on two servers with CXL, beside three without",
	 "", FIGURE_BARS, "kops", tfig_plan_spark, tfig_judge_spark,
	 spark_columns},
	{"llm", "backends of a language model in one memory domain", "threads",
	 0, "gbs", tfig_plan_llm, tfig_judge_llm, llm_columns},
	{"vm", "revenue from processors without memory", "% discount", 0,
	 "revenue", tfig_plan_vm, NULL, vm_columns},
	{"cost", "servers for the same work, and what that saves", "Rc", 0,
	 "servers saving", tfig_plan_cost, NULL, cost_columns},
	{"guard", "promotion with and without the guard", "threads", 0, "gbs",
	 tfig_plan_guard, NULL, guard_columns},
	END,
};

static void print_costs(void)
{
	static const struct model_constant rows[] = {
		TFIG_COSTS(MODEL_CONSTANT)};

	model_constants_print(rows, ARRAY_LEN(rows), NULL);
}

static int take_costs(void *args, const char *word)
{
	((struct figure_options *)args)->print = print_costs;
	return 0;
}

static const struct tfig_figure_options defaults = {.f = {.jobs = 1},
						    .seed = 1};

static const struct opt options[] = {
	OPT_U64(struct tfig_figure_options, seed, "seed", "N", 0, UINT64_MAX,
		"of all randomness (1)"),
	OPT_CALL(take_costs, "costs", NULL,
		 "only print what processors, SSDs and the kernel cost, and "
		 "the sources"),
	OPT_END,
};

#define OF_ALL "costs"

/* Curves of memories and arithmetic on costs meet no chance. */
static const struct figure_takes takes[] = {
	{"ladder", OF_ALL},
	{"knee", OF_ALL},
	{"keydb", OF_ALL " seed quick"},
	{"keydb-cxl", OF_ALL},
	{"spark", OF_ALL " seed quick"},
	{"llm", OF_ALL},
	{"vm", OF_ALL},
	{"cost", OF_ALL},
	{"guard", OF_ALL " seed quick"},
	{NULL, OF_ALL " seed quick"},
	{NULL, NULL},
};

const struct figure_system tier_figures = {
	.name = "tier",
	.source = "Y. Tang's dissertation, 4; EuroSys 2024",
	.summary = "Memory tiers at the scale of the chapter on CXL: where "
		   "pages go, which are promoted and\nwhen not are the shipped "
		   "policies; memories, applications and the kernel's costs "
		   "are models.",
	.figures = figures,
	.columns = columns,
	.claims = tfig_claims,
	.claim_count = TFIG_CLAIMS,
	.options = options,
	.defaults = &defaults.f,
	.takes = takes,
	.options_bytes = sizeof(defaults),
	.row_bytes = sizeof(struct tfig_row),
	.run = figure_points_run,
	.point = tfig_point,
	.result_at = offsetof(struct tfig_row, res),
	.result_bytes = sizeof(struct tfig_result),
};

int tier_figure_cmd(int argc, char **argv)
{
	return figure_cmd(&tier_figures, NULL, argc, argv);
}
