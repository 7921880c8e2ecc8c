/* SPDX-License-Identifier: Apache-2.0 */
/* When the porter works, and when it is tried again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "run/crew.h"

#define MS   1000000ull
#define S    1000000000ull
#define MUCH 5000ull

static void crew_takes_the_porter_where_a_core_rests(void **state)
{
	struct crew c = {0};

	(void)state;
	assert_false(run_crew_judge(&c, 0, MUCH, true));
	assert_true(run_crew_judge(&c, 0, 2 * MUCH, false));
	assert_true(c.has_porter);
	assert_false(run_crew_judge(&c, 0, 3 * MUCH, false));
	assert_true(run_crew_judge(&c, 0, 4 * MUCH, true));
	assert_false(c.has_porter);
}

static void crew_judges_by_much_only(void **state)
{
	struct crew c = {0};

	(void)state;
	assert_false(run_crew_judge(&c, 0, 1000, false));
	assert_false(run_crew_judge(&c, 0, 2000, false));
	assert_true(run_crew_judge(&c, 0, 2000 + MUCH, false));
	/* Less is enough to see that it was a mistake: it may be the cause. */
	assert_false(run_crew_judge(&c, 0, 2100 + MUCH, true));
	assert_true(run_crew_judge(&c, 0, 3100 + MUCH, true));
}

/* Whether the porter stays when so many pages leave with it, per look. */
static bool passes(uint64_t pages)
{
	struct crew c = {0};
	uint64_t evicted = MUCH;

	assert_true(run_crew_judge(&c, 0, evicted, false));
	for (unsigned i = 0; i < 20; i++) {
		evicted += pages;
		(void)run_crew_judge(&c, i, evicted, false);
	}
	return c.has_porter;
}

static void crew_keeps_a_porter_that_helps(void **state)
{
	(void)state;
	assert_true(passes(MUCH + MUCH / 4));
	assert_true(passes(MUCH));
	assert_false(passes(MUCH - 1));
	assert_false(passes(MUCH / 2));
	assert_false(passes(0));
}

static void crew_counts_waiting_between_looks(void **state)
{
	struct crew c = {.has_porter = true};

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		assert_false(run_crew_waited(&c, 0, 6 * MS));
		assert_false(run_crew_judge(&c, 0, 0, false));
	}
	assert_false(run_crew_waited(&c, 0, 6 * MS));
	assert_true(run_crew_waited(&c, 0, 6 * MS));
	assert_false(c.has_porter);
	/* Alone it waits for nobody. */
	assert_false(run_crew_waited(&c, 0, S));
}

/* The time at which the porter is tried again, to 100 ms. */
static uint64_t tried_again(struct crew *c, uint64_t now, uint64_t *evicted)
{
	while (!c->has_porter) {
		now += 100 * MS;
		*evicted += MUCH;
		(void)run_crew_judge(c, now, *evicted, false);
	}
	return now;
}

static void crew_tries_again_ever_later(void **state)
{
	static const unsigned seconds[] = {1, 2, 4, 8, 16, 32, 64, 64, 64};
	struct crew c = {.has_porter = true};
	uint64_t now = 0, evicted = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(seconds); i++) {
		uint64_t start = now;

		assert_true(run_crew_waited(&c, now, 50 * MS));
		now = tried_again(&c, now, &evicted);
		assert_int_equal(now - start, seconds[i] * S);
	}
}

static void crew_does_as_it_is_told(void **state)
{
	(void)state;
	for (unsigned threads = 1; threads <= 2; threads++) {
		struct crew c;

		run_crew_init(&c, threads);
		assert_int_equal(c.has_porter, threads == 2);
		assert_false(run_crew_waited(&c, 0, S));
		assert_false(run_crew_judge(&c, 0, MUCH, threads == 2));
		assert_int_equal(c.has_porter, threads == 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crew_takes_the_porter_where_a_core_rests),
		cmocka_unit_test(crew_judges_by_much_only),
		cmocka_unit_test(crew_keeps_a_porter_that_helps),
		cmocka_unit_test(crew_counts_waiting_between_looks),
		cmocka_unit_test(crew_tries_again_ever_later),
		cmocka_unit_test(crew_does_as_it_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
