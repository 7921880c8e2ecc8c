/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Units of several keys: all or none, for readers without locks, for other
 * units, and when the client dies before any of its requests.
 */

#include "base/crc.h"
#include "kv_rig.h"

enum {
	OTHERS = 150, /* keys beside those of the unit */
	MEMBERS = 6,
	STEPS_MAX = 400,
	VALUE_BYTES_MAX = 80 << 10,
	LARGE_BYTES = 160 << 20,  /* of values, in a table of their own */
	SEARCHED_BYTES = 4 << 20, /* for a record, from its beginning */
};

static const struct aq_kv_options small = {.capacity = 256,
					   .clients = 4,
					   .entry_bytes = 32,
					   .rows_per_lock = 4,
					   .failure_ms = 2,
					   .extent_bytes = 4 << 20,
					   .chunk_bytes = 65536,
					   .seed = 11};

static const char *const names[MEMBERS] = {"a", "b", "c", "d", "e", "f"};

static void members(struct aq_kv_key *keys)
{
	for (unsigned i = 0; i < MEMBERS; i++)
		keys[i] = (struct aq_kv_key){names[i], 1};
}

/* What a unit does to its keys: lengths of their values. SIZE_MAX: none. */
struct plan {
	size_t old_len[MEMBERS];
	size_t new_len[MEMBERS];
	uint8_t value[2][VALUE_BYTES_MAX]; /* of all, before and after */
	unsigned calls;
};

static void plan_init(struct plan *p)
{
	p->calls = 0;
	memset(p->value[0], 'o', sizeof(p->value[0]));
	memset(p->value[1], 'n', sizeof(p->value[1]));
}

static int replace_all(struct aq_kv_change *ch, void *user)
{
	struct plan *p = user;

	p->calls++;
	for (unsigned i = 0; i < MEMBERS; i++) {
		size_t old = p->old_len[i];

		assert_int_equal(ch[i].value != NULL, old != SIZE_MAX);
		if (ch[i].value) {
			assert_int_equal(ch[i].value_len, old);
			assert_memory_equal(ch[i].value, p->value[0], old);
		}
		ch[i].verdict =
			p->new_len[i] == SIZE_MAX ? AQ_KV_DELETE : AQ_KV_STORE;
		ch[i].new_value = p->value[1];
		ch[i].new_value_len = p->new_len[i];
	}
	return 0;
}

static void make_old(struct aq_kv_client *c, const struct plan *p)
{
	for (uint32_t i = 0; i < OTHERS; i++)
		assert_int_equal(
			aq_kv_put(c, &i, sizeof(i), &i, sizeof(i), NULL), 0);
	for (unsigned i = 0; i < MEMBERS; i++)
		if (p->old_len[i] != SIZE_MAX)
			assert_int_equal(aq_kv_put(c, names[i], 1, p->value[0],
						   p->old_len[i], NULL),
					 0);
}

/* 1: as after the unit; 0: as before it; -1: neither. */
static int state_of(struct aq_kv_client *c, const struct plan *p, unsigned i)
{
	static uint8_t got[VALUE_BYTES_MAX];
	size_t len = 0;
	int err = aq_kv_get(c, names[i], 1, got, sizeof(got), &len);

	for (int after = 0; after < 2; after++) {
		size_t want = after ? p->new_len[i] : p->old_len[i];

		if (want == SIZE_MAX
			    ? err == -ENOENT
			    : !err && len == want &&
				      !memcmp(got, p->value[after], len))
			return after;
	}
	return -1;
}

static uint64_t present(const size_t *len)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < MEMBERS; i++)
		n += len[i] != SIZE_MAX;
	return n;
}

static struct plan mixed(void)
{
	struct plan p = {
		/* inserted, changed, grows, shrinks, deleted, large */
		.old_len = {SIZE_MAX, 4, 4, 900, 700, 70 << 10},
		.new_len = {8, 6, 600, 3, SIZE_MAX, 66 << 10},
	};

	plan_init(&p);
	return p;
}

static void a_unit_changes_all_its_keys(void **state)
{
	struct aq_kv_key keys[MEMBERS];
	static struct plan p;
	struct aq_kv_client *c;
	struct rig r;

	p = mixed();
	members(keys);
	rig_make(&r, &small);
	c = rig_client(&r, NULL);
	make_old(c, &p);
	assert_int_equal(aq_kv_unit(c, keys, MEMBERS, replace_all, &p), 0);
	for (unsigned i = 0; i < MEMBERS; i++)
		assert_int_equal(state_of(c, &p, i), 1);
	rig_check_with(c, OTHERS + present(p.new_len));
	kv_client_destroy(c);
	kit_rig_break(&r.far);
}

static int refuse(struct aq_kv_change *ch, void *user)
{
	(void)replace_all(ch, user);
	return -EDOM;
}

