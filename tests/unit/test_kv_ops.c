/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on a table: what they return, and how many round trips. */
#include "kv_rig.h"

#include "base/tally.h"

static void put(struct aq_kv_client *c, const char *key, const char *value)
{
	assert_int_equal(
		aq_kv_put(c, key, strlen(key), value, strlen(value), NULL), 0);
}

static void expect(struct aq_kv_client *c, const char *key, const char *value)
{
	char buf[64];
	size_t len = 0;

	assert_int_equal(aq_kv_get(c, key, strlen(key), buf, sizeof(buf), &len),
			 0);
	assert_int_equal(len, strlen(value));
	assert_memory_equal(buf, value, len);
}

static void expect_none(struct aq_kv_client *c, const char *key)
{
	assert_int_equal(aq_kv_get(c, key, strlen(key), NULL, 0, NULL),
			 -ENOENT);
}

static void test_basics(void **state)
{
	struct aq_kv_options o = {.capacity = 1000, .clients = 8};
	struct aq_kv_put_options nx = {.flags = AQ_KV_NX};
	struct aq_kv_put_options xx = {.flags = AQ_KV_XX};
	struct aq_kv_client *c, *d;
	struct rig r;
	char small[2];
	bool swapped;
	size_t len;
	int64_t n;

	rig_make(&r, &o);
	c = rig_client(&r, NULL);
	d = rig_client(&r, NULL);
	expect_none(c, "a");
	put(c, "a", "1");
	expect(d, "a", "1");
	put(d, "a", "two");
	expect(c, "a", "two");
	put(c, "empty", "");
	expect(d, "empty", "");
	assert_int_equal(aq_kv_get(c, "a", 1, small, 2, &len), -EMSGSIZE);
	assert_int_equal(len, 3);
	assert_memory_equal(small, "tw", 2);
	assert_int_equal(aq_kv_put(c, "a", 1, "x", 1, &nx), -EEXIST);
	assert_int_equal(aq_kv_put(c, "b", 1, "x", 1, &xx), -ENOENT);
	assert_int_equal(aq_kv_put(c, "b", 1, "x", 1, &nx), 0);
	assert_int_equal(aq_kv_put(c, "b", 1, "y", 1, &xx), 0);
	expect(d, "b", "y");
	assert_int_equal(aq_kv_cas(c, "b", 1, "x", 1, "z", 1, &swapped), 0);
	assert_false(swapped);
	assert_int_equal(aq_kv_cas(c, "b", 1, "y", 1, "z", 1, &swapped), 0);
	assert_true(swapped);
	expect(d, "b", "z");
	assert_int_equal(aq_kv_cas(c, "q", 1, "y", 1, "z", 1, &swapped),
			 -ENOENT);
	assert_int_equal(aq_kv_incr(c, "n", 1, 5, &n), 0);
	assert_int_equal(aq_kv_incr(d, "n", 1, -12, &n), 0);
	assert_int_equal(n, -7);
	expect(c, "n", "-7");
	assert_int_equal(aq_kv_incr(c, "a", 1, 1, &n), -EINVAL);
	put(c, "max", "9223372036854775807");
	assert_int_equal(aq_kv_incr(c, "max", 3, 1, &n), -ERANGE);
	assert_int_equal(aq_kv_del(c, "a", 1), 0);
	assert_int_equal(aq_kv_del(c, "a", 1), -ENOENT);
	expect_none(d, "a");
	assert_int_equal(aq_kv_put(c, "", 0, "", 0, NULL), -EINVAL);
	rig_check_with(c, 4);
	kv_client_destroy(c);
	kv_client_destroy(d);
	kit_rig_break(&r.far);
}

static void fill(uint8_t *p, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(seed * 131 + i * 7 + (i >> 8));
}

