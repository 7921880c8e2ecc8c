/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer bench mind`: its parts and bounds. */
#include "mind_bench.h"

static const struct bench_ratio ratios[] = {
	BENCH_NUMBER("hops_i_s",
		     "frames that follow from each other, page to read that "
		     "nobody has",
		     "count", "==", 4),
	BENCH_NUMBER("hops_s_s", "that another machine has read", "count",
		     "==", 4),
	BENCH_NUMBER("hops_i_m", "page to write that nobody has", "count",
		     "==", 4),
	BENCH_NUMBER("hops_s_m", "that another machine has read", "count",
		     "==", 4),
	BENCH_NUMBER("hops_m_s",
		     "page to read that another machine has written", "count",
		     "==", 4),
	BENCH_NUMBER("hops_m_m", "to write", "count", "<=", 8),
	BENCH_NUMBER("frames_hit", "frames while cached pages are used",
		     "count", "==", 0),
	BENCH_NUMBER("frames_read_miss",
		     "all frames of a page to read that nobody has", "count",
		     "==", 4),
	BENCH_NUMBER("gets_per_mutex_pass",
		     "gets of a page, mutex and condition variable between two "
		     "machines that sleep",
		     "count", "<=", 4),
	BENCH_RATIO("coh_get_vs_read4k",
		    "page from the memory node, no fault / READ of 4 KiB "
		    "through the same switch",
		    "get", "<=", 1.4, "coh_get", "read4k", METRIC_P50, NULL),
	BENCH_RATIO("coh_take_s_vs_read4k",
		    "page that another machine has written, to read / READ",
		    "get", "<=", 3.5, "coh_take_s", "read4k", METRIC_P50, NULL),
	BENCH_RATIO("coh_take_m_vs_read4k", "to write / READ", "get", "<=", 6,
		    "coh_take_m", "read4k", METRIC_P50, NULL),
	BENCH_RATIO("coh_get_rate_vs_read4k",
		    "pages per second, 16 outstanding / READs", "rate",
		    ">=", 0.4, "coh_get_16", "read4k_16", METRIC_RATE, NULL),
	BENCH_NUMBER("coh_hit_vs_shm",
		     "loads, stores and atomics per second on cached pages / "
		     "plain shared memory",
		     "hit", ">=", 0.97),
	BENCH_NUMBER("coh_same_host_vs_shm",
		     "passes of a word between two processes of one machine / "
		     "plain shared memory",
		     "same_host", ">=", 0.9),
	BENCH_NUMBER("coh_fault_vs_run_fault",
		     "read fault on a far page / far fault of aquifer run "
		     "through the same switch, without eviction",
		     "fault", "<=", 1.25),
	BENCH_NUMBER("coh_write_fault_vs_run_fault",
		     "write to a page that another machine has read / that "
		     "fault",
		     "write_fault", "<=", 2.5),
	BENCH_NUMBER("coh_fair",
		     "two machines add to one word for 2 s: fewer / more",
		     "fair", ">=", 0.5),
	{.name = NULL},
};

static int run(struct bench *b)
{
	struct mind_rack r;
	int err = 0;

	if (bench_wants(b, "count")) {
		bench_progress(b, "count");
		err = mind_bench_count(b);
	}
	if (err)
		return err;
	err = mind_rack_start(b, &r, false);
	if (!err && (bench_wants(b, "get") || bench_wants(b, "rate")))
		err = mind_bench_gets(b);
	if (!err)
		err = mind_bench_programs(b, &r);
	mind_rack_stop(&r);
	return err;
}

static const char *const columns[] = {"p50", "p99", "n", "rounds", NULL};

const struct bench_def bench_mind = {
	.name = "mind",
	.summary = "coherent shared memory: hops, gets, faults, hits, fairness",
	.about = "Two machines that share memory through a switch, in real "
		 "processes: frames that\nfollow from each other, counted in "
		 "the switch's own trace; pages without faults\nbeside READs "
		 "through the same switch; programs beside plain shared memory "
		 "and\n'aquifer run'. All in turns, on a rack of its own.\n",
	.rounds = 7,
	.rounds_quick = 1,
	.window_ms = 100,
	.window_ms_quick = 20,
	.ratios = ratios,
	.columns = columns,
	.run = run,
};
