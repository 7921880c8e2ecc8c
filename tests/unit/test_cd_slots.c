/* SPDX-License-Identifier: Apache-2.0 */
/* Which block of a store an image takes each slot from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "vault_priv.h"

/* A saved block: number, generation = number + 10, its slots. */
struct saved {
	int lo, hi, frozen_lo, frozen_hi, to, token, batch;
};

static json_t *make(const struct saved *rows, unsigned count)
{
	json_t *all = json_object();

	for (unsigned i = 0; i < count; i++) {
		char key[2] = {(char)('0' + i), 0};

		(void)json_object_set_new(
			all, key,
			json_pack("{s:i, s:i, s:[i, i, i, i, i, i, i]}",
				  "number", (int)i, "generation", (int)i + 10,
				  "slots", rows[i].lo, rows[i].hi,
				  rows[i].frozen_lo, rows[i].frozen_hi,
				  rows[i].to, rows[i].token, rows[i].batch));
	}
	return all;
}

struct chosen {
	int number, lo, hi;
};

struct trial {
	struct saved saved[3], before[3];
	unsigned count;
	bool is_final;
	struct chosen want[3]; /* hi 0: no more; none at all: -EAGAIN */
};

static void assert_trial(const struct trial *t)
{
	json_t *saved = make(t->saved, t->count), *rows = NULL;
	json_t *before = make(t->before, t->count);
	int err = cd_slots_choose(saved, before, t->is_final, &rows);
	size_t n = 0;

	assert_int_equal(err, t->want[0].hi ? 0 : -EAGAIN);
	for (; n < ARRAY_LEN(t->want) && t->want[n].hi; n++) {
		const json_t *row = json_array_get(rows, n);

		assert_int_equal(
			json_integer_value(json_object_get(row, "number")),
			t->want[n].number);
		assert_int_equal(json_integer_value(json_object_get(row, "lo")),
				 t->want[n].lo);
		assert_int_equal(json_integer_value(json_object_get(row, "hi")),
				 t->want[n].hi);
		assert_null(json_object_get(row, "slots"));
	}
	assert_int_equal(json_array_size(rows), n);
	json_decref(rows);
	json_decref(saved);
	json_decref(before);
}

#define ALL 16384

static void each_slot_comes_from_one_block(void **state)
{
	static const struct trial trials[] = {
		/* One that has all; one that has nothing beside it. */
		{.saved = {{0, ALL}}, .count = 1, .want = {{0, 0, ALL}}},
		{.saved = {{0, ALL}, {0, 0}},
		 .count = 2,
		 .want = {{0, 0, ALL}}},
		{.saved = {{100, ALL}, {0, 100}},
		 .count = 2,
		 .want = {{1, 0, 100}, {0, 100, ALL}}},
		/* Slots that came to the second after the first was saved. */
		{.saved = {{0, ALL}, {8000, ALL}},
		 .count = 2,
		 .want = {{0, 0, ALL}}},
		/* Slots that left the first before it was saved, and came to
		 * the second after that was saved. */
		{.saved = {{0, 8000}, {9000, ALL}}, .count = 2},
		{.saved = {{1, ALL}}, .count = 1},
		{.saved = {{0, ALL - 1}}, .count = 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(trials); i++)
		assert_trial(&trials[i]);
}

static void a_batch_under_way_is_taken_once(void **state)
{
	static const struct trial trials[] = {
		/* Nobody changes anything: the target has it, or not. */
		{.saved = {{0, 9000, 8000, 9000, 11, 1, 4}, {8000, ALL}},
		 .count = 2,
		 .is_final = true,
		 .want = {{0, 0, 8000}, {1, 8000, ALL}}},
		{.saved = {{0, 9000, 8000, 9000, 11, 1, 4}, {9000, ALL}},
		 .count = 2,
		 .is_final = true,
		 .want = {{0, 0, 9000}, {1, 9000, ALL}}},
		/* The same at the lower end. */
		{.saved = {{100, ALL, 100, 200, 11, 1, 4}, {0, 200}},
		 .count = 2,
		 .is_final = true,
		 .want = {{1, 0, 200}, {0, 200, ALL}}},
		/* In use: the target may have had it, and given it on. */
		{.saved = {{0, 9000, 8000, 9000, 11, 1, 4}, {9000, ALL}},
		 .count = 2},
		/* The same batch as in the round before. */
		{.saved = {{0, 9000, 8000, 9000, 11, 1, 4}, {9000, ALL}},
		 .before = {{0, 9000, 8000, 9000, 11, 1, 4}, {9000, ALL}},
		 .count = 2,
		 .want = {{0, 0, 9000}, {1, 9000, ALL}}},
		/* Another one; and one that the target had then. */
		{.saved = {{0, 9000, 8000, 9000, 11, 1, 4}, {9000, ALL}},
		 .before = {{0, 9000, 8000, 9000, 11, 1, 3}, {9000, ALL}},
		 .count = 2},
		{.saved = {{0, 9000, 8000, 9000, 11, 1, 4}, {9000, ALL}},
		 .before = {{0, 9000, 8000, 9000, 11, 1, 4}, {8000, ALL}},
		 .count = 2},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(trials); i++)
		assert_trial(&trials[i]);
}

static void nonsense_of_nodes_is_refused(void **state)
{
	static const struct {
		const char *text;
		int err;
	} trials[] = {
		{"[0, 16384, 0, 0, 0, 0, 0]", 0},
		{"[0, 100, 50, 100, 7, 1, 1]", 0},
		{"[0, 100, 0, 50, 7, 1, 1]", 0},
		{"[0, 16385, 0, 0, 0, 0, 0]", -EINVAL},
		{"[5, 4, 0, 0, 0, 0, 0]", -EINVAL},
		{"[0, 100, 20, 50, 7, 1, 1]", -EINVAL},
		{"[0, 100, 50, 101, 7, 1, 1]", -EINVAL},
		{"[0, 100, 0, 0, 0, 0]", -EINVAL},
		{"[0, 100, 0, 0, 0, 0, 0, 0]", -EINVAL},
		{"[0, -1, 0, 0, 0, 0, 0]", -EINVAL},
		{"[0, \"1\", 0, 0, 0, 0, 0]", -EINVAL},
		{"{}", -EINVAL},
	};

	(void)state;
	assert_int_equal(cd_slots_check(NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(trials); i++) {
		json_t *slots = json_loads(trials[i].text, 0, NULL);

		assert_int_equal(cd_slots_check(slots), trials[i].err);
		json_decref(slots);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_slot_comes_from_one_block),
		cmocka_unit_test(a_batch_under_way_is_taken_once),
		cmocka_unit_test(nonsense_of_nodes_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
