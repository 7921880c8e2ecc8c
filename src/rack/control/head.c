/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the head of a request. */
#include "head_priv.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"

static unsigned refuse(unsigned status, const char *words)
{
	(void)error_set(-EINVAL, "%s", words);
	return status;
}

/* Empty lines before a request are left over from the one before. */
static size_t skip_empty(const char *text, size_t bytes)
{
	size_t at = 0;

	while (at < bytes && (text[at] == '\r' || text[at] == '\n'))
		at++;
	return at;
}

size_t head_length(const char *text, size_t bytes)
{
	size_t at = skip_empty(text, bytes);

	while (at < bytes) {
		const char *end = memchr(text + at, '\n', bytes - at);
		size_t len = end ? (size_t)(end - text) - at : 0;
		bool is_empty = len == 0 || (len == 1 && text[at] == '\r');

		if (!end)
			return 0;
		at += len + 1;
		if (is_empty)
			return at;
	}
	return 0;
}

/* The next line, which ends with a NUL from now on. */
static char *next_line(char **rest)
{
	char *line = *rest, *end = strchr(line, '\n');

	*end = 0;
	if (end > line && end[-1] == '\r')
		end[-1] = 0;
	*rest = end + 1;
	return line;
}

/* ---- the first line ------------------------------------------------------ */

/* What names and methods are made of (RFC 9110, 5.6.2). */
static bool is_token(const char *text)
{
	static const char more[] = "!#$%&'*+-.^_`|~";

	if (!*text)
		return false;
	for (; *text; text++) {
		bool is_letter = (*text >= 'a' && *text <= 'z') ||
				 (*text >= 'A' && *text <= 'Z');

		if (!is_letter && !(*text >= '0' && *text <= '9') &&
		    !strchr(more, *text))
			return false;
	}
	return true;
}

static bool is_clean(const char *text)
{
	for (; *text; text++)
		if (((unsigned char)*text < ' ' && *text != '\t') ||
		    *text == 0x7f)
			return false;
	return true;
}

static unsigned parse_first(char *line, struct head *h)
{
	char *path = strchr(line, ' ');
	char *version = path ? strchr(path + 1, ' ') : NULL;

	if (!version || !is_clean(line) || strchr(line, '\t'))
		return refuse(400, "this is no request of HTTP/1.1");
	*path++ = 0;
	*version++ = 0;
	if (!is_token(line) || !*path)
		return refuse(400, "this is no request of HTTP/1.1");
	if (strcmp(version, "HTTP/1.1") != 0 &&
	    strcmp(version, "HTTP/1.0") != 0)
		return refuse(strncmp(version, "HTTP/", 5) == 0 ? 505 : 400,
			      "requests are of HTTP/1.1 or HTTP/1.0");
	h->closes = h->is_old = version[7] == '0';
	path[strcspn(path, "?")] = 0;
	h->method = line;
	h->path = path;
	return 0;
}

/* ---- fields -------------------------------------------------------------- */

static unsigned take_length(struct head *h, const char *value)
{
	if (h->has_length || !*value)
		return refuse(400, "Content-Length must be there once");
	h->has_length = true;
	for (; *value; value++) {
		if (*value < '0' || *value > '9')
			return refuse(400, "Content-Length must be a number");
		h->body_bytes = h->body_bytes * 10 + (uint64_t)(*value - '0');
		if (h->body_bytes > HEAD_BODY_MAX)
			return refuse(413, "Content-Length is too large");
	}
	return 0;
}

static unsigned take_encoding(struct head *h, const char *value)
{
	if (h->is_chunked)
		return refuse(400, "Transfer-Encoding must be there once");
	h->is_chunked = true;
	return strcasecmp(value, "chunked") == 0
		       ? 0
		       : refuse(501, "bodies are not encoded, or chunked");
}

static unsigned take_token(struct head *h, bool *is_there, const char *value)
{
	static const char scheme[] = "Bearer ";

	if (*is_there)
		return refuse(400, "Authorization must be there once");
	*is_there = true;
	if (strncasecmp(value, scheme, sizeof(scheme) - 1) == 0)
		h->token = value + sizeof(scheme) - 1;
	return 0;
}

static unsigned take_field(struct head *h, bool *has_token, const char *name,
			   const char *value)
{
	if (strcasecmp(name, "Content-Length") == 0)
		return take_length(h, value);
	if (strcasecmp(name, "Authorization") == 0)
		return take_token(h, has_token, value);
	if (strcasecmp(name, "Transfer-Encoding") == 0)
		return take_encoding(h, value);
	if (strcasecmp(name, "Connection") == 0)
		h->closes |= strcasestr(value, "close") != NULL;
	if (strcasecmp(name, "Expect") == 0) {
		if (strcasecmp(value, "100-continue") != 0)
			return refuse(417, "nothing but 100-continue may be "
					   "expected");
		h->continues = true;
	}
	return 0;
}

static char *trim(char *text)
{
	size_t len;

	text += strspn(text, " \t");
	len = strlen(text);
	while (len && (text[len - 1] == ' ' || text[len - 1] == '\t'))
		text[--len] = 0;
	return text;
}

unsigned head_parse(char *text, size_t head_bytes, struct head *out)
{
	char *rest = text + skip_empty(text, head_bytes), *line;
	bool has_token = false;
	unsigned status;

	*out = (struct head){0};
	if (memchr(text, 0, head_bytes))
		return refuse(400, "a head has no NUL");
	status = parse_first(next_line(&rest), out);
	while (!status && *(line = next_line(&rest))) {
		char *colon = strchr(line, ':');

		if (colon)
			*colon = 0;
		if (!colon || !is_token(line) || !is_clean(colon + 1))
			return refuse(400, "a line of the head is no field");
		status = take_field(out, &has_token, line, trim(colon + 1));
	}
	if (!status && out->is_chunked && (out->has_length || out->is_old))
		return refuse(400, "a body is chunked, as HTTP/1.1 has it, or "
				   "has a Content-Length");
	return status;
}
