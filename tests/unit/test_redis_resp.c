/* SPDX-License-Identifier: Apache-2.0 */
/* The Redis protocol: what is a command, what is not, in any pieces. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "redis/resp.h"

static const struct resp_limits friendly = {.bulk_max = 1 << 20};

struct good {
	const char *bytes;
	size_t len;
	const char *args[5]; /* ends with NULL */
};

#define BYTES(s) s, sizeof(s) - 1

static const struct good goods[] = {
	{BYTES("*1\r\n$4\r\nPING\r\n"), {"PING"}},
	{BYTES("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"), {"GET", "k"}},
	{BYTES("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n"), {"SET", "k", ""}},
	{BYTES("*2\r\n$4\r\nECHO\r\n$4\r\n\r\n$1\r\n"), {"ECHO", "\r\n$1"}},
	{BYTES("*0\r\n"), {NULL}},
	{BYTES("*-1\r\n"), {NULL}},
	{BYTES("*1\n$4\nPING\r\n"), {"PING"}},
	{BYTES("PING\r\n"), {"PING"}},
	{BYTES("\r\n"), {NULL}},
	{BYTES("  set  k   v \n"), {"set", "k", "v"}},
	{BYTES("set k \"a b\"\r\n"), {"set", "k", "a b"}},
	{BYTES("set k \"\\x41\\n\\\"\\q\"\r\n"), {"set", "k", "A\n\"q"}},
	{BYTES("set k 'it\\'s \\n'\r\n"), {"set", "k", "it's \\n"}},
	{BYTES("set k \"\" ''\r\n"), {"set", "k", "", ""}},
	{BYTES("set k a\"b\"\r\n"), {"set", "k", "ab"}},
};

static void check_args(const struct resp_parser *p, const char *buf,
		       const struct good *g)
{
	uint32_t n = 0;

	while (n < ARRAY_LEN(g->args) && g->args[n])
		n++;
	assert_int_equal(p->argc, n);
	assert_int_equal(p->at, g->len);
	for (uint32_t i = 0; i < n; i++) {
		struct resp_str s = resp_arg(p, buf, i);

		assert_int_equal(s.len, strlen(g->args[i]));
		assert_memory_equal(s.p, g->args[i], s.len);
	}
}

/* Whole, and cut in two at every byte; the buffer has exactly the bytes that
 * came, so that a sanitizer sees whoever reads further. */
static void test_good(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(goods); i++) {
		const struct good *g = &goods[i];

		for (size_t cut = 0; cut <= g->len; cut++) {
			struct resp_parser p = {0};
			char *buf = malloc(u64_max(cut, 1));

			assert_non_null(buf);
			memcpy(buf, g->bytes, cut);
			assert_int_equal(resp_parse(&p, buf, cut, &friendly),
					 cut == g->len);
			buf = realloc(buf, g->len);
			assert_non_null(buf);
			memcpy(buf + cut, g->bytes + cut, g->len - cut);
			if (cut < g->len)
				assert_int_equal(
					resp_parse(&p, buf, g->len, &friendly),
					1);
			check_args(&p, buf, g);
			resp_parser_release(&p);
			free(buf);
		}
	}
}

static const struct {
	const char *bytes;
	const char *words;
} bads[] = {
	{"*x\r\n", "invalid multibulk length"},
	{"*1048577\r\n", "invalid multibulk length"},
	{"*99999999999999999999\r\n", "invalid multibulk length"},
	{"*\r\n", "invalid multibulk length"},
	{"*1\r\n!3\r\n", "expected '$', got '!'"},
	{"*1\r\n\001", "expected '$', got '?'"},
	{"*1\r\n$\r\n", "invalid bulk length"},
	{"*1\r\n$-1\r\n", "invalid bulk length"},
	{"*1\r\n$01\r\n", "invalid bulk length"},
	{"*1\r\n$1048577\r\n", "invalid bulk length"},
	{"*1\r\n$18446744073709551615\r\n", "invalid bulk length"},
	{"set k \"v\r\n", "unbalanced quotes in request"},
	{"set k 'v\r\n", "unbalanced quotes in request"},
	{"set k \"v\"w\r\n", "unbalanced quotes in request"},
};

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bads); i++) {
		size_t len = strlen(bads[i].bytes);
		struct resp_parser p = {0};
		char *buf = malloc(len);

		assert_non_null(buf);
		memcpy(buf, bads[i].bytes, len);
		assert_int_equal(resp_parse(&p, buf, len, &friendly), -EPROTO);
		assert_non_null(strstr(p.error, bads[i].words));
		resp_parser_release(&p);
		free(buf);
	}
}

/* Lines that never end, and strangers who ask for memory. */
static void test_limits(void **state)
{
	static const struct resp_limits stranger = {.bulk_max = 1 << 20,
						    .is_stranger = true};
	size_t len = RESP_INLINE_MAX + 2;
	char *line = malloc(len);
	struct resp_parser p = {0};
	char many[] = "*11\r\n", big[] = "*1\r\n$16385\r\n";

	(void)state;
	assert_non_null(line);
	memset(line, 'a', len);
	assert_int_equal(resp_parse(&p, line, 100, &friendly), 0);
	assert_int_equal(resp_parse(&p, line, len, &friendly), -EPROTO);
	assert_non_null(strstr(p.error, "too big inline request"));
	line[0] = '*';
	resp_parser_next(&p);
	assert_int_equal(resp_parse(&p, line, len, &friendly), -EPROTO);
	assert_non_null(strstr(p.error, "too big mbulk count string"));
	resp_parser_next(&p);
	assert_int_equal(resp_parse(&p, many, 5, &stranger), -EPROTO);
	assert_non_null(strstr(p.error, "unauthenticated multibulk length"));
	resp_parser_next(&p);
	assert_int_equal(resp_parse(&p, many, 5, &friendly), 0);
	resp_parser_next(&p);
	assert_int_equal(resp_parse(&p, big, sizeof(big) - 1, &stranger),
			 -EPROTO);
	assert_non_null(strstr(p.error, "unauthenticated bulk length"));
	resp_parser_next(&p);
	assert_int_equal(resp_parse(&p, big, sizeof(big) - 1, &friendly), 0);
	assert_int_equal(resp_want_bytes(&p), sizeof(big) - 1 + 16385 + 2);
	resp_parser_release(&p);
	free(line);
}

/* Several in one buffer, one after the other. */
static void test_pipeline(void **state)
{
	char buf[] = "*1\r\n$4\r\nPING\r\nGET a\r\n\r\n*1\r\n$4\r\nQUIT\r\n";
	static const char *const first[] = {"PING", "GET", NULL, "QUIT"};
	struct resp_parser p = {0};
	size_t at = 0;

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(first); i++) {
		assert_int_equal(resp_parse(&p, buf + at, sizeof(buf) - 1 - at,
					    &friendly),
				 1);
		assert_int_equal(p.argc > 0, first[i] != NULL);
		if (first[i])
			assert_memory_equal(resp_arg(&p, buf + at, 0).p,
					    first[i], strlen(first[i]));
		at += p.at;
		resp_parser_next(&p);
	}
	assert_int_equal(at, sizeof(buf) - 1);
	resp_parser_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_pipeline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
