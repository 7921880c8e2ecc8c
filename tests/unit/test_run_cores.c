/* SPDX-License-Identifier: Apache-2.0 */
/* Whether another core is free, by texts of /proc/stat. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "run/cores.h"

#define REST "intr 12345 0 0\nctxt 99\nbtime 1\n"

static cpu_set_t first_cores(int n)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int i = 0; i < n; i++)
		CPU_SET(i, &set);
	return set;
}

/* Each row: a second look, ten ticks after a first at all zeros. */
static const struct {
	const char *stat;
	int cores, ours;
	bool was, is_busy;
} rows[] = {
	/* the other one is idle, or waits for a disk */
	{"cpu 9 0 9 9 0\ncpu0 9 0 1 0 0\ncpu1 0 0 0 10 0\n" REST, 2, 0, true,
	 false},
	{"cpu0 9 0 1 0 0\ncpu1 0 0 0 4 4\n" REST, 2, 0, true, false},
	/* ours does not count, nor one that we may not use */
	{"cpu0 0 0 0 10 0\ncpu1 5 0 5 0 0\n" REST, 2, 0, false, true},
	{"cpu0 5 0 5 0 0\ncpu1 5 0 5 0 0\ncpu2 0 0 0 10 0\n" REST, 2, 0, false,
	 true},
	/* a third one does */
	{"cpu0 5 0 5 0 0\ncpu1 5 0 5 0 0\ncpu2 0 0 0 10 0\n" REST, 3, 0, true,
	 false},
	/* the sum of all is nobody's */
	{"cpu 1 0 0 0 10 10\ncpu0 5 0 5 0 0\ncpu1 5 0 5 0 0\n" REST, 2, 0,
	 false, true},
	/* in between: as before */
	{"cpu0 5 0 5 0 0\ncpu1 5 0 2 3 0\n" REST, 2, 0, false, false},
	{"cpu0 5 0 5 0 0\ncpu1 5 0 2 3 0\n" REST, 2, 0, true, true},
	/* one core */
	{"cpu0 5 0 5 0 0\n" REST, 1, 0, false, true},
	/* nothing that can be read: nothing is free */
	{"", 2, 0, false, true},
	{"cpu\ncpux 1 2 3\ncpu99999 0 0 0 10 0\ncpu1 0 0\n", 2, 0, false, true},
	{"cpu1 0 0 0 10", 2, 0, false, true},
};

static void test_rows(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct cores c = {.looked_ns = 0};
		cpu_set_t set = first_cores(rows[i].cores);

		assert_int_equal(run_cores_judge(&c, rows[i].stat, 10, &set,
						 rows[i].ours, rows[i].was),
				 rows[i].is_busy);
	}
}

static void test_since_last(void **state)
{
	struct cores c = {.looked_ns = 0};
	cpu_set_t set = first_cores(2);
	const char *once = "cpu0 5 0 5 0 0\ncpu1 5 0 5 10 0\n";

	assert_false(run_cores_judge(&c, once, 10, &set, 0, false));
	/* The same again: no tick of it was idle since. */
	assert_true(run_cores_judge(&c, once, 10, &set, 0, false));
	/* It falls a little: that is no rest either. */
	assert_true(
		run_cores_judge(&c, "cpu1 5 0 5 9 0\n", 10, &set, 0, false));
}

static void test_this_machine(void **state)
{
	struct cores c = {.looked_ns = 0};
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	/* Since the machine started, some core rested, or none did. */
	(void)run_cores_are_busy(&c, 1, &set, -1, false);
	assert_true(c.looked_ns > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_since_last),
		cmocka_unit_test(test_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
