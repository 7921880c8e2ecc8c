/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of `bench offload`. */
#include "offload_plan.h"

#include <stdio.h>
#include <string.h>

/* A subject: a way, and what is special about it in its group. */
struct entry {
	enum offload_way way;
	const char *suffix; /* of its name */
	uint32_t depth;
	bool is_timed;
};

struct group {
	const char *name;
	const struct side_ops *ops;
	enum offload_metric metric;
	uint32_t record_bytes;
	struct entry entry[CONDUCT_GROUP_MAX + 1]; /* and an end */
};

#define END                      \
	{                        \
		.way = WAY_COUNT \
	}

static const struct group groups[] = {
	{"caller64",
	 &offload_caller_ops,
	 METRIC_CALLER,
	 64,
	 {{WAY_COW, "", 0, false}, {WAY_ASYNC, "", 0, false}, END}},
	{"probe64",
	 &offload_probe_ops,
	 METRIC_RATE,
	 64,
	 {{WAY_LOCAL, "", 0, false},
	  {WAY_COW, "", 0, false},
	  {WAY_COW_APART, "", 0, false},
	  {WAY_ASYNC, "", 0, false},
	  {WAY_ASYNC_DIRECT, "", 0, false},
	  {WAY_QUIET, "", 0, false},
	  {WAY_SYNC, "", 0, false},
	  {WAY_TWO_SIDED, "", 0, false},
	  END}},
	{"probe8",
	 &offload_probe_ops,
	 METRIC_RATE,
	 8,
	 {{WAY_LOCAL, "", 0, false},
	  {WAY_COW, "", 0, false},
	  {WAY_COW_APART, "", 0, false},
	  {WAY_ASYNC, "", 0, false},
	  {WAY_SYNC, "", 0, false},
	  {WAY_TWO_SIDED, "", 0, false},
	  END}},
	{"probe256",
	 &offload_probe_ops,
	 METRIC_RATE,
	 256,
	 {{WAY_LOCAL, "", 0, false},
	  {WAY_COW, "", 0, false},
	  {WAY_ASYNC, "", 0, false},
	  {WAY_SYNC, "", 0, false},
	  {WAY_TWO_SIDED, "", 0, false},
	  END}},
	{"probe512",
	 &offload_probe_ops,
	 METRIC_RATE,
	 512,
	 {{WAY_LOCAL, "", 0, false},
	  {WAY_COW, "", 0, false},
	  {WAY_ASYNC, "", 0, false},
	  {WAY_SYNC, "", 0, false},
	  {WAY_TWO_SIDED, "", 0, false},
	  END}},
	{"latency64",
	 &offload_latency_ops,
	 METRIC_P50,
	 64,
	 {{WAY_SYNC, "_1", 1, false},
	  {WAY_COW_ALONE, "_1", 1, false},
	  {WAY_COW, "_1", 1, false},
	  {WAY_ASYNC, "_100", 100, false},
	  {WAY_COW, "_100", 100, false},
	  END}},
	{"hlog64",
	 &offload_log_ops,
	 METRIC_RATE,
	 64,
	 {{WAY_LOCAL, "", 0, false},
	  {WAY_COW, "", 0, false},
	  {WAY_COW, "_timed", 0, true},
	  {WAY_COW_APART, "", 0, false},
	  {WAY_COW_APART, "_timed", 0, true},
	  {WAY_ASYNC, "", 0, false},
	  {WAY_SYNC, "", 0, false},
	  {WAY_REDY, "", 0, false},
	  {WAY_FILE, "", 0, false},
	  END}},
	{"hlog512",
	 &offload_log_ops,
	 METRIC_RATE,
	 512,
	 {{WAY_LOCAL, "", 0, false},
	  {WAY_COW, "", 0, false},
	  {WAY_COW_APART, "", 0, false},
	  {WAY_ASYNC, "", 0, false},
	  {WAY_SYNC, "", 0, false},
	  {WAY_REDY, "", 0, false},
	  {WAY_FILE, "", 0, false},
	  END}},
};

