/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of plays share: seeds must hold, planted bugs must be found. */
#ifndef AQ_TEST_PLAY_TEST_H
#define AQ_TEST_PLAY_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plays/play.h"

/* SEEDS in the environment, or `usual`. */
static inline uint64_t play_test_seeds(uint64_t usual)
{
	const char *text = getenv("SEEDS");
	uint64_t n = text ? strtoull(text, NULL, 10) : 0;

	return n ? n : usual;
}

/* Seeds 1 to `seeds` without a violation. */
static inline void play_test_hold(const struct play *play,
				  const struct play_options *opt,
				  uint64_t seeds, struct play_sum *sum)
{
	struct sim_batch b = {.from = 1, .to = seeds, .jobs = sim_batch_jobs()};

	assert_int_equal(play_seeds(play, opt, &b, sum), 0);
	if (sum->batch.violated)
		fail_msg("seed %llu: %s",
			 (unsigned long long)sum->batch.first_seed,
			 sum->batch.first);
	assert_int_equal(sum->batch.runs, seeds);
}

/* A seed gives the same hash again, and another one another. */
static inline void play_test_repeats(const struct play *play,
				     struct play_options *opt, uint64_t seed)
{
	static struct play_result a, b;

	opt->seed = seed;
	assert_int_equal(play_seed(play, opt, &a), 0);
	assert_int_equal(play_seed(play, opt, &b), 0);
	assert_true(a.hash == b.hash);
	assert_memory_equal(a.count, b.count, sizeof(a.count));
	opt->seed = seed + 1;
	assert_int_equal(play_seed(play, opt, &b), 0);
	assert_true(a.hash != b.hash);
}

/* One of the first `seeds` seeds shows the bug; what it shows is in `sum`. */
static inline void play_test_finds(const struct play *play,
				   struct play_options *opt, enum plant bug,
				   uint64_t seeds, struct play_sum *sum)
{
	struct sim_batch b = {.from = 1,
			      .to = seeds,
			      .jobs = sim_batch_jobs(),
			      .stop_at_first = true};

	opt->bug = bug;
	assert_int_equal(play_seeds(play, opt, &b, sum), 0);
	if (!sum->batch.violated)
		fail_msg("%s was not found", plant_name(bug));
	print_message("%s: seed %llu: %s\n", plant_name(bug),
		      (unsigned long long)sum->batch.first_seed,
		      sum->batch.first);
	opt->bug = PLANT_none;
}

/* All bugs of the play. */
static inline void play_test_finds_all(const struct play *play,
				       struct play_options *opt, uint64_t seeds)
{
	static struct play_sum sum;

	for (const enum plant *bug = play->bugs; *bug != PLANT_none; bug++)
		play_test_finds(play, opt, *bug, seeds, &sum);
}

#endif
