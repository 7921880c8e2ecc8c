/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, patterns and answers of the Redis gateway. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "redis/glob.h"
#include "redis/number.h"
#include "redis/reply.h"

static const struct {
	const char *text;
	bool ok;
	int64_t value;
} numbers[] = {
	{"0", true, 0},
	{"7", true, 7},
	{"-1", true, -1},
	{"9223372036854775807", true, INT64_MAX},
	{"-9223372036854775808", true, INT64_MIN},
	{"9223372036854775808", false, 0},
	{"-9223372036854775809", false, 0},
	{"99999999999999999999", false, 0},
	{"", false, 0},
	{"-", false, 0},
	{"-0", false, 0},
	{"00", false, 0},
	{"01", false, 0},
	{"+1", false, 0},
	{" 1", false, 0},
	{"1 ", false, 0},
	{"1.0", false, 0},
	{"0x1", false, 0},
};

static void test_numbers(void **state)
{
	char text[NUMBER_TEXT_MAX];
	int64_t v;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		size_t len = strlen(numbers[i].text);

		assert_int_equal(number_parse(numbers[i].text, len, &v),
				 numbers[i].ok);
		if (!numbers[i].ok)
			continue;
		assert_int_equal(v, numbers[i].value);
		assert_int_equal(number_format(v, text), len);
		assert_string_equal(text, numbers[i].text);
	}
}

static const struct {
	const char *in, *out; /* NULL: refused */
} floats[] = {
	{"3.0e3", "3000"}, {"10.50", "10.5"},
	{"0.1", "0.1"},	   {"-0", "0"},
	{"-5", "-5"},	   {"1e-17", "0.00000000000000001"},
	{"-inf", "-inf"},  {"nan", NULL},
	{"", NULL},	   {" 1", NULL},
	{"1 ", NULL},	   {"1x", NULL},
	{"1e99999", NULL}, {"5.0000000001", "5.0000000001"},
};

static void test_floats(void **state)
{
	char text[NUMBER_FLOAT_TEXT_MAX];
	long double v;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(floats); i++) {
		assert_int_equal(number_parse_float(floats[i].in,
						    strlen(floats[i].in), &v),
				 floats[i].out != NULL);
		if (!floats[i].out)
			continue;
		(void)number_format_float(v, text);
		assert_string_equal(text, floats[i].out);
	}
}

static const struct {
	const char *pattern, *text;
	bool match;
} globs[] = {
	{"*", "", true},
	{"*", "anything", true},
	{"", "", true},
	{"", "a", false},
	{"foo*", "foobar", true},
	{"foo*", "fobar", false},
	{"*bar", "foobar", true},
	{"f*o*r", "foobar", true},
	{"f*o*x", "foobar", false},
	{"?", "a", true},
	{"?", "", false},
	{"h?llo", "hello", true},
	{"h[ae]llo", "hallo", true},
	{"h[ae]llo", "hillo", false},
	{"h[^e]llo", "hallo", true},
	{"h[^e]llo", "hello", false},
	{"h[a-c]llo", "hbllo", true},
	{"h[c-a]llo", "hbllo", true},
	{"h[\\]]llo", "h]llo", true},
	{"h[ab", "ha", true},
	{"[", "[", false},
	{"\\*", "*", true},
	{"\\*", "a", false},
	{"a\\", "a\\", true},
	{"**a**", "bab", true},
	{"A", "a", false},
};

static void test_globs(void **state)
{
	char pattern[201], text[101];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(globs); i++) {
		struct resp_str p = {globs[i].pattern,
				     strlen(globs[i].pattern)};
		struct resp_str t = {globs[i].text, strlen(globs[i].text)};

		assert_int_equal(glob_match(p, t, false), globs[i].match);
	}
	assert_true(glob_match((struct resp_str){"A*", 2},
			       (struct resp_str){"ab", 2}, true));
	/* What takes years where every star is tried with every other. */
	for (size_t i = 0; i < 200; i += 2)
		memcpy(pattern + i, "a*", 2);
	pattern[199] = 'b';
	memset(text, 'a', sizeof(text));
	assert_false(glob_match((struct resp_str){pattern, 200},
				(struct resp_str){text, 101}, false));
}

static void test_replies(void **state)
{
	struct reply r = {.proto = 2};

	(void)state;
	reply_simple(&r, "OK");
	reply_error(&r, "ERR %s", "two\r\nlines");
	reply_int(&r, -5);
	reply_bulk(&r, "a\0b", 3);
	reply_nil(&r);
	reply_map(&r, 1);
	r.proto = 3;
	reply_nil(&r);
	reply_map(&r, 1);
	reply_set(&r, 0);
	reply_verbatim(&r, "x", 1);
	static const char want[] =
		"+OK\r\n-ERR two  lines\r\n:-5\r\n$3\r\na\0b\r\n$-1\r\n*2\r\n"
		"_\r\n%1\r\n~0\r\n=5\r\ntxt:x\r\n";
	assert_int_equal(r.len, sizeof(want) - 1);
	assert_memory_equal(r.buf, want, r.len);
	assert_false(r.is_lost);
	reply_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_floats),
		cmocka_unit_test(test_globs),
		cmocka_unit_test(test_replies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
