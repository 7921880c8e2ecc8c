/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The play "hostile": seeds without a violation, the same hash twice, every
 * planted bug found. SEEDS in the environment sets the number of the first.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "memnode/mem_limits.h"
#include "plays/hostile_play.h"

/* The nodes of its second act are as patient as those that are shipped. */
STATIC_ASSERT((int)HOSTILE_BEAT_MS == (int)MEM_HEARTBEAT_MS &&
		      (int)HOSTILE_PATIENCE_MS ==
			      MEM_HEARTBEAT_MS * MEM_HEARTBEAT_MISSES &&
		      (int)HOSTILE_TICK_MS == (int)MEM_TICK_MS &&
		      (int)HOSTILE_PAUSE_MS == (int)MEM_PAUSE_MS,
	      "the play's nodes are memory nodes");

enum {
	SEEDS = 20,
	BEAT_SEEDS = 50,  /* in which beats in turn must be found */
	BUG_SEEDS = 2000, /* at most */
};

static void test_seeds(void **state)
{
	const char *text = getenv("SEEDS");
	uint64_t seeds = text ? strtoull(text, NULL, 10) : SEEDS;
	uint64_t denied = 0, dropped = 0, hangs = 0, forgotten = 0;

	for (uint64_t seed = 1; seed <= seeds; seed++) {
		struct hostile_play_options opt = {.seed = seed};
		struct hostile_play_result res;

		assert_int_equal(hostile_play_run(&opt, &res), 0);
		if (res.violations)
			fail_msg("seed %llu: %s", (unsigned long long)seed,
				 res.first);
		denied += res.counts.denied;
		dropped += res.counts.dropped;
		hangs += res.counts.hangs;
		forgotten += res.counts.forgotten;
	}
	/* Somebody was hostile, and nodes were not well. */
	assert_true(denied > seeds && dropped > seeds);
	assert_true(hangs > seeds && forgotten > seeds);
}

static void test_same_twice(void **state)
{
	struct hostile_play_options opt = {.seed = 5};
	struct hostile_play_result a, b;

	assert_int_equal(hostile_play_run(&opt, &a), 0);
	assert_int_equal(hostile_play_run(&opt, &b), 0);
	assert_true(a.hash == b.hash && a.counts.events == b.counts.events);
}

static void test_planted_bugs(void **state)
{
	for (const enum plant *bug = hostile_play_bugs; *bug; bug++) {
		struct hostile_play_options opt = {.bug = *bug};
		struct hostile_play_result res = {0};

		while (!res.violations && opt.seed < BUG_SEEDS) {
			opt.seed++;
			assert_int_equal(hostile_play_run(&opt, &res), 0);
		}
		if (!res.violations)
			fail_msg("%s is not found", plant_name(*bug));
		print_message("%s: seed %llu: %s\n", plant_name(*bug),
			      (unsigned long long)opt.seed, res.first);
	}
}

/* A client that waits for one node before it tells the next is found soon, and
 * by what matters: a node that is well ends a connection. */
static void test_beats_in_turn(void **state)
{
	struct hostile_play_options opt = {0};
	struct hostile_play_result res;

	opt.bug = PLANT_beats_in_turn;
	do {
		assert_true(++opt.seed <= BEAT_SEEDS);
		assert_int_equal(hostile_play_run(&opt, &res), 0);
	} while (!strstr(res.first, "which is well, ends a connection"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seeds),
		cmocka_unit_test(test_same_twice),
		cmocka_unit_test(test_planted_bugs),
		cmocka_unit_test(test_beats_in_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
