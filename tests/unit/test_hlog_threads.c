/* SPDX-License-Identifier: Apache-2.0 */
/* Several threads on one store: counters that must add up, and values that must
 * be whole; also under ThreadSanitizer. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "hlog_fixture.h"

enum {
	THREADS = 3,
	KEYS = 400,
	STEPS = 60000,
	PAGE = 4096,
	SHARDS = 4,
	DEVICE_BYTES = 64 << 20,
	VALUE = 64,
};

struct worker {
	struct hlog *store;
	unsigned number;
	unsigned added;
	unsigned far;
	atomic_uint *left; /* workers that still need the others' polls */
};

static void add(void *arg, void *value, uint32_t value_bytes)
{
	uint64_t v;

	memcpy(&v, value, 8);
	v++;
	/* All words alike: a torn value shows. */
	for (uint32_t i = 0; i + 8 <= value_bytes; i += 8)
		memcpy((uint8_t *)value + i, &v, 8);
	(*(unsigned *)arg)++;
}

static void check_whole(const void *value, uint32_t len)
{
	uint64_t first, word;

	if (len != VALUE)
		abort();
	memcpy(&first, value, 8);
	for (uint32_t i = 8; i < len; i += 8) {
		memcpy(&word, (const uint8_t *)value + i, 8);
		if (word != first)
			abort();
	}
}

static void drain(struct worker *w, struct hlog_session *s)
{
	struct hlog_done d[16];
	int n = hlog_poll(s, d, 16);

	if (n < 0)
		abort();
	for (int i = 0; i < n; i++) {
		if (d[i].err < 0)
			abort();
		if (d[i].kind == HLOG_READ)
			check_whole(d[i].value, d[i].value_bytes);
		w->far++;
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct hlog_session *s;
	struct rng r;

	if (hlog_session_open(w->store, NULL, &s) < 0)
		abort();
	rng_init_stream(&r, 11, w->number);
	for (unsigned i = 0; i < STEPS; i++) {
		uint64_t key = rng_below(&r, KEYS);
		uint8_t value[VALUE];
		uint32_t len = sizeof(value);
		int rc;

		do {
			if (rng_chance_ppm(&r, 500000)) {
				rc = hlog_rmw(s, key, VALUE, add, &w->added, 0);
			} else {
				len = sizeof(value);
				rc = hlog_read(s, key, value, &len, 0);
				if (rc == 0)
					check_whole(value, len);
			}
			if (rc == -EAGAIN) {
				drain(w, s);
				sched_yield();
			}
		} while (rc == -EAGAIN);
		if (rc < 0 && rc != -EINPROGRESS)
			abort();
		if (i % 8 == 0)
			drain(w, s);
	}
	while (hlog_pending(s))
		drain(w, s);
	/* Others may wait for pages of this session. Relaxed: a count only. */
	atomic_fetch_sub_explicit(w->left, 1, memory_order_relaxed);
	while (atomic_load_explicit(w->left, memory_order_relaxed)) {
		drain(w, s);
		sched_yield();
	}
	hlog_session_close(s);
	return NULL;
}

static void test_counters(void **state)
{
	struct hlog_options opt = {.local_bytes = 6 * PAGE * SHARDS,
				   .record_count = KEYS,
				   .value_max = VALUE,
				   .page_bytes = PAGE,
				   .shard_count = SHARDS,
				   .mutable_percent = 30};
	struct worker w[THREADS];
	pthread_t t[THREADS];
	atomic_uint left = THREADS;
	uint64_t sum = 0, want = 0;
	struct hlog_session *s;
	struct hlog_device *dev;
	struct hlog *h;

	assert_int_equal(hlog_device_mem_create(DEVICE_BYTES, &dev), 0);
	opt.device = dev;
	assert_int_equal(hlog_create(&opt, &h), 0);
	assert_int_equal(hlog_session_open(h, NULL, &s), 0);
	for (uint64_t k = 0; k < KEYS; k++) {
		uint8_t zero[VALUE] = {0};

		assert_int_equal(FX_INSIST(s, hlog_upsert(s, k, zero, VALUE)),
				 0);
	}
	assert_int_equal(hlog_sync(s), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		w[i] = (struct worker){.store = h, .number = i, .left = &left};
		assert_int_equal(pthread_create(&t[i], NULL, work, &w[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (unsigned i = 0; i < THREADS; i++) {
		want += w[i].added;
		assert_true(w[i].far > 100);
	}
	for (uint64_t k = 0; k < KEYS; k++) {
		uint8_t value[FX_VALUE_MAX];
		uint64_t v;
		uint32_t len;

		assert_int_equal(fx_get(s, k, value, &len), 0);
		check_whole(value, len);
		memcpy(&v, value, 8);
		sum += v;
	}
	assert_int_equal(sum, want);
	hlog_session_close(s);
	hlog_destroy(h);
	hlog_device_destroy(dev);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_counters)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
