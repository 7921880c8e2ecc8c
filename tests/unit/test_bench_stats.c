/* SPDX-License-Identifier: Apache-2.0 */
/* Order statistics and the parser of /proc/stat. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/shield.h"
#include "bench/stats.h"

enum {
	MANY = 5000
};

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a;
	uint32_t y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Selection against a sort, on inputs that are hard for selection. */
static void quantiles_agree_with_sort(void **state)
{
	static uint32_t v[MANY], sorted[MANY], copy[MANY];
	uint64_t x = 88172645463325252ull;

	for (int shape = 0; shape < 4; shape++) {
		for (uint32_t i = 0; i < MANY; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			v[i] = shape == 0   ? (uint32_t)x
			       : shape == 1 ? i
			       : shape == 2 ? MANY - i
					    : (uint32_t)(x % 3);
		}
		memcpy(sorted, v, sizeof(v));
		qsort(sorted, MANY, sizeof(*sorted), compare_u32);
		for (int f = 0; f <= 1000; f += 50) {
			double q = f / 1000.0;
			size_t k = (size_t)((MANY - 1) * q + 0.5);

			memcpy(copy, v, sizeof(v));
			assert_int_equal(stats_quantile_u32(copy, MANY, q),
					 sorted[k]);
		}
	}
}

static void small_inputs(void **state)
{
	uint32_t one[] = {7};
	double odd[] = {3, 1, 2};
	double even[] = {4, 1, 3, 2};

	assert_int_equal(stats_quantile_u32(NULL, 0, 0.5), 0);
	assert_int_equal(stats_quantile_u32(one, 1, 0.999), 7);
	assert_true(stats_median(NULL, 0) == 0);
	assert_true(stats_median(odd, 3) == 2);
	assert_true(stats_median(even, 4) == 2.5);
}

/* 14 ns on a clock of 10 ns steps: six looks of ten say 10, four say 20. */
static void center_sees_between_steps(void **state)
{
	uint32_t v[] = {10, 20, 10, 20, 10, 10, 20, 10, 20, 10, 9000};
	double c = stats_center_u32(v, 11, 12);

	assert_true(c > 13.9 && c < 14.1);
	assert_true(stats_center_u32(NULL, 0, 10) == 0);
}

static void stat_lines(void **state)
{
	static const char text[] = "cpu  9 9 9 9 9 9 9 9 0 0\n"
				   "cpu0 1 2 3 400 500 6 7 8 0 0\n"
				   "cpu1 0 0 0 1 1 1\nintr 5";
	uint64_t busy = 0;

	assert_int_equal(shield_parse_stat(text, 0, &busy), 0);
	assert_int_equal(busy, 1 + 2 + 3 + 6 + 7 + 8);
	assert_true(shield_parse_stat(text, 1, &busy) < 0); /* cut */
	assert_true(shield_parse_stat(text, 2, &busy) < 0);
	assert_true(shield_parse_stat("", 0, &busy) < 0);
}

/* Ten seconds: half of the client's core went to others, all of the server's,
 * which slept. */
static void foreign_load(void **state)
{
	struct shield_meter a = {.wall_ns = 1};
	struct shield_meter b = {.wall_ns = 10000000001ull,
				 .busy_ns = {10000000000ull, 10000000000ull},
				 .own_ns = {5000000000ull, 1000000}};
	double cores = shield_foreign_cores(&a, &b);

	assert_true(cores > 0.45 && cores <= 0.5);
	b.own_ns[0] = b.busy_ns[0];
	assert_true(shield_foreign_cores(&a, &b) == 0);
	/* A server that serves must have its core to itself. */
	b.own_ns[1] = 8000000000ull;
	assert_true(shield_foreign_cores(&a, &b) > 0.15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_agree_with_sort),
		cmocka_unit_test(small_inputs),
		cmocka_unit_test(center_sees_between_steps),
		cmocka_unit_test(stat_lines),
		cmocka_unit_test(foreign_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
