/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a node: JSON in, JSON out, errors in the node's own words. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "client.h"

enum {
	ERRNO_MAX = 133, /* EHWPOISON, the last of Linux */
	HOPS_MAX = 2,
};

int client_status_errno(long status)
{
	switch (status) {
	case 400:
		return -EINVAL;
	case 401:
	case 403:
		return -EACCES;
	case 404:
		return -ENOENT;
	case 409:
		return -EEXIST;
	case 410:
		return -ESTALE;
	case 413:
		return -E2BIG;
	case 426:
		return -EPROTONOSUPPORT;
	case 429:
		return -EAGAIN;
	case 503:
		return -EHOSTDOWN;
	case 507:
		return -ENOSPC;
	default:
		return status >= 500 ? -EREMOTEIO : -EPROTO;
	}
}

/* "-ENOSPC" as a number; 0 for a word that is none. */
static int code_errno(const char *code)
{
	const char *name;
	int i;

	if (!code || code[0] != '-')
		return 0;
	for (i = 1; i <= ERRNO_MAX; i++) {
		name = error_name(i);
		if (name && strcmp(name, code + 1) == 0)
			return -i;
	}
	return 0;
}

/* The node's words are shown to people, so control characters stay out. */
static void copy_words(char *dst, size_t size_bytes, const json_t *text)
{
	const char *s = json_string_value(text);
	size_t i = 0;

	for (; s && *s && i + 1 < size_bytes; s++)
		dst[i++] = (char)(iscntrl((unsigned char)*s) ? ' ' : *s);
	dst[i] = '\0';
}

static int explain(const struct client_node *node, long status,
		   const json_t *tree)
{
	const json_t *error = json_object_get(tree, "error");
	char message[200], advice[160];
	int err = code_errno(json_string_value(json_object_get(error, "code")));

	copy_words(message, sizeof(message), json_object_get(error, "message"));
	copy_words(advice, sizeof(advice), json_object_get(error, "advice"));
	if (!err)
		err = client_status_errno(status);
	if (!message[0])
		return error_set(err, "node %s answered with status %ld",
				 node->name, status);
	return error_set(err, "node %s: %s%s%s", node->name, message,
			 advice[0] ? "; " : "", advice);
}

static int send_request(const struct client_caller *c,
			const struct client_http_request *req,
			struct client_http_reply *reply)
{
	if (c->send)
		return c->send(c->send_ctx, c->http, req, reply);
	return client_http_do(c->http, req, reply);
}

/* A node that is asked too often says when to come again. Whoever can wait that
 * long does. */
static int send_patiently(const struct client_caller *c,
			  struct client_http_request *req,
			  struct client_http_reply *reply)
{
	uint64_t end_ms = clock_mono_ms() + req->timeout_ms, now_ms;
	struct timespec wait = {0};
	int err;

	for (;;) {
		err = send_request(c, req, reply);
		now_ms = clock_mono_ms();
		if (err || reply->status != 429 || !reply->retry_s ||
		    now_ms + reply->retry_s * 1000ull >= end_ms)
			return err;
		wait.tv_sec = (time_t)reply->retry_s;
		(void)nanosleep(&wait, NULL); /* early: it is refused again */
		now_ms = clock_mono_ms();
		req->timeout_ms =
			now_ms < end_ms ? (uint32_t)(end_ms - now_ms) : 1;
		*reply = (struct client_http_reply){0};
	}
}

int client_reply_take(const struct client_node *node, int err,
		      const struct client_http_reply *http, json_t **reply)
{
	json_t *tree = NULL;

	if (err)
		return err == -EHOSTDOWN
			       ? error_prefix(err, "node %s: ", node->name)
			       : err;
	if (http->text)
		tree = json_loadb(http->text, http->len_bytes,
				  JSON_REJECT_DUPLICATES, NULL);
	if (http->status >= 200 && http->status < 300 &&
	    (tree || !http->text)) {
		*reply = tree;
		return 0;
	}
	if (http->status >= 200 && http->status < 300)
		err = error_set(-EPROTO, "node %s: the answer is no JSON",
				node->name);
	else
		err = explain(node, http->status, tree);
	json_decref(tree);
	return err;
}

/* Two that name each other do so while a third one begins to lead. */
static int send_to_leader(const struct client_caller *c,
			  const struct client_node *node,
			  struct client_http_request *req,
			  struct client_http_reply *reply)
{
	struct client_node at = *node;
	int err;

	for (unsigned hop = 0;; hop++) {
		err = send_patiently(c, req, reply);
		if (err || hop == HOPS_MAX ||
		    !client_reply_leader(&at, reply, at.address))
			return err;
		req->address = at.address;
		*reply = (struct client_http_reply){0};
	}
}

int client_call(const struct client_caller *c, const struct client_node *node,
		const char *method, const char *path, json_t *body,
		uint32_t timeout_ms, size_t max_bytes, json_t **reply)
{
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	struct client_http_request req = {
		.method = method,
		.address = node->address,
		.path = path,
		.token = c->token && c->token[0] ? c->token : NULL,
		.ca_path = node->ca_path[0] ? node->ca_path : NULL,
		.cert_path = node->cert_path[0] ? node->cert_path : NULL,
		.key_path = node->key_path,
		.body = text,
		.timeout_ms = timeout_ms,
		.max_bytes = max_bytes,
	};
	struct client_http_reply http = {0};
	int err;

	if (body && !text)
		err = error_set(-ENOMEM, "no memory for a request");
	else
		err = send_to_leader(c, node, &req, &http);
	json_decref(body);
	free(text);
	return client_reply_take(node, err, &http, reply);
}

int client_json_u64(const json_t *object, const char *key, uint64_t max,
		    uint64_t *out)
{
	const json_t *v = json_object_get(object, key);
	json_int_t n = json_integer_value(v);

	if (!json_is_integer(v) || n < 0 || (uint64_t)n > max)
		return error_set(-EPROTO,
				 "the node's answer has no usable '%s'", key);
	*out = (uint64_t)n;
	return 0;
}

int client_json_hex(const json_t *object, const char *key, uint64_t *out)
{
	const char *s = json_string_value(json_object_get(object, key));

	if (!s || strlen(s) != 16 || strspn(s, "0123456789abcdef") != 16)
		return error_set(-EPROTO,
				 "the node's answer has no usable '%s'", key);
	*out = strtoull(s, NULL, 16);
	return 0;
}

int client_json_word(const json_t *object, const char *key, char *out,
		     size_t size_bytes)
{
	const char *s = json_string_value(json_object_get(object, key));
	size_t len = s ? strlen(s) : 0;
	size_t i;

	for (i = 0; i < len; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr("-_.", s[i]))
			len = 0;
	if (len == 0 || len >= size_bytes)
		return error_set(-EPROTO,
				 "the node's answer has no usable '%s'", key);
	memcpy(out, s, len + 1);
	return 0;
}
