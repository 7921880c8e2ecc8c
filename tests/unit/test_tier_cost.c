/* SPDX-License-Identifier: Apache-2.0 */
/* The cost models: what was published, bounds, poles; and ranges of inputs. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "tier/cost.h"
#include "tier/range.h"
#include "tier/vm.h"

/* cmocka compares floats, which are too coarse for these. */
static void assert_near(double value, double wanted, double off)
{
	if (!(fabs(value - wanted) <= off))
		fail_msg("%g, not %g", value, wanted);
}

static void gives_the_published_saving(void **state)
{
	const struct tier_cost cost = {10, 8, 2, 1.1};
	struct tier_saving s;

	assert_int_equal(tier_cost_save(&cost, &s), 0);
	assert_near(100 * s.servers, 67.29, 0.005);
	assert_near(100 * s.saving, 25.98, 0.005);
}

static void gives_the_published_revenue(void **state)
{
	const struct tier_vm vm = {3, 4, 0.2};
	struct tier_revenue r;

	assert_int_equal(tier_vm_earn(&vm, &r), 0);
	assert_near(r.sold, 0.75, 1e-12);
	assert_near(r.cxl, 1, 1e-12);
	assert_near(r.after - r.before, 0.20, 1e-12);
	assert_near(100 * r.gain, 26.67, 0.005);
}

/* What the model must say without arithmetic. */
static void agrees_with_reason_at_its_ends(void **state)
{
	struct tier_saving s, more;

	/* CXL memory as slow as SSD: as many servers as before. */
	assert_int_equal(tier_cost_save(&(struct tier_cost){10, 1, 2, 1.1}, &s),
			 0);
	assert_near(s.servers, 1, 1e-12);
	assert_near(s.saving, -0.1, 1e-12);
	/* As fast as main memory: the servers' memory is larger by 1 / C. */
	assert_int_equal(tier_cost_save(&(struct tier_cost){10, 10, 2, 1}, &s),
			 0);
	assert_near(s.servers, 2.0 / 3, 1e-12);
	/* More CXL memory, fewer servers; faster, too. */
	assert_int_equal(tier_cost_save(&(struct tier_cost){10, 8, 1, 1}, &s),
			 0);
	assert_int_equal(
		tier_cost_save(&(struct tier_cost){10, 8, 0.5, 1}, &more), 0);
	assert_true(more.servers < s.servers);
	assert_int_equal(
		tier_cost_save(&(struct tier_cost){10, 9, 1, 1}, &more), 0);
	assert_true(more.servers < s.servers);
}

static void refuses_servers_that_cannot_exist(void **state)
{
	static const struct {
		struct tier_cost cost;
		const char *why;
	} rows[] = {
		{{1, 1, 2, 1.1}, "rd is 1"},
		{{0.5, 0.4, 2, 1.1}, "rd is 0.5"},
		{{0, 8, 2, 1.1}, "rd is 0"},
		{{-10, 8, 2, 1.1}, "rd is -10"},
		{{10, 0.99, 2, 1.1}, "rc is 0.99"},
		{{10, 0, 2, 1.1}, "rc is 0"},
		{{10, 10.1, 2, 1.1}, "not faster than main memory"},
		{{10, 8, 0, 1.1}, "c is 0"},
		{{10, 8, -2, 1.1}, "c is -2"},
		{{10, 8, 2, 0}, "rt is 0"},
		{{10, 8, 2, -1}, "rt is -1"},
		{{NAN, 8, 2, 1}, "finite"},
		{{10, NAN, 2, 1}, "finite"},
		{{10, 8, INFINITY, 1}, "finite"},
		{{10, 8, 2, INFINITY}, "finite"},
	};
	struct tier_saving s = {0};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(tier_cost_save(&rows[i].cost, &s), -EINVAL);
		if (!strstr(error_last(), rows[i].why))
			fail_msg("row %zu: %s", i, error_last());
	}
	assert_true(s.servers == 0); /* written on success only */
}

/* The denominator Rc Rd (C + 1) - C Rc - Rd, solved for each input. */
static double pole_rc(double rd, double c)
{
	return rd / (rd * (c + 1) - c);
}

static double pole_rd(double rc, double c)
{
	return c * rc / (rc * (c + 1) - 1);
}

static double pole_c(double rd, double rc)
{
	return -rd * (rc - 1) / (rc * (rd - 1));
}

/* Every pole lies where no server exists, and is refused like its
 * neighbourhood; inside the bounds there are between 0 and all servers. */
static void has_no_pole_where_servers_exist(void **state)
{
	struct tier_saving s;

	for (double rd = 1.5; rd < 40; rd *= 1.3)
		for (double rc = 1.05; rc <= rd; rc += 0.37)
			for (double c = 0.01; c < 100; c *= 1.9) {
				struct tier_cost at[] = {
					{rd, pole_rc(rd, c), c, 1},
					{pole_rd(rc, c), rc, c, 1},
					{rd, rc, pole_c(rd, rc), 1}};

				for (unsigned i = 0; i < ARRAY_LEN(at); i++)
					assert_int_equal(
						tier_cost_save(&at[i], &s),
						-EINVAL);
				assert_int_equal(tier_cost_save(
							 &(struct tier_cost){
								 rd, rc, c, 1},
							 &s),
						 0);
				assert_true(s.servers > 0 && s.servers <= 1);
			}
}

/* No input is so large or so small that an answer is no number, or 0 servers:
 * such inputs have the answer of their limit, or are refused. */
