/* SPDX-License-Identifier: Apache-2.0 */
/* Ordered indexes whose clients die, sleep and are cut off at any moment, over
 * a bad network: histories are linearizable, scans included, and indexes whole;
 * planted bugs are found. */
#include "play_test.h"
#include "plays/tree_play.h"

enum {
	SEEDS = 40,
	BUG_SEEDS = 400, /* "torn" needs most: 1 seed in 130 shows it */
	SWITCH_SEEDS = 20,
};

static struct play_sum sum;
static const struct tree_play_counts *n = (const void *)sum.count;

static void linearizable(void **state)
{
	struct tree_play_options opt = {0};

	play_test_hold(&tree_play, &opt.common, SEEDS, &sum);
	/* All of it must have happened, or nothing was shown. */
	assert_true(n->gets && n->misses && n->puts && n->deletes);
	assert_true(n->scans && n->pairs && n->deaths && n->sleeps);
	assert_true(n->cuts && n->torn && n->rights && n->splits);
	assert_true(n->grown && n->helped && n->pruned && n->handed);
	assert_true(n->taken_over && n->fenced && n->adopted && n->lost);
	assert_true(n->sums && n->walks);
}

static void same_seed_same_hash(void **state)
{
	struct tree_play_options opt = {0};

	play_test_repeats(&tree_play, &opt.common, 4);
}

static void planted_bugs_are_found(void **state)
{
	struct tree_play_options opt = {0};

	for (const enum plant *bug = tree_play.bugs; *bug != PLANT_none; bug++)
		if (*bug != PLANT_early_answer) /* the switch's: see below */
			play_test_finds(&tree_play, &opt.common, *bug,
					BUG_SEEDS, &sum);
}

/* The locks are words of a switch, which is killed now and then. One that
 * answers before the lock is taken in the memory, where the next switch looks
 * for it, is found. */
static void locks_at_a_switch(void **state)
{
	struct tree_play_options opt = {.sword = "rto_us=500"};

	play_test_hold(&tree_play, &opt.common, SWITCH_SEEDS, &sum);
	assert_true(n->replaced && n->restarts && n->taken_over);
	play_test_finds(&tree_play, &opt.common, PLANT_early_answer,
			SWITCH_SEEDS, &sum);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(linearizable),
		cmocka_unit_test(same_seed_same_hash),
		cmocka_unit_test(planted_bugs_are_found),
		cmocka_unit_test(locks_at_a_switch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
