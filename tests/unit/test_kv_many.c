/* SPDX-License-Identifier: Apache-2.0 */
/* Puts that go together: their order, what cannot go with them, locks in their
 * way, and a client that dies before any of their requests. */
#include "kv/kv_client_priv.h"
#include "kv_rig.h"

enum {
	N = 24,
	FLIGHTS = 150, /* more than go together at once */
	STEPS_MAX = 400,
};

static const struct aq_kv_options table = {.capacity = 256,
					   .clients = 4,
					   .entry_bytes = 32,
					   .rows_per_lock = 4,
					   .failure_ms = 2,
					   .extent_bytes = 1 << 20,
					   .chunk_bytes = 65536,
					   .seed = 11};

/* Values for `keys` keys in turns. */
static void make_some(struct aq_kv_op *op, uint32_t *key, uint32_t count,
		      uint32_t keys)
{
	for (uint32_t i = 0; i < count; i++) {
		key[i] = i;
		op[i] = (struct aq_kv_op){.kind = AQ_KV_OP_PUT,
					  .key = &key[i % keys],
					  .key_len = 4,
					  .value = &key[i],
					  .value_len = 4};
	}
}

/* Two values for each of `keys` keys, the second after all the first. */
static void make_ops(struct aq_kv_op op[N], uint32_t key[N], uint32_t keys)
{
	make_some(op, key, N, keys);
}

static void test_order(void **state)
{
	struct aq_kv_stats before, after;
	struct aq_kv_client *c;
	struct aq_kv_op op[N];
	uint32_t key[N], got;
	uint8_t large[100] = {7};
	struct rig r;
	size_t len;

	rig_make(&r, &table);
	c = rig_client(&r, NULL);
	make_ops(op, key, N / 2);
	/* In an extent: it cannot go with the others, but keeps its place. */
	op[3].value = large;
	op[3].value_len = sizeof(large);
	op[N - 1].value = large;
	op[N - 1].value_len = sizeof(large);
	aq_kv_client_stats(c, &before);
	assert_int_equal(aq_kv_batch(c, op, N), 0);
	aq_kv_client_stats(c, &after);
	assert_int_equal(after.puts - before.puts, N);
	assert_int_equal(after.inserts - before.inserts, N / 2);
	assert_true(after.lock_sets - before.lock_sets < N / 2);
	for (uint32_t i = 0; i < N; i++) {
		uint8_t v[100];

		assert_int_equal(op[i].err, 0);
		if (i < N / 2)
			continue;
		assert_int_equal(aq_kv_get(c, op[i].key, 4, v, sizeof(v), &len),
				 0);
		assert_int_equal(len, op[i].value_len);
		assert_memory_equal(v, op[i].value, len);
	}
	rig_check_with(c, N / 2);
	/* A key that is none does not stop the others. */
	make_ops(op, key, N);
	op[5].flags = AQ_KV_NX;
	assert_int_equal(aq_kv_batch(c, op, N), 0);
	assert_int_equal(op[5].err, -EEXIST);
	assert_int_equal(aq_kv_get(c, &key[9], 4, &got, 4, &len), 0);
	assert_int_equal(got, 9);
	rig_check_with(c, N);
	kv_client_destroy(c);
	kit_rig_break(&r.far);
}

/* More keys than the rows take without paths: all of them arrive. */
static void test_full_rows(void **state)
{
	struct aq_kv_client *c;
	struct aq_kv_op op[200];
	uint32_t key[200], got;
	struct rig r;
	size_t len;

	rig_make(&r, &table);
	c = rig_client(&r, NULL);
	for (uint32_t i = 0; i < 200; i++) {
		key[i] = i * 77;
		op[i] = (struct aq_kv_op){.kind = AQ_KV_OP_PUT,
					  .key = &key[i],
					  .key_len = 4,
					  .value = &key[i],
					  .value_len = 4};
	}
	assert_int_equal(aq_kv_batch(c, op, 200), 0);
	for (uint32_t i = 0; i < 200; i++) {
		assert_int_equal(op[i].err, 0);
		assert_int_equal(aq_kv_get(c, &key[i], 4, &got, 4, &len), 0);
		assert_int_equal(got, key[i]);
	}
	rig_check_with(c, 200);
	kv_client_destroy(c);
	kit_rig_break(&r.far);
}

