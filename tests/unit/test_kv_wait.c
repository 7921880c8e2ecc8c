/* SPDX-License-Identifier: Apache-2.0 */
/* What a client makes of waiting: that the way is full, and that its put was
 * overtaken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kv/kv_priv.h"

static void note(struct kv_pace *p, unsigned times, uint64_t ns)
{
	while (times--)
		kv_pace_note(p, ns);
}

static void test_pace(void **state)
{
	struct kv_pace p = {0};

	note(&p, 96, 2000);
	assert_false(p.is_busy);
	/* Bad luck, most of the time. */
	for (unsigned i = 0; i < 32; i++) {
		note(&p, 15, 50000);
		note(&p, 1, 2100);
	}
	assert_false(p.is_busy);
	note(&p, 32, 5000);
	assert_true(p.is_busy);
	note(&p, 31, 5000);
	note(&p, 1, 2100);
	assert_false(p.is_busy);
	/* Everybody starts at once: only something else was quick. */
	p = (struct kv_pace){0};
	kv_pace_best(&p, 2000);
	note(&p, 32, 20000);
	assert_true(p.is_busy);
	/* Another way, twice as long, is not full for ever. */
	note(&p, 100000, 20000);
	assert_false(p.is_busy);
}

struct wait {
	struct kv_replica *c;
	struct kv_place place;
	struct kv_overtake o;
	uint8_t row[2][KV_ROW_BYTES_MAX];
};

static void wait_init(struct wait *w)
{
	struct aq_kv_options o = {.capacity = 64, .entry_bytes = 32, .seed = 1};

	*w = (struct wait){.c = calloc(1, sizeof(*w->c))};
	assert_non_null(w->c);
	assert_int_equal(kv_geometry_make(&o, &w->c->g), 0);
	kv_place_of(&w->c->g, kv_hash_key(&w->c->g, "key", 3), &w->place);
	w->o = (struct kv_overtake){
		.place = &w->place, .key = "key", .key_len = 3};
}

static void store(struct wait *w, unsigned row, unsigned entry,
		  const char *value, bool is_put)
{
	const struct kv_geometry *g = &w->c->g;
	uint8_t *e = kv_entry(g, w->row[row], entry);

	kv_entry_inline(g, e, "key", 3, value, strlen(value), 0);
	if (is_put)
		kv_entry_mark_put(g, e);
	kv_row_seal(g, w->row[row], 0);
}

static void erase(struct wait *w, unsigned row, unsigned entry)
{
	kv_entry_clear(&w->c->g, kv_entry(&w->c->g, w->row[row], entry));
	kv_row_seal(&w->c->g, w->row[row], 0);
}

static bool look(struct wait *w, bool first, bool second)
{
	uint8_t *row[2] = {first ? w->row[0] : NULL, second ? w->row[1] : NULL};

	return kv_is_overtaken(w->c, &w->o, row);
}

static void test_overtaken(void **state)
{
	struct wait w;

	wait_init(&w);
	/* What was there when it began may be from before. */
	store(&w, 0, 2, "old", true);
	assert_false(look(&w, true, true));
	assert_false(look(&w, true, true));
	/* Another has moved it, and changed other keys. */
	store(&w, 1, 5, "old", true);
	erase(&w, 0, 2);
	assert_false(look(&w, true, true));
	/* Its row was not read. */
	store(&w, 1, 5, "new", true);
	assert_false(look(&w, true, false));
	assert_true(look(&w, true, true));
	free(w.c);
}

static void test_not_overtaken(void **state)
{
	struct wait w;

	wait_init(&w);
	/* A key that was not seen may have been between its rows. */
	assert_false(look(&w, true, true));
	store(&w, 0, 0, "one", true);
	assert_false(look(&w, true, true));
	/* By who looked at the value: it would have seen ours. */
	store(&w, 0, 0, "two", false);
	assert_false(look(&w, true, true));
	erase(&w, 0, 0);
	assert_false(look(&w, true, true));
	/* A row that is being written. */
	store(&w, 0, 0, "three", true);
	w.row[0][8] ^= 1;
	assert_false(look(&w, true, true));
	w.row[0][8] ^= 1;
	assert_true(look(&w, true, true));
	free(w.c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pace),
		cmocka_unit_test(test_overtaken),
		cmocka_unit_test(test_not_overtaken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
