/* SPDX-License-Identifier: Apache-2.0 */
/* Histories as files: lines good and bad, and that what is written is read. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "sim/lin_file.h"

#define E(p, type, f, value)                                         \
	"{\"process\":" #p ",\"type\":\"" type "\",\"f\":\"" f "\"," \
	"\"key\":\"k\",\"value\":" value "}\n"

struct row {
	const char *text;
	const char *error; /* "" : none */
	enum lin_verdict verdict;
};

static const struct row rows[] = {
	{"", "", LIN_LINEARIZABLE},
	{"\n  \n", "", LIN_LINEARIZABLE},
	{E(0, "invoke", "write", "4") E(0, "ok", "write", "4")
		 E(0, "invoke", "read", "null") E(0, "ok", "read", "4"),
	 "", LIN_LINEARIZABLE},
	{E(0, "invoke", "put", "\"a\"") E(0, "ok", "put", "\"a\"")
		 E(0, "invoke", "get", "null") E(0, "ok", "get", "\"b\""),
	 "", LIN_VIOLATED},
	{E(0, "invoke", "cas", "[null,[1,2]]") E(0, "ok", "cas", "true")
		 E(0, "invoke", "get", "null") E(0, "ok", "get", "[1,2]"),
	 "", LIN_LINEARIZABLE},
	/* an array is not the string that looks like it */
	{E(0, "invoke", "put", "[1]") E(0, "ok", "put", "null")
		 E(0, "invoke", "get", "null") E(0, "ok", "get", "\"[1]\""),
	 "", LIN_VIOLATED},
	{E(0, "invoke", "put", "1.5") E(0, "ok", "put", "null")
		 E(0, "invoke", "get", "null") E(0, "ok", "get", "1.6"),
	 "", LIN_VIOLATED},
	{E(0, "invoke", "cas", "[1,2]") E(0, "ok", "cas", "false"), "",
	 LIN_LINEARIZABLE},
	{E(0, "invoke", "cas", "[1,2]") E(0, "ok", "cas", "[1,2]"), "",
	 LIN_VIOLATED},
	{E(0, "invoke", "incr", "2") E(0, "ok", "incr", "2")
		 E(0, "invoke", "faa", "2") E(0, "ok", "faa", "2"),
	 "", LIN_LINEARIZABLE},
	{E(0, "invoke", "delete", "null") E(0, "ok", "delete", "true"), "",
	 LIN_VIOLATED},
	{E(0, "invoke", "delete", "null") E(0, "ok", "delete", "null"), "",
	 LIN_LINEARIZABLE},
	{E(0, "invoke", "put", "1") E(0, "info", "put", "1")
		 E(1, "invoke", "get", "null") E(1, "ok", "get", "1"),
	 "", LIN_LINEARIZABLE},
	{E(0, "invoke", "put", "1") E(0, "fail", "put", "1")
		 E(0, "invoke", "get", "null") E(0, "ok", "get", "1"),
	 "", LIN_VIOLATED},
	/* mistakes name their line */
	{"{\n", "line 1: no JSON", 0},
	{"\n[1]\n", "line 2: not an object", 0},
	{"\n\n{\"process\":1}\n", "line 3: \"type\" is missing", 0},
	{"{\"type\":\"invoke\",\"f\":\"get\"}", "line 1: \"process\"", 0},
	{"{\"process\":-1,\"type\":\"invoke\",\"f\":\"get\"}",
	 "line 1: \"process\" is out of range", 0},
	{"{\"process\":99999999999,\"type\":\"invoke\",\"f\":\"get\"}",
	 "line 1: \"process\" is out of range", 0},
	{E(1, "invoke", "pop", "1"), "line 1: \"f\" is not a known", 0},
	{"{\"process\":1,\"type\":\"invoke\"}", "line 1: \"f\" is missing", 0},
	{E(1, "done", "put", "1"), "line 1: \"type\" is none of", 0},
	{E(1, "ok", "put", "1"), "line 1: the process has no operation", 0},
	{E(1, "invoke", "put", "1") E(1, "invoke", "put", "1"),
	 "line 2: the process has an operation open", 0},
	{E(1, "invoke", "put", "1") E(1, "ok", "get", "1"),
	 "line 2: \"f\" differs", 0},
	{E(1, "invoke", "put",
	   "1") "{\"process\":1,\"type\":\"ok\",\"f\":\"put\",\"key\":\"j\"}",
	 "line 2: \"key\" differs", 0},
	{E(1, "invoke", "put", "1") E(1, "info", "put", "1")
		 E(1, "invoke", "put", "1"),
	 "line 3: the process has an operation of unknown end", 0},
	{E(1, "invoke", "cas", "1"), "line 1: \"value\" must be [old, new]", 0},
	{E(1, "invoke", "cas", "[1]"), "line 1: \"value\" must be [old, new]",
	 0},
	{E(1, "invoke", "incr", "\"x\""), "line 1: \"value\" must be an int",
	 0},
	{E(1, "invoke", "incr", "1") E(1, "ok", "incr", "true"),
	 "line 2: \"value\" must be an int", 0},
	{"{\"process\":1,\"process\":2,\"type\":\"ok\",\"f\":\"put\"}",
	 "line 1: no JSON", 0},
};

