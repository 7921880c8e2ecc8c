/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer bench control`: its parts, options and bounds. */
#include "control_bench.h"

static const struct bench_option options[] = {
	BENCH_OPTION("seconds", "N",
		     "how long the controller is away, and is watched", 1, 600,
		     10, 1),
	{.name = NULL},
};

static const struct bench_ratio ratios[] = {
	BENCH_RATIO("ctl_commit_vs_sqlite",
		    "changes per second of 16 waiting clients, sqlite store / "
		    "single-row commits in a loop on the same disk",
		    "commit", ">=", 4, "changes_16", "sqlite_bare", METRIC_RATE,
		    NULL),
	BENCH_NUMBER("ctl_restart_s",
		     "kill -9 to the next accepted change, sqlite with a "
		     "supervisor; the worst round",
		     "restart", "<=", 2),
	BENCH_NUMBER("ctl_failover_s",
		     "the same with three controllers on three etcd",
		     "failover", "<=", 5),
	BENCH_NUMBER("ctl_outage_data",
		     "READs and gets per second without any controller / "
		     "before; the lower one",
		     "outage", ">=", 0.95),
	BENCH_NUMBER("ctl_idle_cpu",
		     "processor share of a controller with 16 nodes", "idle",
		     "<=", 0.02),
	{.name = NULL},
};

static int run(struct bench *b)
{
	static const struct {
		const char *name;
		int (*run)(struct bench *b);
	} parts[] = {
		{"commit", control_bench_commit},
		{"restart", control_bench_restart},
		{"failover", control_bench_failover},
		{"outage", control_bench_outage},
		{"idle", control_bench_idle},
	};
	int err = 0;

	for (size_t i = 0; i < ARRAY_LEN(parts) && !err; i++) {
		if (!bench_wants(b, parts[i].name))
			continue;
		bench_progress(b, "%s", parts[i].name);
		err = parts[i].run(b);
	}
	return err;
}

static const char *const columns[] = {"min", "max", "before", "during", NULL};

const struct bench_def bench_control = {
	.name = "control",
	.summary = "the controller: commits, restart, failover, outage, idling",
	.about =
		"The controller as real processes in a folder of its own: "
		"changes of waiting\nclients beside bare commits of sqlite, in "
		"turns; the time from kill -9 to the next\naccepted change, "
		"with a supervisor and with three controllers on an etcd of "
		"three;\nwhat clients notice while there is none; and what one "
		"costs that has nothing to do.\n",
	.rounds = 5,
	.rounds_quick = 1,
	.window_ms = 500,
	.window_ms_quick = 50,
	.options = options,
	.ratios = ratios,
	.columns = columns,
	.run = run,
};
