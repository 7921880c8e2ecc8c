/* SPDX-License-Identifier: Apache-2.0 */
/* Latency over load, and what the kernel writes about nodes. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tier/curve.h"
#include "tier/sysfs.h"

/* Points out of order, as a measurement gives them. */
static const struct tier_curve four = {
	{{20, 110}, {1, 100}, {40, 190}, {45, 400}}, 4};

/*
 * By hand: the lines' slopes are 10/19, 4 and 42. The second point's tangent is
 * 1 / (59/117 / (10/19) + 58/117 / 4) = 0.924171, the third's 1 / (0.4 / 4 +
 * 0.6 / 42) = 8.75. In the middle of a line the curve is an eighth of its width
 * times the difference of the tangents at both ends off it.
 */
static void reads_latency_off_a_smooth_curve(void **state)
{
	static const struct {
		double gbs, ns;
	} rows[] = {{0, 100},	       {1, 100},	 {10.5, 104.055095},
		    {20, 110},	       {30, 130.435427}, {40, 190},
		    {42.5, 274.21875}, {45, 400},	 {90, 400}};
	struct tier_curve c = four;

	tier_curve_sort(&c);
	assert_true(tier_curve_idle_ns(&c) == 100);
	assert_true(tier_curve_peak_gbs(&c) == 45);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (fabs(tier_curve_ns(&c, rows[i].gbs) - rows[i].ns) > 1e-6)
			fail_msg("%g GB/s: %g ns, not %g", rows[i].gbs,
				 tier_curve_ns(&c, rows[i].gbs), rows[i].ns);
}

static void finds_the_knee_where_latency_is_half_more(void **state)
{
	struct tier_curve c = four, flat = {{{1, 100}, {50, 149}}, 2},
			  one = {{{1, 100}}, 1};

	tier_curve_sort(&c);
	assert_true(fabs(tier_curve_knee_gbs(&c) - 30) < 1e-9);
	assert_true(tier_curve_knee_gbs(&flat) == 50);
	assert_true(tier_curve_knee_gbs(&one) == 1);
	assert_true(tier_curve_ns(&one, 9) == 100);
}

static void survives_points_with_one_bandwidth(void **state)
{
	struct tier_curve c = {{{5, 100}, {5, 200}, {5, 150}}, 3};

	tier_curve_sort(&c);
	assert_true(isfinite(tier_curve_knee_gbs(&c)));
	assert_true(isfinite(tier_curve_ns(&c, 5)));
}

/* Noise of a measurement: latency that falls, steps, points above each other.
 */
static void never_leaves_the_points_on_both_sides(void **state)
{
	struct tier_curve c = {
		{{1, 100}, {2, 90}, {2, 95}, {9, 95}, {10, 300}, {40, 299}}, 6};

	for (unsigned i = 0; i + 1 < c.count; i++)
		for (double t = 0; t < 1; t += 0.01) {
			const struct tier_point *p = &c.point[i];
			double gbs = p[0].gbs + t * (p[1].gbs - p[0].gbs);
			double ns = tier_curve_ns(&c, gbs);

			if (p[1].gbs > p[0].gbs)
				assert_true(
					ns >= fmin(p[0].ns, p[1].ns) - 1e-9 &&
					ns <= fmax(p[0].ns, p[1].ns) + 1e-9);
		}
}

static void reads_lists_of_the_kernel(void **state)
{
	static const struct {
		const char *text;
		int err;
		uint64_t first; /* 64 of them */
		uint32_t count;
	} rows[] = {
		{"0\n", 0, 1, 1},
		{"0-1,4\n", 0, 0x13, 3},
		{"1", 0, 2, 1},
		{"\n", 0, 0, 0},
		{"", 0, 0, 0},
		{"0-1023", 0, UINT64_MAX, 1024},
		{"1024", -EBADMSG, 0, 0},
		{"2-1", -EBADMSG, 0, 0},
		{"0,", -EBADMSG, 0, 0},
		{",0", -EBADMSG, 0, 0},
		{"0,\n", -EBADMSG, 0, 0},
		{"0-", -EBADMSG, 0, 0},
		{"-1", -EBADMSG, 0, 0},
		{"0 1", -EBADMSG, 0, 0},
		{"0\n\n", -EBADMSG, 0, 0},
		{"x", -EBADMSG, 0, 0},
		{"99999999999999999999", -EBADMSG, 0, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct tier_set s = {{0}};

		if (tier_sysfs_list(rows[i].text, &s) != rows[i].err ||
		    s.word[0] != rows[i].first ||
		    tier_set_count(&s) != rows[i].count)
			fail_msg("%s", rows[i].text);
	}
}

static void reads_numbers_of_the_kernel(void **state)
{
	static const char *const bad[] = {"",
					  "\n",
					  "-1",
					  " 1",
					  "1 ",
					  "1x",
					  "0x1",
					  "101",
					  "1.5",
					  "1\n\n",
					  "18446744073709551616"};
	uint64_t v = 7;

	assert_int_equal(tier_sysfs_number("100\n", 100, &v), 0);
	assert_int_equal(v, 100);
	assert_int_equal(
		tier_sysfs_number("18446744073709551615", UINT64_MAX, &v), 0);
	assert_true(v == UINT64_MAX);
	assert_int_equal(tier_sysfs_number("0", 0, &v), 0);
	assert_int_equal(tier_sysfs_number("9", 0, &v), -EBADMSG);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (tier_sysfs_number(bad[i], 100, &v) != -EBADMSG)
			fail_msg("%s", bad[i]);
}

static void reads_sizes_of_caches(void **state)
{
	static const char *const bad[] = {
		"",    "K",   "48",   "48M\n", "-1K",
		" 1K", "1KK", "1K 2", "1.5K",  "18014398509481984K"};
	uint64_t v = 7;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (tier_sysfs_size(bad[i], &v) != -EBADMSG)
			fail_msg("%s", bad[i]);
	assert_int_equal(v, 7);
	assert_int_equal(tier_sysfs_size("32768K\n", &v), 0);
	assert_int_equal(v, 32 << 20);
	assert_int_equal(tier_sysfs_size("18014398509481983K", &v), 0);
	assert_true(v == UINT64_MAX - 1023);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_latency_off_a_smooth_curve),
		cmocka_unit_test(finds_the_knee_where_latency_is_half_more),
		cmocka_unit_test(survives_points_with_one_bandwidth),
		cmocka_unit_test(never_leaves_the_points_on_both_sides),
		cmocka_unit_test(reads_lists_of_the_kernel),
		cmocka_unit_test(reads_numbers_of_the_kernel),
		cmocka_unit_test(reads_sizes_of_caches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
