/* SPDX-License-Identifier: Apache-2.0 */
/* Writes answers. */
#include "reply.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "number.h"

enum {
	FIRST_BYTES = 1024,
	ERROR_BYTES = 512,
};

void reply_release(struct reply *r)
{
	free(r->buf);
	*r = (struct reply){.proto = r->proto, .limit = r->limit};
}

bool reply_reserve(struct reply *r, size_t more)
{
	size_t want = r->len + more;
	char *buf;

	if (LIKELY(want <= r->capacity))
		return true;
	if (r->limit && want > r->limit)
		r->is_lost = true;
	want = u64_max(u64_max(2 * r->capacity, want), FIRST_BYTES);
	if (r->limit)
		want = u64_min(want, r->limit);
	buf = r->is_lost ? NULL : realloc(r->buf, want);
	if (!buf) {
		r->is_lost = true;
		return false;
	}
	r->buf = buf;
	r->capacity = want;
	return true;
}

void reply_bytes(struct reply *r, const void *bytes, size_t len)
{
	if (!len || !reply_reserve(r, len))
		return;
	memcpy(r->buf + r->len, bytes, len);
	r->len += len;
}

/* "<mark><number>\r\n" */
static void head(struct reply *r, char mark, int64_t n)
{
	char text[NUMBER_TEXT_MAX + 3];
	size_t len;

	text[0] = mark;
	len = 1 + number_format(n, text + 1);
	text[len++] = '\r';
	text[len++] = '\n';
	reply_bytes(r, text, len);
}

void reply_simple(struct reply *r, const char *text)
{
	reply_bytes(r, "+", 1);
	reply_bytes(r, text, strlen(text));
	reply_bytes(r, "\r\n", 2);
}

void reply_error(struct reply *r, const char *fmt, ...)
{
	char text[ERROR_BYTES];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (char *c = text; *c; c++)
		if (*c == '\r' || *c == '\n')
			*c = ' ';
	reply_bytes(r, "-", 1);
	reply_bytes(r, text, strlen(text));
	reply_bytes(r, "\r\n", 2);
}

void reply_int(struct reply *r, int64_t n)
{
	head(r, ':', n);
}

void reply_bulk(struct reply *r, const void *bytes, size_t len)
{
	head(r, '$', (int64_t)len);
	reply_bytes(r, bytes, len);
	reply_bytes(r, "\r\n", 2);
}

void reply_bulk_text(struct reply *r, const char *text)
{
	reply_bulk(r, text, strlen(text));
}

void reply_nil(struct reply *r)
{
	if (r->proto == 3)
		reply_bytes(r, "_\r\n", 3);
	else
		reply_bytes(r, "$-1\r\n", 5);
}

void reply_nil_array(struct reply *r)
{
	if (r->proto == 3)
		reply_bytes(r, "_\r\n", 3);
	else
		reply_bytes(r, "*-1\r\n", 5);
}

void reply_array(struct reply *r, size_t count)
{
	head(r, '*', (int64_t)count);
}

void reply_set(struct reply *r, size_t count)
{
	head(r, r->proto == 3 ? '~' : '*', (int64_t)count);
}

void reply_map(struct reply *r, size_t pairs)
{
	if (r->proto == 3)
		head(r, '%', (int64_t)pairs);
	else
		head(r, '*', 2 * (int64_t)pairs);
}

void reply_verbatim(struct reply *r, const char *text, size_t len)
{
	if (r->proto != 3) {
		reply_bulk(r, text, len);
		return;
	}
	head(r, '=', (int64_t)len + 4);
	reply_bytes(r, "txt:", 4);
	reply_bytes(r, text, len);
	reply_bytes(r, "\r\n", 2);
}

void reply_kv_error(struct reply *r, int err)
{
	switch (err) {
	case -ENOSPC:
	case -EDQUOT:
		reply_error(r, "OOM command not allowed when used memory > "
			       "'maxmemory'.");
		break;
	case -EINVAL:
		reply_error(r, "ERR value is not an integer or out of range");
		break;
	case -ERANGE:
		reply_error(r, "ERR increment or decrement would overflow");
		break;
	default:
		reply_error(r, "ERR far memory: %s", error_last());
	}
}
