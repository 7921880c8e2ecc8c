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
	bool is_timed, is_lean, is_scan, is_each;
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
/* Reads that are timed one by one, so many at a time. */
#define DEEP(way_, suffix_, depth_)                             \
	{                                                       \
		.way = way_, .suffix = suffix_, .depth = depth_ \
	}
/* The time inside the library is taken, too. */
#define TIMED(way_)                                               \
	{                                                         \
		.way = way_, .suffix = "_timed", .is_timed = true \
	}
/* The application does next to nothing between two records. */
#define LEAN(way_)                           \
	{                                    \
		.way = way_, .is_lean = true \
	}
/* It reads all records in their order. */
#define SCAN(way_)                           \
	{                                    \
		.way = way_, .is_scan = true \
	}
/* A doorbell for each READ. */
#define EACH(way_)                                              \
	{                                                       \
		.way = way_, .suffix = "_each", .is_each = true \
	}

static const struct plan plan[] = {
	{"caller64",
	 &offload_caller_ops,
	 METRIC_CALLER,
	 64,
	 {WAY(WAY_COW), EACH(WAY_ASYNC), WAY(WAY_ASYNC)}},
	{"probe64",
	 &offload_probe_ops,
	 METRIC_RATE,
	 64,
	 {WAY(WAY_LOCAL), WAY(WAY_COW), WAY(WAY_COW_READS), WAY(WAY_ASYNC),
	  WAY(WAY_COW_BESIDE), WAY(WAY_ASYNC_DIRECT), WAY(WAY_QUIET),
	  WAY(WAY_SYNC), WAY(WAY_TWO_SIDED)}},
	{"lean64",
	 &offload_probe_ops,
	 METRIC_RATE,
	 64,
	 {LEAN(WAY_LOCAL), LEAN(WAY_COW), LEAN(WAY_ASYNC), LEAN(WAY_COW_BESIDE),
	  LEAN(WAY_ASYNC_DIRECT)}},
	{"scan64",
	 &offload_probe_ops,
	 METRIC_RATE,
	 64,
	 {SCAN(WAY_LOCAL), SCAN(WAY_COW), SCAN(WAY_ASYNC)}},
	{"probe8",
	 &offload_probe_ops,
	 METRIC_RATE,
	 8,
	 {WAY(WAY_LOCAL), WAY(WAY_COW), WAY(WAY_COW_BESIDE), WAY(WAY_ASYNC),
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
	 {DEEP(WAY_SYNC, "_1", 1), DEEP(WAY_COW_ALONE, "_1", 1),
	  DEEP(WAY_COW, "_1", 1), DEEP(WAY_ASYNC, "_100", 100),
	  DEEP(WAY_COW, "_100", 100)}},
	{"hlog64",
	 &offload_log_ops,
	 METRIC_RATE,
	 64,
	 {WAY(WAY_LOCAL), WAY(WAY_COW), TIMED(WAY_COW), WAY(WAY_COW_BESIDE),
	  TIMED(WAY_COW_BESIDE), WAY(WAY_ASYNC), WAY(WAY_SYNC), WAY(WAY_REDY),
	  WAY(WAY_FILE)}},
	{"hlog512",
	 &offload_log_ops,
	 METRIC_RATE,
	 512,
	 {WAY(WAY_LOCAL), WAY(WAY_COW), WAY(WAY_COW_BESIDE), WAY(WAY_ASYNC),
	  WAY(WAY_SYNC), WAY(WAY_REDY), WAY(WAY_FILE)}},
};

/* In the rack with a switch. */
static const struct plan switch_plan[] = {
	{"switch_caller64",
	 &offload_caller_ops,
	 METRIC_CALLER,
	 64,
	 {WAY(WAY_P4), EACH(WAY_ASYNC), WAY(WAY_ASYNC)}},
	{"switch_probe64",
	 &offload_probe_ops,
	 METRIC_RATE,
	 64,
	 {WAY(WAY_P4), WAY(WAY_SPOT), WAY(WAY_ASYNC)}},
	{"switch_lone64",
	 &offload_latency_ops,
	 METRIC_P50,
	 64,
	 {DEEP(WAY_P4, NULL, 1), DEEP(WAY_SPOT, NULL, 1),
	  DEEP(WAY_SYNC, NULL, 1)}},
	{"switch_frames",
	 &offload_frames_ops,
	 METRIC_RATE,
	 0,
	 {WAY(WAY_BARE), WAY(WAY_P4)}},
};

/* Both sides of a ratio send packets, or both have the records mapped; "beside"
 * and "direct" are the mapped ones. */
const struct bench_ratio offload_ratios[] = {
	BENCH_RATIO("cow_client_cycles_vs_verbs",
		    "caller's time to issue and poll one read / to post and "
		    "poll one READ",
		    "caller64", "<=", 0.15, "cow", "async_each", METRIC_CALLER,
		    "an order of magnitude less (fig. 2)"),
	BENCH_RATIO("cow_client_cycles_vs_lists",
		    "the same / READs in lists of 100", "caller64", NULL, 0,
		    "cow", "async", METRIC_CALLER, NULL),
	BENCH_RATIO("cow64_vs_async_verbs",
		    "probes of 64 B records, offloaded / asynchronous READs",
		    "probe64", ">=", 1, "cow", "async", METRIC_RATE,
		    "up to 3.5 (fig. 8)"),
	BENCH_RATIO("cow64_reads_vs_async_verbs",
		    "the same, the engine sends a READ for each, as to an "
		    "adapter",
		    "probe64", NULL, 0, "cow_reads", "async", METRIC_RATE,
		    "up to 3.5 (fig. 8)"),
	BENCH_RATIO("cow64_reads_vs_local", "the same / all of them local",
		    "probe64", NULL, 0, "cow_reads", "local", METRIC_RATE,
		    "at least 0.886 (fig. 8)"),
	BENCH_RATIO("cow64_vs_sync_verbs",
		    "probes of 64 B records, offloaded / one READ at a time",
		    "probe64", ">=", 3, "cow", "sync", METRIC_RATE, NULL),
	BENCH_RATIO("cow64_vs_two_sided", "the same / a message and its answer",
		    "probe64", ">=", 3, "cow", "two_sided", METRIC_RATE, NULL),
	BENCH_RATIO("cow64_vs_local", "the same / all of them local", "probe64",
		    ">=", 0.75, "cow", "local", METRIC_RATE,
		    "at least 0.886 (fig. 8)"),
	BENCH_RATIO("cow64_vs_async_direct",
		    "the same, mapped / asynchronous READs of mapped records",
		    "probe64", ">=", 1.3, "cow_beside", "async_direct",
		    METRIC_RATE, NULL),
	BENCH_RATIO("hlog_cow_vs_file_64",
		    "store, YCSB-C Zipfian, 64 B values: offloaded / file",
		    "hlog64", ">=", 12, "cow", "file", METRIC_RATE,
		    "12 to 84 (fig. 9)"),
	BENCH_RATIO("hlog_comm_ratio",
		    "share of the thread's time in the communication library",
		    "hlog64", "<=", 0.30, "cow_timed", NULL, METRIC_COMM,
		    "below 0.20 (fig. 10)"),
	BENCH_RATIO("hlog_comm_busy_ratio",
		    "the same without polls that brought nothing", "hlog64",
		    NULL, 0, "cow_timed", NULL, METRIC_COMM_BUSY, NULL),
	BENCH_RATIO("hlog_comm_beside_ratio", "the same with polls, mapped",
		    "hlog64", NULL, 0, "cow_beside_timed", NULL, METRIC_COMM,
		    "below 0.20 (fig. 10)"),
	BENCH_RATIO("cow8_vs_local",
		    "probes of 8 B records / all of them local", "probe8", NULL,
		    0, "cow", "local", METRIC_RATE, "at least 0.886 (fig. 8)"),
	BENCH_RATIO("cow8_beside_vs_local", "the same, mapped", "probe8", NULL,
		    0, "cow_beside", "local", METRIC_RATE, NULL),
	BENCH_RATIO("cow64_beside_vs_local", "the same, 64 B", "probe64", NULL,
		    0, "cow_beside", "local", METRIC_RATE, NULL),
	BENCH_RATIO("cow256_vs_local", "256 B / all of them local", "probe256",
		    NULL, 0, "cow", "local", METRIC_RATE, "near 1 (fig. 1)"),
	BENCH_RATIO("cow256_vs_async_verbs", "256 B / asynchronous READs",
		    "probe256", NULL, 0, "cow", "async", METRIC_RATE,
		    "an order of magnitude (fig. 1)"),
	BENCH_RATIO("cow512_vs_local", "512 B / all of them local", "probe512",
		    NULL, 0, "cow", "local", METRIC_RATE, NULL),
	BENCH_RATIO("local64_vs_async_verbs",
		    "64 B: what cow64_vs_async_verbs cannot exceed, whatever "
		    "the engine",
		    "probe64", NULL, 0, "local", "async", METRIC_RATE, NULL),
	BENCH_RATIO("lean64_cow_vs_local",
		    "64 B, index in batches: offloaded / all of them local",
		    "lean64", NULL, 0, "cow", "local", METRIC_RATE, NULL),
	BENCH_RATIO("lean64_cow_vs_async", "the same / asynchronous READs",
		    "lean64", NULL, 0, "cow", "async", METRIC_RATE, NULL),
	BENCH_RATIO("lean64_cow_vs_async_direct",
		    "the same, mapped / READs of mapped records", "lean64",
		    NULL, 0, "cow_beside", "async_direct", METRIC_RATE, NULL),
	BENCH_RATIO("scan64_cow_vs_async",
		    "64 B, all records in their order: offloaded / "
		    "asynchronous READs",
		    "scan64", NULL, 0, "cow", "async", METRIC_RATE, NULL),
	BENCH_RATIO("scan64_cow_vs_local", "the same / all of them local",
		    "scan64", NULL, 0, "cow", "local", METRIC_RATE, NULL),
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
	BENCH_RATIO("hlog_cow_beside_vs_local_64", "the same, mapped", "hlog64",
		    NULL, 0, "cow_beside", "local", METRIC_RATE, NULL),
	BENCH_RATIO("hlog_cow_beside_vs_file_64", "mapped / file", "hlog64",
		    NULL, 0, "cow_beside", "file", METRIC_RATE, NULL),
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
	BENCH_RATIO("hlog_cow_beside_vs_local_512", "the same, mapped",
		    "hlog512", NULL, 0, "cow_beside", "local", METRIC_RATE,
		    NULL),
	BENCH_RATIO("hlog_cow_vs_async_512",
		    "store, 512 B: / asynchronous READs", "hlog512", NULL, 0,
		    "cow", "async", METRIC_RATE, NULL),
	BENCH_RATIO("hlog_cow_vs_file_512", "store, 512 B: / file", "hlog512",
		    NULL, 0, "cow", "file", METRIC_RATE, "12 to 84 (fig. 9)"),
	BENCH_RATIO("p4_vs_spot_via_switch",
		    "64 B probes, engine in the switch / spot engine apart, "
		    "all at one switch",
		    "switch_probe64", ">=", 1.2, "p4", "spot", METRIC_RATE,
		    "similar (fig. 9)"),
	BENCH_RATIO("p4_vs_async_verbs_via_switch",
		    "the same / asynchronous READs", "switch_probe64", ">=",
		    0.7, "p4", "async", METRIC_RATE, "up to 1.4 (fig. 9)"),
	BENCH_RATIO("p4_client_cycles_vs_verbs",
		    "caller's time to issue and poll one read / to post and "
		    "poll one READ, at the switch",
		    "switch_caller64", "<=", 0.15, "p4", "async_each",
		    METRIC_CALLER, "an order of magnitude less (fig. 2)"),
	BENCH_RATIO("p4_client_cycles_vs_lists",
		    "the same / READs in lists of 100", "switch_caller64", NULL,
		    0, "p4", "async", METRIC_CALLER, NULL),
	BENCH_RATIO("p4_lone_read_vs_spot",
		    "median of one read alone, engine in the switch / spot",
		    "switch_lone64", "<=", 0.8, "p4", "spot", METRIC_P50, NULL),
	BENCH_RATIO("fwd_rate_beside_p4",
		    "frames forwarded while 64 idle sessions are probed / by a "
		    "switch without the program",
		    "switch_frames", ">=", 0.9, "p4", "bare", METRIC_RATE,
		    NULL),
	{.name = NULL},
};

static const char *const way_words[WAY_COUNT] = {
	[WAY_LOCAL] = "all records in local memory, prefetched",
	[WAY_FILE] = "a file, io_uring and O_DIRECT",
	[WAY_SYNC] = "one READ at a time",
	[WAY_ASYNC] = "READs in batches of 100",
	[WAY_QUIET] = "READs in batches of 100, one completion each",
	[WAY_TWO_SIDED] = "a message to a server and its answer",
	[WAY_REDY] = "messages in batches by an I/O thread (as Redy)",
	[WAY_COW] = "local stores, an engine that sends packets (Cowbird)",
	[WAY_COW_ALONE] = "the same, each completion told at once",
	[WAY_COW_READS] = "local stores, an engine with a READ for each",
	[WAY_COW_BESIDE] = "local stores, an engine that maps the memory",
	[WAY_ASYNC_DIRECT] = "READs in batches of 100 of mapped memory",
	[WAY_P4] = "an engine that is a program of the switch",
	[WAY_SPOT] = "an engine that is a process at the switch",
	[WAY_BARE] = "a switch without a program",
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
					    .is_lean = e->is_lean,
					    .is_scan = e->is_scan,
					    .is_each = e->is_each,
					    .is_at_switch = to->is_at_switch,
					    .is_timed = e->is_timed};
	snprintf(sub->param.name, sizeof(sub->param.name), "%s-%s%s", g->name,
		 offload_way_name(e->way), e->suffix ? e->suffix : "");
	if (to->record_bytes)
		snprintf(sub->what, sizeof(sub->what), "%u B: %s%s",
			 to->record_bytes, way_words[e->way],
			 e->is_timed  ? ", timed"
			 : e->is_lean ? ", index in batches"
			 : e->is_scan ? ", in their order"
			 : e->is_each ? ", a doorbell for each"
				      : "");
	else
		snprintf(sub->what, sizeof(sub->what), "small frames: %s",
			 way_words[e->way]);
	/* The name in the table is that of the parameter, from the way on. */
	sub->desc = (struct subject_desc){.name = sub->param.name +
						  strlen(g->name) + 1,
					  .what = sub->what,
					  .ops = to->ops,
					  .param = &sub->param};
	g->subject[i] = &sub->desc;
}

static void add_groups(struct offload_plan *out, const struct plan *from,
		       unsigned count, bool at_switch)
{
	for (unsigned i = 0; i < count; i++) {
		const struct plan *p = &from[i];
		struct conduct_group *g = &out->group[out->group_count];
		struct offload_group *more = &out->more[out->group_count++];

		g->name = p->name;
		g->metric = p->metric;
		more->ops = p->ops;
		more->record_bytes = p->record_bytes;
		more->is_at_switch = at_switch;
		for (unsigned k = 0; p->entry[k].way != WAY_NONE; k++)
			add_subject(out, more, &p->entry[k]);
	}
}

void offload_plan_init(struct offload_plan *out)
{
	STATIC_ASSERT(ARRAY_LEN(plan) + ARRAY_LEN(switch_plan) <=
			      OFFLOAD_GROUP_MAX,
		      "a place for each group");

	add_groups(out, plan, ARRAY_LEN(plan), false);
	add_groups(out, switch_plan, ARRAY_LEN(switch_plan), true);
}
