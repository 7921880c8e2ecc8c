/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The play "page": seeds with faults, a client that dies between any two
 * requests of its chains, one that lies, a queue that runs empty. SEEDS in the
 * environment sets the number of seeds.
 */
#include "../unit/play_test.h"
#include "plays/page_play.h"

enum {
	SEEDS_DEFAULT = 60,
	KILL_STEP_NS = 41, /* shorter than a request of a chain takes */
	KILLS = 1500,
};

static uint64_t seeds(void)
{
	return play_test_seeds(SEEDS_DEFAULT);
}

static void run(const struct page_play_options *o, struct page_play_counts *sum)
{
	static struct play_result res;
	const struct page_play_counts *n = (const void *)res.count;

	assert_int_equal(play_seed(&page_play, &o->common, &res), 0);
	if (res.violations)
		fail_msg("seed %llu, killed at %llu ns: %s",
			 (unsigned long long)o->common.seed,
			 (unsigned long long)o->kill_ns, res.first);
#define ADD(name, help) sum->name += n->name;
	PAGE_PLAY_COUNTS(ADD)
#undef ADD
}

static void test_seeds(void **state)
{
	struct page_play_counts sum = {0};

	for (uint64_t seed = 1; seed <= seeds(); seed++)
		run(&(struct page_play_options){.common.seed = seed,
						.faults = true},
		    &sum);
	assert_true(sum.loads > 10 * seeds());
	assert_true(sum.stores > 10 * seeds());
	assert_true(sum.invalidates > seeds());
	assert_true(sum.lost > 0);
	assert_int_equal(sum.broken, 0);
}

static void test_same_play(void **state)
{
	struct page_play_options o = {.faults = true, .kill_ns = 30000};

	play_test_repeats(&page_play, &o.common, 7);
}

/* The node stops the dead client's chains at that moment. */
static void test_deaths(void **state)
{
	struct page_play_counts sum = {0};

	for (uint64_t i = 1; i <= KILLS; i++)
		run(&(struct page_play_options){.common.seed = 3,
						.kill_ns = i * KILL_STEP_NS},
		    &sum);
	assert_true(sum.cut > KILLS / 4);
}

/* Or some time later, and on a network that loses. */
static void test_late_deaths(void **state)
{
	struct page_play_counts sum = {0};

	for (uint64_t i = 1; i <= seeds(); i++)
		run(&(struct page_play_options){.common.seed = i,
						.kill_ns = i * 977,
						.notice_ns = i * 331 % 20000,
						.faults = true},
		    &sum);
}

static void test_lies(void **state)
{
	struct page_play_counts sum = {0};

	for (uint64_t i = 1; i <= 2 * seeds(); i++)
		run(&(struct page_play_options){.common.seed = i,
						.kill_ns = 1000000,
						.lies = true,
						.faults = i % 2},
		    &sum);
	assert_true(sum.broken > seeds());
}

static void test_scarce_frames(void **state)
{
	struct page_play_counts sum = {0};

	for (uint64_t i = 1; i <= seeds(); i++)
		run(&(struct page_play_options){.common.seed = i,
						.scarce = true},
		    &sum);
	assert_true(sum.broken > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seeds),
		cmocka_unit_test(test_same_play),
		cmocka_unit_test(test_deaths),
		cmocka_unit_test(test_late_deaths),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_scarce_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
