/* SPDX-License-Identifier: Apache-2.0 */
/* The shipped switch inside the simulator: the play "verbs" through it, with
 * and without programs, holds all its checks, and its hash repeats. */
#include "play_test.h"
#include "plays/verbs_play.h"

enum {
	SEEDS = 6,
};

static struct play_sum sum;
static const struct verbs_play_counts *n = (const void *)sum.count;

static void plain(void **state)
{
	struct verbs_play_options opt = {.common.scale = 40,
					 .is_switched = true};

	play_test_hold(&switch_play, &opt.common, SEEDS, &sum);
	assert_true(n->forwarded > 1000);
	play_test_repeats(&switch_play, &opt.common, 3);
}

static void with_faults(void **state)
{
	struct verbs_play_options opt = {
		.common.scale = 40,
		.is_switched = true,
		.tor = {{"fault:loss=2%,reorder=3%,corrupt=1%,"
			 "when=0s..300ms;dup=2%,only=write+read+"
			 "atomic+reply"},
			1}};

	play_test_hold(&switch_play, &opt.common, SEEDS, &sum);
	assert_true(n->forwarded > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain),
		cmocka_unit_test(with_faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
