/* SPDX-License-Identifier: Apache-2.0 */
/* PULSE's figures: their axes and columns. wfig_plan.c has their points,
 * wfig_claims.c what was published. */
#include "wfig_costs.h"
#include "wfig_plan.h"

/* ---- the system --------------------------------------------------------- */

#define C(member, name, decimals) \
	FIGURE_COLUMN(struct wfig_row, member, name, decimals)
#define R(name, decimals) C(res.name, #name, decimals)
#define JSON		  FIGURE_JSON_ONLY

/* Of a run; what a figure does not print is in JSON and --detail. */
#define RUN(share_, kops_, trips_, bandwidth_, use_, parts_)                   \
	C(p.series, "series", 0), C(p.x, "x", 2), C(app, "app", JSON),         \
		C(system, "system", JSON), C(nodes, "nodes", JSON),            \
		C(dist, "keys", JSON), C(place, "place", JSON), R(mean_us, 2), \
		R(p99_us, 2), R(traverse_us, share_), R(share, share_),        \
		R(kops, kops_), R(visits, JSON), R(trips, trips_),             \
		R(crossings, trips_), R(crossed, JSON), R(pointers, JSON),     \
		R(memory_share, bandwidth_), R(network_share, bandwidth_),     \
		R(memory_use, use_), R(logic_use, use_), R(memory_ns, parts_), \
		R(logic_ns, parts_), R(wait_ns, JSON),                         \
		C(res.cost, "instructions", parts_), R(wrong, JSON),           \
	{                                                                      \
		.name = NULL                                                   \
	}

static const struct figure_column columns[] = {RUN(JSON, 1, 2, 3, JSON, JSON)};
static const struct figure_column motivation_columns[] = {
	RUN(3, JSON, 1, JSON, JSON, JSON)};
static const struct figure_column breakdown_columns[] = {
	RUN(JSON, 1, 2, JSON, JSON, 1)};
static const struct figure_column latency_columns[] = {
	C(p.series, "series", 0), C(place, "place", 0), C(dist, "keys", 0),
	C(nodes, "nodes", 0),	  R(mean_us, 2),	R(p99_us, 2),
	R(traverse_us, 2),	  R(trips, 2),		R(crossings, 2),
	R(wrong, JSON),		  {.name = NULL},
};

static const struct figure_column pipe_columns[] = {
	RUN(JSON, 1, JSON, 3, 3, JSON)};

/* Of figures that need no network. */
static const struct figure_column crossing_columns[] = {
	C(p.series, "series", 0),
	C(granule_mb, "granule_mb", 0),
	R(visits, 1),
	R(crossings, 2),
	R(crossed, 3),
	R(pointers, 3),
	R(wrong, JSON),
	{.name = NULL},
};

static const struct figure_column ratio_columns[] = {
	C(p.series, "series", 0),
	R(longest, 0),
	C(res.cost, "instructions", 1),
	R(ratio, 3),
	R(ratio_longest, 3),
	R(ratio_cycle, 3),
	R(offloads, 0),
	R(visits, 1),
	R(wrong, JSON),
	{.name = NULL},
};

static const struct figure_column cxl_columns[] = {
	C(p.series, "series", 0), C(nodes, "nodes", 0), R(visits, 1),
	R(crossings, 2),	  R(cxl_slowdown, 2),	R(cxl_walk_slowdown, 2),
	R(wrong, JSON),		  {.name = NULL},
};