const struct offload_ratio offload_ratios[] = {
	{"cow_client_cycles_vs_verbs",
	 "caller's time to issue and poll one read / to post and poll one READ",
	 "caller64", "cow", "async", METRIC_CALLER, true, true, 0.15,
	 "an order of magnitude less (fig. 2)"},
	{"cow64_vs_async_verbs",
	 "probes of 64 B records, offloaded / asynchronous READs", "probe64",
	 "cow", "async", METRIC_RATE, true, false, 1.5, "up to 3.5 (fig. 8)"},
	{"cow64_vs_sync_verbs", "the same / one READ at a time", "probe64",
	 "cow", "sync", METRIC_RATE, true, false, 3, NULL},
	{"cow64_vs_two_sided", "the same / a message and its answer", "probe64",
	 "cow", "two_sided", METRIC_RATE, true, false, 3, NULL},
	{"hlog_cow_vs_file_64",
	 "store, YCSB-C Zipfian, 64 B values: offloaded / file", "hlog64",
	 "cow", "file", METRIC_RATE, true, false, 12, "12 to 84 (fig. 9)"},
	{"hlog_comm_ratio",
	 "share of the thread's time in the communication library", "hlog64",
	 "cow_timed", NULL, METRIC_COMM, true, true, 0.20,
	 "below 0.20 (fig. 10)"},
	{"hlog_comm_busy_ratio", "the same without polls that brought nothing",
	 "hlog64", "cow_timed", NULL, METRIC_COMM_BUSY, false, true, 0, NULL},
	{"cow8_vs_local", "probes of 8 B records / all of them local", "probe8",
	 "cow", "local", METRIC_RATE, false, false, 0,
	 "at least 0.886 (fig. 8)"},
	{"cow64_vs_local", "the same, 64 B", "probe64", "cow", "local",
	 METRIC_RATE, false, false, 0, "at least 0.886 (fig. 8)"},
	{"cow8_apart_vs_local", "probes of 8 B records, engine apart / local",
	 "probe8", "cow_apart", "local", METRIC_RATE, false, false, 0,
	 "at least 0.886 (fig. 8)"},
	{"cow64_apart_vs_local", "the same, 64 B", "probe64", "cow_apart",
	 "local", METRIC_RATE, false, false, 0, "at least 0.886 (fig. 8)"},
	{"cow64_apart_vs_async",
	 "64 B, engine apart: offloaded / asynchronous READs", "probe64",
	 "cow_apart", "async", METRIC_RATE, false, false, 0, NULL},
	{"cow64_vs_async_direct",
	 "64 B: offloaded / asynchronous READs of mapped records", "probe64",
	 "cow", "async_direct", METRIC_RATE, false, false, 0, NULL},
	{"cow256_vs_local", "on the cable, 256 B", "probe256", "cow", "local",
	 METRIC_RATE, false, false, 0, "near 1 (fig. 1)"},
	{"cow512_vs_local", "the same, 512 B", "probe512", "cow", "local",
	 METRIC_RATE, false, false, 0, NULL},
	{"local64_vs_async_verbs",
	 "64 B: what cow64_vs_async_verbs cannot exceed, whatever the engine",
	 "probe64", "local", "async", METRIC_RATE, false, false, 0, NULL},
	{"cow64_vs_quiet_verbs",
	 "64 B / asynchronous READs, one completion per batch", "probe64",
	 "cow", "quiet", METRIC_RATE, false, false, 0, NULL},
	{"cow8_vs_blocking",
	 "8 B / a reader that blocks for each object (as AIFM does)", "probe8",
	 "cow", "two_sided", METRIC_RATE, false, false, 0,
	 "up to 71 (fig. 12)"},
	{"cow_latency_vs_sync", "median of one read alone, unbatched / READ",
	 "latency64", "cow_alone_1", "sync_1", METRIC_P50, false, true, 0,
	 "slightly above 1 (fig. 13)"},
	{"cow_batched_latency_vs_async", "median of 100 at a time / READs",
	 "latency64", "cow_100", "async_100", METRIC_P50, false, true, 0,
	 "much below 1 (fig. 13)"},
	{"cow_batched_p99_vs_async", "99th percentile of the same", "latency64",
	 "cow_100", "async_100", METRIC_P99, false, true, 0, NULL},
	{"hlog_cow_vs_local_64", "store, 64 B: offloaded / local memory",
	 "hlog64", "cow", "local", METRIC_RATE, false, false, 0,
	 "at least 0.92 (fig. 9)"},
	{"hlog_cow_apart_vs_local_64", "the same, engine apart", "hlog64",
	 "cow_apart", "local", METRIC_RATE, false, false, 0,
	 "at least 0.92 (fig. 9)"},
	{"hlog_comm_apart_ratio", "share of time in the library, engine apart",
	 "hlog64", "cow_apart_timed", NULL, METRIC_COMM, false, true, 0,
	 "below 0.20 (fig. 10)"},
	{"hlog_cow_apart_vs_file_64", "engine apart / file", "hlog64",
	 "cow_apart", "file", METRIC_RATE, false, false, 0,
	 "12 to 84 (fig. 9)"},
	{"hlog_cow_vs_async_64", "store, 64 B: offloaded / asynchronous READs",
	 "hlog64", "cow", "async", METRIC_RATE, false, false, 0,
	 "up to 1.4 (fig. 9)"},
	{"hlog_cow_vs_sync_64", "store, 64 B: offloaded / one READ at a time",
	 "hlog64", "cow", "sync", METRIC_RATE, false, false, 0,
	 "up to 9 (fig. 9)"},
	{"hlog_cow_vs_redy_64", "store, 64 B: offloaded / batched messages",
	 "hlog64", "cow", "redy", METRIC_RATE, false, false, 0,
	 "up to 1.6 (fig. 11)"},
	{"hlog_cow_vs_local_512", "store, 512 B: offloaded / local memory",
	 "hlog512", "cow", "local", METRIC_RATE, false, false, 0,
	 "at least 0.92 (fig. 9)"},
	{"hlog_cow_apart_vs_local_512", "the same, engine apart", "hlog512",
	 "cow_apart", "local", METRIC_RATE, false, false, 0,
	 "at least 0.92 (fig. 9)"},
	{"hlog_cow_vs_async_512", "store, 512 B: / asynchronous READs",
	 "hlog512", "cow", "async", METRIC_RATE, false, false, 0, NULL},
	{"hlog_cow_vs_file_512", "store, 512 B: / file", "hlog512", "cow",
	 "file", METRIC_RATE, false, false, 0, "12 to 84 (fig. 9)"},
};
const unsigned offload_ratio_count =
	sizeof(offload_ratios) / sizeof(offload_ratios[0]);

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

