/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that die before any of their requests, in every operation; others
 * find out, repair, and go on. Afterwards every invariant holds, keys that were
 * not touched are there, and the one that was has its old or its new value.
 */
#include "kv_rig.h"

#include "kv/kv_layout.h"

enum {
	KEYS = 180, /* of 256 entries: inserts need paths */
	STEPS_MAX = 400,
};

struct doom {
	unsigned left;	  /* requests until the end */
	unsigned unlocks; /* if set: until it gives back that many locks */
	unsigned rows;	  /* that were written */
	enum kv_point last;
	bool is_armed;
	/* Not dead, only slow: somebody else works meanwhile. */
	struct aq_kv_client *other;
};

static bool doom_crash(void *ctx, int point)
{
	struct doom *d = ctx;

	if (!d->is_armed)
		return false;
	d->last = point;
	d->rows += point == KV_POINT_ROW;
	if (d->unlocks) {
		d->unlocks -= point == KV_POINT_UNLOCK;
		return d->unlocks == 0;
	}
	if (d->left-- != 0)
		return false;
	if (!d->other)
		return true;
	d->is_armed = false;
	assert_int_equal(aq_kv_put(d->other, "victim", 6, "again", 5, NULL), 0);
	return false;
}

struct scene {
	const char *name;
	struct aq_kv_options table;
	bool split;
	size_t old_len; /* of the key's value before; SIZE_MAX: none */
	size_t new_len; /* SIZE_MAX: it is deleted */
};

static void fill(uint8_t *p, size_t len, uint8_t seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(seed + 3 * i);
}

static void expect(struct aq_kv_client *c, const struct scene *s)
{
	uint8_t want[4096], got[4096];
	size_t len = 0;
	int err = aq_kv_get(c, "victim", 6, got, sizeof(got), &len);
	bool is_old = s->old_len == SIZE_MAX ? err == -ENOENT
					     : !err && len == s->old_len;
	bool is_new = s->new_len == SIZE_MAX ? err == -ENOENT
					     : !err && len == s->new_len;

	assert_true(is_old || is_new);
	if (err)
		return;
	fill(want, len, is_new ? 2 : 1);
	assert_memory_equal(want, got, len);
}

static void expect_others(struct aq_kv_client *c)
{
	uint32_t i, value;
	size_t len;

	for (i = 0; i < KEYS; i++) {
		assert_int_equal(aq_kv_get(c, &i, sizeof(i), &value,
					   sizeof(value), &len),
				 0);
		assert_int_equal(value, i);
	}
}

static int act(struct aq_kv_client *c, const struct scene *s)
{
	uint8_t value[4096];

	if (s->new_len == SIZE_MAX)
		return aq_kv_del(c, "victim", 6);
	fill(value, s->new_len, 2);
	return aq_kv_put(c, "victim", 6, value, s->new_len, NULL);
}

static void make_keys(struct aq_kv_client *c, const struct scene *s)
{
	uint8_t value[4096];
	uint32_t i;

	for (i = 0; i < KEYS; i++)
		assert_int_equal(
			aq_kv_put(c, &i, sizeof(i), &i, sizeof(i), NULL), 0);
	if (s->old_len == SIZE_MAX)
		return;
	fill(value, s->old_len, 1);
	assert_int_equal(aq_kv_put(c, "victim", 6, value, s->old_len, NULL), 0);
}

/* A seed with which the insert moves at least two entries. */
static void find_path(struct scene *s)
{
	struct doom doom = {.is_armed = true};
	struct kv_client_config cfg = {.crash = doom_crash, .ctx = &doom};
	struct aq_kv_client *c;
	struct rig r;
	int err;

	for (s->table.seed = 1; s->table.seed < 500; s->table.seed++) {
		doom.left = UINT32_MAX;
		rig_make(&r, &s->table);
		c = rig_client(&r, &cfg);
		make_keys(c, s);
		doom.rows = 0;
		err = act(c, s);
		kv_client_destroy(c);
		kit_rig_break(&r.far);
		if (!err && doom.rows > 2)
			return;
	}
	fail();
}