static int read_text(struct lin_history *h, const char *text)
{
	FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	int err;

	if (!*text) /* fmemopen wants a byte */
		return 0;
	assert_non_null(f);
	err = lin_history_read(h, f, "text");
	fclose(f);
	return err;
}

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct lin_history *h;
		struct lin_result res;
		int err;

		assert_int_equal(lin_history_create(&h), 0);
		err = read_text(h, rows[i].text);
		if (rows[i].error[0]) {
			assert_int_equal(err, -EBADMSG);
			if (!strstr(error_last(), rows[i].error))
				fail_msg("%s: %s", rows[i].text, error_last());
			assert_non_null(strstr(error_last(), "text: line"));
		} else {
			assert_int_equal(err, 0);
			assert_int_equal(lin_check(h, LIN_MODEL_KV, NULL, &res),
					 0);
			if (res.verdict != rows[i].verdict)
				fail_msg("%s: %s", rows[i].text,
					 lin_verdict_name(res.verdict));
		}
		lin_history_destroy(h);
	}
}

static void test_long_line(void **state)
{
	size_t len = LIN_LINE_MAX + 2;
	char *line = malloc(len);
	struct lin_history *h;
	struct lin_reader *r;

	(void)state;
	assert_non_null(line);
	memset(line, '[', len);
	assert_int_equal(lin_history_create(&h), 0);
	assert_int_equal(lin_reader_create(h, &r), 0);
	assert_int_equal(lin_reader_line(r, line, len), -EBADMSG);
	assert_non_null(strstr(error_last(), "line 1: too long"));
	assert_int_equal(lin_reader_line(r, line, len - 2), -EBADMSG);
	assert_non_null(strstr(error_last(), "line 2: no JSON"));
	lin_reader_destroy(r);
	lin_history_destroy(h);
	free(line);
}

/* Two operations of one process at once, one of unknown end, bytes that are no
 * text: written, read and written again gives the same lines. */
static void test_round_trip(void **state)
{
	static const uint8_t raw[] = {0, 1, 0xff, '"'};
	char *first = NULL, *second = NULL;
	size_t first_len, second_len;
	struct lin_history *h, *g;
	struct lin_value bytes, key;
	struct lin_result res;
	int64_t op[6];
	FILE *f;

	(void)state;
	assert_int_equal(lin_history_create(&h), 0);
	assert_int_equal(lin_bytes(h, raw, sizeof(raw), &bytes), 0);
	assert_int_equal(lin_bytes(h, "name", 4, &key), 0);
	op[0] = lin_invoke(h, 3, key, LIN_WRITE, bytes, lin_nil(), 10);
	op[1] = lin_invoke(h, 3, key, LIN_CAS, bytes, lin_int(2), 11);
	op[2] = lin_invoke(h, 4, key, LIN_DELETE, lin_nil(), lin_nil(), 12);
	op[3] = lin_invoke(h, 5, key, LIN_INSERT, lin_int(4), lin_nil(), 13);
	lin_return_ok(h, op[0], 20);
	lin_return(h, op[1], LIN_OK, LIN_YES, lin_nil(), 21);
	lin_return(h, op[2], LIN_INFO, LIN_SAID_NOTHING, lin_nil(), 22);
	lin_return(h, op[3], LIN_FAIL, LIN_SAID_NOTHING, lin_nil(), 23);
	op[4] = lin_invoke(h, 3, key, LIN_READ, lin_nil(), lin_nil(), 30);
	lin_return_got(h, op[4], lin_nil(), 31);
	op[5] = lin_invoke(h, 3, key, LIN_UPDATE, lin_int(9), lin_nil(), 32);
	lin_return(h, op[5], LIN_OK, LIN_NO, lin_nil(), 33);
	assert_int_equal(lin_check(h, LIN_MODEL_KV, NULL, &res), 0);
	assert_int_equal(res.verdict, LIN_LINEARIZABLE);
	f = open_memstream(&first, &first_len);
	assert_int_equal(lin_history_write(h, f), 0);
	fclose(f);
	assert_int_equal(lin_history_create(&g), 0);
	assert_int_equal(read_text(g, first), 0);
	assert_int_equal(lin_history_op_count(g), 6);
	assert_int_equal(lin_check(g, LIN_MODEL_KV, NULL, &res), 0);
	assert_int_equal(res.verdict, LIN_LINEARIZABLE);
	f = open_memstream(&second, &second_len);
	assert_int_equal(lin_history_write(g, f), 0);
	fclose(f);
	assert_int_equal(first_len, second_len);
	/* The recorded label is lost: a file's process is what it says. */
	assert_non_null(strstr(first, "\"thread\":3}"));
	assert_non_null(strstr(first, "\"0x0001ff22\""));
	lin_history_destroy(h);
	lin_history_destroy(g);
	free(first);
	free(second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_long_line),
		cmocka_unit_test(test_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