static void a_refused_unit_changes_nothing(void **state)
{
	struct aq_kv_key keys[MEMBERS];
	static struct plan p;
	struct aq_kv_client *c;
	struct rig r;

	p = mixed();
	members(keys);
	rig_make(&r, &small);
	c = rig_client(&r, NULL);
	make_old(c, &p);
	assert_int_equal(aq_kv_unit(c, keys, MEMBERS, refuse, &p), -EDOM);
	for (unsigned i = 0; i < MEMBERS; i++)
		assert_int_equal(state_of(c, &p, i), 0);
	assert_int_equal(aq_kv_unit(c, keys, 0, refuse, &p), -EINVAL);
	assert_int_equal(aq_kv_unit(c, keys, AQ_KV_UNIT_KEYS + 1, refuse, &p),
			 -E2BIG);
	keys[1] = keys[0];
	assert_int_equal(aq_kv_unit(c, keys, MEMBERS, refuse, &p), -EINVAL);
	rig_check_with(c, OTHERS + present(p.old_len));
	kv_client_destroy(c);
	kit_rig_break(&r.far);
}

/* As many keys as a unit may have, in a table that they nearly fill: for some
 * of them there is no room without moving others. */
static void a_unit_finds_room(void **state)
{
	static const struct aq_kv_options o = {.capacity = 144,
					       .clients = 4,
					       .entry_bytes = 32,
					       .entries_per_row = 4,
					       .rows_per_lock = 4,
					       .extent_bytes = 1 << 20,
					       .chunk_bytes = 65536,
					       .seed = 3};
	struct aq_kv_key keys[AQ_KV_UNIT_KEYS];
	char name[AQ_KV_UNIT_KEYS][8];
	struct aq_kv_client *c;
	struct rig r;
	size_t len;

	rig_make(&r, &o);
	c = rig_client(&r, NULL);
	for (unsigned i = 0; i < AQ_KV_UNIT_KEYS; i++) {
		(void)snprintf(name[i], sizeof(name[i]), "k%u", i);
		keys[i] = (struct aq_kv_key){name[i], strlen(name[i])};
	}
	for (unsigned at = 0; at < AQ_KV_UNIT_KEYS; at += MEMBERS) {
		static struct plan p;
		unsigned n = AQ_KV_UNIT_KEYS - at;

		if (n < MEMBERS)
			break;
		plan_init(&p);
		for (unsigned i = 0; i < MEMBERS; i++) {
			p.old_len[i] = SIZE_MAX;
			p.new_len[i] = 2;
		}
		assert_int_equal(
			aq_kv_unit(c, keys + at, MEMBERS, replace_all, &p), 0);
	}
	for (unsigned i = 0; i < AQ_KV_UNIT_KEYS / MEMBERS * MEMBERS; i++)
		assert_int_equal(aq_kv_get(c, keys[i].key, keys[i].key_len,
					   NULL, 0, &len),
				 0);
	rig_check_with(c, UINT64_MAX);
	kv_client_destroy(c);
	kit_rig_break(&r.far);
}

/* ---- death -------------------------------------------------------------- */

struct doom {
	unsigned left;
	bool is_armed;
	enum kv_point last;
};

static bool doom_crash(void *ctx, int point)
{
	struct doom *d = ctx;

	if (!d->is_armed)
		return false;
	d->last = point;
	return d->left-- == 0;
}

/* Reads every key again and again in turn. What is decided may come late, but
 * once one key is as after the unit, no other may be as before it. 1: all are
 * changed; 0: none. */
static int look_round(struct aq_kv_client *c, const struct plan *p,
		      unsigned from)
{
	int seen = 0;

	for (unsigned i = 0; i < 2 * MEMBERS; i++) {
		int now = state_of(c, p, (from + i) % MEMBERS);

		if (now < seen)
			fail_msg("%s is %d after another was changed",
				 names[(from + i) % MEMBERS], now);
		seen = now;
	}
	return seen;
}

/* What a client that died has left, as others find it. */
static void expect_all_or_nothing(struct aq_kv_client *other,
				  const struct plan *p, unsigned from)
{
	int before = look_round(other, p, from), after;

	assert_int_equal(aq_kv_repair(other), 0);
	after = look_round(other, p, from + 1);
	assert_true(after >= before);
	rig_check_with(other,
		       OTHERS + present(after ? p->new_len : p->old_len));
}

