/* SPDX-License-Identifier: Apache-2.0 */
/* Counted round trips, and operations per second beside redis-server, in turns,
 * on a rack of its own. */
#include <aquifer/kv.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/hist.h"
#include "base/rng.h"
#include "kv_bench.h"
#include "offload_bench.h"
#include "place.h"
#include "shield.h"
#include "sim/ycsb.h"
#include "ticks.h"

enum {
	DRAWS = 1 << 18,
	POOL_MB = 512,
	TRIPS = 20000, /* entries of the table where they are counted */
	TRIPS_QUICK = 5000,
	TRIPS_PROBES = 500, /* a tenth of the smallest table */
	EXTENT_VALUE = 600,
	LIVE = 100000, /* entries of the table that a client fills */
	LIVE_QUICK = 5000,
	CLOCK_EVERY = 32,
};

void kv_bench_key(uint32_t number, char key[KV_BENCH_KEY_BYTES + 1])
{
	int i;

	key[0] = 'u';
	for (i = KV_BENCH_KEY_BYTES - 1; i > 0; i--, number /= 10)
		key[i] = (char)('0' + number % 10);
	key[KV_BENCH_KEY_BYTES] = '\0';
}

uint32_t *kv_bench_zipf(uint64_t records, uint64_t draws, uint64_t seed)
{
	uint32_t *out = malloc(draws * sizeof(*out));
	struct ycsb_keys keys;
	struct rng rng;
	uint64_t i;

	if (!out || ycsb_keys_init(&keys, YCSB_ZIPFIAN, records, YCSB_THETA)) {
		free(out);
		return NULL;
	}
	rng_init(&rng, seed);
	for (i = 0; i < draws; i++)
		out[i] = (uint32_t)ycsb_keys_scatter(
			&keys, ycsb_keys_rank(&keys, &rng));
	return out;
}

/* ---- a table of our own ------------------------------------------------- */

struct table {
	struct offload_rack *rack_process;
	struct aq_rack *rack;
	struct aq_kv *kv;
	struct aq_kv_client *c;
};

static int table_open(struct bench *b, struct table *t, uint64_t capacity)
{
	struct aq_kv_options o = {.capacity = capacity,
				  .entry_bytes = 32,
				  .extent_bytes = 64 << 20,
				  .flags = AQ_KV_FIXED, /* to be filled */
				  .seed = 1};
	uint64_t bytes = capacity * 40 + (uint64_t)(POOL_MB - 128) * 1048576;
	int err;

	memset(t, 0, sizeof(*t));
	err = offload_rack_start(bytes, &t->rack_process);
	if (!err)
		err = place_rack(&t->rack);
	if (!err)
		err = aq_kv_create(t->rack, "bench", &o, &t->kv);
	if (!err)
		err = aq_kv_client_open(t->kv, NULL, &t->c);
	return err ? bench_fail(b, err, "a table: %s", aq_last_error()) : 0;
}

static void table_close(struct table *t)
{
	aq_kv_client_close(t->c);
	aq_kv_close(t->kv);
	aq_rack_close(t->rack);
	offload_rack_stop(t->rack_process);
}

/* ---- round trips -------------------------------------------------------- */

static int put(struct table *t, uint32_t number, size_t len)
{
	static const uint8_t value[EXTENT_VALUE];
	char key[KV_BENCH_KEY_BYTES + 1];

	kv_bench_key(number, key);
	return aq_kv_put(t->c, key, KV_BENCH_KEY_BYTES, value, len, NULL);
}

static int get(struct table *t, uint32_t number)
{
	char key[KV_BENCH_KEY_BYTES + 1], buf[EXTENT_VALUE];
	size_t len;

	kv_bench_key(number, key);
	return aq_kv_get(t->c, key, KV_BENCH_KEY_BYTES, buf, sizeof(buf), &len);
}

/* Of the client's, by its place in the struct. */
static uint64_t counter(const struct table *t, size_t offset)
{
	struct aq_kv_stats s;
	uint64_t v;

	aq_kv_client_stats(t->c, &s);
	memcpy(&v, (const char *)&s + offset, sizeof(v));
	return v;
}

