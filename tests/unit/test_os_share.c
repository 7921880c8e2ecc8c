/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of tenants with one path and with many, counted over rounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "os/path_share.h"

enum {
	BUDGET = 64,
	ROUNDS = 100,
	PATHS = 12, /* of the greedy tenant */
	MODEST = 0x1000,
	GREEDY = 0x2000,
};

/* What comes on a path in a round: always more than is taken, or so many. */
static unsigned take(struct share *s, uint64_t domain, unsigned waiting)
{
	unsigned may = share_budget(s, domain, BUDGET);
	unsigned got = u32_min(may, waiting);

	if (got)
		share_note(s, domain, got, waiting == UINT32_MAX);
	return got;
}

static void play(struct share *s, unsigned modest_paths, unsigned waiting,
		 uint64_t taken[2])
{
	taken[0] = taken[1] = 0;
	for (unsigned round = 0; round < ROUNDS; round++) {
		share_begin(s);
		for (unsigned i = 0; i < modest_paths; i++)
			taken[0] += take(s, MODEST, waiting);
		for (unsigned i = 0; i < PATHS; i++)
			taken[1] += take(s, GREEDY, UINT32_MAX);
	}
}

/* The first two rounds know nothing yet. */
static void test_both_have_more(void **state)
{
	struct share s = {0};
	uint64_t taken[2];

	play(&s, 1, UINT32_MAX, taken);
	assert_in_range(taken[0], ROUNDS * BUDGET / SHARE_GREEDY,
			BUDGET * (ROUNDS / SHARE_GREEDY + 2));
	assert_in_range(taken[1], taken[0] / 2, taken[0] + 2 * BUDGET * PATHS);
}

/* Any two are told apart, wherever their domains lie in memory. */
static void test_neighbours(void **state)
{
	for (uint64_t i = 1; i < 1000; i++) {
		struct share s = {0};

		for (unsigned round = 0; round < ROUNDS; round++) {
			share_begin(&s);
			(void)take(&s, MODEST, 1);
			(void)take(&s, MODEST + 16 * i, UINT32_MAX);
		}
		share_begin(&s);
		assert_true(share_budget(&s, MODEST, BUDGET) == BUDGET);
		assert_true(share_budget(&s, MODEST + 16 * i, BUDGET) <=
			    BUDGET / SHARE_GREEDY);
	}
}

/* Sixteen requests, and no more before they are answered. */
static void test_modest_beside_greedy(void **state)
{
	struct share s = {0};
	uint64_t taken[2];

	play(&s, 1, 16, taken);
	assert_int_equal(taken[0], 16 * ROUNDS);
	assert_in_range(taken[1], ROUNDS,
			ROUNDS * BUDGET / SHARE_GREEDY + 2 * BUDGET * PATHS);
}

static void test_alone(void **state)
{
	struct share s = {0};
	uint64_t taken[2];

	play(&s, 0, 0, taken);
	assert_int_equal(taken[1], BUDGET * ROUNDS * PATHS);
}

/* The others have gone: after a while all is as it was. */
static void test_alone_again(void **state)
{
	struct share s = {0};
	uint64_t taken[2];

	play(&s, 1, UINT32_MAX, taken);
	for (unsigned i = 0; i <= SHARE_ROUNDS_MAX / ROUNDS; i++)
		play(&s, 0, 0, taken);
	play(&s, 0, 0, taken);
	assert_int_equal(taken[1], BUDGET * ROUNDS * PATHS);
}

/* Who comes later in a round finds nothing left; the rounds begin with another
 * path each time. */
static void test_more_paths_than_budget(void **state)
{
	struct share s = {0};
	unsigned served = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		share_begin(&s);
		(void)take(&s, MODEST, 1);
		served = 0;
		for (unsigned i = 0; i < 2 * BUDGET; i++)
			if (share_budget(&s, GREEDY, BUDGET)) {
				share_note(&s, GREEDY, 1, true);
				served++;
			}
	}
	assert_int_equal(served, BUDGET / SHARE_GREEDY);
	assert_int_equal(share_budget(&s, MODEST, BUDGET), BUDGET - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_have_more),
		cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_modest_beside_greedy),
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_alone_again),
		cmocka_unit_test(test_more_paths_than_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