/* Nothing happens before somebody polls, or something has to come after it. */
static void test_submitted(void **state)
{
	struct aq_kv_stats before, after;
	struct aq_kv_op op[N], *done[N];
	struct aq_kv_client *c, *other;
	uint32_t key[N], got = 0;
	uint8_t large[100] = {7};
	struct rig r;
	size_t len;

	rig_make(&r, &table);
	c = rig_client(&r, NULL);
	other = rig_client(&r, NULL);
	make_ops(op, key, N);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(aq_kv_submit(c, &op[i]), 0);
	assert_int_equal(aq_kv_get(other, &key[7], 4, &got, 4, &len), -ENOENT);
	/* One read of a key that was put, and one of another. */
	op[8].kind = op[9].kind = AQ_KV_OP_GET;
	op[8].key = &key[7];
	op[8].value = op[9].value = &got;
	assert_int_equal(aq_kv_submit(c, &op[9]), 0);
	assert_int_equal(aq_kv_get(other, &key[7], 4, &got, 4, &len), -ENOENT);
	assert_int_equal(aq_kv_submit(c, &op[8]), 0);
	assert_int_equal(aq_kv_get(other, &key[7], 4, &got, 4, &len), 0);
	for (int n = 0; n < 10;)
		n += aq_kv_poll(c, done, N, true);
	assert_int_equal(op[8].err, 0);
	assert_int_equal(got, 7);
	assert_int_equal(op[9].err, -ENOENT);
	/* Deletes of some that are there, one that is not, one in an extent,
	 * and a put between two of the same key. */
	assert_int_equal(aq_kv_put(c, &key[3], 4, large, sizeof(large), NULL),
			 0);
	aq_kv_client_stats(c, &before);
	make_ops(op, key, N);
	for (uint32_t i = 0; i < 10; i++)
		op[i].kind = AQ_KV_OP_DEL;
	op[5].kind = AQ_KV_OP_PUT;
	op[5].key = op[6].key = op[4].key;
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(aq_kv_submit(c, &op[i]), 0);
	for (int n = 0; n < 10;)
		n += aq_kv_poll(c, done, N, false);
	aq_kv_client_stats(c, &after);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(op[i].err, i < 8 ? 0 : -ENOENT);
	assert_int_equal(after.deletes - before.deletes, 7);
	assert_int_equal(after.lock_sets - before.lock_sets, 3);
	rig_check_with(c, 2);
	/* A synchronous operation comes after what was submitted. */
	assert_int_equal(aq_kv_submit(c, &op[20]), 0);
	assert_int_equal(aq_kv_get(c, &key[20], 4, &got, 4, &len), 0);
	assert_int_equal(aq_kv_poll(c, done, N, false), 1);
	assert_int_equal(aq_kv_poll(c, done, N, true), 0);
	kv_client_destroy(other);
	kv_client_destroy(c);
	kit_rig_break(&r.far);
}

/* Adds one to a number, and keeps what it was; makes a value long at 100, takes
 * the key away at 200, refuses at 300 and looks on at 400. */
struct step {
	uint32_t was;
	bool existed;
	uint8_t made[100];
};

static int step_fn(struct aq_kv_change *ch, void *user)
{
	struct step *s = user;
	uint32_t next;

	s->existed = ch->value != NULL;
	s->was = 0;
	if (ch->value)
		memcpy(&s->was, ch->value, 4);
	next = s->was + 1;
	memset(s->made, 0, sizeof(s->made));
	memcpy(s->made, &next, sizeof(next));
	ch->new_value = s->made;
	ch->new_value_len = s->was == 100 ? sizeof(s->made) : 4;
	ch->verdict = s->was == 200   ? AQ_KV_DELETE
		      : s->was == 400 ? AQ_KV_KEEP
				      : AQ_KV_STORE;
	return s->was == 300 ? -EDOM : 0;
}