/* Dies before its nth request; false when it did not need that many. */
static bool die_at(struct plan *p, const struct aq_kv_options *o, unsigned n)
{
	struct doom doom = {.left = n};
	struct kv_client_config cfg = {
		.crash = doom_crash, .ctx = &doom, .rng_seed = 5};
	struct aq_kv_client *victim, *other;
	struct aq_kv_key keys[MEMBERS];
	struct rig r;
	int err;

	members(keys);
	rig_make(&r, o);
	other = rig_client(&r, NULL);
	victim = rig_client(&r, &cfg);
	make_old(other, p);
	doom.is_armed = true;
	err = aq_kv_unit(victim, keys, MEMBERS, replace_all, p);
	doom.is_armed = false;
	assert_true(err == 0 || err == -ESHUTDOWN);
	r.far.end[1 + 1].is_open = err == 0;
	expect_all_or_nothing(other, p, n);
	kv_client_destroy(victim);
	kv_client_destroy(other);
	kit_rig_break(&r.far);
	return err != 0;
}

static void sweep(struct plan *p, const struct aq_kv_options *o,
		  const char *name)
{
	unsigned n = 0;

	while (n < STEPS_MAX && die_at(p, o, n))
		n++;
	assert_true(n > 10 && n < STEPS_MAX);
	print_message("%s: %u places to die\n", name, n);
}

static void a_dead_client_leaves_all_or_nothing(void **state)
{
	struct aq_kv_options words = small;
	static struct plan p;

	p = mixed();
	sweep(&p, &small, "values of all kinds");
	for (unsigned i = 0; i < MEMBERS; i++) {
		p.old_len[i] = i % 2 ? 5 : SIZE_MAX;
		p.new_len[i] = i % 3 ? 7 : SIZE_MAX;
	}
	p.new_len[0] = 3;
	sweep(&p, &small, "small values");
	words.flags = AQ_KV_WORD_LOCKS;
	sweep(&p, &words, "word locks");
}

/* Who repairs dies, too, before any of its requests; a third one ends it. */
static bool repairer_dies_at(struct plan *p, unsigned victim_at, unsigned n)
{
	struct doom one = {.left = victim_at}, two = {.left = n};
	struct kv_client_config first = {.crash = doom_crash, .ctx = &one};
	struct kv_client_config second = {.crash = doom_crash, .ctx = &two};
	struct aq_kv_client *victim, *repairer, *other;
	struct aq_kv_key keys[MEMBERS];
	struct rig r;
	int died, err;

	members(keys);
	rig_make(&r, &small);
	other = rig_client(&r, NULL);
	victim = rig_client(&r, &first);
	repairer = rig_client(&r, &second);
	make_old(other, p);
	one.is_armed = true;
	died = aq_kv_unit(victim, keys, MEMBERS, replace_all, p);
	one.is_armed = false;
	/* On a machine that was busy when they were counted, signs of life were
	 * among its requests; now there may be fewer. */
	assert_true(died == 0 || died == -ESHUTDOWN);
	r.far.end[1 + 1].is_open = died == 0;
	two.is_armed = true;
	err = aq_kv_repair(repairer);
	two.is_armed = false;
	r.far.end[1 + 2].is_open = false;
	expect_all_or_nothing(other, p, n);
	kv_client_destroy(victim);
	kv_client_destroy(repairer);
	kv_client_destroy(other);
	kit_rig_break(&r.far);
	return died && err;
}

static void a_repair_that_dies_is_ended_by_another(void **state)
{
	static struct plan p;
	unsigned total = 0, places = 0;

	p = mixed();
	while (die_at(&p, &small, total))
		total++;
	/* The second half of the unit's requests are those that show. */
	for (unsigned at = total / 2; at < total; at += 9)
		for (unsigned n = 0; repairer_dies_at(&p, at, n); n += 5)
			places++;
	assert_true(places > 8);
}

static uint64_t record_bytes(uint64_t rows, uint64_t extents)
{
	struct kv_geometry g;

	assert_int_equal(kv_geometry_make(&small, &g), 0);
	return sizeof(struct kv_unit_record) + 8 * rows +
	       sizeof(struct kv_unit_extent) * extents + g.row_bytes * rows;
}

static uint64_t record_crc(const struct kv_unit_record *head, uint64_t rows,
			   uint64_t extents)
{
	return crc64(0, (const uint8_t *)head + sizeof(head->crc),
		     record_bytes(rows, extents) - sizeof(head->crc));
}

/* The record of a unit in far memory; NULL: none is there. */
static struct kv_unit_record *find_record(struct rig *r)
{
	for (uint64_t at = 0; at < SEARCHED_BYTES; at += 16) {
		struct kv_unit_record *head = (void *)(r->far.main + at);
		uint64_t rows = le32_get(head->row_count);
		uint64_t extents = (uint64_t)le32_get(head->new_count) +
				   le32_get(head->old_count);

		if (rows && rows <= 2 * MEMBERS && extents &&
		    extents <= 2 * MEMBERS &&
		    record_crc(head, rows, extents) == le64_get(head->crc))
			return head;
	}
	return NULL;
}

