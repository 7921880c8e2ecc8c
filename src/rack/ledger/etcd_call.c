/* SPDX-License-Identifier: Apache-2.0 */
/* Members in turn. */
#include "etcd_call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "client/http.h"
#include "etcd_text.h"

enum {
	REST_MS = 50, /* between two rounds */
	FILE_BYTES = 512,
};

struct etcd_call {
	struct client_http *http;
	char url[ETCD_MEMBERS_MAX][ETCD_ADDRESS_MAX];
	unsigned count;
	unsigned at; /* who is asked first */
	char ca[FILE_BYTES], cert[FILE_BYTES], key[FILE_BYTES];
};

/* ---- opening ------------------------------------------------------------ */

static bool is_url(const char *text, size_t len)
{
	static const char *const schemes[] = {"http://", "https://"};
	size_t i, n;

	for (i = 0; i < ARRAY_LEN(schemes); i++) {
		n = strlen(schemes[i]);
		if (len > n && strncmp(text, schemes[i], n) == 0)
			break;
	}
	if (i == ARRAY_LEN(schemes) || len >= ETCD_ADDRESS_MAX)
		return false;
	/* A name or address and a port, nothing behind it. */
	for (; n < len; n++)
		if (text[n] <= ' ' || text[n] > '~' || strchr("/?#@", text[n]))
			return false;
	return true;
}

static int add_urls(struct etcd_call *c, const char *urls)
{
	for (const char *at = urls;; at++) {
		size_t len = strcspn(at, ",");

		if (!is_url(at, len))
			return error_set(-EINVAL,
					 "'%.*s' is no member of an etcd; "
					 "etcd:http://HOST:PORT,... or "
					 "https://HOST:PORT",
					 (int)(len < 60 ? len : 60), at);
		if (c->count == ETCD_MEMBERS_MAX)
			return error_set(-EINVAL,
					 "an etcd has %d members at most",
					 ETCD_MEMBERS_MAX);
		(void)snprintf(c->url[c->count++], ETCD_ADDRESS_MAX, "%.*s",
			       (int)len, at);
		at += len;
		if (!*at)
			return 0;
	}
}

static int copy(char out[FILE_BYTES], const char *path)
{
	if (path && (size_t)snprintf(out, FILE_BYTES, "%s", path) >= FILE_BYTES)
		return error_set(-ENAMETOOLONG, "%.60s... is too long", path);
	return 0;
}

int etcd_call_open(const char *urls, const struct ledger_place *place,
		   struct etcd_call **out)
{
	struct etcd_call *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return error_set(-ENOMEM, "no memory for a ledger");
	err = add_urls(c, urls);
	if (!err)
		err = copy(c->ca, place->ca);
	if (!err)
		err = copy(c->cert, place->cert);
	if (!err)
		err = copy(c->key, place->key);
	if (!err && !c->cert[0] != !c->key[0])
		err = error_set(-EINVAL, "a certificate for etcd needs its "
					 "key, and the other way round");
	if (!err)
		err = client_http_create(&c->http);
	if (err) {
		etcd_call_close(c);
		return err;
	}
	*out = c;
	return 0;
}

void etcd_call_close(struct etcd_call *c)
{
	if (!c)
		return;
	client_http_destroy(c->http);
	free(c);
}

/* ---- asking ------------------------------------------------------------- */

/* One member. *sent: it may have got the question. */
static int ask_one(struct etcd_call *c, const char *path, const char *body,
		   bool *sent, json_t **answer)
{
	const char *url = c->url[c->at];
	const struct client_http_request req = {
		.method = "POST",
		.address = url,
		.path = path,
		.ca_path = c->ca[0] ? c->ca : NULL,
		.cert_path = c->cert[0] ? c->cert : NULL,
		.key_path = c->key[0] ? c->key : NULL,
		.body = body,
		.timeout_ms = ETCD_ASK_MS,
		.max_bytes = ETCD_ANSWER_MAX,
	};
	struct client_http_reply reply = {0};
	int err = client_http_do(c->http, &req, &reply);

	*answer = NULL;
	*sent = !err || client_http_was_sent(c->http);
	if (err)
		return err;
	if (reply.text)
		*answer = json_loadb(reply.text, reply.len_bytes,
				     JSON_REJECT_DUPLICATES, NULL);
	err = etcd_answer_status(reply.status, *answer);
	if (!err)
		return 0;
	json_decref(*answer);
	*answer = NULL;
	return error_prefix(err, "%s: ", url);
}

/* Whether another member, or the same one later, may say something else. */
static bool may_differ(int err)
{
	return err == -EHOSTDOWN || err == -EPROTO || err == -E2BIG ||
	       err == -EACCES;
}

static void rest(void)
{
	const struct timespec t = {.tv_nsec = REST_MS * 1000000l};

	(void)nanosleep(&t, NULL);
}

static int ask_text(struct etcd_call *c, const char *path, const char *body,
		    unsigned patience_ms, bool *may_have, json_t **answer)
{
	uint64_t end_ms = clock_mono_ms() + patience_ms;
	bool sent;
	int err;

	for (unsigned tried = 1;; tried++) {
		err = ask_one(c, path, body, &sent, answer);
		if (!may_differ(err))
			return err;
		*may_have |= sent;
		c->at = (c->at + 1) % c->count;
		if (tried % c->count)
			continue;
		if (clock_mono_ms() >= end_ms)
			return error_prefix(-EHOSTDOWN, "no member of etcd has "
							"answered: ");
		rest();
	}
}

int etcd_call_ask(struct etcd_call *c, const char *path, json_t *body,
		  unsigned patience_ms, bool *may_have, json_t **answer)
{
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	bool ignored = false;
	int err;

	json_decref(body);
	*answer = NULL;
	if (!text)
		return error_set(-ENOMEM, "no memory for a question to etcd");
	err = ask_text(c, path, text, patience_ms,
		       may_have ? may_have : &ignored, answer);
	free(text);
	return err;
}
