/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of requests: what is taken, and what is refused because it is wrong or
 * could be read in two ways. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants the four above. */
#include <cmocka.h>

#include "base/error.h"
#include "control/chunk_priv.h"
#include "control/head_priv.h"

/* On the heap and of exactly this size, so that ASan sees each byte more. */
static unsigned parse(const char *text, size_t bytes, char **copy,
		      struct head *h)
{
	assert_int_equal(head_length(text, bytes), bytes);
	*copy = malloc(bytes);
	memcpy(*copy, text, bytes);
	return head_parse(*copy, bytes, h);
}

static void a_request_is_taken_apart(void **state)
{
	static const char text[] =
		"\r\nPATCH /v1/a%20b?x=1?y HTTP/1.1\r\nHost: c0\r\n"
		"AUTHORIZATION:  bearer abc \t\r\nAccept:\r\n"
		"content-length: 0012\r\nExpect: 100-Continue\r\n\r\n";
	struct head h;
	char *copy;

	assert_int_equal(parse(text, sizeof(text) - 1, &copy, &h), 0);
	assert_string_equal(h.method, "PATCH");
	assert_string_equal(h.path, "/v1/a%20b");
	assert_string_equal(h.token, "abc");
	assert_int_equal(h.body_bytes, 12);
	assert_true(h.continues);
	assert_false(h.closes);
	free(copy);
}

static void connections_last_as_agreed(void **state)
{
	static const struct {
		const char *text;
		bool closes;
	} row[] = {
		{"GET / HTTP/1.1\r\n\r\n", false},
		{"GET / HTTP/1.0\n\n", true},
		{"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", true},
		{"GET / HTTP/1.1\r\nConnection: TE, Close\r\n\r\n", true},
		{"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true},
	};

	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		struct head h;
		char *copy;

		assert_int_equal(
			parse(row[i].text, strlen(row[i].text), &copy, &h), 0);
		assert_int_equal(h.closes, row[i].closes);
		assert_null(h.token);
		assert_false(h.has_length);
		free(copy);
	}
}

static void wrong_heads_are_refused(void **state)
{
#define GET "GET / HTTP/1.1\r\n"
	static const struct {
		unsigned status;
		const char *text;
	} row[] = {
		{400, "GET /\r\n\r\n"},
		{400, "GET  HTTP/1.1\r\n\r\n"},
		{400, " / HTTP/1.1\r\n\r\n"},
		{400, "GET / x HTTP/1.1\r\n\r\n"},
		{400, "G(T / HTTP/1.1\r\n\r\n"},
		{400, "GET\t/ HTTP/1.1\r\n\r\n"},
		{400, "GET /\x01 HTTP/1.1\r\n\r\n"},
		{400, "GET / http/1.1\r\n\r\n"},
		{505, "GET / HTTP/2.0\r\n\r\n"},
		{505, "GET / HTTP/1.10\r\n\r\n"},
		{400, GET "no field\r\n\r\n"},
		{400, GET ": x\r\n\r\n"},
		{400, GET "Content-Length : 5\r\n\r\n"},
		{400, GET " folded: x\r\n\r\n"},
		{400, GET "a: b\r\n c\r\n\r\n"},
		{400, GET "a: b\x07\r\n\r\n"},
		{400, GET "a: b\rc\r\n\r\n"},
		{400, GET "Content-Length:\r\n\r\n"},
		{400, GET "Content-Length: -1\r\n\r\n"},
		{400, GET "Content-Length: +1\r\n\r\n"},
		{400, GET "Content-Length: 0x1\r\n\r\n"},
		{400, GET "Content-Length: 1, 1\r\n\r\n"},
		{400, GET "Content-Length: 1\r\nContent-Length: 1\r\n\r\n"},
		{413, GET "Content-Length: 99999999999999999999999\r\n\r\n"},
		{413, GET "Content-Length: 18446744073709551617\r\n\r\n"},
		{501, GET "Transfer-Encoding: gzip, chunked\r\n\r\n"},
		{400, GET "Transfer-Encoding: chunked\r\nContent-Length: 1"
			  "\r\n\r\n"},
		{400, GET "Content-Length: 1\r\nTransfer-Encoding: chunked"
			  "\r\n\r\n"},
		{400, GET "Transfer-Encoding: chunked\r\n"
			  "Transfer-Encoding: chunked\r\n\r\n"},
		{400, "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{417, GET "Expect: 200-ok\r\n\r\n"},
		{400,
		 GET "Authorization: Bearer a\r\nAuthorization: x\r\n\r\n"},
	};

	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		struct head h;
		char *copy;
		unsigned status =
			parse(row[i].text, strlen(row[i].text), &copy, &h);

		if (status != row[i].status)
			fail_msg("%s: %u", row[i].text, status);
		assert_true(error_last()[0] != 0);
		free(copy);
	}
}