/* A client dies, and its record, where it had come to that, says that an extent
 * is as large as the table. False: it did not die. */
static bool lies_at(struct plan *p, unsigned at, unsigned *found)
{
	struct doom doom = {.left = at};
	struct kv_client_config cfg = {
		.crash = doom_crash, .ctx = &doom, .rng_seed = 5};
	struct aq_kv_options large = small;
	struct aq_kv_client *victim, *other;
	struct kv_unit_record *head;
	struct aq_kv_key keys[MEMBERS];
	struct kv_geometry g;
	struct rig r;
	int err;

	large.extent_bytes = LARGE_BYTES;
	assert_int_equal(kv_geometry_make(&large, &g), 0);
	members(keys);
	rig_make(&r, &large);
	other = rig_client(&r, NULL);
	victim = rig_client(&r, &cfg);
	make_old(other, p);
	doom.is_armed = true;
	err = aq_kv_unit(victim, keys, MEMBERS, replace_all, p);
	doom.is_armed = false;
	r.far.end[1 + 1].is_open = err == 0;
	head = err ? find_record(&r) : NULL;
	*found += head != NULL;
	if (head) {
		uint32_t rows = le32_get(head->row_count);
		struct kv_unit_extent *first =
			(void *)((le64 *)(head + 1) + rows);

		first->offset = le64_put(g.chunk_offset);
		first->size_bytes = le64_put(g.size_bytes - g.chunk_offset);
		head->crc = le64_put(
			record_crc(head, rows,
				   (uint64_t)le32_get(head->new_count) +
					   le32_get(head->old_count)));
	}
	assert_int_equal(aq_kv_repair(other), 0);
	kv_client_destroy(victim);
	kv_client_destroy(other);
	kit_rig_break(&r.far);
	return err != 0;
}

static void a_record_of_nonsense_is_not_carried_out(void **state)
{
	static struct plan p;
	unsigned found = 0;

	p = mixed();
	for (unsigned at = 8; lies_at(&p, at, &found); at += 4)
		assert_true(at < STEPS_MAX);
	assert_true(found > 2);
}

enum {
	GROUP = 24,	    /* keys of a unit, with values of their own */
	GROUPS = 8,	    /* many more than one chunk has room for */
	GROUP_BYTES = 2000, /* of a value */
};

static void group_value(uint32_t key, uint8_t value[GROUP_BYTES])
{
	for (uint32_t i = 0; i < GROUP_BYTES; i++)
		value[i] = (uint8_t)(key + i / 7);
}

static int store_group(struct aq_kv_change *ch, void *user)
{
	static uint8_t value[GROUP][GROUP_BYTES];
	const uint32_t *key = user;

	for (unsigned i = 0; i < GROUP; i++) {
		group_value(key[i], value[i]);
		ch[i].verdict = AQ_KV_STORE;
		ch[i].new_value = value[i];
		ch[i].new_value_len = GROUP_BYTES;
	}
	return 0;
}

/* A chunk that has run out is looked at for extents that others gave back. What
 * the unit itself has taken of it is in no map yet, and not free. */
static void values_of_a_unit_have_places_of_their_own(void **state)
{
	uint8_t want[GROUP_BYTES], got[GROUP_BYTES];
	struct aq_kv_key keys[GROUP];
	struct aq_kv_client *c;
	uint32_t key[GROUP];
	struct rig r;
	size_t len;

	rig_make(&r, &small);
	c = rig_client(&r, NULL);
	for (uint32_t g = 0; g < GROUPS; g++) {
		for (uint32_t i = 0; i < GROUP; i++) {
			key[i] = g * GROUP + i;
			keys[i] = (struct aq_kv_key){&key[i], sizeof(key[i])};
		}
		assert_int_equal(aq_kv_unit(c, keys, GROUP, store_group, key),
				 0);
	}
	for (uint32_t k = 0; k < GROUPS * GROUP; k++) {
		group_value(k, want);
		assert_int_equal(
			aq_kv_get(c, &k, sizeof(k), got, sizeof(got), &len), 0);
		assert_int_equal(len, GROUP_BYTES);
		assert_memory_equal(got, want, GROUP_BYTES);
	}
	rig_check_with(c, GROUPS * GROUP);
	kv_client_destroy(c);
	kit_rig_break(&r.far);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_unit_changes_all_its_keys),
		cmocka_unit_test(a_refused_unit_changes_nothing),
		cmocka_unit_test(a_unit_finds_room),
		cmocka_unit_test(values_of_a_unit_have_places_of_their_own),
		cmocka_unit_test(a_dead_client_leaves_all_or_nothing),
		cmocka_unit_test(a_repair_that_dies_is_ended_by_another),
		cmocka_unit_test(a_record_of_nonsense_is_not_carried_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
