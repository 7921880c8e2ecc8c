/* SPDX-License-Identifier: Apache-2.0 */
/* Counted round trips, and operations per second beside redis-server, in turns,
 * on a rack of its own. */
#include <aquifer/kv.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/hist.h"
#include "base/rng.h"
#include "guard.h"
#include "kv_bench.h"
#include "offload_bench.h"
#include "sim/ycsb.h"

enum {
	DRAWS = 1 << 18,
	POOL_MB = 512,
	TRIPS_PROBES = 500, /* a tenth of the smallest table */
	EXTENT_VALUE = 600,
	ROUNDS_MAX = 101,
	CLOCK_EVERY = 32,
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

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

static int table_open(struct table *t, uint64_t capacity)
{
	struct aq_kv_options o = {.capacity = capacity,
				  .entry_bytes = 32,
				  .extent_bytes = 64 << 20,
				  .seed = 1};
	uint64_t bytes = capacity * 40 + (uint64_t)(POOL_MB - 128) * 1048576;
	int err;

	memset(t, 0, sizeof(*t));
	err = offload_rack_start(bytes, &t->rack_process);
	if (!err)
		err = aq_rack_open(NULL, &t->rack);
	if (!err)
		err = aq_kv_create(t->rack, "bench", &o, &t->kv);
	if (!err)
		err = aq_kv_client_open(t->kv, NULL, &t->c);
	if (err)
		fprintf(stderr, "aquifer bench kv: %s\n", aq_last_error());
	return err;
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

static void add_trips(struct kv_bench *b, const char *name,
		      const struct hist *h, const char *ratio)
{
	char mean[48];

	kv_bench_row(b, "trips", name, (double)hist_percentile(h, HIST_MEDIAN),
		     "round trips", "median, counted");
	snprintf(mean, sizeof(mean), "%s_mean", name);
	kv_bench_row(b, "trips", mean, hist_mean(h), "round trips",
		     "mean, counted");
	snprintf(mean, sizeof(mean), "%s_p99", name);
	kv_bench_row(b, "trips", mean, (double)hist_percentile(h, HIST_P99),
		     "round trips", "p99, counted");
	if (ratio)
		json_object_set_new(
			b->ratios, ratio,
			json_real((double)hist_percentile(h, HIST_MEDIAN)));
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
static int count_ops(struct kv_bench *b, struct table *t, const char *name,
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

static int count_all(struct kv_bench *b, struct table *t)
{
	const struct {
		const char *name; /* NULL: not shown */
		char what;
		size_t offset;
		uint32_t first, count;
		const char *ratio; /* NULL: none */
	} steps[] = {
		{"rtt_insert", 'p', offsetof(struct aq_kv_stats, insert_trips),
		 0, b->trips_entries / 10 * 8, "rtt_insert_median"},
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
		 offsetof(struct aq_kv_stats, insert_trips), b->trips_entries,
		 b->trips_entries / 10, NULL},
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
		kv_bench_row(b, "trips", "live_single_mcas_share",
			     (double)s.lock_sets_single / (double)s.lock_sets,
			     "share", "lock sets of all of these changes");
	return err;
}

int kv_bench_trips(struct kv_bench *b)
{
	struct table t;
	int err = table_open(&t, b->trips_entries);

	if (!err)
		err = count_all(b, &t);
	if (err)
		fprintf(stderr, "aquifer bench kv: %s\n", aq_last_error());
	table_close(&t);
	return err;
}

/* ---- speed -------------------------------------------------------------- */

static bool is_update(uint64_t at, unsigned update_share)
{
	return (at * 7919) % 1000 < update_share;
}

static int run_sync(struct table *t, const uint32_t *keys,
		    unsigned update_share, unsigned window_ms, double *rate)
{
	uint64_t start = now_ns(), end = start + window_ms * 1000000ull;
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
			now = now_ns();
	}
	*rate = (double)at * 1e9 / (double)(now_ns() - start);
	return err;
}

/* Always so many operations under way. */
static int run_async(struct table *t, const uint32_t *keys,
		     unsigned update_share, unsigned window_ms, double *rate)
{
	struct aq_kv_op op[KV_BENCH_PIPELINE], *done[KV_BENCH_PIPELINE];
	char key[KV_BENCH_PIPELINE][KV_BENCH_KEY_BYTES + 1];
	char value[KV_BENCH_PIPELINE][KV_BENCH_VALUE_BYTES] = {{0}};
	uint64_t start = now_ns(), end = start + window_ms * 1000000ull;
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
			now = now_ns();
	}
	*rate = (double)ended * 1e9 / (double)(now_ns() - start);
	return err;
}

struct measure {
	const char *ratio;
	double bound; /* 0: none */
	const char *ours, *peer;
	unsigned depth;
	unsigned update_share; /* of a thousand */
	double rate[2][ROUNDS_MAX];
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double kv_bench_median(double *v, unsigned n)
{
	qsort(v, n, sizeof(*v), by_value);
	return v[n / 2];
}

static int run_round(struct kv_bench *b, struct table *t, struct kv_redis *r,
		     const uint32_t *keys, struct measure *m, unsigned round)
{
	int err = m->depth == 1 ? run_sync(t, keys, m->update_share,
					   b->window_ms, &m->rate[0][round])
				: run_async(t, keys, m->update_share,
					    b->window_ms, &m->rate[0][round]);

	if (err)
		fprintf(stderr, "aquifer bench kv: %s: %s\n", m->ours,
			aq_last_error());
	else if (r)
		err = kv_redis_run(r, keys, DRAWS, m->depth, m->update_share,
				   b->window_ms, &m->rate[1][round]);
	return err;
}

static void report(struct kv_bench *b, struct measure *m, bool has_peer)
{
	double ours = kv_bench_median(m->rate[0], b->rounds), peer;

	kv_bench_row(b, m->ratio, m->ours, ours, "op/s",
		     "one client process, cable to the memory node, Zipf 0.99");
	if (!has_peer) {
		json_object_set_new(b->voids, m->ratio,
				    json_string("redis-server does not start; "
						"is it installed?"));
		return;
	}
	peer = kv_bench_median(m->rate[1], b->rounds);
	kv_bench_row(b, m->ratio, m->peer, peer, "op/s",
		     "redis-server, one connection, unix socket");
	/* On a busy machine the medians measure the others; the best rounds
	 * show what there would be. They decide nothing. */
	kv_bench_row(b, m->ratio, "best_over_best",
		     m->rate[0][b->rounds - 1] / m->rate[1][b->rounds - 1],
		     "ratio", "the best round of each; decides nothing");
	if (m->bound > 0)
		kv_bench_row(b, m->ratio, "bound", m->bound, "ratio",
			     "must be");
	json_object_set_new(b->ratios, m->ratio, json_real(ours / peer));
}

/* Both were measured in the same rounds, and are in order by now. */
static void report_puts(struct kv_bench *b, const struct measure *one,
			const struct measure *many)
{
	const char *name = "kv_put_async_vs_sync";
	double ratio =
		many->rate[0][b->rounds / 2] / one->rate[0][b->rounds / 2];

	kv_bench_row(b, name, "ratio", ratio, "ratio",
		     "puts with sixteen under way, over one at a time");
	kv_bench_row(b, name, "best_over_best",
		     many->rate[0][b->rounds - 1] / one->rate[0][b->rounds - 1],
		     "ratio", "the best round of each; decides nothing");
	json_object_set_new(b->ratios, name, json_real(ratio));
}

static int load(struct kv_bench *b, struct table *t)
{
	char key[KV_BENCH_KEY_BYTES + 1];
	uint32_t i;
	int err = 0;

	for (i = 0; i < b->records && !err; i++) {
		kv_bench_key(i, key);
		err = aq_kv_put(t->c, key, KV_BENCH_KEY_BYTES, key,
				KV_BENCH_VALUE_BYTES, NULL);
	}
	return err;
}

int kv_bench_speed(struct kv_bench *b)
{
	static struct measure measures[] = {
		{.ratio = "kv_c_vs_redis_p1",
		 .bound = 5,
		 .ours = "kv_c",
		 .peer = "redis_c_p1",
		 .depth = 1},
		{.ratio = "kv_c_async_vs_redis_p16",
		 .bound = 2,
		 .ours = "kv_c_async16",
		 .peer = "redis_c_p16",
		 .depth = KV_BENCH_PIPELINE},
		{.ratio = "kv_b_vs_redis_p1",
		 .bound = 3,
		 .ours = "kv_b",
		 .peer = "redis_b_p1",
		 .depth = 1,
		 .update_share = 50},
		{.ratio = "kv_a_vs_redis_p1",
		 .bound = 3,
		 .ours = "kv_a",
		 .peer = "redis_a_p1",
		 .depth = 1,
		 .update_share = 500},
		{.ratio = "kv_put_vs_redis_p1",
		 .ours = "kv_put",
		 .peer = "redis_set_p1",
		 .depth = 1,
		 .update_share = 1000},
		{.ratio = "kv_put_async_vs_redis_p16",
		 .ours = "kv_put_async16",
		 .peer = "redis_set_p16",
		 .depth = KV_BENCH_PIPELINE,
		 .update_share = 1000},
	};
	/* The last two: sixteen puts under way, and one. */
	struct measure *one = &measures[ARRAY_LEN(measures) - 2];
	struct measure *many = one + 1;
	struct kv_redis *r = NULL;
	struct table t;
	uint32_t *keys = kv_bench_zipf(b->records, DRAWS, 42);
	unsigned round, i;
	int err;

	if (!keys)
		return -ENOMEM;
	(void)guard_pin(GUARD_CPU_CLIENT);
	(void)guard_enter_nice();
	err = table_open(&t, b->records * 5 / 4);
	if (!err)
		err = load(b, &t);
	if (!err && kv_redis_start(b->records, &r))
		r = NULL;
	for (round = 0; round < b->rounds && !err; round++)
		for (i = 0; i < ARRAY_LEN(measures) && !err; i++)
			err = run_round(b, &t, r, keys, &measures[i], round);
	for (i = 0; i < ARRAY_LEN(measures) && !err; i++)
		report(b, &measures[i], r != NULL);
	if (!err)
		report_puts(b, one, many);
	guard_leave();
	kv_redis_stop(r);
	table_close(&t);
	free(keys);
	return err;
}
