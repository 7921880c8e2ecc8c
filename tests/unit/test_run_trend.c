/* SPDX-License-Identifier: Apache-2.0 */
/* The trend of faults: streams, strides, noise, and what was fetched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "run/trend.h"

enum {
	WINDOW_MAX = 32,
};

/* Walks `pages` steps of `stride`; pages that were fetched do not fault.
 * Returns how many faults that took. */
static unsigned walk(struct trend *t, uint64_t from, int64_t step,
		     unsigned pages)
{
	unsigned faults = 0, have = 0;

	for (unsigned i = 0; i < pages; i++) {
		uint64_t page = from + (uint64_t)(step * (int64_t)i);
		int64_t stride;
		uint32_t n;

		if (have) {
			have--;
			continue;
		}
		faults++;
		n = run_trend_fault(t, page, WINDOW_MAX, &stride);
		assert_true(n <= WINDOW_MAX);
		if (n) {
			assert_int_equal(stride, step);
			run_trend_fetched(t, page, n);
			have = n;
		}
	}
	return faults;
}

static void test_streams(void **state)
{
	const int64_t steps[] = {1, -1, 7, -64};

	for (unsigned i = 0; i < 4; i++) {
		struct trend t = {0};
		unsigned faults = walk(&t, 1u << 20, steps[i], 3300);

		/* A few to see it, a few to grow, then one in 33. */
		assert_in_range(faults, 100, 112);
	}
}

static void test_noise(void **state)
{
	struct trend t = {0};
	struct rng r;
	unsigned fetched = 0;
	int64_t stride;

	rng_init(&r, 5);
	for (unsigned i = 0; i < 10000; i++)
		fetched += run_trend_fault(&t, rng_u64(&r) % 1000000,
					   WINDOW_MAX, &stride);
	assert_true(fetched < 10);
	/* And it finds a stream again afterwards. */
	assert_in_range(walk(&t, 5000, 1, 3300), 100, 130);
}

/* One fault in five is somebody else's. */
static void test_majority(void **state)
{
	struct trend t = {0};
	unsigned right = 0;
	int64_t stride;

	for (uint64_t i = 0; i < 100; i++) {
		if (i % 10 == 9)
			(void)run_trend_fault(&t, 900000 + i * 999, 0, &stride);
		/* With no window nothing is fetched and all are seen. */
		(void)run_trend_fault(&t, 10 + 3 * i, 0, &stride);
		right += stride == 3;
	}
	assert_true(right > 80);
}

static void test_off(void **state)
{
	struct trend t = {0};
	int64_t stride;

	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(run_trend_fault(&t, i, 0, &stride), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_streams),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_majority),
		cmocka_unit_test(test_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
