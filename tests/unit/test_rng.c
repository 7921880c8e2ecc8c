/* SPDX-License-Identifier: Apache-2.0 */
/* The generator: fixed sequence, bounds, no bias. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

/* From a known state, xoshiro256** gives these numbers; worked out by hand:
 * rotl(2 * 5, 7) * 9 = 11520, then s[1] is 0, then rotl(262149 * 5, 7) * 9. */
static void test_known(void **state)
{
	struct rng r = {.s = {1, 2, 3, 4}};

	assert_true(rng_u64(&r) == 11520);
	assert_true(rng_u64(&r) == 0);
	assert_true(rng_u64(&r) == 1509978240);
}

static void test_repeats(void **state)
{
	struct rng a, b, c;
	unsigned i, same = 0;
	uint8_t x[37], y[37];

	rng_init(&a, 42);
	rng_init(&b, 42);
	for (i = 0; i < 100; i++)
		assert_true(rng_u64(&a) == rng_u64(&b));
	rng_fill(&a, x, sizeof(x));
	rng_fill(&b, y, sizeof(y));
	assert_memory_equal(x, y, sizeof(x));

	rng_init_stream(&a, 42, 0);
	rng_init_stream(&b, 42, 1);
	rng_init_stream(&c, 43, 0);
	for (i = 0; i < 1000; i++) {
		uint64_t v = rng_u64(&a);

		same += v == rng_u64(&b);
		same += v == rng_u64(&c);
	}
	assert_int_equal(same, 0);
}

static void test_below(void **state)
{
	static const uint64_t bounds[] = {
		1, 2, 3, 7, 1000, 1ull << 32, (1ull << 63) + 1, UINT64_MAX};
	struct rng r;
	unsigned i, k;

	rng_init(&r, 0);
	for (i = 0; i < ARRAY_LEN(bounds); i++)
		for (k = 0; k < 1000; k++)
			assert_true(rng_below(&r, bounds[i]) < bounds[i]);
	for (k = 0; k < 1000; k++) {
		uint64_t v = rng_between(&r, 10, 12);

		assert_true(v >= 10 && v <= 12);
		(void)rng_between(&r, 0, UINT64_MAX); /* no division by 0 */
		assert_true(rng_between(&r, UINT64_MAX, UINT64_MAX) ==
			    UINT64_MAX);
	}
}

/* With bound 3 * 2^62, a modulo would hit the lowest third twice as often. */
static void test_no_bias(void **state)
{
	unsigned third[3] = {0}, i;
	struct rng r;

	rng_init(&r, 5);
	for (i = 0; i < 30000; i++)
		third[rng_below(&r, 3ull << 62) >> 62]++;
	for (i = 0; i < 3; i++)
		assert_in_range(third[i], 9500, 10500);
}

static void test_chance(void **state)
{
	unsigned hits = 0, i;
	double sum = 0;
	struct rng r;

	rng_init(&r, 9);
	for (i = 0; i < 100000; i++) {
		double d = rng_double(&r);

		assert_false(rng_chance_ppm(&r, 0));
		assert_true(rng_chance_ppm(&r, 1000000));
		hits += rng_chance_ppm(&r, 100000);
		assert_true(d >= 0 && d < 1);
		sum += d;
	}
	assert_in_range(hits, 9500, 10500);
	assert_true(sum > 49000 && sum < 51000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),  cmocka_unit_test(test_repeats),
		cmocka_unit_test(test_below),  cmocka_unit_test(test_no_bias),
		cmocka_unit_test(test_chance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
