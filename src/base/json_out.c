/* SPDX-License-Identifier: Apache-2.0 */
/* Streaming JSON writer: commas, nesting and escapes, nothing else. */
#include "json_out.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

enum {
	ESCAPED_MAX = 6,  /* \u001f */
	FORMATTED = 1024, /* longest text of json_out_printf */
};

/* Bytes of the UTF-8 character at s (RFC 3629), 0 when it is malformed. */
static unsigned utf8_len(const unsigned char *s)
{
	unsigned len = *s < 0x80   ? 1
		       : *s < 0xc2 ? 0
		       : *s < 0xe0 ? 2
		       : *s < 0xf0 ? 3
		       : *s < 0xf5 ? 4
				   : 0;
	unsigned i;

	for (i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] > 0x9f) ||
	    (*s == 0xf0 && s[1] < 0x90) || (*s == 0xf4 && s[1] > 0x8f))
		return 0;
	return len;
}

/* One character of *text to out; returns how many bytes it became. */
static unsigned escape_one(char out[ESCAPED_MAX + 1], const char **text)
{
	const unsigned char *s = (const unsigned char *)*text;
	const char *pair = "\"\"\\\\\nn\tt\rr\bb\ff";
	unsigned len = utf8_len(s);

	*text += len ? len : 1;
	for (; *pair; pair += 2) {
		if (*s == (unsigned char)pair[0])
			return (unsigned)sprintf(out, "\\%c", pair[1]);
	}
	if (len == 0)
		return (unsigned)sprintf(out, "\\ufffd");
	if (*s < 0x20 || *s == 0x7f)
		return (unsigned)sprintf(out, "\\u%04x", *s);
	memcpy(out, s, len);
	return len;
}

size_t json_out_escape(char *dst, size_t size_bytes, const char *text)
{
	char one[ESCAPED_MAX + 1];
	size_t used = 0;

	while (*text) {
		unsigned len = escape_one(one, &text);

		if (used + len >= size_bytes)
			break;
		memcpy(dst + used, one, len);
		used += len;
	}
	dst[used] = 0;
	return used;
}

static void put_text(FILE *f, const char *text)
{
	char one[ESCAPED_MAX + 1];

	fputc('"', f);
	while (*text)
		fwrite(one, 1, escape_one(one, &text), f);
	fputc('"', f);
}

static void begin(struct json_out *j, const char *key)
{
	if (j->depth) {
		ASSERT((key != NULL) == (j->closer[j->depth - 1] == '}'));
		if (j->has_member[j->depth - 1])
			fputc(',', j->stream);
		j->has_member[j->depth - 1] = true;
	}
	if (key) {
		put_text(j->stream, key);
		fputc(':', j->stream);
	}
}

static void open_level(struct json_out *j, const char *key, char open,
		       char close)
{
	begin(j, key);
	ASSERT(j->depth < JSON_OUT_DEPTH);
	j->has_member[j->depth] = false;
	j->closer[j->depth++] = close;
	fputc(open, j->stream);
}

void json_out_init(struct json_out *j, FILE *stream)
{
	*j = (struct json_out){.stream = stream};
}

int json_out_end(struct json_out *j)
{
	ASSERT(j->depth == 0);
	fputc('\n', j->stream);
	return fflush(j->stream) || ferror(j->stream) ? -EIO : 0;
}

void json_out_object(struct json_out *j, const char *key)
{
	open_level(j, key, '{', '}');
}

void json_out_array(struct json_out *j, const char *key)
{
	open_level(j, key, '[', ']');
}

void json_out_close(struct json_out *j)
{
	ASSERT(j->depth > 0);
	fputc(j->closer[--j->depth], j->stream);
}

void json_out_string(struct json_out *j, const char *key, const char *text)
{
	begin(j, key);
	put_text(j->stream, text);
}

void json_out_printf(struct json_out *j, const char *key, const char *fmt, ...)
{
	char text[FORMATTED];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_out_string(j, key, text);
}

void json_out_u64(struct json_out *j, const char *key, uint64_t value)
{
	begin(j, key);
	fprintf(j->stream, "%" PRIu64, value);
}

void json_out_i64(struct json_out *j, const char *key, int64_t value)
{
	begin(j, key);
	fprintf(j->stream, "%" PRId64, value);
}

void json_out_double(struct json_out *j, const char *key, double value)
{
	begin(j, key);
	if (isfinite(value))
		fprintf(j->stream, "%.9g", value);
	else
		fputs("null", j->stream);
}

void json_out_bool(struct json_out *j, const char *key, bool value)
{
	begin(j, key);
	fputs(value ? "true" : "false", j->stream);
}

void json_out_null(struct json_out *j, const char *key)
{
	begin(j, key);
	fputs("null", j->stream);
}
