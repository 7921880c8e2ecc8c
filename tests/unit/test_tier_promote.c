/* SPDX-License-Identifier: Apache-2.0 */
/* The threshold law against a trace computed by hand, and the limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "tier/promote.h"

#define MS     1000000ull
#define SECOND (1000 * MS)

static const struct tier_top FULL = {.has_room = false};

/*
 * Reference 1,000 ms, so a step is 125 ms. 100 pages a second and periods of
 * 10 s: a period's measure is 1,000 candidates, 110 % are 1,100 and 90 % are
 * 900. Each row is a period: candidates in it, and the threshold that is in
 * force in the next one.
 */
static void threshold_follows_a_trace_of_ten_periods(void **state)
{
	static const struct {
		uint64_t candidates, threshold_ms;
	} row[] = {
		{1101, 875}, /* too many: one step less */
		{1100, 875}, /* exactly 110 % stays */
		{900, 875},  /* exactly 90 % stays */
		{899, 1000}, /* too few: one step more */
		{5000, 875}, /* far too many: still one step */
		{2000, 750}, /* and another */
		{0, 875},    /* none at all */
		{1000, 875}, /* as many as should be */
		{0, 1000},   /* two more steps up, above the reference */
		{10, 1125},
	};
	struct tier_promote p;
	uint64_t now = 0;

	(void)state;
	tier_promote_init(
		&p, &(struct tier_promote_rule){1000 * MS, 10 * SECOND, 100},
		0);
	assert_int_equal(tier_promote_threshold_ns(&p), 1000 * MS);
	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		for (uint64_t k = 0; k < row[i].candidates; k++)
			(void)tier_promote_judge(&p, now, 0, 1, FULL);
		/* The first page after the period's end sees the new one; it
		 * is too cold to be a candidate itself. */
		now += 10 * SECOND + 1;
		assert_int_equal(
			tier_promote_judge(&p, now, UINT64_MAX, 1, FULL),
			TIER_COLD);
		assert_int_equal(tier_promote_threshold_ns(&p),
				 row[i].threshold_ms * MS);
	}
}

static void threshold_stays_between_a_step_and_twice_the_reference(void **state)
{
	struct tier_promote_rule rule = {800 * MS, SECOND, 10};
	struct tier_promote p;
	uint64_t now = 0;

	(void)state;
	tier_promote_init(&p, &rule, 0);
	for (unsigned i = 0; i < 40; i++) {
		now += SECOND + 1;
		(void)tier_promote_judge(&p, now, 0, 1000, FULL);
	}
	assert_int_equal(tier_promote_threshold_ns(&p), 100 * MS);
	for (unsigned i = 0; i < 40; i++) {
		now += SECOND + 1;
		(void)tier_promote_judge(&p, now, UINT64_MAX, 1, FULL);
	}
	assert_int_equal(tier_promote_threshold_ns(&p), 1600 * MS);
}

static void only_latencies_below_the_threshold_are_hot(void **state)
{
	struct tier_promote_rule rule = {1000 * MS, 60 * SECOND, 100};
	struct tier_promote p;

	(void)state;
	tier_promote_init(&p, &rule, 0);
	assert_int_equal(tier_promote_judge(&p, 1, 1000 * MS - 1, 1, FULL),
			 TIER_HOT);
	assert_int_equal(tier_promote_judge(&p, 1, 1000 * MS, 1, FULL),
			 TIER_COLD);
	assert_int_equal(p.candidates, 1);
}

static void a_top_node_with_room_takes_any_page(void **state)
{
	struct tier_top roomy = {.has_room = true};
	struct tier_promote_rule rule = {1000 * MS, SECOND, 1};
	struct tier_promote p;

	(void)state;
	tier_promote_init(&p, &rule, 0);
	(void)tier_promote_judge(&p, 2 * SECOND, UINT64_MAX, 1, FULL);
	assert_int_equal(tier_promote_threshold_ns(&p), 1125 * MS);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(tier_promote_judge(&p, 2 * SECOND, UINT64_MAX,
						    1, roomy),
				 TIER_HOT);
	assert_int_equal(tier_promote_threshold_ns(&p), 1000 * MS);
}

static void nothing_passes_a_guard_that_is_closed(void **state)
{
	struct tier_promote_rule rule = {1000 * MS, SECOND, 1};
	struct tier_promote p;

	(void)state;
	tier_promote_init(&p, &rule, 0);
	for (unsigned room = 0; room < 2; room++)
		assert_int_equal(tier_promote_judge(
					 &p, 0, 0, 1,
					 (struct tier_top){.has_room = room,
							   .is_guarded = true}),
				 TIER_GUARDED);
	assert_int_equal(p.candidates, 0);
}

/* Any stream of pages, any pauses: no second that the rule counts has more
 * than the limit, and so no n seconds have more than n + 1 limits. */
static void the_limit_is_never_exceeded(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct tier_promote_rule rule = {1000 * MS, 5 * SECOND, 50};
		uint64_t now = 0, promoted = 0, in_second = 0, second = 0;
		struct tier_promote p;
		struct rng rng;

		rng_init(&rng, seed);
		tier_promote_init(&p, &rule, 0);
		for (unsigned i = 0; i < 20000; i++) {
			uint64_t pages = rng_between(&rng, 1, 4);

			now += rng_between(&rng, 0, 4 * MS * seed);
			if (tier_promote_judge(&p, now,
					       rng_between(&rng, 0, 2000 * MS),
					       pages, FULL) != TIER_HOT)
				continue;
			if (p.second_ns != second) {
				second = p.second_ns;
				in_second = 0;
			}
			in_second += pages;
			promoted += pages;
			assert_true(in_second <= rule.limit_pages);
			assert_true(now - second <= SECOND);
		}
		assert_true(promoted <= (now / SECOND + 1) * rule.limit_pages);
		assert_true(promoted > 0);
	}
}

static void a_limit_of_megabytes_is_256_pages_each(void **state)
{
	struct tier_promote_rule r = tier_promote_rule_of(3);

	(void)state;
	assert_int_equal(r.limit_pages, 768);
	assert_int_equal(r.reference_ns, SECOND);
	assert_int_equal(r.period_ns, 60 * SECOND);
}

static void a_limit_fits_the_slow_tier(void **state)
{
	(void)state;
	assert_int_equal(tier_promote_fitting_mb(6ull << 30), 24);
	assert_int_equal(tier_promote_fitting_mb(256 << 20), 1);
	assert_int_equal(tier_promote_fitting_mb(4096), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threshold_follows_a_trace_of_ten_periods),
		cmocka_unit_test(
			threshold_stays_between_a_step_and_twice_the_reference),
		cmocka_unit_test(only_latencies_below_the_threshold_are_hot),
		cmocka_unit_test(a_top_node_with_room_takes_any_page),
		cmocka_unit_test(nothing_passes_a_guard_that_is_closed),
		cmocka_unit_test(the_limit_is_never_exceeded),
		cmocka_unit_test(a_limit_of_megabytes_is_256_pages_each),
		cmocka_unit_test(a_limit_fits_the_slow_tier),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
