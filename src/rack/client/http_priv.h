/* SPDX-License-Identifier: Apache-2.0 */
/* What http.c and http_set.c share: a handle, and both halves of a request. */
#ifndef AQ_CLIENT_HTTP_PRIV_H
#define AQ_CLIENT_HTTP_PRIV_H

#include <curl/curl.h>

#include "http.h"

struct client_http {
	CURL *curl;
	struct curl_slist *headers; /* of the request under way */
	char *text;
	size_t len_bytes;
	size_t room_bytes;
	size_t max_bytes;
	bool may_live;
	bool was_sent;
	char why[CURL_ERROR_SIZE];
	/* The request, in a set; NULL: none is under way. */
	const struct client_http_request *request;
};

/* Sets the handle up; the request's strings must last until its end. */
int client_http_begin(struct client_http *h,
		      const struct client_http_request *req) MUST_CHECK;
/* What became of it, as client_http_do says it. */
int client_http_end(struct client_http *h,
		    const struct client_http_request *req, CURLcode code,
		    struct client_http_reply *reply) MUST_CHECK;

#endif