static const struct figure figures[] = {
	{"motivation", "traversals on swapped memory, by the size of the cache",
	 "% cached", FIGURE_LOG_X, "share mean_us", wfig_plan_motivation, NULL,
	 motivation_columns},
	{"crossings", "requests that change memory node, four nodes",
	 "MB of an allocation", FIGURE_LOG_X, "crossed", wfig_plan_crossings,
	 NULL, crossing_columns},
	{"apps", "three applications on one to four memory nodes",
	 "memory nodes", FIGURE_LOG_Y, "mean_us kops", wfig_plan_apps,
	 wfig_judge_overhead, NULL},
	{"windows", "time series, windows of four sizes", "nodes visited",
	 FIGURE_LOG_X | FIGURE_LOG_Y, "mean_us kops", wfig_plan_windows, NULL,
	 NULL},
	{"ratio", "time of instructions over time of loads", "walk",
	 FIGURE_BARS, "ratio ratio_longest", wfig_plan_ratio, NULL,
	 ratio_columns},
	{"breakdown", "parts of an iteration, and the way between two nodes",
	 "memory nodes", FIGURE_BARS, "mean_us logic_ns", wfig_plan_breakdown,
	 NULL, breakdown_columns},
	{"placement", "where nodes of trees are, four memory nodes", "place",
	 FIGURE_BARS, "mean_us", wfig_plan_placement, NULL, latency_columns},
	{"insert", "nodes that are added to chains of 95", "way", FIGURE_BARS,
	 "traverse_us", wfig_plan_insert, NULL, latency_columns},
	{"skew", "uniform and Zipfian requests", "keys", FIGURE_BARS, "mean_us",
	 wfig_plan_skew, NULL, latency_columns},
	{"cxl", "run time over all local, memory over CXL: a formula",
	 "memory nodes", FIGURE_BARS, "cxl_slowdown cxl_walk_slowdown",
	 wfig_plan_cxl, NULL, cxl_columns},
	{"eta", "pipelines in use, by logic ones for each memory one", "eta", 0,
	 "memory_use logic_use", wfig_plan_eta, NULL, pipe_columns},
	{"pipes", "more pipelines; programs that the rule would not offload",
	 "memory pipelines", FIGURE_LOG_X, "kops memory_share", wfig_plan_pipes,
	 NULL, pipe_columns},
	{.name = NULL},
};

static int point(void *row)
{
	struct wfig_row *q = row;
	struct wfig_data *d;
	int err;

	if (q->is_run)
		return wfig_run(&q->cfg, &q->res);
	err = wfig_data_create(&q->cfg.data, &d);
	if (err)
		return err;
	wfig_result_clear(&q->res);
	wfig_sample(d, q->cfg.ops, q->cfg.seed, &q->res);
	wfig_data_destroy(d);
	return 0;
}

static const char *wrong(const void *row)
{
	return ((const struct wfig_row *)row)->res.wrong
		       ? "a request had the wrong answer"
		       : NULL;
}

static void print_costs(void)
{
	static const struct model_constant rows[] = {
		WFIG_COSTS(MODEL_CONSTANT)};

	model_constants_print(rows, ARRAY_LEN(rows), NULL);
}

static int take_costs(void *args, const char *word)
{
	((struct figure_options *)args)->print = print_costs;
	return 0;
}

static const struct wfig_figure_options defaults = {.f = {.jobs = 1},
						    .seed = 1};

static const struct opt options[] = {
	OPT_U64(struct wfig_figure_options, seed, "seed", "N", 0, UINT64_MAX,
		"of all randomness (1)"),
	OPT_CALL(take_costs, "costs", NULL,
		 "only print what accelerators, servers and swap cost, and the "
		 "sources"),
	OPT_END,
};

const struct figure_system walk_figures = {
	.name = "walk",
	.source = "PULSE, ASPLOS 2025",
	.summary = "Walks at the scale of the PULSE paper: three applications "
		   "on one to four memory nodes with\nits accelerator's costs. "
		   "Images, verifier, executor and NICs are the shipped code; "
		   "when\npipelines are free is a model.",
	.figures = figures,
	.columns = columns,
	.claims = wfig_claims,
	.claim_count = WFIG_CLAIMS,
	.options = options,
	.defaults = &defaults.f,
	.options_bytes = sizeof(defaults),
	.row_bytes = sizeof(struct wfig_row),
	.run = figure_points_run,
	.point = point,
	.result_at = offsetof(struct wfig_row, res),
	.result_bytes = sizeof(struct wfig_result),
	.wrong = wrong,
};
