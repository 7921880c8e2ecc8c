/* SPDX-License-Identifier: Apache-2.0 */
/* Ordered indexes whose clients die, sleep and are cut off at any moment, over
 * a bad network: histories are linearizable, scans included, and indexes whole;
 * planted bugs are found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "index/tree.h"
#include "plays/tree_play.h"

enum {
	SEEDS = 40,
	BUG_SEEDS = 400, /* "torn" needs most: 1 seed in 130 shows it */
	SWITCH_SEEDS = 20,
};

static struct tree_play_result res;

static void run(uint64_t seed, enum plant bug)
{
	struct tree_play_options opt = {.seed = seed, .bug = bug};

	assert_int_equal(tree_play_run(&opt, &res), 0);
}

static void run_switch(uint64_t seed, enum plant bug)
{
	struct tree_play_options opt = {
		.seed = seed, .sword = "rto_us=500", .bug = bug};

	assert_int_equal(tree_play_run(&opt, &res), 0);
}

static void linearizable(void **state)
{
	struct tree_play_counts sum = {0};

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		run(seed, PLANT_none);
		if (res.violations)
			fail_msg("seed %d: %s", (int)seed, res.first);
#define ADD(name, help) sum.name += res.counts.name;
		TREE_PLAY_COUNTS(ADD)
#undef ADD
	}
	/* All of it must have happened, or nothing was shown. */
	assert_true(sum.gets && sum.misses && sum.puts && sum.deletes);
	assert_true(sum.scans && sum.pairs && sum.deaths && sum.sleeps);
	assert_true(sum.cuts && sum.torn && sum.rights && sum.splits);
	assert_true(sum.grown && sum.helped && sum.pruned && sum.handed);
	assert_true(sum.taken_over && sum.fenced && sum.adopted && sum.lost);
}

static void same_seed_same_hash(void **state)
{
	uint64_t hash;

	run(4, PLANT_none);
	hash = res.hash;
	run(4, PLANT_none);
	assert_int_equal(res.hash, hash);
}

static void planted_bugs_are_found(void **state)
{
	for (const enum plant *bug = tree_play_bugs; *bug; bug++) {
		uint64_t seed = 1;

		do
			run(seed, *bug);
		while (!res.violations && ++seed <= BUG_SEEDS);
		if (seed > BUG_SEEDS)
			fail_msg("%s was not found", plant_name(*bug));
	}
}

/* The locks are words of a switch, which is killed now and then. One that
 * answers before the lock is taken in the memory, where the next switch looks
 * for it, is found. */
static void locks_at_a_switch(void **state)
{
	uint64_t replaced = 0, restarts = 0, taken_over = 0, seed = 0;

	while (++seed <= SWITCH_SEEDS) {
		run_switch(seed, PLANT_none);
		if (res.violations)
			fail_msg("seed %d: %s", (int)seed, res.first);
		replaced += res.counts.replaced;
		restarts += res.counts.restarts;
		taken_over += res.counts.taken_over;
	}
	assert_true(replaced && restarts && taken_over);
	seed = 0;
	do
		run_switch(++seed, PLANT_early_answer);
	while (!res.violations && seed < SWITCH_SEEDS);
	assert_true(res.violations);
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
