/* SPDX-License-Identifier: Apache-2.0 */
/* How long a page stays with a machine: longer when threads do not get to run,
 * never longer than 2 ms, and short again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sharedd/hold.h"

/* A page that comes, is taken after `stay_us` and asked for again at once. */
static uint32_t pass(struct shd_hold *h, uint32_t *now_us, uint32_t stay_us)
{
	uint32_t hold_us;

	shd_hold_came(h, *now_us);
	hold_us = shd_hold_us(h);
	*now_us += stay_us ? stay_us : hold_us;
	shd_hold_taken(h, *now_us);
	*now_us += 10;
	return hold_us;
}

static void it_doubles_up_to_its_limit(void **state)
{
	struct shd_hold h = {0};
	uint32_t now_us = UINT32_MAX - 500; /* wraps */
	uint32_t want = SHD_HOLD_US;

	(void)state;
	for (int i = 0; i < SHD_HOLD_ROUNDS - 1; i++) {
		assert_int_equal(pass(&h, &now_us, 0), want);
		want = u32_min(2 * want, SHD_HOLD_MAX_US);
	}
	/* Left alone it gets short again. */
	for (int i = 0; i < SHD_HOLD_SHIFT_MAX; i++) {
		now_us += 2 * SHD_HOLD_AGAIN_US;
		(void)pass(&h, &now_us, 0);
	}
	assert_int_equal(shd_hold_us(&h), SHD_HOLD_US);
}

/* Two who really use the page pass it on quickly; now and then only time
 * counts, for who did not. */
static void who_runs_does_not_wait(void **state)
{
	struct shd_hold h = {0};
	uint32_t now_us = 0, timed = 0;

	(void)state;
	for (int i = 0; i < 4 * SHD_HOLD_ROUNDS; i++) {
		uint32_t hold_us = pass(&h, &now_us, 5);

		timed += shd_hold_is_timed(&h);
		assert_int_equal(hold_us, shd_hold_is_timed(&h)
						  ? SHD_HOLD_MAX_US
						  : SHD_HOLD_US);
	}
	assert_int_equal(timed, 4);
}

static void what_is_left(void **state)
{
	struct shd_hold h = {0};

	(void)state;
	shd_hold_came(&h, 1000);
	assert_int_equal(shd_hold_left_us(&h, 1000), SHD_HOLD_US);
	assert_int_equal(shd_hold_left_us(&h, 1030), SHD_HOLD_US - 30);
	assert_int_equal(shd_hold_left_us(&h, 1000 + SHD_HOLD_US), 0);
	assert_int_equal(shd_hold_left_us(&h, 900000), 0);
}

/* Who wakes others has time for what follows, once; who sleeps has none. */
static void who_wakes_others_goes_on(void **state)
{
	struct shd_hold h = {0};

	(void)state;
	shd_hold_came(&h, 1000);
	assert_true(shd_hold_wakes(&h, 1040));
	assert_int_equal(shd_hold_left_us(&h, 1040), SHD_HOLD_WOKEN_US);
	assert_false(shd_hold_wakes(&h, 1060));
	assert_int_equal(shd_hold_left_us(&h, 1040 + SHD_HOLD_WOKEN_US), 0);
	shd_hold_sleeps(&h);
	assert_true(h.has_slept);
	assert_false(shd_hold_wakes(&h, 1070));
	assert_false(h.has_slept);
	shd_hold_sleeps(&h);
	shd_hold_came(&h, 2000);
	assert_false(h.has_slept || h.has_woken);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_doubles_up_to_its_limit),
		cmocka_unit_test(who_runs_does_not_wait),
		cmocka_unit_test(what_is_left),
		cmocka_unit_test(who_wakes_others_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
