/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of `bench offload`: groups, their subjects, and the ratios between
 * them. */
#include <stdio.h>
#include <string.h>

#include "offload_bench.h"

/* A subject: a way, and what is special about it in its group. */
struct entry {
	enum offload_way way; /* WAY_NONE: no more */
	const char *suffix;   /* of its name, or NULL */
	uint32_t depth;
	bool is_timed;
};

struct plan {
	const char *name;
	const struct side_ops *ops;
	enum conduct_metric metric;
	uint32_t record_bytes;
	struct entry entry[CONDUCT_GROUP_MAX + 1];
};

#define WAY(way_)           \
	{                   \
		.way = way_ \
	}
/* The time inside the library is taken, too. */
#define TIMED true

static const struct plan plan[] = {
	{"caller64",
	 &offload_caller_ops,
	 METRIC_CALLER,
	 64,
	 {WAY(WAY_COW), WAY(WAY_ASYNC)}},
	{"probe64",
	 &offload_probe_ops,
	 METRIC_RATE,
	 64,
	 {WAY(WAY_LOCAL), WAY(WAY_COW), WAY(WAY_COW_APART), WAY(WAY_ASYNC),
	  WAY(WAY_ASYNC_DIRECT), WAY(WAY_QUIET), WAY(WAY_SYNC),
	  WAY(WAY_TWO_SIDED)}},
	{"probe8",
	 &offload_probe_ops,
	 METRIC_RATE,
	 8,
	 {WAY(WAY_LOCAL), WAY(WAY_COW), WAY(WAY_COW_APART), WAY(WAY_ASYNC),
	  WAY(WAY_SYNC), WAY(WAY_TWO_SIDED)}},
	{"probe256",
	 &offload_probe_ops,
	 METRIC_RATE,
	 256,
	 {WAY(WAY_LOCAL), WAY(WAY_COW), WAY(WAY_ASYNC), WAY(WAY_SYNC),
	  WAY(WAY_TWO_SIDED)}},
	{"probe512",
	 &offload_probe_ops,
	 METRIC_RATE,
	 512,
	 {WAY(WAY_LOCAL), WAY(WAY_COW), WAY(WAY_ASYNC), WAY(WAY_SYNC),
	  WAY(WAY_TWO_SIDED)}},
	{"latency64",
	 &offload_latency_ops,
	 METRIC_P50,
	 64,
	 {{WAY_SYNC, "_1", 1, false},
	  {WAY_COW_ALONE, "_1", 1, false},
	  {WAY_COW, "_1", 1, false},
	  {WAY_ASYNC, "_100", 100, false},
	  {WAY_COW, "_100", 100, false}}},
	{"hlog64",
	 &offload_log_ops,
	 METRIC_RATE,
	 64,
	 {WAY(WAY_LOCAL),
	  WAY(WAY_COW),
	  {WAY_COW, "_timed", 0, TIMED},
	  WAY(WAY_COW_APART),
	  {WAY_COW_APART, "_timed", 0, TIMED},
	  WAY(WAY_ASYNC),
	  WAY(WAY_SYNC),
	  WAY(WAY_REDY),
	  WAY(WAY_FILE)}},
	{"hlog512",
	 &offload_log_ops,
	 METRIC_RATE,
	 512,
	 {WAY(WAY_LOCAL), WAY(WAY_COW), WAY(WAY_COW_APART), WAY(WAY_ASYNC),
	  WAY(WAY_SYNC), WAY(WAY_REDY), WAY(WAY_FILE)}},
};

