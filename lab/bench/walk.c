/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer bench walk`: lookups in chains of far memory by walks, by a READ for
 * each node, and by messages to servers in C, in turns. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "offload_bench.h"
#include "place.h"
#include "walk_bench.h"
#include "walk_exec.h"

enum {
	POOL_MORE = 64 << 20, /* beside the chains */
	FILL_BYTES = 1 << 20,
};

static struct walk_list list;
static uint64_t index_keys;

#define PARAM(way_, depth_, beside_)                         \
	&(const struct walk_param)                           \
	{                                                    \
		.list = &list, .way = way_, .depth = depth_, \
		.is_beside = beside_                         \
	}
#define SUBJECT(...) SUBJECT_OF(__VA_ARGS__)
#define SUBJECT_OF(name_, what_, ops_, param_, ...)                         \
	&(const struct subject_desc)                                        \
	{                                                                   \
		.name = name_, .what = what_, .ops = ops_, .param = param_, \
		__VA_ARGS__                                                 \
	}
#define FAR(way, depth) &walk_far_ops, PARAM(way, depth, false)
#define RPC(way, depth) &walk_rpc_ops, PARAM(way, depth, false)

static struct conduct_group groups[] = {
	{"single",
	 METRIC_P50,
	 {SUBJECT("walk48_single", "a walk on the node, one at a time",
		  FAR(WALK_WAY_NODE, 1)),
	  SUBJECT("reads48_single", "48 READs, one at a time",
		  FAR(WALK_WAY_READS, 1)),
	  SUBJECT("rpc48_single", "a message to a server, one at a time",
		  RPC(WALK_WAY_RPC, 1))},
	 3,
	 NULL},
	{"many",
	 METRIC_RATE,
	 {SUBJECT("walk48_many", "walks on the node, 16 under way",
		  FAR(WALK_WAY_NODE, WALK_DEPTH)),
	  SUBJECT("reads48_many", "48 READs each, 16 lookups under way",
		  FAR(WALK_WAY_READS, WALK_DEPTH)),
	  SUBJECT("rpc48_many", "messages to a server, 16 under way",
		  RPC(WALK_WAY_RPC, WALK_DEPTH)),
	  SUBJECT("rpc48_prefetch_many",
		  "to a server that interleaves and prefetches",
		  RPC(WALK_WAY_PREFETCH, WALK_DEPTH))},
	 4,
	 NULL},
	{"beside",
	 METRIC_RATE,
	 {SUBJECT("reads_alone", "READs of a client, 16 lookups under way",
		  &walk_beside_ops, PARAM(WALK_WAY_READS, WALK_DEPTH, false)),
	  SUBJECT("reads_beside", "while another has 64 long walks under way",
		  &walk_beside_ops, PARAM(WALK_WAY_READS, WALK_DEPTH, true))},
	 2,
	 NULL},
};

#define INDEX(way_)                                       \
	&walk_index_ops, &(const struct walk_index_param) \
	{                                                 \
		.way = way_                               \
	}

static struct conduct_group index_groups[] = {
	{"index_get",
	 METRIC_P50,
	 {SUBJECT("index_get_walk", "a get of an ordered index by a walk",
		  INDEX(WALK_INDEX_GET)),
	  SUBJECT("index_get_reads", "by READs from the root on",
		  INDEX(WALK_INDEX_GET_READS))},
	 2,
	 NULL},
	{"kv_get",
	 METRIC_P50,
	 {SUBJECT("kv_extent_get_walk", "a get of 512 bytes by a walk",
		  &walk_kv_ops, &(const struct walk_kv_param){.is_walk = true}),
	  SUBJECT("kv_extent_get_two", "by READs of rows and extent",
		  &walk_kv_ops,
		  &(const struct walk_kv_param){.is_walk = false})},
	 2,
	 NULL},
	{"reduce",
	 METRIC_RATE,
	 {SUBJECT("reduce119", "a sum over 119 leaves by a walk",
		  INDEX(WALK_INDEX_REDUCE)),
	  SUBJECT("reduce119_scan", "the same by a scan",
		  INDEX(WALK_INDEX_REDUCE_SCAN))},
	 2,
	 NULL},
};

static struct conduct_group udp_groups[] = {
	{"udp",
	 METRIC_P50,
	 {SUBJECT("walk48_udp", "a walk on the node, UDP on loopback",
		  FAR(WALK_WAY_NODE, 1), .udp = true),
	  SUBJECT("reads48_udp", "48 READs, UDP on loopback",
		  FAR(WALK_WAY_READS, 1), .udp = true)},
	 2,
	 NULL},
};

#define CROSS(cross_)                                             \
	&walk_far_ops, &(const struct walk_param)                 \
	{                                                         \
		.way = WALK_WAY_NODE, .depth = 1, .cross = cross_ \
	}

static struct conduct_group cross_groups[] = {
	{"cross",
	 METRIC_P50,
	 {SUBJECT("cross_switch",
		  "a walk that changes nodes 8 times, by the switch",
		  CROSS(AQ_WALK_CROSS_SWITCH)),
	  SUBJECT("cross_bounce", "the same, by way of the client",
		  CROSS(AQ_WALK_CROSS_BOUNCE))},
	 2,
	 NULL},
};

static const struct bench_ratio ratios[] = {
	BENCH_RATIO("walk48_lat_vs_reads",
		    "lookup over 48 nodes, one at a time: walk / READs",
		    "single", "<=", 0.25, "walk48_single", "reads48_single",
		    METRIC_P50, NULL),
	BENCH_RATIO("walk48_lat_vs_rpc", "the same / a message to a server",
		    "single", "<=", 1.1, "walk48_single", "rpc48_single",
		    METRIC_P50, NULL),
	BENCH_RATIO("walk48_rate_vs_reads",
		    "lookups per second, 16 under way: walks / READs", "many",
		    ">=", 6, "walk48_many", "reads48_many", METRIC_RATE, NULL),
	BENCH_RATIO("walk48_rate_vs_rpc", "the same / messages to a server",
		    "many", ">=", 3, "walk48_many", "rpc48_many", METRIC_RATE,
		    NULL),
	BENCH_RATIO("walk48_rate_vs_rpc_prefetch",
		    "the same / a server that interleaves and prefetches",
		    "many", ">=", 0.6, "walk48_many", "rpc48_prefetch_many",
		    METRIC_RATE, NULL),
	BENCH_RATIO("walk48_udp_lat_vs_reads",
		    "one at a time, UDP on loopback: walk / READs", "udp",
		    "<=", 0.1, "walk48_udp", "reads48_udp", METRIC_P50, NULL),
	BENCH_RATIO("reads_beside_walks",
		    "READs of a client while another has 64 long walks under "
		    "way / alone",
		    "beside", ">=", 0.4, "reads_beside", "reads_alone",
		    METRIC_RATE, NULL),
	BENCH_RATIO("cross_switch_vs_bounce",
		    "walk that changes nodes 8 times, two nodes at a switch: "
		    "the switch carries it on / it comes back each time",
		    "cross", "<=", 0.75, "cross_switch", "cross_bounce",
		    METRIC_P50, NULL),
	BENCH_RATIO("web_rate_vs_paged",
		    "lookups over 48 nodes and 8 KiB per second: walks / the "
		    "same program under 'aquifer run', 6.25 % local",
		    "web", ">=", 15, "web_walk", "web_paged6", METRIC_RATE,
		    NULL),
	BENCH_RATIO("web_rate_vs_paged25", "the same, 25 % local", "web", NULL,
		    0, "web_walk", "web_paged25", METRIC_RATE, NULL),
	BENCH_RATIO("tsv_rate_vs_paged",
		    "reductions over 38 to 227 leaves per second: walks / the "
		    "same program under 'aquifer run', 6.25 % local",
		    "tsv", ">=", 3, "tsv_walk", "tsv_paged6", METRIC_RATE,
		    NULL),
	BENCH_RATIO("tsv_rate_vs_paged25", "the same, 25 % local", "tsv", NULL,
		    0, "tsv_walk", "tsv_paged25", METRIC_RATE, NULL),
	BENCH_RATIO("range_rate_vs_reads",
		    "scans of 16 rows over 25 nodes per second: walks / a READ "
		    "for each node",
		    "range", NULL, 0, "range_walk", "range_reads", METRIC_RATE,
		    NULL),
	BENCH_RATIO("range_rate_vs_paged",
		    "the same / the same program under 'aquifer run', 6.25 % "
		    "local",
		    "range", NULL, 0, "range_walk", "range_paged6", METRIC_RATE,
		    NULL),
	BENCH_RATIO("range_rate_vs_paged25", "the same, 25 % local", "range",
		    NULL, 0, "range_walk", "range_paged25", METRIC_RATE, NULL),
	BENCH_RATIO("index_cold_get_vs_reads",
		    "get of an ordered index of five levels, without a cache: "
		    "walk / READs",
		    "index_get", "<=", 0.55, "index_get_walk",
		    "index_get_reads", METRIC_P50, NULL),
	BENCH_RATIO("kv_extent_get_walk_vs_two",
		    "get of 512 bytes in an extent of a table: walk / two "
		    "round trips",
		    "kv_get", "<=", 0.75, "kv_extent_get_walk",
		    "kv_extent_get_two", METRIC_P50, NULL),
	BENCH_RATIO("reduce119_rate_vs_scan",
		    "sums over 119 leaves per second: walks / scans", "reduce",
		    ">=", 3, "reduce119", "reduce119_scan", METRIC_RATE, NULL),
	BENCH_RATIO("interleave_gain",
		    "iterations per second: 16 workspaces / one", "engine",
		    ">=", 5, "engine_16", "engine_1", METRIC_RATE, NULL),
	BENCH_NUMBER(
		"exec_hot_vs_native_hash",
		"one iteration on hot data, list: ours / C by the compiler",
		"exec", "<=", 1.5),
	BENCH_NUMBER("exec_hot_vs_native_tree", "the same, B+ tree", "exec",
		     "<=", 1.5),
	BENCH_NUMBER("exec_hot_vs_native_reduce", "the same, a reduction",
		     "exec", "<=", 1.5),
	{.name = NULL},
};

/* ---- the memory node's copy ---------------------------------------------- */

static int write_list(void)
{
	struct aq_region *region;
	struct aq_rack *rack;
	int err = place_rack(&rack);

	if (!err)
		err = aq_region_create(rack, WALK_REGION, list.bytes, NULL,
				       &region);
	for (uint64_t at = 0; at < list.bytes && !err; at += FILL_BYTES)
		err = aq_write(region, at, list.memory + at,
			       u64_min(FILL_BYTES, list.bytes - at));
	if (err)
		fprintf(stderr, "bench walk: %s\n", aq_last_error());
	return err;
}

static int write_cross(void)
{
	struct aq_rack *rack;
	int err = place_rack(&rack);

	if (!err)
		err = walk_cross_write(rack);
	if (err)
		fprintf(stderr, "bench walk: %s\n", aq_last_error());
	return err;
}

static int write_structures(void)
{
	struct aq_rack *rack;
	int err = place_rack(&rack);

	if (!err)
		err = walk_index_fill(rack, index_keys);
	if (!err)
		err = walk_kv_fill(rack);
	if (err)
		fprintf(stderr, "bench walk: %s\n", aq_last_error());
	return err;
}

/* In a child, so that this process has no NIC of its own. */
static int prepare(struct bench *b, int (*write)(void))
{
	pid_t pid;
	int rc;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(write() ? 1 : 0);
	rc = pid < 0 ? -errno : place_wait(pid);
	return rc < 0 ? bench_fail(b, rc, "the structures cannot be written")
		      : 0;
}

static int measure(struct bench *b, struct conduct_group *g, unsigned count,
		   int (*write)(void))
{
	struct conduct_options opt = {.rounds = b->rounds,
				      .window_ns = b->window_ms * 1000000ull,
				      .keep_all = b->busy};
	struct offload_rack *rack;
	unsigned wanted = 0;
	int rc;

	for (unsigned i = 0; i < count; i++)
		wanted += bench_wants(b, g[i].name);
	if (!wanted)
		return 0;
	rc = g == cross_groups
		     ? offload_rack_start_walks(POOL_MORE, &rack)
		     : offload_rack_start(list.bytes + POOL_MORE, &rack);
	if (rc < 0)
		return bench_fail(b, rc,
				  "no rack: %s; 'aquifer up' may say why",
				  strerror(-rc));
	rc = prepare(b, write);
	if (!rc) {
		opt.world = offload_rack_world(rack);
		rc = bench_run_groups(b, g, count, &opt, NULL);
	}
	offload_rack_stop(rack);
	return rc;
}

/* One iteration, without a NIC and without memory that is far. */
static int measure_exec(struct bench *b)
{
	struct walk_exec_times times[WALK_EXEC_KINDS];
	int rc = bench_walk_exec(times);

	if (rc)
		return bench_fail(b, rc, "iterations: %s", error_last());
	for (unsigned i = 0; i < WALK_EXEC_KINDS; i++) {
		const struct walk_exec_times *t = &times[i];
		const char *kind = strrchr(t->ratio, '_') + 1;
		char what[80];
		json_t *row;

		snprintf(what, sizeof(what),
			 "%s; interpreter alone %.3g, C %.3g",
			 t->is_translated ? "translated" : "interpreted",
			 t->interpreted_ns, t->native_ns);
		row = bench_row(b, "exec", kind, t->translated_ns, "ns", what);

		(void)json_object_set_new(row, "native_ns",
					  json_real(t->native_ns));
		(void)json_object_set_new(row, "interpreted_ns",
					  json_real(t->interpreted_ns));
		bench_ratio_add(b, t->ratio, t->translated_ns / t->native_ns);
	}
	return 0;
}

static int run(struct bench *b)
{
	int rc = walk_list_make(&list, bench_number(b, "size"));

	if (rc < 0)
		return bench_fail(b, rc, "no memory for the chains");
	index_keys = bench_number(b, "keys");
	rc = measure(b, groups, ARRAY_LEN(groups), write_list);
	if (!rc)
		rc = measure(b, index_groups, ARRAY_LEN(index_groups),
			     write_structures);
	if (!rc)
		rc = measure(b, cross_groups, ARRAY_LEN(cross_groups),
			     write_cross);
	if (!rc)
		rc = walk_bench_paged(b, bench_number(b, "size"));
	if (!rc && bench_wants(b, "engine"))
		rc = walk_bench_engine(b, &list);
	if (!rc && bench_wants(b, "exec"))
		rc = measure_exec(b);
	if (!rc) {
		/* The node has an address of its own; subjects have others. */
		(void)setenv("AQUIFER_NIC_PORT", "udp", 1);
		(void)setenv("AQUIFER_NIC_ADDRESS", "127.0.92.1", 1);
		rc = measure(b, udp_groups, ARRAY_LEN(udp_groups), write_list);
	}
	walk_list_free(&list);
	return rc;
}

static const struct bench_option options[] = {
	BENCH_OPTION("size", "MB",
		     "memory of the chains, a power of two: 256 bytes a node",
		     1, 65536, 512, 16),
	BENCH_OPTION("keys", "N",
		     "keys of the ordered index; five levels from 31000 on",
		     1400, 10000000, 31000, 1400),
	{.name = NULL},
};

static const char *const columns[] = {"p50", "p99", "rounds", NULL};

const struct bench_def bench_walk = {
	.name = "walk",
	.summary = "walks on the memory node, beside READs and messages",
	.about = "Looks keys up in chains of 48 nodes that are scattered over "
		 "the memory of a node\nof its own: by walks that the node "
		 "executes, by a READ for each node of the\nchain, and by "
		 "messages to servers written in C, in turns. Then in chains "
		 "on two\nmemory nodes, with and without the help of a "
		 "switch.\n",
	.rounds = 7,
	.rounds_quick = 1,
	.window_ms = 200,
	.window_ms_quick = 20,
	.options = options,
	.ratios = ratios,
	.columns = columns,
	.run = run,
};
