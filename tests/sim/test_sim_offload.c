/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The play "offload": seeds without a violation, the same seed with the same
 * hash, every kind of fault in enough of them, an engine killed at each of its
 * first doorbells, and planted bugs that are found. SEEDS in the environment
 * sets the number of seeds.
 */
#include "../unit/play_test.h"
#include "plays/offload_play.h"

enum {
	SEEDS_DEFAULT = 80,
	BUG_SEEDS = 100,
	SWITCH_SEEDS = 40,
	POINTS = 90,
};

static struct play_sum sum;
static const struct offload_play_counts *hit = (const void *)sum.hit;

static void test_seeds(void **state)
{
	struct offload_play_options opt = {0};
	uint64_t seeds = play_test_seeds(SEEDS_DEFAULT);

	play_test_hold(&offload_play, &opt.common, seeds, &sum);
	/* Each kind of fault in at least a tenth of the runs. */
	assert_in_range(hit->kills * 10, seeds, UINT64_MAX);
	assert_in_range(hit->point_kills * 10, seeds, UINT64_MAX);
	assert_in_range(hit->zombies * 10, seeds, UINT64_MAX);
	assert_in_range(hit->node_deaths * 10, seeds, UINT64_MAX);
	assert_in_range(hit->app_deaths * 10, seeds, UINT64_MAX);
	assert_in_range(hit->skipped * 10, seeds, UINT64_MAX);
	assert_in_range(hit->full * 10, seeds, UINT64_MAX);
	assert_in_range(hit->lost * 2, seeds, UINT64_MAX);
	assert_in_range(hit->duplicated * 2, seeds, UINT64_MAX);
	assert_in_range(hit->reordered * 2, seeds, UINT64_MAX);
}

static void test_same_hash(void **state)
{
	struct sim_batch b = {.from = 1, .to = 6, .jobs = 1};
	struct offload_play_options opt = {0};
	static struct play_sum s[2];

	assert_int_equal(play_seeds(&offload_play, &opt.common, &b, &s[0]), 0);
	b.jobs = 2;
	assert_int_equal(play_seeds(&offload_play, &opt.common, &b, &s[1]), 0);
	assert_true(s[0].hash == s[1].hash);
	assert_memory_equal(s[0].count, s[1].count, sizeof(s[0].count));
}

/* The engine in the switch, alone and in turns with the other one. */
static void test_switch(void **state)
{
	struct offload_play_options opt = {.engine = OFFLOAD_SWITCH};

	play_test_hold(&offload_play, &opt.common, SWITCH_SEEDS, &sum);
	opt.engine = OFFLOAD_BOTH;
	play_test_hold(&offload_play, &opt.common, SWITCH_SEEDS, &sum);
}

/* Before, inside and after each of the first doorbells. */
static void test_points(void **state)
{
	struct offload_play_options opt = {
		.common.scale = 20, .points = true, .points_seed = 3};

	play_test_hold(&offload_play, &opt.common, POINTS, &sum);
	assert_int_equal(hit->takeovers, POINTS);
}

static void test_bugs(void **state)
{
	struct offload_play_options opt = {0};

	for (const enum plant *b = offload_play.bugs; *b != PLANT_none; b++) {
		bool is_switch = *b == PLANT_other_bytes || *b == PLANT_red_now;

		opt.engine = is_switch ? OFFLOAD_SWITCH : OFFLOAD_SPOT;
		play_test_finds(&offload_play, &opt.common, *b, BUG_SEEDS,
				&sum);
	}
	/* Nodes are what keeps an old session of a switch from writing. */
	opt.engine = OFFLOAD_SWITCH;
	play_test_finds(&offload_play, &opt.common, PLANT_no_fence, BUG_SEEDS,
			&sum);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seeds),  cmocka_unit_test(test_same_hash),
		cmocka_unit_test(test_switch), cmocka_unit_test(test_points),
		cmocka_unit_test(test_bugs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
