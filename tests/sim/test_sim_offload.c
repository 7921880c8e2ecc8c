/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The play "offload": seeds without a violation, the same seed with the same
 * hash, every kind of fault in enough of them, an engine killed at each of its
 * first doorbells, and planted bugs that are found. SEEDS in the environment
 * sets the number of seeds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "plays/offload_batch.h"

enum {
	SEEDS_DEFAULT = 80,
	BUG_SEEDS = 100,
	POINTS = 90,
};

static uint64_t seeds(void)
{
	const char *text = getenv("SEEDS");
	uint64_t n = text ? strtoull(text, NULL, 10) : 0;

	return n ? n : SEEDS_DEFAULT;
}

static void test_seeds(void **state)
{
	struct offload_batch b = {
		.from = 1, .to = seeds(), .jobs = sim_batch_jobs()};
	struct offload_sum s;

	(void)state;
	assert_int_equal(offload_batch_run(&b, &s), 0);
	if (s.sum.violated)
		fail_msg("seed %llu: %s", (unsigned long long)s.sum.first_seed,
			 s.sum.first);
	assert_int_equal(s.sum.runs, b.to);
	/* Each kind of fault in at least a tenth of the runs. */
	assert_in_range(s.hit.kills * 10, b.to, UINT64_MAX);
	assert_in_range(s.hit.point_kills * 10, b.to, UINT64_MAX);
	assert_in_range(s.hit.zombies * 10, b.to, UINT64_MAX);
	assert_in_range(s.hit.node_deaths * 10, b.to, UINT64_MAX);
	assert_in_range(s.hit.app_deaths * 10, b.to, UINT64_MAX);
	assert_in_range(s.hit.skipped * 10, b.to, UINT64_MAX);
	assert_in_range(s.hit.full * 10, b.to, UINT64_MAX);
	assert_in_range(s.hit.lost * 2, b.to, UINT64_MAX);
	assert_in_range(s.hit.duplicated * 2, b.to, UINT64_MAX);
	assert_in_range(s.hit.reordered * 2, b.to, UINT64_MAX);
}

static void test_same_hash(void **state)
{
	struct offload_batch b = {.from = 1, .to = 6, .jobs = 1};
	struct offload_sum s[2];

	(void)state;
	assert_int_equal(offload_batch_run(&b, &s[0]), 0);
	b.jobs = 2;
	assert_int_equal(offload_batch_run(&b, &s[1]), 0);
	assert_true(s[0].hash == s[1].hash);
	assert_true(s[0].counts.events == s[1].counts.events);
}

/* Before, inside and after each of the first doorbells. */
static void test_points(void **state)
{
	struct offload_batch b = {.from = 1,
				  .to = POINTS,
				  .points = true,
				  .seed = 3,
				  .scale = 20,
				  .jobs = sim_batch_jobs()};
	struct offload_sum s;

	(void)state;
	assert_int_equal(offload_batch_run(&b, &s), 0);
	if (s.sum.violated)
		fail_msg("point %llu: %s", (unsigned long long)s.sum.first_seed,
			 s.sum.first);
	assert_int_equal(s.hit.takeovers, POINTS);
}

static void test_bugs(void **state)
{
	(void)state;
	for (const enum plant *bug = offload_play_bugs; *bug; bug++) {
		struct offload_batch b = {.from = 1,
					  .to = BUG_SEEDS,
					  .bug = *bug,
					  .stop_at_first = true,
					  .jobs = sim_batch_jobs()};
		struct offload_sum s;

		assert_int_equal(offload_batch_run(&b, &s), 0);
		if (!s.sum.violated)
			fail_msg("%s was not found", plant_name(*bug));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seeds),
		cmocka_unit_test(test_same_hash),
		cmocka_unit_test(test_points),
		cmocka_unit_test(test_bugs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