static void answers_with_numbers_only(void **state)
{
	static const double ends[] = {5e-324, 1e-300, 1e-12, 1,	   1 + 1e-15,
				      2,      1e12,   1e300, 1e308};
	struct tier_saving s;
	struct tier_revenue r;

	for (unsigned i = 0; i < ARRAY_LEN(ends); i++)
		for (unsigned k = 0; k < ARRAY_LEN(ends); k++)
			for (unsigned n = 0; n < ARRAY_LEN(ends); n++) {
				if (tier_cost_save(&(struct tier_cost){ends[i],
								       ends[k],
								       ends[n],
								       1},
						   &s) == 0)
					assert_true(s.servers > 0 &&
						    s.servers <= 1 &&
						    s.saving >= 0);
				if (tier_vm_earn(&(struct tier_vm){ends[i],
								   ends[k], 0},
						 &r) == 0)
					assert_true(isfinite(r.gain) &&
						    r.gain >= 0 && r.sold > 0);
			}
	assert_int_equal(
		tier_cost_save(&(struct tier_cost){10, 1, 1e308, 1.1}, &s), 0);
	assert_near(s.servers, 1, 1e-12);
	assert_near(s.saving, -0.1, 1e-12);
	assert_int_equal(
		tier_cost_save(&(struct tier_cost){1e308, 1e308, 2, 1}, &s), 0);
	assert_near(s.servers, 2.0 / 3, 1e-12);
	assert_int_equal(
		tier_cost_save(&(struct tier_cost){10, 8, 5e-324, 1}, &s),
		-EINVAL);
	assert_non_null(strstr(error_last(), "so little main memory"));
	assert_int_equal(tier_vm_earn(&(struct tier_vm){5e-324, 1e308, 0}, &r),
			 -EINVAL);
	assert_non_null(strstr(error_last(), "sells nothing"));
}

static void refuses_rents_that_cannot_be(void **state)
{
	static const struct {
		struct tier_vm vm;
		const char *why;
	} rows[] = {
		{{0, 4, 0.2}, "have is 0"},
		{{-3, 4, 0.2}, "have is -3"},
		{{3, 0, 0.2}, "none is left to sell"},
		{{4, 3, 0.2}, "none is left to sell"},
		{{3, 4, -0.1}, "discount is -0.1"},
		{{3, 4, 1.1}, "discount is 1.1"},
		{{NAN, 4, 0.2}, "finite"},
		{{3, INFINITY, 0.2}, "finite"},
	};
	struct tier_revenue r;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(tier_vm_earn(&rows[i].vm, &r), -EINVAL);
		if (!strstr(error_last(), rows[i].why))
			fail_msg("row %zu: %s", i, error_last());
	}
	/* The ends: nothing to gain, nothing gained for free. */
	assert_int_equal(tier_vm_earn(&(struct tier_vm){4, 4, 0.2}, &r), 0);
	assert_near(r.gain, 0, 1e-12);
	assert_int_equal(tier_vm_earn(&(struct tier_vm){3, 4, 1}, &r), 0);
	assert_near(r.gain, 0, 1e-12);
}

static void reads_numbers_and_ranges(void **state)
{
	static const struct {
		const char *word;
		double from, to, step;
		unsigned count;
	} rows[] = {
		{"8", 8, 8, 0, 1},
		{"2..20", 2, 20, 1, 19},
		{"0.5", 0.5, 0.5, 0, 1},
		{"1..2..0.25", 1, 2, 0.25, 5},
		{"0.1..1.1", 0.1, 1.1, 0.1, 11},
		{"3..3", 3, 3, 0, 1},
		{"-1..1", -1, 1, 1, 3},
		{"1e3..2e3..500", 1e3, 2e3, 500, 3},
		{"1..1000", 1, 1000, 1, 1000},
	};
	struct tier_range r;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (tier_range_parse(rows[i].word, &r) ||
		    r.from != rows[i].from || r.to != rows[i].to ||
		    r.count != rows[i].count ||
		    (r.count > 1 && fabs(r.step - rows[i].step) > 1e-9))
			fail_msg("%s: %g..%g..%g, %u", rows[i].word, r.from,
				 r.to, r.step, r.count);
		assert_true(tier_range_at(&r, 0) == r.from);
		assert_true(tier_range_at(&r, r.count - 1) <= r.to);
	}
}

static void refuses_words_that_are_no_range(void **state)
{
	static const char *const rows[] = {
		"",	   "x",	      "8x",
		"nan",	   "inf",     "0x10",
		" 8",	   "8 ",      "..",
		"1..",	   "..2",     "1...2",
		"20..2",   "1..2..0", "1..2..-1",
		"1..2..x", "1..2..",  "1..2..3..4",
		"1e999",   "1..1001", "0..1..1e-9",
		"1.2.3",   "--1",     "12345678901234567890123456789012345",
	};
	struct tier_range r;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (tier_range_parse(rows[i], &r) != -EINVAL ||
		    !error_last()[0])
			fail_msg("%s is taken", rows[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_the_published_saving),
		cmocka_unit_test(gives_the_published_revenue),
		cmocka_unit_test(agrees_with_reason_at_its_ends),
		cmocka_unit_test(refuses_servers_that_cannot_exist),
		cmocka_unit_test(has_no_pole_where_servers_exist),
		cmocka_unit_test(answers_with_numbers_only),
		cmocka_unit_test(refuses_rents_that_cannot_be),
		cmocka_unit_test(reads_numbers_and_ranges),
		cmocka_unit_test(refuses_words_that_are_no_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