static void test_modify(void **state)
{
	static const uint32_t first[] = {0, 100, 200, 300, 400};
	struct aq_kv_stats before, after;
	struct step step[N] = {0};
	struct aq_kv_client *c;
	struct aq_kv_op op[N];
	uint32_t key[N], got[25];
	struct rig r;
	size_t len;

	rig_make(&r, &table);
	c = rig_client(&r, NULL);
	for (uint32_t i = 1; i < ARRAY_LEN(first); i++) {
		key[i] = i;
		assert_int_equal(aq_kv_put(c, &key[i], 4, &first[i], 4, NULL),
				 0);
	}
	make_ops(op, key, N);
	for (uint32_t i = 0; i < N; i++) {
		op[i].kind = AQ_KV_OP_MODIFY;
		op[i].fn = step_fn;
		op[i].fn_user = &step[i];
		op[i].key = &key[i % 6];
	}
	aq_kv_client_stats(c, &before);
	assert_int_equal(aq_kv_batch(c, op, N), 0);
	aq_kv_client_stats(c, &after);
	for (uint32_t i = 0; i < N; i++) {
		uint32_t nth = i / 6, which = i % 6;
		uint32_t was = which < 5 ? first[which] : 0;

		assert_int_equal(op[i].err, which == 3 ? -EDOM : 0);
		/* 200 is taken away, and begins anew. */
		if (which == 2)
			was = nth == 0 ? 200 : nth - 1;
		else if (which < 3 || which == 5)
			was += nth;
		assert_int_equal(step[i].was, was);
		assert_true(step[i].existed ==
			    ((which != 0 && which != 5 &&
			      !(which == 2 && nth == 1)) ||
			     ((which == 0 || which == 5) && nth > 0)));
	}
	assert_int_equal(aq_kv_get(c, &key[0], 4, got, sizeof(got), &len), 0);
	assert_int_equal(got[0], N / 6);
	assert_int_equal(aq_kv_get(c, &key[1], 4, got, sizeof(got), &len), 0);
	assert_int_equal(got[0], 104);
	/* Together, but for the value that grew too long, twice alone. */
	assert_true(after.lock_sets - before.lock_sets < N / 2);
	rig_check_with(c, 6);
	op[0].fn = NULL;
	assert_int_equal(aq_kv_batch(c, op, 1), 0);
	assert_int_equal(op[0].err, -EINVAL);
	kv_client_destroy(c);
	kit_rig_break(&r.far);
}

struct doom {
	unsigned left; /* requests until the end */
	bool is_armed;
};

static bool doom_crash(void *ctx, int point)
{
	struct doom *d = ctx;

	return d->is_armed && d->left-- == 0;
}

/* A dead client's locks are in the way, and what it did is whole: each key has
 * its old value or its new one. False: it did not need that many requests. */
static bool die_at(unsigned n, uint32_t count)
{
	struct doom doom = {.left = n};
	struct kv_client_config cfg = {.options = {.depth = FLIGHTS},
				       .crash = doom_crash,
				       .ctx = &doom,
				       .rng_seed = 5};
	struct aq_kv_client *victim, *other;
	struct aq_kv_op op[FLIGHTS];
	uint32_t key[FLIGHTS], next[FLIGHTS], got;
	bool died = false;
	struct rig r;
	size_t len;

	rig_make(&r, &table);
	other = rig_client(&r, NULL);
	victim = rig_client(&r, &cfg);
	make_some(op, key, count, count);
	assert_int_equal(aq_kv_batch(other, op, count), 0);
	for (uint32_t i = 0; i < count; i++) {
		next[i] = i + 1000;
		op[i].value = &next[i];
	}
	doom.is_armed = true;
	(void)aq_kv_batch(victim, op, count);
	doom.is_armed = false;
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(aq_kv_get(other, &key[i], 4, &got, 4, &len),
				 0);
		assert_true(got == i || got == i + 1000);
		died |= op[i].err == -ESHUTDOWN;
		if (!op[i].err && !died)
			assert_int_equal(got, i + 1000);
	}
	make_some(op, key, count, count);
	assert_int_equal(aq_kv_batch(other, op, count), 0);
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(op[i].err, 0);
		assert_int_equal(aq_kv_get(other, &key[i], 4, &got, 4, &len),
				 0);
		assert_int_equal(got, i);
	}
	r.far.end[1 + 1].is_open = false;
	assert_int_equal(aq_kv_repair(other), 0);
	rig_check_with(other, count);
	kv_client_destroy(victim);
	kv_client_destroy(other);
	kit_rig_break(&r.far);
	return died;
}

