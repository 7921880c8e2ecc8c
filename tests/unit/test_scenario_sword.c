/* SPDX-License-Identifier: Apache-2.0 */
/* Atomics that the switch replaced are atomics: histories over a bad network
 * and a switch that dies are linearizable; planted bugs are found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "plays/sword_play.h"
#include "switch/sword.h"

enum {
	SEEDS = 60,
	BUG_SEEDS = 400,
};

static struct sword_play_result res;

static void run(uint64_t seed, enum plant bug)
{
	struct sword_play_options opt = {.seed = seed, .bug = bug};

	assert_int_equal(sword_play_run(&opt, &res), 0);
}

static void histories_are_linearizable(void **state)
{
	struct sword_play_counts sum = {0};

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		run(seed, PLANT_none);
		if (res.violations)
			fail_msg("seed %d: %s", (int)seed, res.first);
#define ADD(name, help) sum.name += res.counts.name;
		SWORD_PLAY_COUNTS(ADD)
#undef ADD
	}
	/* All of it must have happened, or nothing was shown. */
	assert_true(sum.cas && sum.cas_failed && sum.faa && sum.writes);
	assert_true(sum.bulk && sum.own && sum.watched && sum.published);
	assert_true(sum.restarts && sum.errors && sum.repeated);
	assert_true(sum.coalesced && sum.refused && sum.shared_resent);
	assert_true(sum.moved && sum.gaps);
	assert_true(sum.lost && sum.duplicated && sum.reordered);
}

static void same_seed_same_hash(void **state)
{
	uint64_t hash, seed = 0;

	/* A damaged frame may hide that it has an address, which is another
	 * one in each run. */
	do {
		run(++seed, PLANT_none);
	} while (res.counts.corrupted);
	hash = res.hash;
	run(seed, PLANT_none);
	assert_int_equal(res.hash, hash);
}

static void bugs_are_found(void **state)
{
	for (const enum plant *bug = sword_play_bugs; *bug; bug++) {
		uint64_t seed = 0;

		do {
			run(++seed, *bug);
		} while (!res.violations && seed < BUG_SEEDS);
		if (!res.violations)
			fail_msg("bug %s was not found", plant_name(*bug));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(histories_are_linearizable),
		cmocka_unit_test(same_seed_same_hash),
		cmocka_unit_test(bugs_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
