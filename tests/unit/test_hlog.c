/* SPDX-License-Identifier: Apache-2.0 */
/* Every operation on every device that needs no second process, with recovery,
 * limits and misuse. */
#include "hlog_fixture.h"

enum {
	DEVICE_BYTES = 4 << 20,
	PAGE = 4096,
	SHARDS = 2,
	KEYS = 3000,
};

struct fixture {
	const char *kind;
	struct hlog_device *device;
	struct hlog_device *inner; /* of a late one */
	struct hlog *store;
	struct hlog_session *s;
	struct hlog_options opt;
	char path[64];
};

static struct hlog_device *make_device(struct fixture *f)
{
	struct hlog_device *dev;
	int rc;

	if (strcmp(f->kind, "file") == 0) {
		rc = hlog_device_file_create(f->path, DEVICE_BYTES, &dev);
		/* Some kernels and containers forbid io_uring. */
		if (rc == -ENOSYS || rc == -EPERM)
			return NULL;
	} else {
		rc = hlog_device_mem_create(DEVICE_BYTES, &dev);
	}
	assert_int_equal(rc, 0);
	if (strcmp(f->kind, "late") == 0) {
		f->inner = dev;
		return &fx_late_create(dev, 5)->base;
	}
	return dev;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int fd;

	assert_non_null(f);
	f->kind = *state;
	/* /var/tmp: a tmpfs cannot do without its cache. */
	snprintf(f->path, sizeof(f->path), "/var/tmp/aq-hlog-XXXXXX");
	fd = mkstemp(f->path);
	assert_true(fd >= 0);
	close(fd);
	f->device = make_device(f);
	f->opt = (struct hlog_options){
		.device = f->device,
		.local_bytes = 8 * PAGE * SHARDS,
		.record_count = KEYS,
		.value_max = FX_VALUE_MAX,
		.page_bytes = PAGE,
		.shard_count = SHARDS,
	};
	if (f->device) {
		assert_int_equal(hlog_create(&f->opt, &f->store), 0);
		assert_int_equal(hlog_session_open(f->store, NULL, &f->s), 0);
	}
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	hlog_session_close(f->s);
	hlog_destroy(f->store);
	hlog_device_destroy(f->device);
	hlog_device_destroy(f->inner);
	unlink(f->path);
	free(f);
	return 0;
}

static uint32_t len_of(uint64_t key)
{
	return (uint32_t)(key % FX_VALUE_MAX) + 1;
}

static void put(struct fixture *f, uint64_t key, uint32_t version)
{
	uint8_t value[FX_VALUE_MAX];
	uint32_t len = fx_value(value, key, version, len_of(key));

	assert_int_equal(FX_INSIST(f->s, hlog_upsert(f->s, key, value, len)),
			 0);
}

static void expect(struct fixture *f, uint64_t key, uint32_t version)
{
	uint8_t value[FX_VALUE_MAX];
	uint32_t len;

	assert_int_equal(fx_get(f->s, key, value, &len), 0);
	fx_check(value, len, key, version, len_of(key));
}

static void expect_none(struct fixture *f, uint64_t key)
{
	uint8_t value[FX_VALUE_MAX];
	uint32_t len;

	assert_int_equal(fx_get(f->s, key, value, &len), -ENOENT);
}

static void erase(struct fixture *f, uint64_t key)
{
	assert_int_equal(FX_INSIST(f->s, hlog_delete(f->s, key)), 0);
}

static void test_near(void **state)
{
	struct fixture *f = *state;
	uint8_t small[1];
	uint32_t len = sizeof(small);

	if (!f->device)
		return;
	expect_none(f, 1);
	erase(f, 1); /* what is not there */
	put(f, 1, 1);
	put(f, 199, 1);
	expect(f, 1, 1);
	put(f, 1, 2);
	expect(f, 1, 2);
	assert_int_equal(hlog_session_stats(f->s)->in_place, 1);
	assert_int_equal(hlog_session_stats(f->s)->appends, 2);
	assert_int_equal(hlog_session_stats(f->s)->far_reads, 0);
	assert_int_equal(hlog_read(f->s, 199, small, &len, 0), -ENOBUFS);
	assert_int_equal(len, len_of(199));
	erase(f, 1);
	erase(f, 1);
	expect_none(f, 1);
	put(f, 1, 3);
	expect(f, 1, 3);
	expect(f, 199, 1);
}