const struct bench_ratio offload_ratios[] = {
	BENCH_RATIO("cow_client_cycles_vs_verbs",
		    "caller's time to issue and poll one read / to post and "
		    "poll one READ",
		    "caller64", "<=", 0.15, "cow", "async", METRIC_CALLER,
		    "an order of magnitude less (fig. 2)"),
	BENCH_RATIO("cow64_vs_async_verbs",
		    "probes of 64 B records, offloaded / asynchronous READs",
		    "probe64", ">=", 1.5, "cow", "async", METRIC_RATE,
		    "up to 3.5 (fig. 8)"),
	BENCH_RATIO("cow64_vs_sync_verbs", "the same / one READ at a time",
		    "probe64", ">=", 3, "cow", "sync", METRIC_RATE, NULL),
	BENCH_RATIO("cow64_vs_two_sided", "the same / a message and its answer",
		    "probe64", ">=", 3, "cow", "two_sided", METRIC_RATE, NULL),
	BENCH_RATIO("hlog_cow_vs_file_64",
		    "store, YCSB-C Zipfian, 64 B values: offloaded / file",
		    "hlog64", ">=", 12, "cow", "file", METRIC_RATE,
		    "12 to 84 (fig. 9)"),
	BENCH_RATIO("hlog_comm_ratio",
		    "share of the thread's time in the communication library",
		    "hlog64", "<=", 0.20, "cow_timed", NULL, METRIC_COMM,
		    "below 0.20 (fig. 10)"),
	BENCH_RATIO("hlog_comm_busy_ratio",
		    "the same without polls that brought nothing", "hlog64",
		    NULL, 0, "cow_timed", NULL, METRIC_COMM_BUSY, NULL),
	BENCH_RATIO("cow8_vs_local",
		    "probes of 8 B records / all of them local", "probe8", NULL,
		    0, "cow", "local", METRIC_RATE, "at least 0.886 (fig. 8)"),
	BENCH_RATIO("cow64_vs_local", "the same, 64 B", "probe64", NULL, 0,
		    "cow", "local", METRIC_RATE, "at least 0.886 (fig. 8)"),
	BENCH_RATIO("cow8_apart_vs_local",
		    "probes of 8 B records, engine apart / local", "probe8",
		    NULL, 0, "cow_apart", "local", METRIC_RATE,
		    "at least 0.886 (fig. 8)"),
	BENCH_RATIO("cow64_apart_vs_local", "the same, 64 B", "probe64", NULL,
		    0, "cow_apart", "local", METRIC_RATE,
		    "at least 0.886 (fig. 8)"),
	BENCH_RATIO("cow64_apart_vs_async",
		    "64 B, engine apart: offloaded / asynchronous READs",
		    "probe64", NULL, 0, "cow_apart", "async", METRIC_RATE,
		    NULL),
	BENCH_RATIO("cow64_vs_async_direct",
		    "64 B: offloaded / asynchronous READs of mapped records",
		    "probe64", NULL, 0, "cow", "async_direct", METRIC_RATE,
		    NULL),
	BENCH_RATIO("cow256_vs_local", "on the cable, 256 B", "probe256", NULL,
		    0, "cow", "local", METRIC_RATE, "near 1 (fig. 1)"),
	BENCH_RATIO("cow512_vs_local", "the same, 512 B", "probe512", NULL, 0,
		    "cow", "local", METRIC_RATE, NULL),
	BENCH_RATIO("local64_vs_async_verbs",
		    "64 B: what cow64_vs_async_verbs cannot exceed, whatever "
		    "the engine",
		    "probe64", NULL, 0, "local", "async", METRIC_RATE, NULL),
	BENCH_RATIO("cow64_vs_quiet_verbs",
		    "64 B / asynchronous READs, one completion per batch",
		    "probe64", NULL, 0, "cow", "quiet", METRIC_RATE, NULL),
	BENCH_RATIO("cow8_vs_blocking",
		    "8 B / a reader that blocks for each object (as AIFM does)",
		    "probe8", NULL, 0, "cow", "two_sided", METRIC_RATE,
		    "up to 71 (fig. 12)"),
	BENCH_RATIO("cow_latency_vs_sync",
		    "median of one read alone, unbatched / READ", "latency64",
		    NULL, 0, "cow_alone_1", "sync_1", METRIC_P50,
		    "slightly above 1 (fig. 13)"),
	BENCH_RATIO("cow_batched_latency_vs_async",
		    "median of 100 at a time / READs", "latency64", NULL, 0,
		    "cow_100", "async_100", METRIC_P50,
		    "much below 1 (fig. 13)"),
	BENCH_RATIO("cow_batched_p99_vs_async", "99th percentile of the same",
		    "latency64", NULL, 0, "cow_100", "async_100", METRIC_P99,
		    NULL),
	BENCH_RATIO("hlog_cow_vs_local_64",
		    "store, 64 B: offloaded / local memory", "hlog64", NULL, 0,
		    "cow", "local", METRIC_RATE, "at least 0.92 (fig. 9)"),
	BENCH_RATIO("hlog_cow_apart_vs_local_64", "the same, engine apart",
		    "hlog64", NULL, 0, "cow_apart", "local", METRIC_RATE,
		    "at least 0.92 (fig. 9)"),
	BENCH_RATIO("hlog_comm_apart_ratio",
		    "share of time in the library, engine apart", "hlog64",
		    NULL, 0, "cow_apart_timed", NULL, METRIC_COMM,
		    "below 0.20 (fig. 10)"),
	BENCH_RATIO("hlog_cow_apart_vs_file_64", "engine apart / file",
		    "hlog64", NULL, 0, "cow_apart", "file", METRIC_RATE,
		    "12 to 84 (fig. 9)"),
	BENCH_RATIO("hlog_cow_vs_async_64",
		    "store, 64 B: offloaded / asynchronous READs", "hlog64",
		    NULL, 0, "cow", "async", METRIC_RATE, "up to 1.4 (fig. 9)"),
	BENCH_RATIO("hlog_cow_vs_sync_64",
		    "store, 64 B: offloaded / one READ at a time", "hlog64",
		    NULL, 0, "cow", "sync", METRIC_RATE, "up to 9 (fig. 9)"),
	BENCH_RATIO("hlog_cow_vs_redy_64",
		    "store, 64 B: offloaded / batched messages", "hlog64", NULL,
		    0, "cow", "redy", METRIC_RATE, "up to 1.6 (fig. 11)"),
	BENCH_RATIO("hlog_cow_vs_local_512",
		    "store, 512 B: offloaded / local memory", "hlog512", NULL,
		    0, "cow", "local", METRIC_RATE, "at least 0.92 (fig. 9)"),
	BENCH_RATIO("hlog_cow_apart_vs_local_512", "the same, engine apart",
		    "hlog512", NULL, 0, "cow_apart", "local", METRIC_RATE,
		    "at least 0.92 (fig. 9)"),
	BENCH_RATIO("hlog_cow_vs_async_512",
		    "store, 512 B: / asynchronous READs", "hlog512", NULL, 0,
		    "cow", "async", METRIC_RATE, NULL),
	BENCH_RATIO("hlog_cow_vs_file_512", "store, 512 B: / file", "hlog512",
		    NULL, 0, "cow", "file", METRIC_RATE, "12 to 84 (fig. 9)"),
	{.name = NULL},
};