static void add_trips(struct bench *b, const char *name, const struct hist *h,
		      const char *ratio)
{
	double median = (double)hist_percentile(h, HIST_MEDIAN);
	json_t *row = bench_row(b, "trips", name, median, "trips",
				"round trips, median, counted");

	json_object_set_new(row, "mean", json_real(hist_mean(h)));
	json_object_set_new(row, "p99",
			    json_real((double)hist_percentile(h, HIST_P99)));
	if (ratio)
		bench_ratio_add(b, ratio, median);
}

static int erase(struct table *t, uint32_t number)
{
	char key[KV_BENCH_KEY_BYTES + 1];

	kv_bench_key(number, key);
	return aq_kv_del(t->c, key, KV_BENCH_KEY_BYTES);
}

static int act(struct table *t, char what, uint32_t number)
{
	switch (what) {
	case 'g':
		return get(t, number);
	case 'p':
		return put(t, number, KV_BENCH_VALUE_BYTES);
	case 'x':
		return put(t, number, EXTENT_VALUE);
	default:
		return erase(t, number);
	}
}

/* `count` operations on keys from `first` on. */
static int count_ops(struct bench *b, struct table *t, const char *name,
		     char what, size_t offset, uint32_t first, uint32_t count,
		     const char *ratio)
{
	struct hist *h = calloc(1, sizeof(*h));
	uint64_t last = counter(t, offset), now;
	uint32_t i;
	int err = h ? 0 : -ENOMEM;

	if (h)
		hist_init(h);
	for (i = 0; i < count && !err; i++) {
		err = act(t, what, first + i);
		now = counter(t, offset);
		if (!err)
			hist_record(h, now - last);
		last = now;
	}
	if (!err && name)
		add_trips(b, name, h, ratio);
	free(h);
	return err;
}

static int count_all(struct bench *b, struct table *t, uint32_t entries)
{
	const struct {
		const char *name; /* NULL: not shown */
		char what;
		size_t offset;
		uint32_t first, count;
		const char *ratio; /* NULL: none */
	} steps[] = {
		{"rtt_insert", 'p', offsetof(struct aq_kv_stats, insert_trips),
		 0, entries / 10 * 8, "rtt_insert_median"},
		{"rtt_read_inline", 'g',
		 offsetof(struct aq_kv_stats, get_trips), 0, TRIPS_PROBES,
		 "rtt_read_inline"},
		{"rtt_update", 'p', offsetof(struct aq_kv_stats, update_trips),
		 0, TRIPS_PROBES, "rtt_update"},
		{"rtt_update_extent", 'x',
		 offsetof(struct aq_kv_stats, update_trips), 0, TRIPS_PROBES,
		 NULL},
		{"rtt_read_extent", 'g',
		 offsetof(struct aq_kv_stats, get_trips), 0, TRIPS_PROBES,
		 "rtt_read_extent"},
		{"rtt_delete", 'd', offsetof(struct aq_kv_stats, delete_trips),
		 TRIPS_PROBES, TRIPS_PROBES, "rtt_delete"},
		{"rtt_insert_80_to_90", 'p',
		 offsetof(struct aq_kv_stats, insert_trips), entries,
		 entries / 10, NULL},
	};
	struct aq_kv_stats s;
	size_t i;
	int err = 0;

	for (i = 0; i < ARRAY_LEN(steps) && !err; i++)
		err = count_ops(b, t, steps[i].name, steps[i].what,
				steps[i].offset, steps[i].first, steps[i].count,
				steps[i].ratio);
	aq_kv_client_stats(t->c, &s);
	if (!err)
		(void)bench_row(b, "trips", "live_single_mcas_share",
				(double)s.lock_sets_single /
					(double)s.lock_sets,
				"share", "lock sets of all of these changes");
	return err;
}

/* The shipped client alone, with virtual locks and what it sees of rows, until
 * it is told that there is no room. */
