/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer bench kv`: its parts, options and bounds. */
#include "kv_bench.h"

static const struct bench_option options[] = {
	BENCH_OPTION("entries", "N", "entries of the table that is filled", 1,
		     1000000000, 10000000, 100000),
	BENCH_OPTION("fill-seeds", "N",
		     "fill it with so many other seeds of the hash, too", 1,
		     1000, 0, 0),
	BENCH_OPTION("records", "N", "records of the speed test", 1, 9999999,
		     100000, 5000),
	{.name = NULL},
};

static const struct bench_ratio ratios[] = {
	BENCH_NUMBER("max_fill",
		     "share of entries at the first insert without a path",
		     "fill", ">=", 0.95),
	BENCH_NUMBER("single_mcas_share",
		     "share of inserts up to 90 % whose rows are under one "
		     "word of locks",
		     "fill", ">=", 0.97),
	BENCH_NUMBER("within_five",
		     "share of keys whose rows are at most five apart", "fill",
		     NULL, 0),
	BENCH_NUMBER("span_up_to_32",
		     "share of inserts up to 95 % whose path spans 32 rows at "
		     "most",
		     "spread", NULL, 0),
	BENCH_NUMBER("independent_beyond_2000",
		     "independent hashing: of the inserts that move anything, "
		     "those that span more rows",
		     "spread", NULL, 0),
	BENCH_NUMBER("max_fill_live",
		     "share of entries when a client is refused a new key",
		     "live", NULL, 0),
	BENCH_NUMBER("rtt_read_inline", "round trips of a read, median",
		     "trips", "<=", 1),
	BENCH_NUMBER("rtt_read_extent", "the same, of a value in an extent",
		     "trips", "<=", 2),
	BENCH_NUMBER("rtt_update", "round trips of an update, median", "trips",
		     "<=", 2),
	BENCH_NUMBER("rtt_delete", "round trips of a delete, median", "trips",
		     "<=", 2),
	BENCH_NUMBER("rtt_insert_median", "round trips of an insert, median",
		     "trips", "<=", 2),
	BENCH_RATIO("kv_c_vs_redis_p1", "reads, one at a time / redis-server",
		    "speed", ">=", 5, "kv_c", "redis_c_p1", METRIC_RATE, NULL),
	BENCH_RATIO("kv_c_async_vs_redis_p16",
		    "reads, 16 under way / redis-server", "speed", ">=", 2,
		    "kv_c_async16", "redis_c_p16", METRIC_RATE, NULL),
	BENCH_RATIO("kv_b_vs_redis_p1",
		    "a change in 20, one at a time / redis-server", "speed",
		    NULL, 0, "kv_b", "redis_b_p1", METRIC_RATE, NULL),
	BENCH_RATIO("kv_a_vs_redis_p1",
		    "a change in 2, one at a time / redis-server", "speed",
		    ">=", 3, "kv_a", "redis_a_p1", METRIC_RATE, NULL),
	BENCH_RATIO("kv_put_vs_redis_p1", "puts, one at a time / redis-server",
		    "speed", NULL, 0, "kv_put", "redis_set_p1", METRIC_RATE,
		    NULL),
	BENCH_RATIO("kv_put_async_vs_redis_p16",
		    "puts, 16 under way / redis-server", "speed", ">=", 4,
		    "kv_put_async16", "redis_set_p16", METRIC_RATE, NULL),
	BENCH_RATIO("kv_put_async_vs_sync",
		    "puts, 16 under way / one at a time", "speed", NULL, 0,
		    "kv_put_async16", "kv_put", METRIC_RATE, NULL),
	BENCH_RATIO("gateway_p16_vs_redis_p16",
		    "GETs of 50 clients, 16 under way each: aquifer redis / "
		    "redis-server",
		    "gateway", ">=", 0.7, "gateway_get_p16", "redis_get_p16",
		    METRIC_RATE, NULL),
	BENCH_RATIO("gateway_set_p16_vs_redis", "the same with SETs", "gateway",
		    ">=", 0.6, "gateway_set_p16", "redis_set_p16_c50",
		    METRIC_RATE, NULL),
	BENCH_RATIO("gateway_set_p1_vs_redis", "SETs, one under way each",
		    "gateway", ">=", 0.8, "gateway_set_p1", "redis_set_p1_c50",
		    METRIC_RATE, NULL),
	BENCH_RATIO("gateway_incr_p16_vs_redis", "INCRs, 16 under way each",
		    "gateway", ">=", 0.5, "gateway_incr_p16",
		    "redis_incr_p16_c50", METRIC_RATE, NULL),
	BENCH_RATIO("gateway_mixed_p99_vs_redis",
		    "p99 of GETs of 25 clients while 25 others SET", "gateway",
		    "<=", 2, "gateway_mixed", "redis_mixed", METRIC_P99, NULL),
	{.name = NULL},
};

static int run(struct bench *b)
{
	static const struct {
		const char *name;
		int (*run)(struct bench *b);
	} parts[] = {
		{"fill", kv_bench_fill},   {"spread", kv_bench_spread},
		{"live", kv_bench_live},   {"trips", kv_bench_trips},
		{"speed", kv_bench_speed}, {"gateway", kv_bench_gateway},
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

static const char *const columns[] = {"of", "mean", "p99", NULL};

const struct bench_def bench_kv = {
	.name = "kv",
	.summary = "the key-value table: fill, round trips, speed beside Redis",
	.about =
		"The key-value table: how full it gets and how many locks an "
		"insert takes (the\nshipped search over local memory), round "
		"trips of each operation (counted, on a\nrack of its own), and "
		"operations per second beside redis-server, in turns: of a\n"
		"client, and of `aquifer redis` as redis-benchmark sees it.\n",
	.rounds = 7,
	.rounds_quick = 1,
	.window_ms = 200,
	.window_ms_quick = 20,
	.options = options,
	.ratios = ratios,
	.columns = columns,
	.run = run,
};