static void add_subject(struct offload_plan *plan, struct offload_group *g,
			const struct entry *e)
{
	struct offload_subject *sub = &g->subject[g->subject_count++];

	sub->param = (struct offload_param){.cfg = &plan->cfg,
					    .way = e->way,
					    .record_bytes = g->record_bytes,
					    .depth = e->depth,
					    .is_timed = e->is_timed};
	snprintf(sub->param.name, sizeof(sub->param.name), "%s-%s%s", g->name,
		 offload_way_name(e->way), e->suffix);
	snprintf(sub->what, sizeof(sub->what), "%u B: %s%s", g->record_bytes,
		 way_words[e->way], e->is_timed ? ", timed" : "");
	/* The name in the table is that of the parameter, from the way on. */
	sub->desc = (struct subject_desc){.name = sub->param.name +
						  strlen(g->name) + 1,
					  .what = sub->what,
					  .ops = g->ops,
					  .param = &sub->param};
}

void offload_plan_init(struct offload_plan *plan)
{
	for (unsigned i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		struct offload_group *g = &plan->group[plan->group_count++];

		g->name = groups[i].name;
		g->ops = groups[i].ops;
		g->metric = groups[i].metric;
		g->record_bytes = groups[i].record_bytes;
		for (unsigned k = 0; groups[i].entry[k].way != WAY_COUNT; k++)
			add_subject(plan, g, &groups[i].entry[k]);
	}
}

bool offload_ratio_wanted(const char *only, const struct offload_ratio *r)
{
	return !only || strstr(r->name, only) || strstr(r->group, only);
}

bool offload_plan_wants(const char *only, const struct offload_group *g)
{
	if (!only || strstr(g->name, only))
		return true;
	for (unsigned i = 0; i < offload_ratio_count; i++)
		if (strcmp(offload_ratios[i].group, g->name) == 0 &&
		    strstr(offload_ratios[i].name, only))
			return true;
	return false;
}
