/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes as people write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/size.h"

static void sizes_have_the_unit_that_fits(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} rows[] = {
		{0, "0B"},
		{1023, "1023B"},
		{1024, "1K"},
		{1536, "1.5K"},
		{64 << 20, "64M"},
		{255ull << 20, "255M"},
		{109951162777600, "100T"},
		{UINT64_MAX, "16E"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_string_equal(SIZE_TEXT(rows[i].bytes), rows[i].text);
}

static void several_fit_into_one_call(void **state)
{
	char line[64];

	snprintf(line, sizeof(line), "%s of %s", SIZE_TEXT(1 << 10),
		 SIZE_TEXT(1 << 20));
	assert_string_equal(line, "1K of 1M");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_have_the_unit_that_fits),
		cmocka_unit_test(several_fit_into_one_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
