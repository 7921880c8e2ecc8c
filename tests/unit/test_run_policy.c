/* SPDX-License-Identifier: Apache-2.0 */
/* The hand leaves who follows it, and nobody else. */
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
		struct hand h;

		run_hand_init(&h);
		h.at = row[i].at;
		run_hand_missed(&h, row[i].page, REACH, MOST);
		assert_int_equal(h.at == row[i].at, row[i].stays);
	}
}

static void hand_jumps_ahead_by_any_distance(void **state)
{
	uint64_t low = UINT64_MAX, high = 0;
	struct hand h;

	(void)state;
	run_hand_init(&h);
	for (unsigned i = 0; i < TRIES; i++) {
		h.at = 5000;
		run_hand_missed(&h, 4999, REACH, MOST);
		assert_in_range(h.at, 5001, 5000 + MOST);
		low = u64_min(low, h.at);
		high = u64_max(high, h.at);
	}
	assert_true(low < 5000 + MOST / 10 && high > 5000 + MOST - MOST / 10);
	/* A space with nothing but the page that came back. */
	run_hand_missed(&h, h.at - 1, REACH, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hand_stays_unless_it_is_followed),
		cmocka_unit_test(hand_jumps_ahead_by_any_distance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
