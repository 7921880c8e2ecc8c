/* SPDX-License-Identifier: Apache-2.0 */
/* Pages that leave together: which may be dropped by one call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "run/space_priv.h"

enum {
	PAGES = 4096,
	FIRST = 100,
};

static struct space *open_space(void)
{
	struct space *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->start = RUN_RANGE_ALIGN;
	assert_int_equal(run_pages_init(&s->pages, PAGES), 0);
	return s;
}

static void close_space(struct space *s)
{
	run_pages_release(&s->pages);
	free(s);
}

/* How many stretches two pages become that leave, `distance` apart. */
static unsigned stretches(struct space *s, uint64_t distance, bool can_move)
{
	struct leaving l = {.count = 2, .page = {FIRST, FIRST + distance}};

	run_set_add(&s->pages.resident, FIRST);
	run_set_add(&s->pages.resident, FIRST + distance);
	run_batch_build(s, &l, can_move);
	return l.stretch_count;
}

static void near_pages_are_one_stretch_if_they_are_copied(void **state)
{
	static const struct {
		uint64_t distance;
		bool can_move;
		unsigned stretches;
	} row[] = {
		{1, true, 1},  {2, true, 2},   {1, false, 1},
		{2, false, 1}, {64, false, 1}, {65, false, 2},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		struct space *s = open_space();

		assert_int_equal(stretches(s, row[i].distance, row[i].can_move),
				 row[i].stretches);
		close_space(s);
	}
}

/* All of a stretch is dropped: what is here and stays must not be in it. */
static void no_stretch_has_a_page_that_stays(void **state)
{
	static const struct {
		enum run_mark mark;
		unsigned stretches;
	} row[] = {
		{RUN_MARK_RESIDENT, 2}, {RUN_MARK_HELD, 2},
		{RUN_MARK_ALIEN, 2},	{RUN_MARK_VAGUE, 2},
		{RUN_MARK_TOUCHED, 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		struct space *s = open_space();

		run_set_add(&s->pages.set[row[i].mark], FIRST + 1);
		assert_int_equal(stretches(s, 2, false), row[i].stretches);
		close_space(s);
	}
}

static void guarded_pages_do_not_join_others(void **state)
{
	struct space *s = open_space();

	(void)state;
	s->pages.page[FIRST + 1].by_copy = 1;
	assert_int_equal(stretches(s, 1, true), 2);
	close_space(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(near_pages_are_one_stretch_if_they_are_copied),
		cmocka_unit_test(no_stretch_has_a_page_that_stays),
		cmocka_unit_test(guarded_pages_do_not_join_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