int kv_bench_live(struct bench *b)
{
	uint32_t entries = b->quick ? LIVE_QUICK : LIVE, n = 0;
	struct table t;
	int err = table_open(b, &t, entries);

	while (!err && n <= entries) {
		err = put(&t, n, KV_BENCH_VALUE_BYTES);
		n += !err;
	}
	if (err == -ENOSPC) {
		double fill = (double)n / (double)entries;

		(void)bench_row(b, "live", "max_fill_live", fill, "share",
				"first key that a client is refused");
		bench_ratio_add(b, "max_fill_live", fill);
		err = 0;
	} else if (err) {
		(void)bench_fail(b, err, "%s", aq_last_error());
	} else {
		err = bench_fail(b, -EPROTO,
				 "a table of %u entries takes more keys",
				 entries);
	}
	table_close(&t);
	return err;
}

int kv_bench_trips(struct bench *b)
{
	uint32_t entries = b->quick ? TRIPS_QUICK : TRIPS;
	struct table t;
	int err = table_open(b, &t, entries);

	if (!err) {
		err = count_all(b, &t, entries);
		if (err)
			(void)bench_fail(b, err, "%s", aq_last_error());
	}
	table_close(&t);
	return err;
}

/* ---- speed -------------------------------------------------------------- */

static bool is_update(uint64_t at, unsigned update_share)
{
	return (at * 7919) % 1000 < update_share;
}

static int run_sync(struct table *t, const uint32_t *keys,
		    unsigned update_share, unsigned window_ms,
		    struct conduct_track *track, unsigned round)
{
	uint64_t start = bench_now_ns(), end = start + window_ms * 1000000ull;
	uint64_t now = start, at = 0;
	int err = 0;

	for (; now < end && !err; at++) {
		char key[KV_BENCH_KEY_BYTES + 1], value[KV_BENCH_VALUE_BYTES];
		size_t len;

		kv_bench_key(keys[at % DRAWS], key);
		if (is_update(at, update_share))
			err = aq_kv_put(t->c, key, KV_BENCH_KEY_BYTES, key,
					KV_BENCH_VALUE_BYTES, NULL);
		else
			err = aq_kv_get(t->c, key, KV_BENCH_KEY_BYTES, value,
					sizeof(value), &len);
		if (at % CLOCK_EVERY == 0)
			now = bench_now_ns();
	}
	conduct_record(track, round, at, bench_now_ns() - start);
	return err;
}

/* Always so many operations under way. */
static int run_async(struct table *t, const uint32_t *keys,
		     unsigned update_share, unsigned window_ms,
		     struct conduct_track *track, unsigned round)
{
	struct aq_kv_op op[KV_BENCH_PIPELINE], *done[KV_BENCH_PIPELINE];
	char key[KV_BENCH_PIPELINE][KV_BENCH_KEY_BYTES + 1];
	char value[KV_BENCH_PIPELINE][KV_BENCH_VALUE_BYTES] = {{0}};
	uint64_t start = bench_now_ns(), end = start + window_ms * 1000000ull;
	uint64_t now = start, at = 0, ended = 0, looks = 0;
	int i, n, err = 0;

	for (i = 0; i < KV_BENCH_PIPELINE; i++)
		done[i] = &op[i];
	n = KV_BENCH_PIPELINE;
	while (!err && ended < at + (uint64_t)(now < end)) {
		for (i = 0; i < n && now < end && !err; i++, at++) {
			size_t k = (size_t)(done[i] - op);

			kv_bench_key(keys[at % DRAWS], key[k]);
			op[k] = (struct aq_kv_op){
				.kind = is_update(at, update_share)
						? AQ_KV_OP_PUT
						: AQ_KV_OP_GET,
				.key = key[k],
				.key_len = KV_BENCH_KEY_BYTES,
				.value = value[k],
				.value_len = KV_BENCH_VALUE_BYTES};
			err = aq_kv_submit(t->c, &op[k]);
		}
		n = aq_kv_poll(t->c, done, KV_BENCH_PIPELINE, true);
		if (n < 0)
			err = n;
		else
			ended += (uint64_t)n;
		if (++looks % CLOCK_EVERY == 0)
			now = bench_now_ns();
	}
	conduct_record(track, round, ended, bench_now_ns() - start);
	return err;
}

