/* SPDX-License-Identifier: Apache-2.0 */
/* What counts as a typo of a name, and what does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/near.h"

static void typos_are_counted(void **state)
{
	static const struct {
		const char *word, *name;
		unsigned typos;
	} rows[] = {
		{"json", "json", 0},	{"js", "json", 0},
		{"jsno", "json", 1},	{"gte", "get", 1},
		{"gett", "get", 1},	{"doctr", "doctor", 1},
		{"crtae", "create", 2}, {"pu", "up", 1},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(near_typos(rows[i].word, rows[i].name),
				 rows[i].typos);
}

static void other_words_are_no_typos(void **state)
{
	static const char *const rows[][2] = {
		{"", "get"},
		{"odd", "word"},
		{"xyz", "get"},
		{"getgetget", "get"},
		{"0123456789012345678901234567890123456789",
		 "0123456789012345678901234567890123456789"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(near_typos(rows[i][0], rows[i][1]), NEAR_NOT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(typos_are_counted),
		cmocka_unit_test(other_words_are_no_typos),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