/* Dies where it is doomed to; false when it did not get that far. */
static bool die(const struct scene *s, struct doom *doom)
{
	struct kv_client_config cfg = {.crash = doom_crash,
				       .ctx = doom,
				       .rng_seed = 5,
				       .split_writes = s->split};
	struct aq_kv_client *victim, *other;
	struct rig r;
	unsigned n = doom->left;
	int err;

	rig_make(&r, &s->table);
	other = rig_client(&r, NULL);
	victim = rig_client(&r, &cfg);
	make_keys(other, s);
	doom->is_armed = true;
	err = act(victim, s);
	if (err != -ESHUTDOWN) {
		assert_int_equal(err, 0);
		doom->is_armed = false;
	} else {
		expect(other, s);
		/* Who wants the same locks finds out. */
		err = aq_kv_put(other, "victim", 6, "again", 5, NULL);
		if (err)
			print_error("%s, %u (%s): %s\n", s->name, n,
				    kv_point_name(doom->last), aq_last_error());
		assert_int_equal(err, 0);
		expect_others(other);
		r.far.end[1 + 1].is_open = false;
		assert_int_equal(aq_kv_repair(other), 0);
		rig_check_with(other, KEYS + 1);
		err = -ESHUTDOWN;
	}
	kv_client_destroy(victim);
	kv_client_destroy(other);
	kit_rig_break(&r.far);
	return err == -ESHUTDOWN;
}

/* Dies before its nth request; false when it did not need that many. */
static bool die_at(const struct scene *s, unsigned n)
{
	struct doom doom = {.left = n};

	return die(s, &doom);
}

static void sweep(const struct scene *s)
{
	unsigned n = 0;

	while (n < STEPS_MAX && die_at(s, n))
		n++;
	assert_true(n > 4 && n < STEPS_MAX);
	print_message("%s: %u places to die\n", s->name, n);
}

static const struct aq_kv_options small = {.capacity = 256,
					   .clients = 4,
					   .entry_bytes = 32,
					   .rows_per_lock = 4,
					   .failure_ms = 2,
					   .extent_bytes = 1 << 20,
					   .chunk_bytes = 65536,
					   .seed = 11};

static void test_insert(void **state)
{
	struct scene s = {.name = "insert",
			  .table = small,
			  .old_len = SIZE_MAX,
			  .new_len = 4};

	/* Nearly full: a path is needed. */
	s.table.capacity = 192;
	find_path(&s);
	sweep(&s);
	s.split = true;
	s.name = "insert, split";
	sweep(&s);
	s.table.flags = AQ_KV_WORD_LOCKS;
	s.name = "insert, word locks";
	sweep(&s);
}

/*
 * It has let go of its first lock and not of the second. Who comes then gets
 * the first and waits for the second; it has to step back now and then, and
 * this must not make it forget how long it has been waiting. With a failure
 * time this long no stall of the machine helps out.
 */
static void test_second_lock(void **state)
{
	struct scene s = {.name = "second lock",
			  .table = small,
			  .old_len = SIZE_MAX,
			  .new_len = 4};
	struct doom doom = {.unlocks = 2};

	s.table.capacity = 192;
	s.table.flags = AQ_KV_WORD_LOCKS;
	find_path(&s);
	s.table.failure_ms = 60;
	assert_true(die(&s, &doom));
	assert_int_equal(doom.last, KV_POINT_UNLOCK);
}

static void test_update(void **state)
{
	struct scene s = {
		.name = "update", .table = small, .old_len = 4, .new_len = 6};

	sweep(&s);
	s.split = true;
	s.name = "update, split";
	sweep(&s);
}

static void test_delete(void **state)
{
	struct scene s = {.name = "delete",
			  .table = small,
			  .old_len = 4,
			  .new_len = SIZE_MAX};

	sweep(&s);
}

