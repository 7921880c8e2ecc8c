/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over structures that change, with nodes, clients, programs and keys
 * that go: all checks hold, and planted bugs are found. */
#include "play_test.h"
#include "plays/walk_play.h"

enum {
	SEEDS = 40,
	BUG_SEEDS = 200,
};

static struct play_sum sum;

static void walks_are_right_whatever_goes_wrong(void **state)
{
	const struct walk_play_counts *n = (const void *)sum.count;
	struct walk_play_options opt = {0};

	play_test_hold(&walk_play, &opt.common, SEEDS, &sum);
	/* All of it must have happened, or nothing was shown. */
	assert_true(n->finds && n->misses && n->blobs && n->same);
	assert_true(n->sets && n->swaps && n->adds && n->crossings &&
		    n->carried);
	assert_true(n->writes && n->cases && n->inserts);
	assert_true(n->wild && n->circles && n->refused);
	assert_true(n->dropped && n->resizes && n->replaced && n->revoked);
	assert_true(n->nodes_killed && n->clients_killed && n->switch_killed);
	assert_true(n->lost);
}

static void same_seed_same_hash(void **state)
{
	struct walk_play_options opt = {0};

	play_test_repeats(&walk_play, &opt.common, 4);
}

static void planted_bugs_are_found(void **state)
{
	struct walk_play_options opt = {0};

	play_test_finds_all(&walk_play, &opt.common, BUG_SEEDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walks_are_right_whatever_goes_wrong),
		cmocka_unit_test(same_seed_same_hash),
		cmocka_unit_test(planted_bugs_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