static void test_far(void **state)
{
	struct fixture *f = *state;
	const struct hlog_stats *st;

	if (!f->device)
		return;
	for (uint64_t k = 0; k < KEYS; k++)
		put(f, k, 1);
	for (uint64_t k = 0; k < KEYS; k += 7)
		put(f, k, 2);
	for (uint64_t k = 3; k < KEYS; k += 21)
		erase(f, k);
	for (uint64_t k = 0; k < KEYS; k++) {
		if (k >= 3 && (k - 3) % 21 == 0)
			expect_none(f, k);
		else
			expect(f, k, k % 7 ? 1 : 2);
	}
	expect_none(f, KEYS + 5);
	st = hlog_session_stats(f->s);
	assert_true(st->far_reads > KEYS / 2);
	assert_true(st->pages_written > 50);
}

static void add_one(void *arg, void *value, uint32_t value_bytes)
{
	uint64_t v;

	assert_int_equal(value_bytes, 8);
	memcpy(&v, value, 8);
	v++;
	memcpy(value, &v, 8);
	(*(unsigned *)arg)++;
}

static void rmw(struct fixture *f, uint64_t key, unsigned *calls)
{
	struct hlog_done d;
	int rc = FX_INSIST(f->s, hlog_rmw(f->s, key, 8, add_one, calls, 5));

	if (rc == -EINPROGRESS) {
		while ((rc = hlog_poll(f->s, &d, 1)) == 0)
			;
		assert_int_equal(rc, 1);
		assert_int_equal(d.kind, HLOG_RMW);
		assert_int_equal(d.user, 5);
		rc = d.err;
	}
	assert_int_equal(rc, 0);
}

static uint64_t counter(struct fixture *f, uint64_t key)
{
	uint8_t value[FX_VALUE_MAX];
	uint32_t len;
	uint64_t v;

	assert_int_equal(fx_get(f->s, key, value, &len), 0);
	assert_int_equal(len, 8);
	memcpy(&v, value, 8);
	return v;
}

static void test_rmw(void **state)
{
	struct fixture *f = *state;
	unsigned calls = 0;

	if (!f->device)
		return;
	for (unsigned round = 0; round < 3; round++) {
		for (uint64_t k = 0; k < KEYS; k++)
			rmw(f, k, &calls);
		rmw(f, 17, &calls); /* in place, some of the time */
	}
	assert_int_equal(calls, 3 * KEYS + 3);
	erase(f, 18);
	for (uint64_t k = 0; k < KEYS; k++)
		if (k != 18)
			assert_int_equal(counter(f, k), k == 17 ? 6 : 3);
	expect_none(f, 18);
	rmw(f, 18, &calls); /* from 0 again */
	assert_int_equal(counter(f, 18), 1);
	assert_true(hlog_session_stats(f->s)->far_reads > 2 * KEYS);
	assert_true(hlog_session_stats(f->s)->in_place > 0);
}

