/* SPDX-License-Identifier: Apache-2.0 */
/* Version-list stores whose clients and whose switch die at any moment, over a
 * bad network: histories are linearizable and stores whole, the same seeds with
 * steering and without; planted bugs are found. */
#include "play_test.h"
#include "plays/vlist_play.h"

enum {
	SEEDS = 40,
	BUG_SEEDS = 400,
};

static struct play_sum sum;
static const struct vlist_play_counts *n = (const void *)sum.count;

static void run_seeds(enum vlist_steer steer)
{
	struct vlist_play_options opt = {.steer = steer};

	play_test_hold(&vlist_play, &opt.common, SEEDS, &sum);
	/* All of it must have happened, or nothing was shown. */
	assert_true(n->gets && n->misses && n->puts && n->deletes);
	assert_true(n->deaths && n->sleeps && n->restarts);
	assert_true(n->collected && n->adopted && n->fenced);
	assert_true(n->lost && n->bypasses && n->absences);
}

static void linearizable_without_steering(void **state)
{
	run_seeds(VLIST_STEER_OFF);
	assert_int_equal(n->steered_appends + n->steered_reads, 0);
	assert_int_equal(n->unvouched, 0);
}

static void linearizable_with_steering(void **state)
{
	run_seeds(VLIST_STEER_ON);
	assert_true(n->steered_appends && n->steered_reads);
	assert_true(n->unvouched && n->verified && n->sent_again);
	assert_true(n->held);
}

static void same_seed_same_hash(void **state)
{
	struct vlist_play_options opt = {.steer = VLIST_STEER_ON};

	play_test_repeats(&vlist_play, &opt.common, 4);
}

static void planted_bugs_are_found(void **state)
{
	struct vlist_play_options opt = {.steer = VLIST_STEER_ON};

	play_test_finds_all(&vlist_play, &opt.common, BUG_SEEDS);
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
