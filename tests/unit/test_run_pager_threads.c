/* SPDX-License-Identifier: Apache-2.0 */
/* When the reclaim thread works, and when it is tried again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "run/pager_threads.h"

#define MS   1000000ull
#define S    1000000000ull
#define MUCH 5000ull

static void the_thread_starts_where_a_core_rests(void **state)
{
	struct pager_threads c = {0};

	(void)state;
	assert_false(run_threads_judge(&c, 0, MUCH, true));
	assert_true(run_threads_judge(&c, 0, 2 * MUCH, false));
	assert_true(c.has_reclaim);
	assert_false(run_threads_judge(&c, 0, 3 * MUCH, false));
	assert_true(run_threads_judge(&c, 0, 4 * MUCH, true));
	assert_false(c.has_reclaim);
}

static void only_much_counts(void **state)
{
	struct pager_threads c = {0};

	(void)state;
	assert_false(run_threads_judge(&c, 0, 1000, false));
	assert_false(run_threads_judge(&c, 0, 2000, false));
	assert_true(run_threads_judge(&c, 0, 2000 + MUCH, false));
	/* Less is enough to see that it was a mistake: it may be the cause. */
	assert_false(run_threads_judge(&c, 0, 2100 + MUCH, true));
	assert_true(run_threads_judge(&c, 0, 3100 + MUCH, true));
}

/* Whether the reclaim thread stays when so many pages leave with it, per look.
 */
static bool passes(uint64_t pages)
{
	struct pager_threads c = {0};
	uint64_t evicted = MUCH;

	assert_true(run_threads_judge(&c, 0, evicted, false));
	for (unsigned i = 0; i < 20; i++) {
		evicted += pages;
		(void)run_threads_judge(&c, i, evicted, false);
	}
	return c.has_reclaim;
}

static void a_thread_that_helps_stays(void **state)
{
	(void)state;
	assert_true(passes(MUCH + MUCH / 4));
	assert_true(passes(MUCH));
	assert_false(passes(MUCH - 1));
	assert_false(passes(MUCH / 2));
	assert_false(passes(0));
}

static void waiting_counts_between_looks(void **state)
{
	struct pager_threads c = {.has_reclaim = true};

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		assert_false(run_threads_waited(&c, 0, 6 * MS));
		assert_false(run_threads_judge(&c, 0, 0, false));
	}
	assert_false(run_threads_waited(&c, 0, 6 * MS));
	assert_true(run_threads_waited(&c, 0, 6 * MS));
	assert_false(c.has_reclaim);
	/* Alone it waits for nobody. */
	assert_false(run_threads_waited(&c, 0, S));
}

/* The time at which the reclaim thread is tried again, to 100 ms. */
static uint64_t tried_again(struct pager_threads *c, uint64_t now,
			    uint64_t *evicted)
{
	while (!c->has_reclaim) {
		now += 100 * MS;
		*evicted += MUCH;
		(void)run_threads_judge(c, now, *evicted, false);
	}
	return now;
}

static void the_thread_is_tried_again_ever_later(void **state)
{
	static const unsigned seconds[] = {1, 2, 4, 8, 16, 32, 64, 64, 64};
	struct pager_threads c = {.has_reclaim = true};
	uint64_t now = 0, evicted = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(seconds); i++) {
		uint64_t start = now;

		assert_true(run_threads_waited(&c, now, 50 * MS));
		now = tried_again(&c, now, &evicted);
		assert_int_equal(now - start, seconds[i] * S);
	}
}

static void a_fixed_number_stays(void **state)
{
	(void)state;
	for (unsigned threads = 1; threads <= 2; threads++) {
		struct pager_threads c;

		run_threads_init(&c, threads);
		assert_int_equal(c.has_reclaim, threads == 2);
		assert_false(run_threads_waited(&c, 0, S));
		assert_false(run_threads_judge(&c, 0, MUCH, threads == 2));
		assert_int_equal(c.has_reclaim, threads == 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_thread_starts_where_a_core_rests),
		cmocka_unit_test(only_much_counts),
		cmocka_unit_test(a_thread_that_helps_stays),
		cmocka_unit_test(waiting_counts_between_looks),
		cmocka_unit_test(the_thread_is_tried_again_ever_later),
		cmocka_unit_test(a_fixed_number_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