static void test_extents(void **state)
{
	struct scene s = {.name = "insert an extent",
			  .table = small,
			  .old_len = SIZE_MAX,
			  .new_len = 900};

	sweep(&s);
	s.name = "replace an extent";
	s.old_len = 700;
	sweep(&s);
	s.name = "extent to inline";
	s.new_len = 3;
	sweep(&s);
	s.name = "delete an extent";
	s.new_len = SIZE_MAX;
	sweep(&s);
}

/* It sleeps before its nth request; false when it did not need that many. What
 * it had under way when it was fenced has no effect. Where that was no change
 * of a row it begins again, and is the last one to change the key. */
static bool sleep_at(const struct scene *s, unsigned n, unsigned *again,
		     unsigned *unknown)
{
	struct doom doom = {.left = n};
	struct kv_client_config cfg = {
		.crash = doom_crash, .ctx = &doom, .rng_seed = 5};
	struct aq_kv_client *victim;
	struct aq_kv_stats stats;
	struct rig r;
	char got[64];
	size_t len;
	bool slept;
	int err;

	rig_make(&r, &s->table);
	doom.other = rig_client(&r, NULL);
	victim = rig_client(&r, &cfg);
	make_keys(doom.other, s);
	doom.is_armed = true;
	err = act(victim, s);
	slept = !doom.is_armed;
	doom.is_armed = false;
	aq_kv_client_stats(doom.other, &stats);
	assert_true(err == 0 || (err == -ESTALE && stats.fenced));
	*unknown += err == -ESTALE;
	*again += !err && stats.fenced;
	if (!err) {
		(void)aq_kv_get(doom.other, "victim", 6, got, sizeof(got),
				&len);
		assert_int_equal(len, s->new_len);
	} else {
		assert_int_equal(aq_kv_get(doom.other, "victim", 6, got,
					   sizeof(got), &len),
				 0);
		assert_int_equal(len, 5);
		assert_memory_equal(got, "again", 5);
	}
	/* It has come back and works. */
	assert_int_equal(aq_kv_put(victim, "victim", 6, "back", 4, NULL), 0);
	expect_others(victim);
	rig_check_with(doom.other, KEYS + 1);
	kv_client_destroy(victim);
	kv_client_destroy(doom.other);
	kit_rig_break(&r.far);
	return slept;
}

static void test_fenced(void **state)
{
	struct scene s = {.name = "slow insert",
			  .table = small,
			  .old_len = SIZE_MAX,
			  .new_len = 4};
	unsigned n = 0, again = 0, unknown = 0;

	s.table.capacity = 192;
	find_path(&s);
	while (sleep_at(&s, n, &again, &unknown))
		n++;
	print_message("%u begun again, %u unknown\n", again, unknown);
	assert_true(n > 8 && again && unknown);
	s = (struct scene){.name = "slow extent",
			   .table = small,
			   .old_len = 700,
			   .new_len = 900};
	again = unknown = 0;
	for (n = 0; sleep_at(&s, n, &again, &unknown);)
		n++;
	print_message("%u begun again, %u unknown\n", again, unknown);
	assert_true(n > 8 && unknown);
}

/* A client that stops on its way to its slot, and one that comes meanwhile. */
struct late {
	struct rig *r;
	unsigned points, stop_at;
	struct aq_kv_client *other;
};

static bool late_point(void *ctx, int point)
{
	struct late *l = ctx;

	if (point == KV_POINT_INTENT && ++l->points == l->stop_at) {
		l->other = rig_client(l->r, NULL);
		assert_int_equal(aq_kv_put(l->other, "k", 1, "v", 1, NULL), 0);
	}
	return false;
}

/* There are two slots, one of them for repairs: who comes waits until the late
 * one is taken for dead, and has its slot. The late one used to write its name
 * and its intent there nevertheless. */
