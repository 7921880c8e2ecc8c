/* SPDX-License-Identifier: Apache-2.0 */
/* Tables whose clients die or sleep at any request, over a bad network:
 * histories are linearizable and the table is whole; without fences not. */
#include "play_test.h"
#include "plays/kv_play.h"

enum {
	SEEDS = 30,
	BUG_SEEDS = 300,
	LEAVES_SEEDS = 12,
};

static struct play_sum sum;

static void histories_are_linearizable(void **state)
{
	const struct kv_play_counts *n = (const void *)sum.count;
	struct kv_play_options opt = {0};

	play_test_hold(&kv_play, &opt.common, SEEDS, &sum);
	/* All of it must have happened, or nothing was shown. */
	assert_true(n->gets && n->misses && n->puts && n->deletes);
	assert_true(n->deaths && n->sleeps && n->stale && n->fenced);
	assert_true(n->repairs && n->swaps && n->lost && n->units);
	assert_true(n->increments && n->mortals && n->expired);
}

static void same_seed_same_hash(void **state)
{
	struct kv_play_options opt = {0};

	play_test_repeats(&kv_play, &opt.common, 4);
}

static void leaves_are_linearizable(void **state)
{
	struct kv_play_options opt = {.leaves = true};

	play_test_hold(&kv_play, &opt.common, LEAVES_SEEDS, &sum);
}

/* What is left out when a table of several leaves changes does harm. */
static void missing_steps_are_found(void **state)
{
	static const enum plant bugs[] = {PLANT_kv_terms, PLANT_kv_mirror,
					  PLANT_kv_graves, PLANT_kv_copied,
					  PLANT_kv_locks};
	struct kv_play_options opt = {.leaves = true};

	for (size_t i = 0; i < ARRAY_LEN(bugs); i++)
		play_test_finds(&kv_play, &opt.common, bugs[i], BUG_SEEDS,
				&sum);
}

/* Whoever sleeps through its death and is not fenced does harm. */
static void missing_fence_is_found(void **state)
{
	struct kv_play_options opt = {0};

	play_test_finds(&kv_play, &opt.common, PLANT_kv_no_fence, BUG_SEEDS,
			&sum);
}

/* A change that looked at what was there counts as one that did not: of two
 * increments one is lost. It takes a few hundred seeds. */
static void overtaken_increments_are_found(void **state)
{
	struct kv_play_options opt = {0};

	play_test_finds(&kv_play, &opt.common, PLANT_kv_overtake, BUG_SEEDS,
			&sum);
}

/* A unit whose rows are open while they change, or that nobody ends. */
static void halves_of_units_are_found(void **state)
{
	static const enum plant bugs[] = {PLANT_kv_unit_open,
					  PLANT_kv_unit_redo};
	struct kv_play_options opt = {0};

	for (size_t i = 0; i < ARRAY_LEN(bugs); i++)
		play_test_finds(&kv_play, &opt.common, bugs[i], BUG_SEEDS,
				&sum);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(histories_are_linearizable),
		cmocka_unit_test(same_seed_same_hash),
		cmocka_unit_test(leaves_are_linearizable),
		cmocka_unit_test(missing_steps_are_found),
		cmocka_unit_test(overtaken_increments_are_found),
		cmocka_unit_test(missing_fence_is_found),
		cmocka_unit_test(halves_of_units_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
