/* SPDX-License-Identifier: Apache-2.0 */
/* What leaves while far memory is full, and how much may stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "run/overflow.h"

enum {
	LIMIT = 8192,
};

#define SECOND 1000000000ull

static void nothing_is_held_back_before_it_is_full(void **state)
{
	struct overflow o;

	(void)state;
	overflow_init(&o, LIMIT, OVERFLOW_NO_LIMIT);
	assert_int_equal(overflow_budget(&o), UINT64_MAX);
	overflow_freed(&o);
	overflow_sent(&o, 64);
	overflow_result(&o, 1, 64, 0);
	assert_false(o.is_full);
	assert_false(overflow_is_due(&o, 100 * SECOND));
}

static void only_what_was_given_back_leaves_while_it_is_full(void **state)
{
	struct overflow o;

	(void)state;
	overflow_init(&o, LIMIT, OVERFLOW_NO_LIMIT);
	overflow_result(&o, SECOND, 0, 64);
	assert_true(o.is_full);
	assert_int_equal(overflow_budget(&o), 0);
	overflow_freed(&o);
	overflow_freed(&o);
	assert_int_equal(overflow_budget(&o), 2);
	overflow_sent(&o, 2);
	assert_int_equal(overflow_budget(&o), 0);
	/* They fitted, as was known: that says nothing about others. */
	overflow_result(&o, SECOND, 2, 0);
	assert_true(o.is_full);
}

/* Tries in vain become rare, but never end. */
static void tries_are_bounded(void **state)
{
	struct overflow o;
	unsigned tries = 0;

	(void)state;
	overflow_init(&o, LIMIT, OVERFLOW_NO_LIMIT);
	overflow_result(&o, 0, 0, 64);
	for (uint64_t ms = 0; ms < 60000; ms++) {
		if (!overflow_is_due(&o, ms * 1000000))
			continue;
		tries++;
		assert_true(overflow_budget(&o) > 0);
		overflow_sent(&o, overflow_budget(&o));
		assert_int_equal(overflow_budget(&o), 0);
		overflow_result(&o, ms * 1000000, 0, 64);
	}
	assert_in_range(tries, 10, 30);
}

static void room_that_comes_is_used(void **state)
{
	struct overflow o;

	(void)state;
	overflow_init(&o, LIMIT, OVERFLOW_NO_LIMIT);
	overflow_result(&o, 0, 0, 64);
	assert_true(overflow_is_due(&o, 10 * SECOND));
	overflow_sent(&o, 64);
	overflow_result(&o, 10 * SECOND, 64, 0);
	assert_false(o.is_full);
	assert_int_equal(overflow_budget(&o), UINT64_MAX);
}

/* One of two nodes is full, the other is not. */
static void goes_on_at_once_while_some_are_taken(void **state)
{
	struct overflow o;

	(void)state;
	overflow_init(&o, LIMIT, OVERFLOW_NO_LIMIT);
	overflow_result(&o, SECOND, 32, 32);
	assert_true(o.is_full);
	assert_true(overflow_is_due(&o, SECOND));
}

static void local_memory_grows_as_it_must_and_shrinks(void **state)
{
	struct overflow o;

	(void)state;
	overflow_init(&o, LIMIT, OVERFLOW_NO_LIMIT);
	overflow_result(&o, 0, 0, 1);
	overflow_raise(&o, LIMIT, LIMIT + 1000);
	assert_in_range(o.extra, 1001, 1000 + LIMIT / 4);
	assert_false(overflow_is_spent(&o, LIMIT, LIMIT * 1000ull));
	overflow_settle(&o, LIMIT, LIMIT + 1000);
	assert_true(o.extra > 1000);
	overflow_raise(&o, LIMIT, 10 * LIMIT);
	overflow_settle(&o, LIMIT, LIMIT / 2);
	assert_in_range(o.extra, 1, LIMIT / 4);
	o.is_full = false;
	overflow_settle(&o, LIMIT, 10 * LIMIT);
	assert_int_equal(o.extra, 0);
}

static void no_more_is_used_than_is_allowed(void **state)
{
	struct overflow o;

	(void)state;
	overflow_init(&o, LIMIT, 100);
	assert_false(overflow_is_spent(&o, LIMIT, LIMIT + 100));
	overflow_result(&o, 0, 0, 1);
	overflow_raise(&o, LIMIT, LIMIT + 5000);
	assert_int_equal(o.extra, 100);
	assert_false(overflow_is_spent(&o, LIMIT, LIMIT + 99));
	assert_true(overflow_is_spent(&o, LIMIT, LIMIT + 100));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_held_back_before_it_is_full),
		cmocka_unit_test(
			only_what_was_given_back_leaves_while_it_is_full),
		cmocka_unit_test(tries_are_bounded),
		cmocka_unit_test(room_that_comes_is_used),
		cmocka_unit_test(goes_on_at_once_while_some_are_taken),
		cmocka_unit_test(local_memory_grows_as_it_must_and_shrinks),
		cmocka_unit_test(no_more_is_used_than_is_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
