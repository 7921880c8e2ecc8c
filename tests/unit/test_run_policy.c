/* SPDX-License-Identifier: Apache-2.0 */
/* Which pages leave: the hand goes around, spares what came back, and leaves
 * who follows it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "run/policy.h"

enum {
	REACH = 100,
	MOST = 100000,
	TRIES = 1000,
	PAGES = 4096,
};

static void hand_stays_unless_it_is_followed(void **state)
{
	static const struct {
		uint64_t at, page;
		bool stays;
	} row[] = {
		{5000, 5000, true},  /* at the page itself: it went past it */
		{5000, 5001, true},  /* behind it */
		{5000, 90000, true}, /* far ahead */
		{5000, 4899, true},  /* one more than the reach */
		{5000, 4900, false}, {5000, 4999, false}, {1, 0, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		struct policy_space h;

		run_policy_space_init(&h);
		h.hand = row[i].at;
		run_policy_followed(&h, row[i].page, REACH, MOST);
		assert_int_equal(h.hand == row[i].at, row[i].stays);
	}
}

static void hand_jumps_ahead_by_any_distance(void **state)
{
	uint64_t low = UINT64_MAX, high = 0;
	struct policy_space h;

	(void)state;
	run_policy_space_init(&h);
	for (unsigned i = 0; i < TRIES; i++) {
		h.hand = 5000;
		run_policy_followed(&h, 4999, REACH, MOST);
		assert_in_range(h.hand, 5001, 5000 + MOST);
		low = u64_min(low, h.hand);
		high = u64_max(high, h.hand);
	}
	assert_true(low < 5000 + MOST / 10 && high > 5000 + MOST - MOST / 10);
	/* A space with nothing but the page that came back. */
	run_policy_followed(&h, h.hand - 1, REACH, 1);
}

/* A space with `n` pages here, from page 0 on. */
static struct run_pages with_resident(uint64_t n)
{
	struct run_pages p;

	assert_int_equal(run_pages_init(&p, PAGES), 0);
	for (uint64_t i = 0; i < n; i++) {
		run_page_set_state(&p.page[i], RUN_RESIDENT);
		run_set_add(&p.resident, i);
	}
	return p;
}

static void hand_goes_around_by_address(void **state)
{
	struct run_pages p = with_resident(100);
	struct policy_pick c = {.budget = UINT64_MAX};
	uint64_t page[RUN_BATCH_PAGES];
	struct policy_space h;

	(void)state;
	run_policy_space_init(&h);
	assert_int_equal(run_policy_pick(&h, &p, 100, &c, page), 64);
	assert_true(page[0] == 0 && page[63] == 63);
	/* It ends with the last page, and then begins anew. */
	assert_int_equal(run_policy_pick(&h, &p, 100, &c, page), 36);
	assert_true(page[0] == 64 && page[35] == 99);
	assert_int_equal(run_policy_pick(&h, &p, 100, &c, page), 64);
	assert_true(page[0] == 0);
	run_pages_release(&p);
}

/* How many times the page is passed until it leaves. */
static unsigned rounds(struct run_pages *p, uint64_t page)
{
	struct policy_pick c = {.budget = UINT64_MAX};
	uint64_t out[RUN_BATCH_PAGES];
	struct policy_space h;

	run_policy_space_init(&h);
	for (unsigned i = 0;; i++)
		if (run_policy_pick(&h, p, 1, &c, out)) {
			assert_true(out[0] == page);
			return (unsigned)c.spared;
		}
}

static void page_is_spared_the_longer_the_more_often_it_came_back(void **state)
{
	static const unsigned want[] = {1, 2, 3, 3};
	struct run_pages p = with_resident(1);

	(void)state;
	assert_int_equal(rounds(&p, 0), 0);
	for (unsigned i = 0; i < ARRAY_LEN(want); i++) {
		run_policy_left(&p.page[0]);
		run_policy_came_back(&p.page[0]);
		assert_int_equal(rounds(&p, 0), want[i]);
	}
	run_policy_is_far(&p.page[0]);
	run_policy_came_back(&p.page[0]);
	assert_int_equal(rounds(&p, 0), 1);
	run_policy_stayed(&p.page[0], false);
	assert_int_equal(rounds(&p, 0), 1);
	run_policy_stayed(&p.page[0], true);
	assert_int_equal(rounds(&p, 0), 0);
	run_pages_release(&p);
}

