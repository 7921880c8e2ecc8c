/* SPDX-License-Identifier: Apache-2.0 */
/* Reads commands: "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", or "GET k\r\n". */
#include "resp.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"

static int fail(struct resp_parser *p, const char *fmt, ...) PRINTF(2, 3);

static int fail(struct resp_parser *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(p->error, sizeof(p->error), fmt, ap);
	va_end(ap);
	return -EPROTO;
}

static int add_span(struct resp_parser *p, size_t at, size_t len)
{
	if (p->argc == p->capacity) {
		uint32_t capacity = u32_max(2 * p->capacity, 8);
		struct resp_span *more =
			realloc(p->span, capacity * sizeof(*more));

		if (!more)
			return -ENOMEM;
		p->span = more;
		p->capacity = capacity;
	}
	p->span[p->argc++] = (struct resp_span){at, len};
	return 0;
}

/* The line that starts at p->at. 1: *line and *line_len without its end, and
 * p->at is behind it; 0: not there yet. */
static int take_line(struct resp_parser *p, char *buf, size_t len,
		     const char *what, char **line, size_t *line_len)
{
	char *start = buf + p->at;
	char *end = memchr(start, '\n', len - p->at);

	if (!end) {
		if (len - p->at > RESP_INLINE_MAX)
			return fail(p, "Protocol error: too big %s", what);
		return 0;
	}
	if ((size_t)(end - start) > RESP_INLINE_MAX)
		return fail(p, "Protocol error: too big %s", what);
	p->at = (size_t)(end - buf) + 1;
	*line = start;
	*line_len = (size_t)(end - start);
	if (*line_len && start[*line_len - 1] == '\r')
		(*line_len)--;
	return 1;
}

/* ---- inline commands ---------------------------------------------------- */

static int hex(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* What follows a backslash between double quotes; how many bytes it took. */
static size_t unescape(const char *in, size_t left, char *out)
{
	static const char from[] = "nrtba";
	static const char to[] = "\n\r\t\b\a";
	const char *found;

	if (left >= 3 && in[0] == 'x' && hex(in[1]) >= 0 && hex(in[2]) >= 0) {
		*out = (char)(hex(in[1]) * 16 + hex(in[2]));
		return 3;
	}
	found = in[0] ? strchr(from, in[0]) : NULL;
	*out = found ? to[found - from] : in[0];
	return 1;
}

/*
 * One word from line[*in] on, with its quotes taken away, written to
 * line[*out]: never ahead of what is read. False: a quote is not closed, or
 * something follows it.
 */
static bool take_word(char *line, size_t len, size_t *in, size_t *out)
{
	char quote = 0;

	while (*in < len) {
		char c = line[*in];

		if (!quote && isspace((unsigned char)c))
			break;
		(*in)++;
		if (!quote && (c == '"' || c == '\'')) {
			quote = c;
		} else if (quote && c == quote) {
			return *in == len || isspace((unsigned char)line[*in]);
		} else if (quote == '"' && c == '\\' && *in < len) {
			*in += unescape(line + *in, len - *in, &c);
			line[(*out)++] = c;
		} else if (quote == '\'' && c == '\\' && *in < len &&
			   line[*in] == '\'') {
			line[(*out)++] = '\'';
			(*in)++;
		} else {
			line[(*out)++] = c;
		}
	}
	return quote == 0;
}

static int parse_inline(struct resp_parser *p, char *buf, size_t len)
{
	char *line;
	size_t line_len, in = 0, out = 0;
	int ready = take_line(p, buf, len, "inline request", &line, &line_len);
	int err;

	if (ready <= 0)
		return ready;
	for (;;) {
		size_t start = out;

		while (in < line_len && isspace((unsigned char)line[in]))
			in++;
		if (in == line_len)
			return 1;
		if (!take_word(line, line_len, &in, &out))
			return fail(p, "Protocol error: unbalanced quotes in "
				       "request");
		err = add_span(p, (size_t)(line - buf) + start, out - start);
		if (err)
			return err;
	}
}

/* ---- arrays ------------------------------------------------------------- */

static int parse_array_head(struct resp_parser *p, char *buf, size_t len,
			    const struct resp_limits *limits)
{
	char *line;
	size_t line_len;
	int64_t count;
	int ready =
		take_line(p, buf, len, "mbulk count string", &line, &line_len);

	if (ready <= 0)
		return ready;
	if (!number_parse(line + 1, line_len - 1, &count) ||
	    count > RESP_ARGS_MAX)
		return fail(p, "Protocol error: invalid multibulk length");
	if (count > RESP_ARGS_MAX_STRANGER && limits->is_stranger)
		return fail(p, "Protocol error: unauthenticated multibulk "
			       "length");
	p->in_array = true;
	p->args_due = count > 0 ? (uint32_t)count : 0;
	return 1;
}

static int parse_bulk_head(struct resp_parser *p, char *buf, size_t len,
			   const struct resp_limits *limits)
{
	char *line;
	size_t line_len;
	int64_t bulk_len;
	int ready;

	if (p->at == len)
		return 0;
	if (buf[p->at] != '$')
		return fail(p, "Protocol error: expected '$', got '%c'",
			    isprint((unsigned char)buf[p->at]) ? buf[p->at]
							       : '?');
	ready = take_line(p, buf, len, "bulk count string", &line, &line_len);
	if (ready <= 0)
		return ready;
	if (!number_parse(line + 1, line_len - 1, &bulk_len) || bulk_len < 0 ||
	    (uint64_t)bulk_len > limits->bulk_max)
		return fail(p, "Protocol error: invalid bulk length");
	if (bulk_len > RESP_BULK_MAX_STRANGER && limits->is_stranger)
		return fail(p, "Protocol error: unauthenticated bulk length");
	p->bulk_len = (size_t)bulk_len;
	p->in_bulk = true;
	return 1;
}

/* As Redis, it does not look at the two bytes behind the string. */
static int parse_array(struct resp_parser *p, char *buf, size_t len,
		       const struct resp_limits *limits)
{
	int ready = 1, err;

	if (!p->in_array)
		ready = parse_array_head(p, buf, len, limits);
	while (ready > 0 && p->args_due) {
		if (!p->in_bulk)
			ready = parse_bulk_head(p, buf, len, limits);
		if (ready <= 0)
			break;
		if (len - p->at < p->bulk_len + 2)
			return 0;
		err = add_span(p, p->at, p->bulk_len);
		if (err)
			return err;
		p->at += p->bulk_len + 2;
		p->in_bulk = false;
		p->args_due--;
	}
	return ready;
}

int resp_parse(struct resp_parser *p, char *buf, size_t len,
	       const struct resp_limits *limits)
{
	if (len == 0)
		return 0;
	return buf[0] == '*' ? parse_array(p, buf, len, limits)
			     : parse_inline(p, buf, len);
}

void resp_parser_next(struct resp_parser *p)
{
	p->at = 0;
	p->args_due = 0;
	p->in_array = false;
	p->in_bulk = false;
	p->argc = 0;
}

void resp_parser_release(struct resp_parser *p)
{
	free(p->span);
	*p = (struct resp_parser){0};
}

size_t resp_want_bytes(const struct resp_parser *p)
{
	return p->in_bulk ? p->at + p->bulk_len + 2 : p->at + 1;
}
