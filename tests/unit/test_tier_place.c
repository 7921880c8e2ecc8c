/* SPDX-License-Identifier: Apache-2.0 */
/* Where pages go, and when the bandwidth guard closes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tier/guard.h"
#include "tier/place.h"

#define MS 1000000ull

static void page_k_is_on_top_if_k_mod_the_round_is_below_n(void **state)
{
	static const struct {
		struct tier_ratio ratio;
		const char *pages; /* t: top, s: slow */
	} row[] = {
		{{3, 1}, "tttsttts"},	{{1, 1}, "tstststs"},
		{{1, 3}, "tssstsss"},	{{0, 1}, "ssssssss"},
		{{1, 0}, "tttttttt"},	{{0, 0}, "tttttttt"},
		{{2, 3}, "ttsssttsss"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(row); i++)
		for (uint64_t k = 0; row[i].pages[k]; k++)
			assert_int_equal(tier_ratio_is_top(&row[i].ratio, k),
					 row[i].pages[k] == 't');
	/* The largest page there is, with a large round: 2^32 - 1 is left. */
	assert_false(tier_ratio_is_top(&(struct tier_ratio){UINT32_MAX, 1},
				       UINT64_MAX));
}

static void any_thousand_pages_are_divided_within_one(void **state)
{
	static const struct tier_ratio row[] = {
		{3, 1}, {1, 1}, {1, 3}, {7, 5}, {1, 8}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		uint32_t round = row[i].top + row[i].slow, top = 0;

		for (uint64_t k = 0; k < 1000ull * round; k++)
			top += tier_ratio_is_top(&row[i], k);
		assert_int_equal(top, 1000 * row[i].top);
	}
}

static void a_full_node_gives_its_pages_to_the_other(void **state)
{
	static const struct {
		struct tier_ratio ratio;
		uint64_t page, top, slow; /* of 10 each */
		enum tier to;
	} row[] = {
		{{0, 0}, 1, 0, 0, TIER_TOP},   {{0, 0}, 1, 10, 0, TIER_SLOW},
		{{0, 0}, 1, 10, 10, TIER_TOP}, {{0, 0}, 1, 11, 9, TIER_SLOW},
		{{1, 1}, 0, 9, 0, TIER_TOP},   {{1, 1}, 1, 0, 9, TIER_SLOW},
		{{1, 1}, 1, 0, 10, TIER_TOP},  {{1, 1}, 1, 10, 10, TIER_SLOW},
		{{1, 1}, 0, 10, 9, TIER_SLOW}, {{1, 1}, 0, 12, 12, TIER_TOP},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		struct tier_fill top = {row[i].top, 10};
		struct tier_fill slow = {row[i].slow, 10};

		assert_int_equal(
			tier_place(&row[i].ratio, &top, &slow, row[i].page),
			row[i].to);
	}
}

static void pages_leave_for_the_slow_node_while_it_has_room(void **state)
{
	struct tier_fill roomy = {9, 10}, full = {10, 10}, none = {0, 0};

	(void)state;
	assert_int_equal(tier_demote(TIER_TOP, &roomy), TIER_SLOW);
	assert_int_equal(tier_demote(TIER_TOP, &full), TIER_FAR);
	assert_int_equal(tier_demote(TIER_TOP, &none), TIER_FAR);
	assert_int_equal(tier_demote(TIER_SLOW, &roomy), TIER_FAR);
	assert_int_equal(tier_demote(TIER_SLOW, &full), TIER_FAR);
}

/* 1,000 bytes a millisecond are a million a second, the peak. */
static void guard_closes_above_three_quarters_of_the_peak(void **state)
{
	static const struct {
		uint64_t ms, bytes;
		bool is_closed;
	} row[] = {
		{0, 5000, false},      /* the first value says no rate */
		{50, 999000, false},   /* within the window */
		{100, 80000, false},   /* 75,000 in 100 ms: exactly 75 % */
		{200, 155001, true},   /* 75,001 */
		{250, 155001, true},   /* within the window */
		{300, 155001, false},  /* nothing moved */
		{400, 255001, true},   /* the peak itself */
		{1400, 355001, false}, /* 10 % of a second's */
		{1500, 7, false},      /* the counter was reset */
		{1600, 90007, true},
	};
	struct tier_guard g;

	(void)state;
	tier_guard_init(&g, 1000000);
	assert_false(tier_guard_is_closed(&g));
	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		tier_guard_count(&g, row[i].ms * MS, row[i].bytes);
		assert_int_equal(tier_guard_is_closed(&g), row[i].is_closed);
	}
}

static void guard_forgets_what_it_saw_long_ago(void **state)
{
	struct tier_guard g;

	tier_guard_init(&g, 1000000);
	tier_guard_count(&g, 0, 0);
	tier_guard_count(&g, 100 * MS, 100000);
	assert_true(tier_guard_is_closed(&g));
	tier_guard_miss(&g, 1100 * MS);
	assert_true(tier_guard_is_closed(&g));
	tier_guard_miss(&g, 1101 * MS);
	assert_false(tier_guard_is_closed(&g));
	/* And begins anew: the gap is in no window. */
	tier_guard_count(&g, 1200 * MS, 90000000);
	assert_false(tier_guard_is_closed(&g));
	tier_guard_count(&g, 1300 * MS, 90100000);
	assert_true(tier_guard_is_closed(&g));
}

static void guard_without_a_peak_never_closes(void **state)
{
	struct tier_guard g;

	(void)state;
	tier_guard_init(&g, 0);
	tier_guard_count(&g, 0, 0);
	tier_guard_count(&g, 1000 * MS, UINT64_MAX);
	assert_false(tier_guard_is_closed(&g));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			page_k_is_on_top_if_k_mod_the_round_is_below_n),
		cmocka_unit_test(any_thousand_pages_are_divided_within_one),
		cmocka_unit_test(a_full_node_gives_its_pages_to_the_other),
		cmocka_unit_test(
			pages_leave_for_the_slow_node_while_it_has_room),
		cmocka_unit_test(guard_closes_above_three_quarters_of_the_peak),
		cmocka_unit_test(guard_forgets_what_it_saw_long_ago),
		cmocka_unit_test(guard_without_a_peak_never_closes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
