/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer bench elastic`: its parts and bounds. */
#include "elastic_bench.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"

static const struct bench_ratio ratios[] = {
	BENCH_RATIO("equeue_vs_redis_p1",
		    "put + get of 64 bytes, one synchronous client / LPUSH + "
		    "RPOP, no pipeline",
		    "queue", ">=", 4, "equeue", "redis_list", METRIC_RATE,
		    NULL),
	BENCH_RATIO("equeue_many_vs_redis_p16",
		    "16 at a time / a pipeline of 16", "queue", ">=", 3,
		    "equeue_many16", "redis_list_p16", METRIC_RATE, NULL),
	BENCH_RATIO("ekv_vs_redis_p1",
		    "YCSB-A, Zipfian, 64 bytes, over 16 blocks, one "
		    "synchronous client / redis-server",
		    "kv", ">=", 4, "ekv", "redis_keys", METRIC_RATE, NULL),
	BENCH_RATIO("ekv_many_vs_redis_p16", "16 at a time / a pipeline of 16",
		    "kv", ">=", 2, "ekv_many16", "redis_keys_p16", METRIC_RATE,
		    NULL),
	BENCH_RATIO("efile_append_vs_redis", "appends of 64 KiB / RPUSH",
		    "append", ">=", 1.5, "efile_64k", "redis_rpush_64k",
		    METRIC_RATE, NULL),
	BENCH_RATIO("efile_append_vs_tmpfs",
		    "appends of 1 MiB / write(2) to tmpfs", "tmpfs", ">=", 0.7,
		    "efile_1m", "tmpfs_write_1m", METRIC_RATE, NULL),
	BENCH_RATIO("efile_read_vs_tmpfs",
		    "sequential reads of 1 MiB / read(2) from tmpfs", "tmpfs",
		    ">=", 1.0, "efile_read_1m", "tmpfs_read_1m", METRIC_RATE,
		    NULL),
	BENCH_NUMBER("split_get_median",
		     "gets of 100 KB while their block is split / before; "
		     "paper: almost identical",
		     "split", "<=", 1.5),
	BENCH_NUMBER("split_get_p99", "the same, p99", "split", "<=", 3),
	BENCH_NUMBER("split_vs_copy",
		     "time to split a full block of 64 MiB, values of 1 KiB / "
		     "WRITE of the bytes that move",
		     "split", "<=", 3),
	BENCH_NUMBER("grow_p99",
		     "p99 of appends of 64 KiB while a file grows by 64 "
		     "blocks / into a block with room",
		     "grow", "<=", 2),
	BENCH_NUMBER("notify_vs_redis",
		     "put until the sleeping listener returns, median, one "
		     "every 100 us / PUBLISH to SUBSCRIBE",
		     "notify", "<=", 1.0),
	BENCH_RATIO("chain2_vs_chain1",
		    "put of 64 bytes with two copies / one; paper: 238 / 109",
		    "chain", "<=", 3, "put_copies2", "put_copies1", METRIC_P50,
		    "2.2"),
	BENCH_NUMBER("sort_vs_redis",
		     "sort of 256 MiB, 8 partition and 8 merge tasks, two at a "
		     "time: time with lists of redis-server as exchange / with "
		     "files",
		     "sort", ">=", 1.3),
	{.name = NULL},
};

struct part {
	const char *name;
	int (*run)(struct bench *b, struct elastic_bed *bed);
};

/* Chains want another node, which the others do without: they come last. */
static const struct part parts[] = {
	{"queue", elastic_bench_queue},		{"kv", elastic_bench_kv},
	{"append", elastic_bench_append},	{"tmpfs", elastic_bench_tmpfs},
	{"grow", elastic_bench_grow},		{"split", elastic_bench_split},
	{"notify", elastic_bench_notify},	{"sort", elastic_bench_sort},
	{"paper", elastic_bench_paper},		{"sizes", elastic_bench_sizes},
	{"listeners", elastic_bench_listeners}, {"faces", elastic_bench_faces},
	{"chain", elastic_bench_chain},
};
/* With a node that is too small for all jobs. */
static const struct part small_parts[] = {{"jobs", elastic_bench_jobs}};

/* Those that --only selects, on processes of their own. */
static int run_parts(struct bench *b, const struct part *all, size_t count,
		     const char *node_size, bool has_spill)
{
	struct elastic_bed *bed = NULL;
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		if (!bench_wants(b, all[i].name))
			continue;
		bench_progress(b, "%s", all[i].name);
		if (!bed) {
			bed = calloc(1, sizeof(*bed));
			err = bed ? elastic_bed_make(bed, node_size, has_spill)
				  : error_set(-ENOMEM, "no memory");
		}
		if (!err)
			err = all[i].run(b, bed);
	}
	if (err)
		(void)bench_fail(b, err, "%s", error_last());
	if (bed)
		elastic_bed_end(bed);
	free(bed);
	return err;
}

static int run(struct bench *b)
{
	int err =
		run_parts(b, parts, ARRAY_LEN(parts), ELASTIC_NODE_SIZE, false);

	return err ? err
		   : run_parts(b, small_parts, ARRAY_LEN(small_parts),
			       ELASTIC_JOBS_SIZE, true);
}

static const char *const more_groups[] = {"paper", "sizes", "listeners",
					  "faces", "jobs",  NULL};
static const char *const columns[] = {
	"min",	  "max",	"p50",	"p99",	 "mb_s",
	"put_us", "read_mb_s",	"kops", "redis", "disk_mb",
	"paper",  "paper_kops", NULL};

const struct bench_def bench_elastic = {
	.name = "elastic",
	.summary = "elastic files, queues and stores beside Redis and tmpfs",
	.about = "A controller and a memory node as real processes, the "
		 "node on one core, its client\non the other. redis-server "
		 "listens on a unix socket and is measured with its process "
		 "on\neither core; the better one counts. All take turns. Each "
		 "group "
		 "takes less than 90 s.\n",
	.rounds = 5,
	.rounds_quick = 1,
	.window_ms = 500,
	.window_ms_quick = 50,
	.ratios = ratios,
	.more_groups = more_groups,
	.columns = columns,
	.run = run,
};