static void die_everywhere(uint32_t count)
{
	unsigned n = 0;

	while (n < STEPS_MAX && die_at(n, count))
		n++;
	assert_true(n > 20 && n < STEPS_MAX);
	print_message("%u places to die\n", n);
}

static void test_death(void **state)
{
	die_everywhere(N);
}

/* The locks of a flight are taken with what ends the one before. */
static void test_flights_death(void **state)
{
	die_everywhere(FLIGHTS);
}

static uint64_t trips_of(const struct aq_kv_client *c)
{
	return c->era[0]->shard[0].replica[0]->kit.trips;
}

/* n flights, n + 1 round trips, in their order. */
static void test_flights(void **state)
{
	struct kv_client_config cfg = {.options = {.depth = FLIGHTS}};
	struct aq_kv_stats before, after;
	struct aq_kv_op op[FLIGHTS];
	uint32_t key[FLIGHTS], got;
	struct aq_kv_client *c;
	uint64_t trips;
	struct rig r;
	size_t len;

	rig_make(&r, &table);
	c = rig_client(&r, &cfg);
	make_some(op, key, FLIGHTS, 100);
	assert_int_equal(aq_kv_batch(c, op, 100), 0);
	aq_kv_client_stats(c, &before);
	trips = trips_of(c);
	assert_int_equal(aq_kv_batch(c, op, FLIGHTS), 0);
	aq_kv_client_stats(c, &after);
	assert_int_equal(after.lock_sets - before.lock_sets, 2);
	assert_int_equal(trips_of(c) - trips, 3);
	for (uint32_t i = 0; i < FLIGHTS; i++) {
		assert_int_equal(op[i].err, 0);
		assert_int_equal(aq_kv_get(c, op[i].key, 4, &got, 4, &len), 0);
		assert_int_equal(got, i < 50 ? i + 100 : i);
	}
	rig_check_with(c, 100);
	kv_client_destroy(c);
	kit_rig_break(&r.far);
}

/* Rows that are loaded are no requests of the batch, so more keys go together.
 * Here nothing is mapped in truth: all rows are READ once the locks are held.
 */
static void test_loaded_flight(void **state)
{
	struct kv_client_config cfg = {.options = {.depth = FLIGHTS}};
	struct aq_kv_stats before, after;
	struct aq_kv_client *c = NULL;
	struct aq_kv_op op[FLIGHTS];
	uint32_t key[FLIGHTS], got;
	struct kit_remote remote;
	struct rig r;
	size_t len;

	rig_make(&r, &table);
	remote = rig_remote(&r.far);
	remote.look_addr = remote.addr;
	remote.look_rkey = remote.rkey;
	assert_int_equal(kv_client_create(&remote, &r.g, &cfg, &c), 0);
	make_some(op, key, FLIGHTS, 100);
	aq_kv_client_stats(c, &before);
	assert_int_equal(aq_kv_batch(c, op, FLIGHTS), 0);
	aq_kv_client_stats(c, &after);
	assert_int_equal(after.lock_sets - before.lock_sets, 1);
	for (uint32_t i = 0; i < FLIGHTS; i++) {
		assert_int_equal(op[i].err, 0);
		assert_int_equal(aq_kv_get(c, op[i].key, 4, &got, 4, &len), 0);
		assert_int_equal(got, i < 50 ? i + 100 : i);
	}
	rig_check_with(c, 100);
	kv_client_destroy(c);
	kit_rig_break(&r.far);
}

