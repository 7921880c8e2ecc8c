/* SPDX-License-Identifier: Apache-2.0 */
/* Version-list stores whose clients and whose switch die at any moment, over a
 * bad network: histories are linearizable and stores whole, the same seeds with
 * steering and without; planted bugs are found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "plays/vlist_play.h"

enum {
	SEEDS = 40,
	BUG_SEEDS = 400,
};

static struct vlist_play_result res;

static void run(uint64_t seed, bool steer, enum plant bug)
{
	struct vlist_play_options opt = {
		.seed = seed, .steer = steer, .bug = bug};

	assert_int_equal(vlist_play_run(&opt, &res), 0);
}

static void run_seeds(bool steer, struct vlist_play_counts *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		run(seed, steer, PLANT_none);
		if (res.violations)
			fail_msg("seed %d: %s", (int)seed, res.first);
#define ADD(name, help) sum->name += res.counts.name;
		VLIST_PLAY_COUNTS(ADD)
#undef ADD
	}
	/* All of it must have happened, or nothing was shown. */
	assert_true(sum->gets && sum->misses && sum->puts && sum->deletes);
	assert_true(sum->deaths && sum->sleeps && sum->restarts);
	assert_true(sum->collected && sum->adopted && sum->fenced);
	assert_true(sum->lost && sum->bypasses && sum->absences);
}

static void linearizable_without_steering(void **state)
{
	struct vlist_play_counts sum;

	run_seeds(false, &sum);
	assert_int_equal(sum.steered_appends + sum.steered_reads, 0);
	assert_int_equal(sum.unvouched, 0);
}

static void linearizable_with_steering(void **state)
{
	struct vlist_play_counts sum;

	run_seeds(true, &sum);
	assert_true(sum.steered_appends && sum.steered_reads);
	assert_true(sum.unvouched && sum.verified && sum.sent_again);
	assert_true(sum.held);
}

static void same_seed_same_hash(void **state)
{
	uint64_t hash;

	run(4, true, PLANT_none);
	hash = res.hash;
	run(4, true, PLANT_none);
	assert_int_equal(res.hash, hash);
}

static void planted_bugs_are_found(void **state)
{

	for (const enum plant *bug = vlist_play_bugs; *bug; bug++) {
		uint64_t seed = 1;

		do
			run(seed, true, *bug);
		while (!res.violations && ++seed <= BUG_SEEDS);
		if (seed > BUG_SEEDS)
			fail_msg("%s was not found", plant_name(*bug));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(linearizable_without_steering),
		cmocka_unit_test(linearizable_with_steering),
		cmocka_unit_test(same_seed_same_hash),
		cmocka_unit_test(planted_bugs_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
