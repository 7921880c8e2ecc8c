/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random operations beside a plain table, on a device that answers late and out
 * of order; with clean ends, crashes in the middle of writing, and recovery.
 * HLOG_SEEDS in the environment: how many runs.
 */
#include "hlog_fixture.h"

enum {
	KEYS = 700,
	PAGE = 4096,
	STEPS = 12000,
	DEVICE_BYTES = 24 << 20,
	VERSIONS_MAX = 400,
	SEEDS = 60,
};

/* The plain table. Version 0: absent. */
struct entry {
	uint32_t version;
	uint32_t len;
	bool is_busy; /* an operation on it is pending */
	/* What it was at the last sync and since, for the crash. */
	uint32_t past[VERSIONS_MAX];
	uint32_t past_len[VERSIONS_MAX];
	unsigned past_count;
};

struct run {
	struct rng rng;
	struct hlog_device *memory;
	struct fx_late *late;
	struct hlog_options opt;
	struct hlog *store;
	struct hlog_session *s;
	struct entry e[KEYS];
	uint32_t next_version;
	unsigned done_far;
	unsigned overflow; /* too much past to check a crash */
};

static void remember(struct run *r, struct entry *e)
{
	if (e->past_count == VERSIONS_MAX) {
		r->overflow++;
		return;
	}
	e->past[e->past_count] = e->version;
	e->past_len[e->past_count++] = e->len;
}

static void forget(struct run *r)
{
	for (unsigned k = 0; k < KEYS; k++) {
		r->e[k].past_count = 0;
		remember(r, &r->e[k]);
	}
	r->overflow = 0;
}

static void set(struct run *r, uint64_t key, uint32_t version, uint32_t len)
{
	r->e[key].version = version;
	r->e[key].len = len;
	remember(r, &r->e[key]);
}

static void check_value(struct run *r, uint64_t key, int err, const void *value,
			uint32_t len)
{
	const struct entry *e = &r->e[key];

	assert_int_equal(err, e->version ? 0 : -ENOENT);
	if (err == 0)
		fx_check(value, len, key, e->version, e->len);
}

/* What a read-modify-write does: another version of the same length. */
struct change {
	struct run *run;
	uint64_t key;
	uint32_t version;
};

static void change(void *arg, void *value, uint32_t len)
{
	struct change *c = arg;
	const struct entry *e = &c->run->e[c->key];

	if (e->version) {
		fx_check(value, len, c->key, e->version, e->len);
	} else {
		for (uint32_t i = 0; i < len; i++)
			assert_int_equal(((uint8_t *)value)[i], 0);
	}
	fx_value(value, c->key, c->version, len);
	set(c->run, c->key, c->version, len);
}

static void take(struct run *r, const struct hlog_done *d)
{
	assert_true(d->key < KEYS && r->e[d->key].is_busy);
	r->e[d->key].is_busy = false;
	r->done_far++;
	if (d->kind == HLOG_READ)
		check_value(r, d->key, d->err, d->value, d->value_bytes);
	else
		assert_int_equal(d->err, 0);
	free((void *)(uintptr_t)d->user);
}

static void poll(struct run *r, unsigned max)
{
	struct hlog_done d[16];
	int n = hlog_poll(r->s, d, max < 16 ? max : 16);

	assert_true(n >= 0);
	for (int i = 0; i < n; i++)
		take(r, &d[i]);
}

static void settle(struct run *r)
{
	while (hlog_pending(r->s))
		poll(r, 16);
}

static void step_rmw(struct run *r, uint64_t key)
{
	struct change *c = calloc(1, sizeof(*c));
	int rc;

	assert_non_null(c);
	*c = (struct change){r, key, ++r->next_version};
	rc = hlog_rmw(r->s, key, 8 + (uint32_t)key % 100, change, c,
		      (uintptr_t)c);
	if (rc == -EINPROGRESS) {
		r->e[key].is_busy = true;
		return;
	}
	assert_true(rc == 0 || rc == -EAGAIN);
	free(c);
}

