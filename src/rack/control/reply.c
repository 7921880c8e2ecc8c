/* SPDX-License-Identifier: Apache-2.0 */
/* Replies: JSON, text, errors, and the table of statuses. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ctl_http.h"

static const struct {
	int code;
	unsigned status;
} statuses[] = {
	{EINVAL, 400},	     {EBADMSG, 400},	{ERANGE, 400},
	{ENAMETOOLONG, 400}, {EACCES, 403},	{EPERM, 403},
	{ENOENT, 404},	     {EOPNOTSUPP, 405}, {EEXIST, 409},
	{EBUSY, 409},	     {ESTALE, 410},	{E2BIG, 413},
	{EAGAIN, 429},	     {ENOMEM, 507},	{ENOSPC, 507},
	{EDQUOT, 507},	     {ECANCELED, 503},	{EPROTONOSUPPORT, 426},
	{ENOTDIR, 400},	     {EISDIR, 400},	{ELOOP, 400},
	{EXDEV, 400},	     {ENOTEMPTY, 409},	{EHOSTDOWN, 503},
};

unsigned ctl_status_of(int err)
{
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
		if (statuses[i].code == abs(err))
			return statuses[i].status;
	return 500;
}

void ctl_reply_release(struct ctl_reply *r)
{
	free(r->body);
	*r = (struct ctl_reply){0};
}

static const char type_json[] = "application/json";

/* Most answers fit on the stack; json_dumps would let its buffer grow step by
 * step. */
char *ctl_json_text(const json_t *tree, size_t *len_bytes)
{
	char near[1024], *text;
	size_t len =
		tree ? json_dumpb(tree, near, sizeof(near), JSON_COMPACT) : 0;

	*len_bytes = len;
	text = len ? malloc(len + 1) : NULL;
	if (!text)
		return NULL;
	if (len <= sizeof(near))
		memcpy(text, near, len);
	else if (json_dumpb(tree, text, len, JSON_COMPACT) != len) {
		free(text);
		return NULL;
	}
	text[len] = 0;
	return text;
}

void ctl_reply_json(struct ctl_reply *r, unsigned status, json_t *tree)
{
	size_t len = 0;
	char *text = ctl_json_text(tree, &len);

	json_decref(tree);
	if (!text) {
		ctl_reply_error(r, -ENOMEM, "no memory for the answer");
		return;
	}
	ctl_reply_release(r);
	r->status = status;
	r->content_type = type_json;
	r->body = text;
	r->body_bytes = len;
}

void ctl_reply_text(struct ctl_reply *r, char *text, size_t text_bytes,
		    const char *content_type)
{
	ctl_reply_release(r);
	r->status = 200;
	r->content_type = content_type;
	r->body = text;
	r->body_bytes = text_bytes;
}

void ctl_reply_none(struct ctl_reply *r)
{
	ctl_reply_release(r);
	r->status = 204;
}

/* The general words for this one are about rings; here it is a limit. */
static const char *advice_of(int err)
{
	return abs(err) == EAGAIN
		       ? "close or delete something first, or use another node"
		       : error_advice(err);
}

static void reply_words(struct ctl_reply *r, int err, const char *words,
			const char *advice)
{
	const char *name = error_name(err);
	char code[32];
	json_t *tree;
	char *text;

	(void)snprintf(code, sizeof(code), "-%s", name ? name : "EIO");
	tree = json_pack("{s:{s:s, s:s, s:s}}", "error", "code", code,
			 "message", words, "advice", advice);
	text = tree ? json_dumps(tree, JSON_COMPACT) : NULL;
	json_decref(tree);
	ctl_reply_release(r);
	r->status = ctl_status_of(err);
	if (!text) /* words that are no UTF-8, or no memory: the status says */
		return;
	r->content_type = type_json;
	r->body = text;
	r->body_bytes = strlen(text);
}

void ctl_reply_error(struct ctl_reply *r, int err, const char *fmt, ...)
{
	char words[ERROR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(words, sizeof(words), fmt, ap);
	va_end(ap);
	reply_words(r, err, words, advice_of(err));
}

void ctl_reply_last_error(struct ctl_reply *r, int err)
{
	const char *words = error_last();

	reply_words(r, err, *words ? words : error_text(err), advice_of(err));
}

void ctl_reply_too_many(struct ctl_reply *r, const char *who, uint64_t wait_ns)
{
	unsigned wait_s = (unsigned)u64_min(wait_ns / 1000000000 + 1, 3600);
	char words[ERROR_TEXT_MAX];

	(void)snprintf(words, sizeof(words), "too many requests of %s", who);
	reply_words(r, -EAGAIN, words,
		    "wait as long as Retry-After says, then ask again");
	r->retry_s = wait_s;
}
