/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The play "hostile": seeds without a violation, the same hash twice, every
 * planted bug found. SEEDS in the environment sets the number of the first.
 */
#include "../unit/play_test.h"
#include "memnode/mem_limits.h"
#include "plays/hostile_play.h"

/* The nodes of its second act are as patient as those that are shipped. */
STATIC_ASSERT((int)HOSTILE_HEARTBEAT_MS == (int)MEM_HEARTBEAT_MS &&
		      (int)HOSTILE_PATIENCE_MS ==
			      MEM_HEARTBEAT_MS * MEM_HEARTBEAT_MISSES &&
		      (int)HOSTILE_TICK_MS == (int)MEM_TICK_MS &&
		      (int)HOSTILE_PAUSE_MS == (int)MEM_PAUSE_MS,
	      "the play's nodes are memory nodes");

enum {
	SEEDS = 20,
	HEARTBEAT_SEEDS = 50, /* in which beats in turn must be found */
	BUG_SEEDS = 2000,     /* at most */
};

static struct play_sum sum;
static struct play_options opt;

static void test_seeds(void **state)
{
	const struct hostile_play_counts *n = (const void *)sum.count;
	uint64_t seeds = play_test_seeds(SEEDS);

	play_test_hold(&hostile_play, &opt, seeds, &sum);
	/* Somebody was hostile, and nodes were not well. */
	assert_true(n->denied > seeds && n->dropped > seeds);
	assert_true(n->hangs > seeds && n->forgotten > seeds);
}

static void test_same_twice(void **state)
{
	play_test_repeats(&hostile_play, &opt, 5);
}

static void test_planted_bugs(void **state)
{
	play_test_finds_all(&hostile_play, &opt, BUG_SEEDS);
}

/* A client that waits for one node before it tells the next is found soon, and
 * by what matters: a node that is well ends a connection. */
static void test_beats_in_turn(void **state)
{
	static struct play_result res;

	opt.bug = PLANT_beats_in_turn;
	opt.seed = 0;
	do {
		assert_true(++opt.seed <= HEARTBEAT_SEEDS);
		assert_int_equal(play_seed(&hostile_play, &opt, &res), 0);
	} while (!strstr(res.first, "which is well, ends a connection"));
	opt.bug = PLANT_none;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seeds),
		cmocka_unit_test(test_same_twice),
		cmocka_unit_test(test_planted_bugs),
		cmocka_unit_test(test_beats_in_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
