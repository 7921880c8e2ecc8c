/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON writer: nesting, escapes, malformed UTF-8, broken streams. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json_out.h"

static void test_document(void **state)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	struct json_out j;

	assert_non_null(f);
	json_out_init(&j, f);
	json_out_object(&j, NULL);
	json_out_string(&j, "name", "a\"b\\c\n");
	json_out_array(&j, "rows");
	json_out_u64(&j, NULL, UINT64_MAX);
	json_out_i64(&j, NULL, -7);
	json_out_object(&j, NULL);
	json_out_close(&j);
	json_out_array(&j, NULL);
	json_out_close(&j);
	json_out_close(&j);
	json_out_double(&j, "half", 0.5);
	json_out_double(&j, "nan", NAN);
	json_out_double(&j, "inf", INFINITY);
	json_out_bool(&j, "yes", true);
	json_out_null(&j, "none");
	json_out_printf(&j, "fmt", "%d-%s", 5, "x");
	json_out_close(&j);
	assert_int_equal(json_out_end(&j), 0);
	fclose(f);
	assert_string_equal(text, "{\"name\":\"a\\\"b\\\\c\\n\",\"rows\":["
				  "18446744073709551615,-7,{},[]],\"half\":0.5,"
				  "\"nan\":null,\"inf\":null,\"yes\":true,"
				  "\"none\":null,\"fmt\":\"5-x\"}\n");
	free(text);
}

static void test_escape(void **state)
{
	static const struct {
		const char *in, *out;
	} table[] = {
		{"", ""},
		{"plain", "plain"},
		{"\x01\x1f\x7f", "\\u0001\\u001f\\u007f"},
		{"\b\f\n\r\t", "\\b\\f\\n\\r\\t"},
		{"\xc3\xa9", "\xc3\xa9"},
		{"\xe2\x82\xac", "\xe2\x82\xac"},
		{"\xf0\x9f\x92\xa7", "\xf0\x9f\x92\xa7"},
		{"\xff", "\\ufffd"},
		{"\xc0\x80", "\\ufffd\\ufffd"},		   /* overlong */
		{"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"}, /* surrogate */
		{"\xe2\x82", "\\ufffd\\ufffd"},		   /* cut short */
		{"\xe0\x80\x80", "\\ufffd\\ufffd\\ufffd"},
		{"\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd"},
	};
	char out[64];
	size_t i;

	for (i = 0; i < ARRAY_LEN(table); i++) {
		size_t n = json_out_escape(out, sizeof(out), table[i].in);

		assert_string_equal(out, table[i].out);
		assert_int_equal(n, strlen(out));
	}
}

/* Cut output never ends inside an escape or a character. */
static void test_escape_cut(void **state)
{
	char out[16];

	assert_int_equal(json_out_escape(out, 1, "x"), 0);
	assert_string_equal(out, "");
	assert_int_equal(json_out_escape(out, 3, "ab\n"), 2);
	assert_int_equal(json_out_escape(out, 4, "ab\n"), 2);
	assert_int_equal(json_out_escape(out, 5, "ab\n"), 4);
	assert_int_equal(json_out_escape(out, 3, "a\xe2\x82\xac"), 1);
	assert_string_equal(out, "a");
}

static void test_broken_stream(void **state)
{
	FILE *f = fopen("/dev/full", "w");
	struct json_out j;

	assert_non_null(f);
	json_out_init(&j, f);
	json_out_string(&j, NULL, "lost");
	assert_int_equal(json_out_end(&j), -EIO);
	fclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_document),
		cmocka_unit_test(test_escape),
		cmocka_unit_test(test_escape_cut),
		cmocka_unit_test(test_broken_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