/* An operation that cannot be does not keep the others from being done. */
static void test_bad_key(void **state)
{
	struct aq_kv_client *c;
	struct aq_kv_op op[N];
	uint32_t key[N], got;
	struct rig r;
	size_t len;

	rig_make(&r, &table);
	c = rig_client(&r, NULL);
	make_ops(op, key, N);
	op[5].key_len = 0;
	op[7].kind = 9;
	assert_int_equal(aq_kv_batch(c, op, N), 0);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(op[i].err, i == 5 || i == 7 ? -EINVAL : 0);
	/* Nothing of it is done later, in memory that is another's by then. */
	memset(op, 0xee, sizeof(op));
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(aq_kv_get(c, &key[i], 4, &got, 4, &len),
				 i == 5 || i == 7 ? -ENOENT : 0);
	rig_check_with(c, N - 2);
	kv_client_destroy(c);
	kit_rig_break(&r.far);
}

static void tear_all(struct rig *r, uint8_t by)
{
	for (uint64_t row = 0; row < r->g.rows; row++)
		r->far.main[kv_row_at(&r->g, row) + r->g.row_bytes - 1] ^= by;
}

/* A batch that is given up knows nothing of its operations any more: the next
 * one, in the same memory, has its own answers and no others. */
static void test_given_up(void **state)
{
	static uint8_t locks[4096];
	struct kv_client_config cfg = {.options = {.deadline_ms = 40},
				       .rng_seed = 1};
	struct aq_kv_client *c, *fine;
	uint32_t key[N], got[N] = {0};
	struct aq_kv_op op[N];
	struct rig r;

	rig_make(&r, &table);
	fine = rig_client(&r, NULL);
	c = rig_client(&r, &cfg);
	make_ops(op, key, N);
	assert_int_equal(aq_kv_batch(fine, op, N), 0);
	/* Rows that stay torn, under locks that nobody gives back. */
	assert_true(r.g.lock_bytes <= sizeof(locks));
	memcpy(locks, r.far.locks, r.g.lock_bytes);
	memset(r.far.locks + kv_lock_at(0), 0xff,
	       r.g.lock_bytes - kv_lock_at(0));
	tear_all(&r, 1);
	for (uint32_t i = 0; i < N; i++) {
		op[i].kind = AQ_KV_OP_GET;
		op[i].value = &got[i];
	}
	assert_true(aq_kv_batch(c, op, N) < 0);
	for (uint32_t i = 0; i < N; i++)
		assert_true(op[i].err < 0);
	tear_all(&r, 1);
	memcpy(r.far.locks, locks, r.g.lock_bytes);
	for (uint32_t i = 0; i < N; i++)
		op[i].key = &key[N - 1 - i];
	assert_int_equal(aq_kv_batch(c, op, N), 0);
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(op[i].err, 0);
		assert_int_equal(got[i], N - 1 - i);
	}
	kv_client_destroy(c);
	kv_client_destroy(fine);
	kit_rig_break(&r.far);
}

/* Those that were submitted before are not the batch's to poll. */
static void test_not_mixed(void **state)
{
	struct aq_kv_op op[N], *done[N];
	struct aq_kv_client *c;
	uint32_t key[N];
	struct rig r;

	rig_make(&r, &table);
	c = rig_client(&r, NULL);
	make_ops(op, key, N);
	assert_int_equal(aq_kv_submit(c, &op[0]), 0);
	assert_int_equal(aq_kv_batch(c, op + 1, N - 1), -EBUSY);
	assert_int_equal(aq_kv_poll(c, done, N, true), 1);
	assert_ptr_equal(done[0], &op[0]);
	assert_int_equal(aq_kv_batch(c, op + 1, N - 1), 0);
	rig_check_with(c, N);
	kv_client_destroy(c);
	kit_rig_break(&r.far);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_full_rows),
		cmocka_unit_test(test_modify),
		cmocka_unit_test(test_submitted),
		cmocka_unit_test(test_death),
		cmocka_unit_test(test_flights),
		cmocka_unit_test(test_loaded_flight),
		cmocka_unit_test(test_flights_death),
		cmocka_unit_test(test_bad_key),
		cmocka_unit_test(test_given_up),
		cmocka_unit_test(test_not_mixed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
