/* SPDX-License-Identifier: Apache-2.0 */
/* What counts as near, by the lines of smaps, and why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "run/near.h"

static void read_mapping(struct near_count *c, const char *head,
			 const char *anonymous, const char *flags)
{
	near_read_line(c, head);
	near_read_line(c, "Size:              65536 kB\n");
	near_read_line(c, "Rss:               65536 kB\n");
	near_read_line(c, anonymous);
	near_read_line(c, "AnonHugePages:         0 kB\n");
	near_read_line(c, flags);
}

static void far_pages_are_never_near(void **state)
{
	struct near_count c = {0};

	(void)state;
	read_mapping(&c, "7f0000000000-7f0040000000 rw-p 00000000 00:00 0 \n",
		     "Anonymous:         65536 kB\n",
		     "VmFlags: rd wr mr mw me ac nr um uw dd nh \n");
	assert_int_equal(near_total(&c), 0);
	assert_true(c.has_far);
	read_mapping(&c, "7f0040000000-7f0080000000 rw-p 00000000 00:00 0 \n",
		     "Anonymous:          1024 kB\n",
		     "VmFlags: rd wr mr mw me ac nr \n");
	assert_int_equal(near_total(&c), 1 << 20);
}

static void each_mapping_has_its_reason(void **state)
{
	static const struct {
		const char *head;
		enum near_kind kind;
	} row[] = {
		{"7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0       "
		 "[stack]\n",
		 NEAR_STACK},
		{"55d000000000-55d000021000 rw-p 00000000 00:00 0       "
		 "[heap]\n",
		 NEAR_BRK},
		{"55d000000000-55d000021000 rw-p 00004000 08:01 1234    "
		 "/usr/bin/true\n",
		 NEAR_FILE},
		{"1000000000-1004000000 rwxp 00000000 00:00 0 \n", NEAR_EXEC},
		{"1000000000-9000000000 rw-p 00000000 00:00 0 \n", NEAR_HUGE},
		{"1000000000-1004000000 rw-p 00000000 00:00 0 \n", NEAR_OTHER},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		struct near_count c = {0};

		read_mapping(&c, row[i].head, "Anonymous:           100 kB\n",
			     "VmFlags: rd wr \n");
		assert_int_equal(near_main_kind(&c), row[i].kind);
		assert_int_equal(near_total(&c), 100 << 10);
		assert_non_null(near_why(row[i].kind));
	}
}

static void little_is_not_worth_a_line(void **state)
{
	(void)state;
	assert_false(near_matters(16 << 20, 0));
	assert_true(near_matters(17 << 20, 0));
	assert_false(near_matters(17 << 20, 1 << 30));
	assert_true(near_matters(200 << 20, 1 << 30));
}

static void names_are_fit_for_json(void **state)
{
	char name[] = "a\"b\\c\tx";

	(void)state;
	near_clean(name);
	assert_string_equal(name, "a?b?c?x");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(far_pages_are_never_near),
		cmocka_unit_test(each_mapping_has_its_reason),
		cmocka_unit_test(little_is_not_worth_a_line),
		cmocka_unit_test(names_are_fit_for_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