/* Many at a time; each comes back once. */
static void test_many_pending(void **state)
{
	struct fixture *f = *state;
	static uint8_t seen[KEYS];
	struct hlog_done d[32];
	uint8_t value[FX_VALUE_MAX];
	unsigned owed = 0, ended = 0;
	uint64_t k = 0;
	int n;

	if (!f->device)
		return;
	memset(seen, 0, sizeof(seen));
	for (uint64_t i = 0; i < KEYS; i++)
		put(f, i, 1);
	while (ended < KEYS) {
		while (k < KEYS) {
			uint32_t len = sizeof(value);
			int rc = hlog_read(f->s, k, value, &len, k);

			if (rc == -EAGAIN)
				break;
			if (rc == 0) {
				fx_check(value, len, k, 1, len_of(k));
				ended++;
			} else {
				assert_int_equal(rc, -EINPROGRESS);
				owed++;
			}
			k++;
		}
		n = hlog_poll(f->s, d, 32);
		assert_true(n >= 0);
		for (int i = 0; i < n; i++) {
			assert_int_equal(d[i].err, 0);
			assert_true(d[i].user == d[i].key && d[i].key < KEYS);
			assert_false(seen[d[i].key]++);
			fx_check(d[i].value, d[i].value_bytes, d[i].key, 1,
				 len_of(d[i].key));
			owed--;
			ended++;
		}
		assert_int_equal(hlog_pending(f->s), owed);
	}
	assert_int_equal(owed, 0);
}

static void reopen(struct fixture *f, struct hlog_recovery *found)
{
	hlog_session_close(f->s);
	f->s = NULL;
	hlog_destroy(f->store);
	f->store = NULL;
	assert_int_equal(hlog_recover(&f->opt, found, &f->store), 0);
	assert_int_equal(hlog_session_open(f->store, NULL, &f->s), 0);
}

static void test_recover(void **state)
{
	struct fixture *f = *state;
	struct hlog_recovery found;

	if (!f->device)
		return;
	for (unsigned round = 1; round <= 3; round++) {
		for (uint64_t k = 0; k < 500; k++)
			put(f, k, round);
		for (uint64_t k = 0; k < 500; k += 50)
			erase(f, k);
		assert_int_equal(hlog_sync(f->s), 0);
		put(f, 9999, round); /* after the sync: lost */
		reopen(f, &found);
		assert_int_equal(found.damaged_shards, 0);
		assert_true(found.records >= 500 * round);
		assert_true(found.tombstones >= 10 * round);
		for (uint64_t k = 0; k < 500; k++) {
			if (k % 50)
				expect(f, k, round);
			else
				expect_none(f, k);
		}
		expect_none(f, 9999);
	}
	/* A file goes on where it was with a device of its own, too. */
	if (strcmp(f->kind, "file") == 0) {
		hlog_session_close(f->s);
		hlog_destroy(f->store);
		hlog_device_destroy(f->device);
		f->device = make_device(f);
		f->opt.device = f->device;
		assert_int_equal(hlog_recover(&f->opt, NULL, &f->store), 0);
		assert_int_equal(hlog_session_open(f->store, NULL, &f->s), 0);
		expect(f, 1, 3);
	}
}

/* Nothing written is a recovery of nothing, and a new store forgets the old. */
static void test_recover_empty(void **state)
{
	struct fixture *f = *state;
	struct hlog_recovery found;

	if (!f->device)
		return;
	reopen(f, &found);
	assert_int_equal(found.records, 0);
	for (uint64_t k = 0; k < 500; k++)
		put(f, k, 1);
	assert_int_equal(hlog_sync(f->s), 0);
	hlog_session_close(f->s);
	hlog_destroy(f->store);
	assert_int_equal(hlog_create(&f->opt, &f->store), 0);
	assert_int_equal(hlog_session_open(f->store, NULL, &f->s), 0);
	expect_none(f, 1);
	put(f, 7, 1);
	assert_int_equal(hlog_sync(f->s), 0);
	reopen(f, &found);
	assert_int_equal(found.records, 1);
	assert_int_equal(found.damaged_shards, 0);
	expect(f, 7, 1);
	expect_none(f, 1);
}

