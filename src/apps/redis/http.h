/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /health and /metrics of a gateway. The gateway's threads publish what is
 * known now and then; threads of the HTTP server read only that, so a gateway
 * that hangs can still be asked.
 */
#ifndef AQ_REDIS_HTTP_H
#define AQ_REDIS_HTTP_H

#include <pthread.h>

#include "base/hist.h"
#include "client.h"
#include "control/ctl_http.h"

enum {
	HTTP_PUBLISH_MS = 100,
	/* Clients wait for longer than an operation may take; most turns have a
	 * few milliseconds. */
	HTTP_TURN_MAX_MS = 6000,
};

/* A copy of what one thread of the gateway knows, or all of them. */
struct http_part {
	uint64_t start_ms;
	uint64_t turn_ms; /* of the last turn that was published */
	uint32_t client_count;
	uint64_t client_bytes;
	struct table_state state;
	struct gateway_stats stats;
	struct hist latency;
};

struct http_view {
	pthread_mutex_t lock;
	const char *table;
	uint32_t count;
	struct http_part *part;
	struct http_part sum; /* of the request that is answered */
};

int http_view_init(struct http_view *v, const char *table,
		   uint32_t threads) MUST_CHECK;
void http_view_release(struct http_view *v);
void http_publish(struct http_view *v, uint32_t thread,
		  const struct gateway *g);
/* Answers a request from the view. */
void http_answer(struct http_view *v, const struct ctl_request *request,
		 struct ctl_reply *reply);

#endif
