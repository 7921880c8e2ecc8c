/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of tenants with one path and with many, counted over rounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "path_share.h"

enum {
	BUDGET = 64,
	ROUNDS = 100,
	PATHS = 12, /* of the greedy tenant */
	MODEST = 0x1000,
	GREEDY = 0x2000,
};

/* Every path always has more than is taken from it. */
static void play(struct share *s, unsigned modest_paths, uint64_t taken[2])
{
	taken[0] = taken[1] = 0;
	for (unsigned round = 0; round < ROUNDS; round++) {
		share_begin(s);
		for (unsigned i = 0; i < modest_paths + PATHS; i++) {
			bool greedy = i >= modest_paths;
			uint64_t domain = greedy ? GREEDY : MODEST;

			taken[greedy] += share_budget(s, domain, BUDGET);
			share_note(s, domain);
		}
	}
}

static void test_one_beside_many(void **state)
{
	struct share s = {0};
	uint64_t taken[2];

	play(&s, 1, taken);
	assert_int_equal(taken[0], BUDGET * ROUNDS);
	/* The first two rounds know nothing yet. */
	assert_in_range(taken[1], BUDGET * ROUNDS * 3 / 4,
			BUDGET * (ROUNDS + 2 * PATHS));
}

static void test_alone(void **state)
{
	struct share s = {0};
	uint64_t taken[2];

	play(&s, 0, taken);
	assert_int_equal(taken[1], BUDGET * ROUNDS * PATHS);
}

/* The others have gone: after a while all is as it was. */
static void test_alone_again(void **state)
{
	struct share s = {0};
	uint64_t taken[2];

	play(&s, 1, taken);
	for (unsigned i = 0; i <= SHARE_ROUNDS_MAX / ROUNDS; i++)
		play(&s, 0, taken);
	play(&s, 0, taken);
	assert_int_equal(taken[1], BUDGET * ROUNDS * PATHS);
}

static void test_more_paths_than_budget(void **state)
{
	struct share s = {0};

	for (unsigned round = 0; round < 3; round++) {
		share_begin(&s);
		share_note(&s, MODEST);
		for (unsigned i = 0; i < 2 * BUDGET; i++)
			share_note(&s, GREEDY);
	}
	assert_int_equal(share_budget(&s, GREEDY, BUDGET), 1);
	assert_int_equal(share_budget(&s, MODEST, BUDGET), BUDGET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_beside_many),
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_alone_again),
		cmocka_unit_test(test_more_paths_than_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
