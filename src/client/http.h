/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One HTTP request at a time to a node: unix socket, TCP or TLS, with a bound
 * on time and size. What the answer means is left to node.c.
 */
#ifndef AQ_CLIENT_HTTP_H
#define AQ_CLIENT_HTTP_H

#include "base.h"

/* One thread at a time. Keeps connections open between requests. */
struct client_http;

struct client_http_request {
	const char *method;
	const char *address; /* "unix:PATH", "http://..." or "https://..." */
	const char *path;    /* from the slash on */
	const char *token;   /* NULL: none is sent */
	const char *ca_path; /* NULL: the system's certificates */
	const char *body;    /* NULL: none */
	uint32_t timeout_ms;
	size_t max_bytes; /* of the answer */
};

struct client_http_reply {
	long status;
	char *text; /* ended by NUL, owned by the handle until its next use */
	size_t len_bytes;
};

int client_http_create(struct client_http **out) MUST_CHECK;
void client_http_destroy(struct client_http *h);
/*
 * 0 when an answer of any status came. -EHOSTDOWN: nobody listens or the time
 * was over; -EACCES: the certificate is not trusted; -E2BIG: the answer has
 * more than max_bytes; -EPROTO: it is no HTTP. The words are set.
 */
int client_http_do(struct client_http *h, const struct client_http_request *req,
		   struct client_http_reply *reply) MUST_CHECK;

#endif