#define OURS(name_)                                                        \
	{                                                                  \
		.name = name_, .what = "one client process, cable to the " \
				       "memory node, Zipf 0.99"            \
	}
#define PEER(name_)                                                 \
	{                                                           \
		.name = name_,                                      \
		.what = "redis-server, one connection, unix socket" \
	}

static const struct measure {
	struct subject_desc ours, peer;
	unsigned depth;
	unsigned update_share; /* of a thousand */
} measures[] = {
	{OURS("kv_c"), PEER("redis_c_p1"), 1, 0},
	{OURS("kv_c_async16"), PEER("redis_c_p16"), KV_BENCH_PIPELINE, 0},
	{OURS("kv_b"), PEER("redis_b_p1"), 1, 50},
	{OURS("kv_a"), PEER("redis_a_p1"), 1, 500},
	{OURS("kv_put"), PEER("redis_set_p1"), 1, 1000},
	{OURS("kv_put_async16"), PEER("redis_set_p16"), KV_BENCH_PIPELINE,
	 1000},
};

enum {
	MEASURES = ARRAY_LEN(measures),
};

struct speed {
	struct table table;
	struct kv_redis *redis; /* NULL: there is none */
	uint32_t *keys;
	struct conduct_track track[2 * MEASURES];
};

static int run_round(struct bench *b, struct speed *s, unsigned i,
		     unsigned round)
{
	const struct measure *m = &measures[i];
	struct conduct_track *ours = &s->track[2 * i];
	int err = (m->depth == 1 ? run_sync : run_async)(
		&s->table, s->keys, m->update_share, b->window_ms, ours, round);

	if (err)
		return bench_fail(b, err, "%s: %s", m->ours.name,
				  aq_last_error());
	if (s->redis)
		err = kv_redis_run(s->redis, s->keys, DRAWS, m->depth,
				   m->update_share, b->window_ms, ours + 1,
				   round);
	return err ? bench_fail(b, err, "%s: %s", m->peer.name, strerror(-err))
		   : 0;
}

static int load(struct table *t, uint64_t records)
{
	char key[KV_BENCH_KEY_BYTES + 1];
	uint32_t i;
	int err = 0;

	for (i = 0; i < records && !err; i++) {
		kv_bench_key(i, key);
		err = aq_kv_put(t->c, key, KV_BENCH_KEY_BYTES, key,
				KV_BENCH_VALUE_BYTES, NULL);
	}
	return err;
}

static int run_rounds(struct bench *b, struct speed *s)
{
	int err = 0;

	for (unsigned round = 0; round < b->rounds && !err; round++)
		for (unsigned i = 0; i < MEASURES && !err; i++)
			err = run_round(b, s, i, round);
	return err;
}

int kv_bench_speed(struct bench *b)
{
	uint64_t records = bench_number(b, "records");
	struct speed *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return bench_fail(b, -ENOMEM, "no memory");
	for (unsigned i = 0; i < 2 * MEASURES; i++)
		s->track[i].desc =
			i % 2 ? &measures[i / 2].peer : &measures[i / 2].ours;
	s->keys = kv_bench_zipf(records, DRAWS, 42);
	(void)shield_pin(SHIELD_CPU_CLIENT);
	(void)shield_enter_nice();
	err = s->keys ? table_open(b, &s->table, records * 5 / 4) : -ENOMEM;
	if (!err && load(&s->table, records))
		err = bench_fail(b, -EIO, "%s", aq_last_error());
	if (!err && kv_redis_start(records, 0, &s->redis))
		for (unsigned i = 1; i < 2 * MEASURES; i += 2)
			kv_redis_is_missing(&s->track[i]);
	if (!err)
		err = run_rounds(b, s);
	shield_leave();
	if (!err)
		bench_report_tracks(b, "speed", s->track, 2 * MEASURES, NULL);
	kv_redis_stop(s->redis);
	table_close(&s->table);
	free(s->keys);
	free(s);
	return err;
}