static void what_must_stay_is_not_picked(void **state)
{
	struct run_pages p = with_resident(10);
	struct policy_pick c = {.budget = 2};
	uint64_t page[RUN_BATCH_PAGES];
	struct policy_space h;

	(void)state;
	run_policy_space_init(&h);
	run_set_add(&p.kept, 0);
	run_set_add(&p.alien, 1);
	run_page_set_state(&p.page[2], RUN_LEAVING);
	p.page[8].slot = 7;
	/* Two pages may get a slot; the one that has one needs none. */
	assert_int_equal(run_policy_pick(&h, &p, 10, &c, page), 3);
	assert_true(page[0] == 3 && page[1] == 4 && page[2] == 8);
	assert_int_equal(c.budget, 0);
	run_pages_release(&p);
}

static void held_pages_are_tried_from_where_that_was_left_off(void **state)
{
	struct run_pages p = with_resident(100);
	struct policy_pick c = {.budget = UINT64_MAX};
	uint64_t page[RUN_BATCH_PAGES];
	struct policy_space h;

	(void)state;
	run_policy_space_init(&h);
	for (uint64_t i = 0; i < 100; i++) {
		run_set_del(&p.resident, i);
		run_set_add(&p.held, i);
	}
	assert_int_equal(run_policy_pick_held(&h, &p, &c, page), 64);
	assert_int_equal(run_policy_pick_held(&h, &p, &c, page), 36);
	assert_true(page[0] == 64);
	assert_int_equal(run_policy_pick_held(&h, &p, &c, page), 64);
	run_pages_release(&p);
}

/* Pages 0 to 9 on top, 10 to 19 slow. */
static void hands_of_tiers_take_pages_of_their_node(void **state)
{
	static const struct {
		enum policy_want want;
		uint32_t count;
		uint64_t first;
	} row[] = {
		{POLICY_ANY, 20, 0},	{POLICY_SLOW, 10, 10},
		{POLICY_DEMOTE, 10, 0}, {POLICY_SAMPLE, 10, 10},
		{POLICY_SLOW, 10, 10},	{POLICY_DEMOTE, 10, 0},
	};
	struct run_pages p = with_resident(20);
	uint64_t page[RUN_BATCH_PAGES];
	struct policy_space h;

	(void)state;
	run_policy_space_init(&h);
	for (uint64_t i = 10; i < 20; i++)
		p.page[i].is_slow = 1;
	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		struct policy_pick c = {.want = row[i].want,
					.budget = UINT64_MAX};

		assert_int_equal(run_policy_pick(&h, &p, 20, &c, page),
				 row[i].count);
		assert_int_equal(page[0], row[i].first);
	}
	run_pages_release(&p);
}

/* And what is on its way already is not taken twice; a sample takes what is
 * warm, too, because that is what it wants to know. */
static void a_sample_takes_warm_pages_and_no_hand_a_page_twice(void **state)
{
	struct policy_pick sample = {.want = POLICY_SAMPLE,
				     .budget = UINT64_MAX};
	struct policy_pick demote = {.want = POLICY_DEMOTE,
				     .budget = UINT64_MAX};
	struct run_pages p = with_resident(2);
	uint64_t page[RUN_BATCH_PAGES];
	struct policy_space h;

	(void)state;
	run_policy_space_init(&h);
	p.page[1].is_slow = 1;
	run_policy_came_back(&p.page[0]);
	run_policy_came_back(&p.page[1]);
	assert_int_equal(run_policy_pick(&h, &p, 2, &sample, page), 1);
	assert_int_equal(page[0], 1);
	assert_int_equal(sample.spared, 0);
	assert_int_equal(run_policy_pick(&h, &p, 2, &demote, page), 1);
	assert_int_equal(demote.spared, 1);
	p.page[0].is_demoted = 1;
	assert_int_equal(run_policy_pick(&h, &p, 2, &demote, page), 0);
	run_pages_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hand_stays_unless_it_is_followed),
		cmocka_unit_test(hand_jumps_ahead_by_any_distance),
		cmocka_unit_test(hand_goes_around_by_address),
		cmocka_unit_test(
			page_is_spared_the_longer_the_more_often_it_came_back),
		cmocka_unit_test(what_must_stay_is_not_picked),
		cmocka_unit_test(
			held_pages_are_tried_from_where_that_was_left_off),
		cmocka_unit_test(hands_of_tiers_take_pages_of_their_node),
		cmocka_unit_test(
			a_sample_takes_warm_pages_and_no_hand_a_page_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