static void a_late_client_has_no_slot(void **state)
{
	static const struct aq_kv_options o = {.capacity = 64,
					       .entry_bytes = 32,
					       .clients = 2,
					       .failure_ms = 20};
	struct rig r;
	struct late l = {.r = &r, .stop_at = 2};
	struct kv_client_config config = {.rng_seed = 1,
					  .crash = late_point,
					  .ctx = &l,
					  .options = {.deadline_ms = 300}};
	struct aq_kv_client *c = NULL;
	struct kit_remote remote;
	char got[4];
	size_t len = 0;
	int err;

	rig_make(&r, &o);
	remote = rig_remote(&r.far);
	err = kv_client_create(&remote, &r.g, &config, &c);
	assert_non_null(l.other);
	assert_int_equal(err, -EAGAIN);
	rig_close(&r.far, &remote);
	assert_int_equal(aq_kv_get(l.other, "k", 1, got, sizeof(got), &len), 0);
	assert_int_equal(r.far.fences, 0);
	kv_client_destroy(l.other);
	kit_rig_break(&r.far);
}

/* ---- leases by region -----------------------------------------------------
 */

/* The client, which lives, seems to repair in these regions. */
static void hold_leases(struct rig *r, uint32_t regions)
{
	uint8_t *leases = r->far.main + kv_lease_at(&r->g, KV_LEASE_REGION);
	const struct kv_slot *s =
		(const struct kv_slot *)(r->far.main + r->g.slot_offset);
	uint32_t slot = 0;

	while (kit_slot_state(&s[slot].client) != KIT_SLOT_LIVE)
		assert_true(++slot < r->g.client_count);
	for (uint32_t i = 0; i < KV_REGIONS; i++) {
		le64 word = le64_put(kv_lease_word(
			slot + 1, (uint32_t)kit_slot_epoch(&s[slot].client),
			1));

		if (regions & 1u << i)
			memcpy(leases + 8 * i, &word, sizeof(word));
	}
}

/* A client dies over "victim", another one repairs that while somebody else
 * repairs here or elsewhere; returns how many it has fenced. */
static uint64_t repair_beside(bool here)
{
	static const struct aq_kv_options wide = {.capacity = 8192,
						  .clients = 5,
						  .entry_bytes = 32,
						  .rows_per_lock = 1,
						  .failure_ms = 10,
						  .seed = 11};
	struct doom doom = {.unlocks = 1};
	struct kv_client_config cfg = {
		.crash = doom_crash, .ctx = &doom, .rng_seed = 5};
	struct aq_kv_client *busy, *victim, *other;
	struct aq_kv_stats stats;
	struct kv_place place;
	uint32_t regions;
	struct rig r;

	rig_make(&r, &wide);
	kv_place_of(&r.g, kv_hash_key(&r.g, "victim", 6), &place);
	regions =
		1u << kv_region_of(&r.g, kv_lock_of(&r.g, place.row[0]) / 64) |
		1u << kv_region_of(&r.g, kv_lock_of(&r.g, place.row[1]) / 64);
	busy = rig_client(&r, NULL);
	hold_leases(&r, here ? regions : KV_REGIONS_ALL & ~regions);
	victim = rig_client(&r, &cfg);
	other = rig_client(&r, NULL);
	doom.is_armed = true;
	assert_int_equal(aq_kv_put(victim, "victim", 6, "new", 3, NULL),
			 -ESHUTDOWN);
	doom.is_armed = false;
	assert_int_equal(aq_kv_put(other, "victim", 6, "again", 5, NULL), 0);
	aq_kv_client_stats(other, &stats);
	assert_true(stats.repairs > 0);
	kv_client_destroy(victim);
	kv_client_destroy(busy);
	kv_client_destroy(other);
	kit_rig_break(&r.far);
	return stats.fenced;
}

/* There was one lease for all of a table. */
static void repairs_in_other_regions_hold_nobody_up(void **state)
{
	assert_int_equal(repair_beside(false), 1);
	/* Here it waits, until who does nothing is taken for dead. */
	assert_int_equal(repair_beside(true), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(repairs_in_other_regions_hold_nobody_up),
		cmocka_unit_test(a_late_client_has_no_slot),
		cmocka_unit_test(test_insert),
		cmocka_unit_test(test_second_lock),
		cmocka_unit_test(test_update),
		cmocka_unit_test(test_delete),
		cmocka_unit_test(test_extents),
		cmocka_unit_test(test_fenced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
