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
	BENCH_RATIO("ctl_renew_vs_redis_ping",
		    "lease renewals per second, 50 kept connections over TCP, "
		    "one path each / redis-server PING, 50 connections, no "
		    "pipeline",
		    "renew", ">=", 0.4, "renew_50", "ping_50", METRIC_RATE,
		    NULL),
	BENCH_RATIO("ctl_batch_vs_single",
		    "paths renewed per second, 100 in a request / one in a "
		    "request",
		    "batch", ">=", 20, "paths_100", "paths_1", METRIC_RATE,
		    NULL),
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
		     "processor share of a controller with 16 nodes and 1,000 "
		     "prefixes that are renewed",
		     "idle", "<=", 0.02),
	{.name = NULL},
};

static int run(struct bench *b)
{
	static const struct {
		const char *name;
		int (*run)(struct bench *b);
	} parts[] = {
		{"renew", control_bench_renew},
		{"batch", control_bench_batch},
		{"commit", control_bench_commit},
		{"restart", control_bench_restart},
		{"failover", control_bench_failover},
		{"outage", control_bench_outage},
		{"idle", control_bench_idle},
		{"memory", control_bench_memory},
		{"order", control_bench_order},
		{"page", control_bench_page},
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

/* Only printed. */
static const char *const more_groups[] = {"memory", "order", "page", NULL};
static const char *const columns[] = {"min",	"max",	  "p50",   "p99",
				      "before", "during", "paper", NULL};

const struct bench_def bench_control = {
	.name = "control",
	.summary = "the controller: renewals, commits, failover, outage, "
		   "idling",
	.about =
		"The controller as real processes in a folder of its own: "
		"renewals of leases beside\nPINGs of redis-server and by the "
		"hundred, changes of waiting clients beside bare\ncommits of "
		"sqlite, in turns; the time from kill -9 to the next accepted "
		"change, with a\nsupervisor and with three controllers on an "
		"etcd of three; what clients notice while\nthere is none; what "
		"one costs that has nothing to do; and figures that the paper "
		"has.\n",
	.rounds = 5,
	.rounds_quick = 1,
	.window_ms = 500,
	.window_ms_quick = 50,
	.options = options,
	.ratios = ratios,
	.more_groups = more_groups,
	.columns = columns,
	.run = run,
};