/* Values of all sizes, short keys and long ones, replaced by others. */
static void test_extents(void **state)
{
	static const size_t sizes[] = {0,    1,	   40,	   60,	   500,
				       4000, 5000, 70000,  300000, 1100000,
				       10,   100,  200000, 0,	   64};
	struct aq_kv_options o = {.capacity = 200,
				  .clients = 4,
				  .extent_bytes = 16 << 20,
				  .chunk_bytes = 65536};
	struct aq_kv_client *c, *d;
	uint8_t *value = malloc(2 << 20), *back = malloc(2 << 20);
	char key[AQ_KV_KEY_MAX];
	struct rig r;
	uint32_t i, k;
	size_t len;

	rig_make(&r, &o);
	c = rig_client(&r, NULL);
	d = rig_client(&r, NULL);
	for (k = 0; k < 3; k++) {
		for (i = 0; i < ARRAY_LEN(sizes); i++) {
			size_t key_len = i % 2 ? 250 : 5;

			memset(key, 'k', sizeof(key));
			key[0] = (char)('0' + k);
			fill(value, sizes[i], i);
			assert_int_equal(aq_kv_put(i % 3 ? c : d, key, key_len,
						   value, sizes[i], NULL),
					 0);
			assert_int_equal(aq_kv_get(i % 3 ? d : c, key, key_len,
						   back, 2 << 20, &len),
					 0);
			assert_int_equal(len, sizes[i]);
			assert_memory_equal(value, back, len);
		}
	}
	rig_check_with(d, 6);
	for (k = 0; k < 3; k++) {
		memset(key, 'k', sizeof(key));
		key[0] = (char)('0' + k);
		assert_int_equal(aq_kv_del(c, key, 250), 0);
		assert_int_equal(aq_kv_del(d, key, 5), 0);
	}
	rig_check_with(c, 0);
	kv_client_destroy(c);
	kv_client_destroy(d);
	free(value);
	free(back);
	kit_rig_break(&r.far);
}

/* More bytes go through the extents than there are: the owner collects. */
static void test_collection(void **state)
{
	struct aq_kv_options o = {.capacity = 64,
				  .clients = 4,
				  .extent_bytes = 256 << 10,
				  .chunk_bytes = 65536};
	struct aq_kv_client *c, *d;
	struct aq_kv_stats s;
	uint8_t value[3000];
	struct rig r;
	uint32_t i;
	int err = 0;

	rig_make(&r, &o);
	c = rig_client(&r, NULL);
	d = rig_client(&r, NULL);
	fill(value, sizeof(value), 9);
	for (i = 0; i < 400; i++) {
		uint8_t key = (uint8_t)(i % 7);

		assert_int_equal(aq_kv_put(i % 2 ? c : d, &key, 1, value,
					   sizeof(value), NULL),
				 0);
	}
	aq_kv_client_stats(c, &s);
	assert_true(s.extents_collected > 0);
	for (i = 0; i < 1000 && !err; i++)
		err = aq_kv_put(c, &i, sizeof(i), value, sizeof(value), NULL);
	assert_int_equal(err, -ENOSPC);
	rig_check_with(d, UINT64_MAX);
	kv_client_destroy(c);
	kv_client_destroy(d);
	kit_rig_break(&r.far);
}

static uint64_t fake_ms;

static uint64_t fake_now_ms(void *ctx)
{
	return fake_ms;
}

static int nothing(const struct aq_kv_item *item, void *user)
{
	return 0;
}

