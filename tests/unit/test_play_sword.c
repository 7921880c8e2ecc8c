/* SPDX-License-Identifier: Apache-2.0 */
/* Atomics that the switch replaced are atomics: histories over a bad network
 * and a switch that dies are linearizable; planted bugs are found. */
#include "play_test.h"
#include "plays/sword_play.h"

enum {
	SEEDS = 60,
	BUG_SEEDS = 400,
};

static struct play_sum sum;
static struct play_options opt;

static void histories_are_linearizable(void **state)
{
	const struct sword_play_counts *n = (const void *)sum.count;

	play_test_hold(&sword_play, &opt, SEEDS, &sum);
	/* All of it must have happened, or nothing was shown. */
	assert_true(n->cas && n->cas_failed && n->faa && n->writes);
	assert_true(n->bulk && n->own && n->watched && n->published);
	assert_true(n->restarts && n->errors && n->repeated);
	assert_true(n->coalesced && n->refused && n->shared_resent);
	assert_true(n->moved && n->gaps);
	assert_true(n->lost && n->duplicated && n->reordered);
}

static void same_seed_same_hash(void **state)
{
	static struct play_result res;

	/* A damaged frame may hide that it has an address, which is another
	 * one in each run. */
	do {
		opt.seed++;
		assert_int_equal(play_seed(&sword_play, &opt, &res), 0);
	} while (((struct sword_play_counts *)res.count)->corrupted);
	play_test_repeats(&sword_play, &opt, opt.seed);
}

static void bugs_are_found(void **state)
{
	play_test_finds_all(&sword_play, &opt, BUG_SEEDS);
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