static void test_full(void **state)
{
	struct fixture *f = *state;
	uint8_t value[FX_VALUE_MAX] = {0};
	uint64_t k = 0;
	int rc;

	if (!f->device)
		return;
	do
		rc = FX_INSIST(f->s,
			       hlog_upsert(f->s, k, value, sizeof(value)));
	while (rc == 0 && ++k < DEVICE_BYTES / 100);
	assert_int_equal(rc, -ENOSPC);
	assert_true(k > DEVICE_BYTES / 300);
	/* What is there can be read, and what is mutable can be changed. */
	for (uint64_t i = 0; i < k; i += 101) {
		uint32_t len;

		assert_int_equal(fx_get(f->s, i, value, &len), 0);
	}
	memset(value, 1, sizeof(value));
	assert_int_equal(hlog_upsert(f->s, k - 1, value, sizeof(value)), 0);
	assert_int_equal(hlog_sync(f->s), 0);
	reopen(f, NULL);
}

static void test_bad_options(void **state)
{
	static const struct {
		uint64_t local_bytes;
		uint32_t value_max, page_bytes, shard_count, percent;
		int rc;
	} cases[] = {
		{1 << 20, 100, 4096, 3, 0, -EINVAL},
		{1 << 20, 100, 4096, 512, 0, -EINVAL},
		{1 << 20, 100, 2048, 2, 0, -EINVAL},
		{1 << 20, 100, 5000, 2, 0, -EINVAL},
		{1 << 20, 4096, 4096, 2, 0, -EINVAL},
		{1 << 20, 0, 4096, 2, 0, -EINVAL},
		{1 << 20, HLOG_VALUE_BYTES_MAX + 1, 65536, 2, 0, -EINVAL},
		{3 * 4096, 100, 4096, 1, 0, -EINVAL},
		{1 << 20, 100, 4096, 2, 101, -EINVAL},
		{256 << 20, 100, 1 << 20, 8, 0, -ENOSPC},
		{1 << 20, HLOG_VALUE_BYTES_MAX, 16384, 2, 0, 0},
	};
	struct hlog_session_options so = {.depth = HLOG_DEPTH_MAX + 1};
	struct fixture *f = *state;
	struct hlog_session *s;
	struct hlog *h;

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct hlog_options opt = {
			.device = f->device,
			.local_bytes = cases[i].local_bytes,
			.record_count = 100,
			.value_max = cases[i].value_max,
			.page_bytes = cases[i].page_bytes,
			.shard_count = cases[i].shard_count,
			.mutable_percent = cases[i].percent,
		};
		int rc = hlog_create(&opt, &h);

		assert_int_equal(rc, cases[i].rc);
		if (rc == 0)
			hlog_destroy(h);
	}
	assert_int_equal(hlog_session_open(f->store, &so, &s), -EINVAL);
	assert_int_equal(hlog_device_file_create("/nowhere/at/all", 4096,
						 &f->opt.device),
			 -ENOENT);
}

static void test_misuse(void **state)
{
	struct fixture *f = *state;
	static uint8_t large[FX_VALUE_MAX + 1];
	unsigned calls = 0;

	assert_int_equal(hlog_upsert(f->s, 1, large, sizeof(large)), -EMSGSIZE);
	assert_int_equal(hlog_rmw(f->s, 1, sizeof(large), add_one, &calls, 0),
			 -EMSGSIZE);
	for (uint64_t k = 0; k < KEYS; k++)
		put(f, k, 1);
	assert_int_equal(hlog_read(f->s, 1, large, &(uint32_t){200}, 0),
			 -EINPROGRESS);
	assert_int_equal(hlog_sync(f->s), -EBUSY);
}

#define ON(test, device)                                        \
	{                                                       \
		.name = #test " on " device, .test_func = test, \
		.setup_func = setup, .teardown_func = teardown, \
		.initial_state = (void *)(uintptr_t)device      \
	}
#define ON_ALL(test) ON(test, "mem"), ON(test, "file"), ON(test, "late")

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_ALL(test_near),	ON_ALL(test_far),
		ON_ALL(test_rmw),	ON_ALL(test_many_pending),
		ON_ALL(test_recover),	ON_ALL(test_recover_empty),
		ON(test_full, "mem"),	ON(test_full, "late"),
		ON(test_misuse, "mem"), ON(test_bad_options, "mem"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