static void test_expiry(void **state)
{
	struct aq_kv_options o = {
		.capacity = 64, .clients = 4, .entry_bytes = 32};
	struct kv_client_config cfg = {.now_ms = fake_now_ms};
	struct aq_kv_put_options at = {.expire_at_ms = 1000};
	struct aq_kv_put_options keep = {.flags = AQ_KV_KEEP_TTL};
	struct aq_kv_client *c;
	uint8_t value[2000], back[2000];
	struct rig r;
	uint64_t end;
	size_t len;

	fake_ms = 100;
	rig_make(&r, &o);
	c = rig_client(&r, &cfg);
	fill(value, sizeof(value), 3);
	assert_int_equal(aq_kv_put(c, "a", 1, "1", 1, &at), 0);
	assert_int_equal(aq_kv_put(c, "b", 1, value, sizeof(value), &at), 0);
	assert_int_equal(aq_kv_put(c, "a", 1, "2", 1, &keep), 0);
	assert_int_equal(aq_kv_expiry(c, "a", 1, &end), 0);
	assert_int_equal(end, 1000);
	assert_int_equal(aq_kv_expire(c, "b", 1, 2000), 0);
	assert_int_equal(aq_kv_expiry(c, "b", 1, &end), 0);
	assert_int_equal(end, 2000);
	fake_ms = 1000;
	expect_none(c, "a");
	assert_int_equal(aq_kv_del(c, "a", 1), -ENOENT);
	assert_int_equal(aq_kv_get(c, "b", 1, back, sizeof(back), &len), 0);
	assert_memory_equal(value, back, sizeof(back));
	assert_int_equal(aq_kv_expire(c, "b", 1, 0), 0);
	fake_ms = 5000;
	assert_int_equal(aq_kv_get(c, "b", 1, back, sizeof(back), &len), 0);
	assert_int_equal(aq_kv_expire(c, "a", 1, 0), -ENOENT);
	rig_check_with(c, 1);
	kv_client_destroy(c);
	kit_rig_break(&r.far);
}

/* Every operation counts once, however it is submitted; a key that is not there
 * is an answer, and each answer has a time. */
static void test_tally(void **state)
{
	struct aq_kv_options o = {.capacity = 64, .clients = 4};
	struct kv_client_config cfg = {.tally =
					       calloc(1, sizeof(struct tally))};
	const uint64_t *n = cfg.tally->count;
	struct aq_kv_op op[4];
	struct aq_kv_client *c;
	uint64_t cursor = 0, timed;
	char buf[64];
	struct rig r;
	size_t len;

	rig_make(&r, &o);
	c = rig_client(&r, &cfg);
	put(c, "a", "12345");
	expect(c, "a", "12345");
	expect_none(c, "b");
	assert_int_equal(aq_kv_del(c, "b", 1), -ENOENT);
	assert_int_equal(aq_kv_incr(c, "i", 1, 1, NULL), 0);
	assert_int_equal(n[TALLY_WRITES], 1);
	assert_int_equal(n[TALLY_READS], 2);
	assert_int_equal(n[TALLY_DELETES], 1);
	assert_int_equal(n[TALLY_ATOMICS], 1);
	assert_int_equal(n[TALLY_READ_BYTES], 5);
	assert_int_equal(n[TALLY_WRITE_BYTES], 5);
	assert_int_equal(n[TALLY_ERRORS], 0);
	assert_int_equal(hist_count(&cfg.tally->latency), 5);
	/* Together, of which one goes alone; and one that fails. */
	for (unsigned i = 0; i < 4; i++)
		op[i] = (struct aq_kv_op){.kind = i < 2 ? AQ_KV_OP_PUT
							: AQ_KV_OP_GET,
					  .key = i % 2 ? "c" : "a",
					  .key_len = 1,
					  .value = i == 1 ? (void *)"1" : buf,
					  .value_len = i == 1 ? 1 : 64};
	memset(buf, 'x', sizeof(buf));
	assert_int_equal(aq_kv_batch(c, op, 4), 0);
	assert_int_equal(n[TALLY_WRITES], 3);
	assert_int_equal(n[TALLY_READS], 4);
	assert_int_equal(n[TALLY_WRITE_BYTES], 5 + 65);
	assert_int_equal(n[TALLY_READ_BYTES], 5 + 65);
	/* One was timed; those that ended after it count with the next. */
	timed = hist_count(&cfg.tally->latency);
	assert_in_range(timed, 6, 9);
	assert_int_equal(aq_kv_incr(c, "a", 1, 1, NULL), -EINVAL);
	assert_int_equal(n[TALLY_ERRORS], 1);
	assert_int_equal(hist_count(&cfg.tally->latency), timed);
	assert_int_equal(aq_kv_get(c, "a", 1, buf, 3, &len), -EMSGSIZE);
	assert_int_equal(n[TALLY_READ_BYTES], 5 + 65 + 3);
	assert_int_equal(aq_kv_scan(c, &cursor, 64, 0, nothing, NULL), 0);
	assert_true(n[TALLY_SCANS] == 1 && n[TALLY_ERRORS] == 1);
	cursor = 0;
	assert_int_equal(
		aq_kv_scan(c, &cursor, 64, AQ_KV_SCAN_EXPIRED, nothing, NULL),
		0);
	assert_int_equal(n[TALLY_SCANS], 1);
	kv_client_destroy(c);
	kit_rig_break(&r.far);
	free(cfg.tally);
}

