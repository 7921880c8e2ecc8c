/* SPDX-License-Identifier: Apache-2.0 */
/* MIND's figures: their axes and columns. mfig_plan.c has their points,
 * mfig_claims.c what was published. */
#include "figures.h"
#include "mfig_costs.h"
#include "mfig_plan.h"

#define C(member, name, decimals) \
	FIGURE_COLUMN(struct mfig_row, member, name, decimals)
#define R(name, decimals) C(res.name, #name, decimals)
#define JSON		  FIGURE_JSON_ONLY
#define END                  \
	{                    \
		.name = NULL \
	}

#define RUN                                                                   \
	C(p.series, "series", 0), C(p.x, "x", 0), C(work, "work", JSON),      \
		C(system, "system", JSON), C(cfg.machines, "machines", JSON), \
		C(cfg.threads, "threads", JSON),                              \
		C(cfg.entries, "directory", JSON), R(kops, 1), R(miss, 4),    \
		R(gets, 0), R(gives, 0), R(invals, 0), R(false_invals, 0),    \
		R(waits, JSON), R(recalls, 0), R(splits, JSON),               \
		R(joins, JSON), R(entries, 0), R(use, 3), R(virtual_ms, 1),   \
		R(wrong, 0)
#define RULES C(rules.rules, "rules", 0), C(rules.jain, "jain", 4)

/* All that any figure has; for the columns of one, see below. */
static const struct figure_column columns[] = {RUN, R(latency_us, 2),
					       R(mean_us, 2), RULES, END};

static const struct figure_column run_columns[] = {RUN, END};

static const struct figure_column transition_columns[] = {
	C(p.x_name, "transition", 0),
	C(p.series, "series", 0),
	C(cfg.machines, "machines", 0),
	R(latency_us, 2),
	R(mean_us, 2),
	R(wrong, JSON),
	END,
};

static const struct figure_column rules_columns[] = {
	C(p.series, "series", 0),
	C(p.x, "threads", 0),
	RULES,
	END,
};

static const struct figure figures[] = {
	{"threads", "6 left: threads of one machine", "threads", 0, "kops",
	 mfig_plan_threads, NULL, run_columns},
	{"machines", "6 centre: machines with ten threads each", "machines",
	 FIGURE_LOG_Y, "kops", mfig_plan_machines, NULL, run_columns},
	{"kvs", "6 right: a key-value store, unmodified", "threads", 0, "kops",
	 mfig_plan_kvs, NULL, run_columns},
	{"transitions", "7 left: what a transition takes", "", FIGURE_BARS,
	 "latency_us", mfig_plan_transitions, NULL, transition_columns},
	{"sharing", "7 right: pages per millisecond, eight machines",
	 "% of accesses to shared pages", FIGURE_LOG_Y, "kops",
	 mfig_plan_sharing, NULL, run_columns},
	{"directory", "8 left: entries of the directory", "machines",
	 FIGURE_BARS, "entries", mfig_plan_directory, NULL, run_columns},
	{"rules", "8 centre and right: rules, and how even memory lies",
	 "threads", FIGURE_LOG_Y, "rules jain", mfig_plan_rules, NULL,
	 rules_columns},
	{"splitting", "9 left: pages given back that nobody asked for",
	 "KB of a region at first", FIGURE_LOG_X | FIGURE_LOG_Y,
	 "false_invals entries", mfig_plan_splitting, mfig_judge_splitting,
	 run_columns},
	{"epochs", "9 right: the same by the length of an epoch", "ms",
	 FIGURE_LOG_X, "false_invals entries", mfig_plan_epochs, NULL,
	 run_columns},
	END,
};

static void print_costs(void)
{
	static const struct model_constant rows[] = {
		MFIG_COSTS(MODEL_CONSTANT)};

	model_constants_print(rows, ARRAY_LEN(rows), NULL);
}

static int take_costs(void *args, const char *word)
{
	((struct figure_options *)args)->print = print_costs;
	return 0;
}

static const struct mfig_figure_options defaults = {.f = {.jobs = 1},
						    .seed = 1};

static const struct opt options[] = {
	OPT_U64(struct mfig_figure_options, seed, "seed", "N", 0, UINT64_MAX,
		"of all randomness (1)"),
	OPT_CALL(take_costs, "costs", NULL,
		 "only print what machines, rivals and workloads cost, and the "
		 "sources"),
	OPT_END,
};

const struct figure_system mind_figures = {
	.name = "mind",
	.source = "MIND (SOSP 2021)",
	.summary = "MIND's figures on the costs of hardware (aquifer sim "
		   "nic-model): switch, NICs and the\nmachines' caches are the "
		   "shipped code; workloads are algorithms on simulated "
		   "memory\n(docs/mind-figures.md).",
	.figures = figures,
	.columns = columns,
	.claims = mfig_claims,
	.claim_count = MFIG_CLAIMS,
	.options = options,
	.defaults = &defaults.f,
	.options_bytes = sizeof(defaults),
	.row_bytes = sizeof(struct mfig_row),
	.run = figure_points_run,
	.point = mfig_point,
	.result_at = offsetof(struct mfig_row, res),
	.result_bytes =
		sizeof(struct mfig_row) - offsetof(struct mfig_row, res),
	.wrong = mfig_wrong,
};
