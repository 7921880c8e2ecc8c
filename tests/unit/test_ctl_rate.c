/* SPDX-License-Identifier: Apache-2.0 */
/* How often somebody may ask. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
/* cmocka wants the four above. */
#include <cmocka.h>

#include "control/ctl_rate.h"

#define S 1000000000ull

static void a_bucket_has_its_burst_and_then_its_rate(void **state)
{
	struct ctl_bucket b = {0};
	uint64_t wait_ns = 0, now_ns = 100 * S;
	unsigned taken = 0;

	for (unsigned i = 0; i < 20; i++)
		assert_true(ctl_bucket_take(&b, 10, 20, now_ns, &wait_ns));
	assert_false(ctl_bucket_take(&b, 10, 20, now_ns, &wait_ns));
	assert_int_equal(wait_ns, S / 10);
	/* Who waits as long as it was told gets one, and no more. */
	now_ns += wait_ns;
	assert_true(ctl_bucket_take(&b, 10, 20, now_ns, &wait_ns));
	assert_false(ctl_bucket_take(&b, 10, 20, now_ns, &wait_ns));
	/* Asking in vain costs nothing: over ten seconds the rate holds. */
	for (uint64_t t = 0; t < 10 * S; t += S / 1000)
		taken += ctl_bucket_take(&b, 10, 20, now_ns + t, &wait_ns);
	assert_in_range(taken, 99, 100);
	/* Rest fills it, but not beyond its burst. */
	now_ns += 1000 * S;
	for (taken = 0; ctl_bucket_take(&b, 10, 20, now_ns, &wait_ns); taken++)
		;
	assert_int_equal(taken, 20);
}

static void a_rate_of_none_gives_nothing(void **state)
{
	struct ctl_bucket b = {0};
	uint64_t wait_ns = 0;

	assert_false(ctl_bucket_take(&b, 0, 0, S, &wait_ns));
	assert_true(wait_ns >= S);
	assert_false(ctl_bucket_take(&b, 0, 5, S, &wait_ns));
	assert_true(wait_ns >= S);
}

static void who_owes_most_keeps_its_place(void **state)
{
	static struct ctl_origins o;
	uint64_t wait_ns = 0;
	char name[32];

	for (unsigned i = 0; i < 5; i++)
		assert_true(ctl_bucket_take(ctl_origins_bucket(&o, "bad"), 1, 5,
					    S, &wait_ns));
	/* Ten times as many as there are places, each asking once. */
	for (unsigned i = 0; i < 10 * CTL_RATE_ORIGINS; i++) {
		snprintf(name, sizeof(name), "10.0.%u.%u", i >> 8, i & 255);
		assert_true(ctl_bucket_take(ctl_origins_bucket(&o, name), 1, 5,
					    S, &wait_ns));
	}
	assert_false(ctl_bucket_take(ctl_origins_bucket(&o, "bad"), 1, 5, S,
				     &wait_ns));
	assert_true(ctl_bucket_take(ctl_origins_bucket(&o, "good"), 1, 5, S,
				    &wait_ns));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bucket_has_its_burst_and_then_its_rate),
		cmocka_unit_test(a_rate_of_none_gives_nothing),
		cmocka_unit_test(who_owes_most_keeps_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