/* A table of small pairs only. */
static void test_small_entries(void **state)
{
	struct aq_kv_options o = {
		.capacity = 64, .clients = 4, .entry_bytes = 16};
	struct aq_kv_put_options at = {.expire_at_ms = 1ull << 50};
	struct aq_kv_client *c;
	struct rig r;
	int64_t n;

	rig_make(&r, &o);
	c = rig_client(&r, NULL);
	put(c, "key1", "1234");
	expect(c, "key1", "1234");
	put(c, "key1", "abcd");
	expect(c, "key1", "abcd");
	assert_int_equal(aq_kv_put(c, "key1", 4, "12345", 5, NULL), -E2BIG);
	assert_int_equal(aq_kv_put(c, "key1", 4, "1", 1, &at), -E2BIG);
	assert_int_equal(aq_kv_expire(c, "key1", 4, 1ull << 50), -E2BIG);
	expect(c, "key1", "abcd");
	assert_int_equal(aq_kv_incr(c, "key2", 4, 41, &n), 0);
	assert_int_equal(aq_kv_incr(c, "key2", 4, 1, &n), 0);
	expect(c, "key2", "42");
	assert_int_equal(aq_kv_incr(c, "key2", 4, 99999, &n), -E2BIG);
	assert_int_equal(aq_kv_del(c, "key2", 4), 0);
	expect_none(c, "key2");
	rig_check_with(c, 1);
	kv_client_destroy(c);
	kit_rig_break(&r.far);
}

static void test_trips(void **state)
{
	struct aq_kv_options o = {.capacity = 512, .clients = 4};
	struct aq_kv_client *c;
	struct aq_kv_stats s;
	char buf[200] = {1};
	struct rig r;
	size_t len;

	rig_make(&r, &o);
	c = rig_client(&r, NULL);
	put(c, "a", "1");
	put(c, "a", "2");
	expect(c, "a", "2");
	aq_kv_client_stats(c, &s);
	assert_int_equal(s.inserts, 1);
	assert_int_equal(s.insert_trips, 2);
	assert_int_equal(s.update_trips, 2);
	assert_int_equal(s.get_trips, 1);
	assert_int_equal(aq_kv_put(c, "a", 1, buf, sizeof(buf), NULL), 0);
	aq_kv_client_stats(c, &s);
	assert_int_equal(aq_kv_put(c, "a", 1, buf, sizeof(buf), NULL), 0);
	assert_int_equal(aq_kv_get(c, "a", 1, buf, sizeof(buf), &len), 0);
	{
		struct aq_kv_stats t;

		aq_kv_client_stats(c, &t);
		assert_int_equal(t.update_trips - s.update_trips, 2);
		assert_int_equal(t.get_trips - s.get_trips, 2);
	}
	assert_int_equal(aq_kv_del(c, "a", 1), 0);
	aq_kv_client_stats(c, &s);
	assert_int_equal(s.delete_trips, 2);
	kv_client_destroy(c);
	kit_rig_break(&r.far);
}

static int count_item(const struct aq_kv_item *item, void *user)
{
	uint32_t key, *sum = user;

	assert_int_equal(item->key_len, sizeof(key));
	memcpy(&key, item->key, sizeof(key));
	assert_memory_equal(item->value, &key, sizeof(key));
	*sum += key;
	return 0;
}

