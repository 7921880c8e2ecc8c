/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP requests to nodes: unix socket, TCP or TLS, with a bound on time and
 * size, one at a time or several at once. What an answer means is left to
 * node.c.
 */
#ifndef AQ_CLIENT_HTTP_H
#define AQ_CLIENT_HTTP_H

#include "base/base.h"

/* One thread at a time. Keeps connections open between requests. */
struct client_http;

struct client_http_request {
	const char *method;
	const char *address;   /* "unix:PATH", "http://..." or "https://..." */
	const char *path;      /* from the slash on */
	const char *token;     /* NULL: none is sent */
	const char *ca_path;   /* NULL: the system's certificates */
	const char *cert_path; /* and its key; NULL: none is shown */
	const char *key_path;
	const char *body; /* NULL: none */
	uint32_t timeout_ms;
	size_t max_bytes; /* of the answer */
};

struct client_http_reply {
	long status;
	uint32_t retry_s; /* with 429: when to come again; 0: it does not say */
	char *text; /* ended by NUL, owned by the handle until its next use */
	size_t len_bytes;
};

int client_http_create(struct client_http **out) MUST_CHECK;
void client_http_destroy(struct client_http *h);
/*
 * 0 when an answer of any status came. -EHOSTDOWN: no process listens, or the
 * time was over; -EACCES: the certificate is not trusted; -E2BIG: the answer
 * has more than max_bytes; -EPROTO: it is no HTTP. The words are set.
 */
int client_http_do(struct client_http *h, const struct client_http_request *req,
		   struct client_http_reply *reply) MUST_CHECK;
/* Whether the last request failed in a way that does not show that the process
 * is gone: its queue was full, or there was no way to it. */
bool client_http_may_live(const struct client_http *h);
/* Whether any of the last request has left: if not, nobody has done it. */
bool client_http_was_sent(const struct client_http *h);

/*
 * Requests that are under way at the same time, each with a handle of its own,
 * so that one without an answer does not delay the others. One thread; only
 * client_http_set_wake is for any.
 */
struct client_http_set;

int client_http_set_create(struct client_http_set **out) MUST_CHECK;
/* No request may be under way. */
void client_http_set_destroy(struct client_http_set *s);
/* The request and its strings belong to the set until client_http_set_next has
 * given the handle back, or client_http_set_drop was called. */
int client_http_set_start(struct client_http_set *s, struct client_http *h,
			  const struct client_http_request *req) MUST_CHECK;
/* Waits until a request has ended, client_http_set_wake was called, or that
 * time is over; it may return sooner. */
void client_http_set_wait(struct client_http_set *s, uint32_t timeout_ms);
void client_http_set_wake(struct client_http_set *s);
/* A request that has ended, with client_http_do's result; NULL: none. */
struct client_http *client_http_set_next(struct client_http_set *s, int *err,
					 struct client_http_reply *reply);
/* Gives up a request, if one is under way. */
void client_http_set_drop(struct client_http_set *s, struct client_http *h);

#endif