static void step(struct run *r)
{
	uint64_t key = rng_below(&r->rng, KEYS);
	struct entry *e = &r->e[key];
	uint8_t value[FX_VALUE_MAX];
	uint32_t len = FX_VALUE_MAX, version;
	int rc;

	if (e->is_busy) {
		poll(r, 3);
		return;
	}
	switch (rng_below(&r->rng, 10)) {
	case 0:
		rc = hlog_delete(r->s, key);
		assert_true(rc == 0 || rc == -EAGAIN);
		if (rc == 0)
			set(r, key, 0, 0);
		break;
	case 1:
	case 2:
		step_rmw(r, key);
		break;
	case 3:
	case 4:
	case 5:
		version = ++r->next_version;
		/* Often the same length: in place. */
		len = e->version && rng_chance_ppm(&r->rng, 600000)
			      ? e->len
			      : (uint32_t)rng_below(&r->rng, FX_VALUE_MAX + 1);
		fx_value(value, key, version, len);
		rc = hlog_upsert(r->s, key, value, len);
		assert_true(rc == 0 || rc == -EAGAIN);
		if (rc == 0)
			set(r, key, version, len);
		break;
	default:
		rc = hlog_read(r->s, key, value, &len, 0);
		if (rc == -EINPROGRESS)
			e->is_busy = true;
		else if (rc != -EAGAIN)
			check_value(r, key, rc, value, len);
	}
	if (rng_chance_ppm(&r->rng, 300000))
		poll(r, 5);
}

static void open_store(struct run *r, struct hlog_recovery *found)
{
	struct hlog_session_options so = {.depth = 40};

	if (found)
		assert_int_equal(hlog_recover(&r->opt, found, &r->store), 0);
	else
		assert_int_equal(hlog_create(&r->opt, &r->store), 0);
	assert_int_equal(hlog_session_open(r->store, &so, &r->s), 0);
}

static void close_store(struct run *r)
{
	settle(r);
	hlog_session_close(r->s);
	hlog_destroy(r->store);
}

/* After a crash each key has one of the values since the last sync; that one
 * goes on. */
static void adopt(struct run *r)
{
	for (uint64_t k = 0; k < KEYS; k++) {
		struct entry *e = &r->e[k];
		uint8_t value[FX_VALUE_MAX];
		uint32_t len, version = 0;
		bool known = false;
		int rc = fx_get(r->s, k, value, &len);

		assert_true(rc == 0 || rc == -ENOENT);
		if (rc == -ENOENT)
			len = 0;
		for (unsigned i = 0; i < e->past_count && !known; i++) {
			uint8_t want[FX_VALUE_MAX];

			if ((e->past[i] == 0) != (rc == -ENOENT) ||
			    e->past_len[i] != len)
				continue;
			fx_value(want, k, e->past[i], len);
			known = rc == -ENOENT || memcmp(want, value, len) == 0;
			version = e->past[i];
		}
		assert_true(known || r->overflow);
		set(r, k, version, len);
	}
}

/* Answers how many operations went to the device. */
static unsigned run_seed(uint64_t seed)
{
	struct run *r = calloc(1, sizeof(*r));
	struct hlog_recovery found;
	unsigned far;

	assert_non_null(r);
	rng_init(&r->rng, seed);
	assert_int_equal(hlog_device_mem_create(DEVICE_BYTES, &r->memory), 0);
	r->late = fx_late_create(r->memory, seed + 1);
	r->opt = (struct hlog_options){
		.device = &r->late->base,
		.shard_count = 1u << rng_below(&r->rng, 3),
		.page_bytes = PAGE << rng_below(&r->rng, 2),
		.record_count = 1 + rng_below(&r->rng, KEYS),
		.value_max = FX_VALUE_MAX,
		.mutable_percent = (uint32_t)rng_between(&r->rng, 1, 100),
	};
	r->opt.local_bytes = (uint64_t)r->opt.page_bytes * r->opt.shard_count *
			     rng_between(&r->rng, HLOG_PFRAMES_MIN, 8);
	forget(r);
	open_store(r, NULL);
	for (unsigned round = 0; round < 4; round++) {
		for (unsigned i = 0; i < STEPS / 4; i++)
			step(r);
		settle(r);
		if (rng_chance_ppm(&r->rng, 500000)) {
			assert_int_equal(hlog_sync(r->s), 0);
			forget(r);
		}
		for (unsigned i = 0; i < STEPS / 20; i++)
			step(r);
		settle(r);
		/* The power goes; pages are lost, one of them half. */
		r->late->is_dead = r->late->is_torn = true;
		close_store(r);
		r->late->is_dead = r->late->is_torn = false;
		open_store(r, &found);
		adopt(r);
		forget(r);
	}
	close_store(r);
	hlog_device_destroy(&r->late->base);
	hlog_device_destroy(r->memory);
	far = r->done_far;
	free(r);
	return far;
}

static void test_model(void **state)
{
	const char *text = getenv("HLOG_SEEDS");
	uint64_t seeds = text ? strtoull(text, NULL, 10) : SEEDS;
	uint64_t far = 0;

	for (uint64_t seed = 1; seed <= seeds; seed++) {
		print_message("seed %llu\n", (unsigned long long)seed);
		far += run_seed(seed);
	}
	assert_true(far > 100 * seeds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_model)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