/* Until nothing fits any more; everything is still there. */
static void fill_to_the_end(const struct aq_kv_options *o, double least)
{
	struct aq_kv_client *c[2];
	struct rig r;
	uint32_t i, n, value, sum = 0, want = 0;
	uint64_t cursor = 0, count;
	size_t len;
	int err = 0;

	rig_make(&r, o);
	c[0] = rig_client(&r, NULL);
	c[1] = rig_client(&r, NULL);
	for (n = 0; !err; n++) {
		err = aq_kv_put(c[n % 2], &n, sizeof(n), &n, sizeof(n), NULL);
		want += err ? 0 : n;
	}
	n--;
	assert_int_equal(err, -ENOSPC);
	assert_true(n >= least * (double)(r.g.rows * r.g.entries));
	for (i = 0; i < n; i++) {
		assert_int_equal(aq_kv_get(c[i % 2], &i, sizeof(i), &value,
					   sizeof(value), &len),
				 0);
		assert_int_equal(value, i);
	}
	do
		assert_int_equal(
			aq_kv_scan(c[0], &cursor, 7, 0, count_item, &sum), 0);
	while (cursor);
	assert_int_equal(sum, want);
	assert_int_equal(aq_kv_count(c[0], &count), 0);
	assert_int_equal(count, n);
	rig_check_with(c[0], n);
	for (i = 0; i < n; i++)
		assert_int_equal(aq_kv_del(c[i % 2], &i, sizeof(i)), 0);
	rig_check_with(c[1], 0);
	kv_client_destroy(c[0]);
	kv_client_destroy(c[1]);
	kit_rig_break(&r.far);
}

static void test_fill(void **state)
{
	struct aq_kv_options o = {
		.capacity = 4096, .clients = 4, .entry_bytes = 32, .seed = 7};

	fill_to_the_end(&o, 0.9);
	o.hash = AQ_KV_HASH_BLOCK;
	fill_to_the_end(&o, 0.85);
	o.hash = AQ_KV_HASH_INDEPENDENT;
	fill_to_the_end(&o, 0.8);
	o.hash = AQ_KV_HASH_DEPENDENT;
	o.flags = AQ_KV_WORD_LOCKS;
	o.rows_per_lock = 4;
	fill_to_the_end(&o, 0.9);
	o.flags = 0;
	o.rows_per_lock = 1;
	o.lock_max = 64; /* virtual locks */
	fill_to_the_end(&o, 0.9);
}

static void test_batch(void **state)
{
	enum {
		N = 100
	};
	struct aq_kv_options o = {.capacity = 1024, .clients = 4};
	struct aq_kv_op op[N];
	struct aq_kv_client *c;
	uint32_t key[N], got[N];
	struct rig r;
	uint32_t i;

	rig_make(&r, &o);
	c = rig_client(&r, NULL);
	for (i = 0; i < N; i++) {
		key[i] = i;
		op[i] = (struct aq_kv_op){.kind = AQ_KV_OP_PUT,
					  .key = &key[i],
					  .key_len = 4,
					  .value = &key[i],
					  .value_len = 4};
	}
	assert_int_equal(aq_kv_batch(c, op, N), 0);
	for (i = 0; i < N; i++) {
		assert_int_equal(op[i].err, 0);
		key[i] = 2 * i;
		op[i].kind = AQ_KV_OP_GET;
		op[i].value = &got[i];
	}
	assert_int_equal(aq_kv_batch(c, op, N), 0);
	for (i = 0; i < N; i++) {
		assert_int_equal(op[i].err, 2 * i < N ? 0 : -ENOENT);
		if (2 * i < N)
			assert_int_equal(got[i], 2 * i);
	}
	kv_client_destroy(c);
	kit_rig_break(&r.far);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_basics),
		cmocka_unit_test(test_extents),
		cmocka_unit_test(test_collection),
		cmocka_unit_test(test_expiry),
		cmocka_unit_test(test_tally),
		cmocka_unit_test(test_small_entries),
		cmocka_unit_test(test_trips),
		cmocka_unit_test(test_fill),
		cmocka_unit_test(test_batch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