static const char *const way_words[WAY_COUNT] = {
	[WAY_LOCAL] = "all records in local memory",
	[WAY_FILE] = "a file, io_uring and O_DIRECT",
	[WAY_SYNC] = "one READ at a time",
	[WAY_ASYNC] = "READs in batches of 100",
	[WAY_QUIET] = "READs in batches of 100, one completion each",
	[WAY_TWO_SIDED] = "a message to a server and its answer",
	[WAY_REDY] = "messages in batches by an I/O thread (as Redy)",
	[WAY_COW] = "local stores, an engine beside the node (Cowbird)",
	[WAY_COW_ALONE] = "the same, each completion told at once",
	[WAY_ASYNC_DIRECT] = "READs in batches of 100 of mapped memory",
	[WAY_COW_APART] = "an engine that sends the memory node packets",
};

static void add_subject(struct offload_plan *out, struct offload_group *to,
			const struct entry *e)
{
	struct conduct_group *g = &out->group[to - out->more];
	unsigned i = g->subject_count++;
	struct offload_subject *sub = &to->subject[i];

	sub->param = (struct offload_param){.cfg = &out->cfg,
					    .way = e->way,
					    .record_bytes = to->record_bytes,
					    .depth = e->depth,
					    .is_timed = e->is_timed};
	snprintf(sub->param.name, sizeof(sub->param.name), "%s-%s%s", g->name,
		 offload_way_name(e->way), e->suffix ? e->suffix : "");
	snprintf(sub->what, sizeof(sub->what), "%u B: %s%s", to->record_bytes,
		 way_words[e->way], e->is_timed ? ", timed" : "");
	/* The name in the table is that of the parameter, from the way on. */
	sub->desc = (struct subject_desc){.name = sub->param.name +
						  strlen(g->name) + 1,
					  .what = sub->what,
					  .ops = to->ops,
					  .param = &sub->param};
	g->subject[i] = &sub->desc;
}

void offload_plan_init(struct offload_plan *out)
{
	for (unsigned i = 0; i < ARRAY_LEN(plan); i++) {
		const struct plan *p = &plan[i];

		out->group[i].name = p->name;
		out->group[i].metric = p->metric;
		out->more[i].ops = p->ops;
		out->more[i].record_bytes = p->record_bytes;
		for (unsigned k = 0; p->entry[k].way != WAY_NONE; k++)
			add_subject(out, &out->more[i], &p->entry[k]);
	}
	out->group_count = ARRAY_LEN(plan);
}