static void a_nul_is_refused(void **state)
{
	static const char text[] = "GET /a\0b HTTP/1.1\r\n\r\n";
	struct head h;
	char *copy;

	assert_int_equal(parse(text, sizeof(text) - 1, &copy, &h), 400);
	free(copy);
}

/* What is not complete is not looked at; what follows is not counted. */
static void a_head_ends_with_its_empty_line(void **state)
{
	static const char text[] = GET "Host: x\r\n\r\nGET /next";
	size_t bytes = strlen(GET "Host: x\r\n\r\n");

	for (size_t n = 0; n < sizeof(text); n++)
		assert_int_equal(head_length(text, n), n < bytes ? 0 : bytes);
	assert_int_equal(head_length("\r\n\r\n\r\n", 6), 0);
#undef GET
}

/* The body in these chunks, in pieces of `step` bytes; how much of the text it
 * took, or -EINVAL. */
static ssize_t unchunk(const char *text, size_t step, char out[64])
{
	struct chunks c = {0};
	size_t bytes = strlen(text), at = 0, len = 0, data_bytes;
	const char *data;

	while (at < bytes && c.at != CHUNK_AT_END) {
		ssize_t n =
			chunks_take(&c, text + at, u64_min(step, bytes - at),
				    &data, &data_bytes);

		if (n < 0)
			return n;
		memcpy(out + len, data, data_bytes);
		len += data_bytes;
		at += (size_t)n;
	}
	out[len] = 0;
	return c.at == CHUNK_AT_END ? (ssize_t)at : 0;
}

static void bodies_come_in_chunks(void **state)
{
	static const char right[] = "3\r\nabc\r\n00A;x=1\r\n0123456789\r\n"
				    "0 \r\nField: x\r\n\r\nGET";
	static const char *const wrong[] = {"\r\nabc",
					    "x\r\n",
					    "-1\r\n",
					    "3\r\nabcd\r\n",
					    "3\r\nabc\r\r\n",
					    "ffffffffffffffff\r\n",
					    "00000000000000000\r\n",
					    "1g\r\n"};
	char out[64], text[CHUNK_TRAILER_MAX + 99];

	for (size_t step = 1; step < sizeof(right); step++) {
		assert_int_equal(unchunk(right, step, out), strlen(right) - 3);
		assert_string_equal(out, "abc0123456789");
	}
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_int_equal(unchunk(wrong[i], 99, out), -EINVAL);
	assert_int_equal(unchunk("3\r\nab", 99, out), 0);
	/* Nobody keeps us busy with what means nothing. */
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = 0;
	memcpy(text, "1;", 2);
	assert_int_equal(unchunk(text, 99, out), -EINVAL);
	memcpy(text, "0\r\n", 3);
	assert_int_equal(unchunk(text, 99, out), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_taken_apart),
		cmocka_unit_test(connections_last_as_agreed),
		cmocka_unit_test(wrong_heads_are_refused),
		cmocka_unit_test(a_nul_is_refused),
		cmocka_unit_test(a_head_ends_with_its_empty_line),
		cmocka_unit_test(bodies_come_in_chunks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
