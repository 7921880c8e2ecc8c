/* SPDX-License-Identifier: Apache-2.0 */
/* Tables whose clients die or sleep at any request, over a bad network:
 * histories are linearizable and the table is whole; without fences not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "kv/kv.h"
#include "plays/kv_play.h"

enum {
	SEEDS = 30,
	BUG_SEEDS = 300,
	LEAVES_SEEDS = 12,
};

static struct kv_play_result res;

static void run(uint64_t seed, enum plant bug)
{
	struct kv_play_options opt = {.seed = seed, .bug = bug};

	assert_int_equal(kv_play_run(&opt, &res), 0);
}

static void histories_are_linearizable(void **state)
{
	struct kv_play_counts sum = {0};

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		run(seed, PLANT_none);
		if (res.violations)
			fail_msg("seed %d: %s", (int)seed, res.first);
#define ADD(name, help) sum.name += res.counts.name;
		KV_PLAY_COUNTS(ADD)
#undef ADD
	}
	/* All of it must have happened, or nothing was shown. */
	assert_true(sum.gets && sum.misses && sum.puts && sum.deletes);
	assert_true(sum.deaths && sum.sleeps && sum.stale && sum.fenced);
	assert_true(sum.repairs && sum.swaps && sum.lost);
}

static void same_seed_same_hash(void **state)
{
	uint64_t hash;

	run(4, PLANT_none);
	hash = res.hash;
	run(4, PLANT_none);
	assert_int_equal(res.hash, hash);
}

static void leaves_are_linearizable(void **state)
{
	struct kv_play_options opt = {.leaves = true};

	for (opt.seed = 1; opt.seed <= LEAVES_SEEDS; opt.seed++) {
		assert_int_equal(kv_play_run(&opt, &res), 0);
		if (res.violations)
			fail_msg("seed %d: %s", (int)opt.seed, res.first);
	}
}

/* What is left out when a table of several leaves changes does harm. */
static void missing_steps_are_found(void **state)
{
	static const enum plant bugs[] = {PLANT_kv_terms, PLANT_kv_mirror,
					  PLANT_kv_graves};

	for (unsigned i = 0; i < sizeof(bugs) / sizeof(bugs[0]); i++) {
		struct kv_play_options opt = {.leaves = true, .bug = bugs[i]};

		for (opt.seed = 1; opt.seed <= BUG_SEEDS; opt.seed++) {
			assert_int_equal(kv_play_run(&opt, &res), 0);
			if (res.violations)
				break;
		}
		if (opt.seed > BUG_SEEDS)
			fail_msg("bug %s was not found", plant_name(bugs[i]));
	}
}

/* Whoever sleeps through its death and is not fenced does harm. */
static void missing_fence_is_found(void **state)
{
	for (uint64_t seed = 1; seed <= BUG_SEEDS; seed++) {
		run(seed, PLANT_kv_no_fence);
		if (res.violations)
			return;
	}
	fail_msg("nothing was found");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(histories_are_linearizable),
		cmocka_unit_test(same_seed_same_hash),
		cmocka_unit_test(leaves_are_linearizable),
		cmocka_unit_test(missing_steps_are_found),
		cmocka_unit_test(missing_fence_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
