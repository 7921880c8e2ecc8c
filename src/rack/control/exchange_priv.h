/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request on its way in and its reply on the way out. It belongs to the
 * HTTP library's thread until the request is complete; then its connection is
 * suspended, and it belongs to whoever makes the reply (a worker, or who holds
 * it); exchange_finish gives it back.
 */
#ifndef AQ_CTL_EXCHANGE_PRIV_H
#define AQ_CTL_EXCHANGE_PRIV_H

#include <microhttpd.h>
#include <stdatomic.h>

#include "base/list.h"
#include "caller_priv.h"
#include "ctl_http.h"

enum {
	/* Bodies up to this size are always kept; larger ones share a budget,
	 * of which one address has half at most. */
	BODY_SMALL = 4 << 10,
	BODY_BUDGET = 64 << 20,
	BODY_SHARES = 64, /* addresses are counted in so many groups */
};

struct body_budget {
	atomic_size_t all;
	atomic_size_t of[BODY_SHARES];
};

struct listener;
struct line;

struct ctl_exchange {
	struct listener *listener;
	/* One of them. */
	struct MHD_Connection *connection;
	struct line *line;
	struct caller *caller;
	struct list link; /* of what waits for a worker, or for its time */
	uint64_t since_ns, due_ns;
	/* The request. */
	struct ctl_request request;
	size_t body_max;
	size_t bytes; /* that came, kept or not */
	size_t capacity;
	size_t charged; /* to the budget */
	char *body;
	char *head;	 /* of a line: what the request points to */
	bool is_starved; /* the budget has nothing left for it */
	bool *is_held; /* while the handler runs: whether it called ctl_hold */
	bool is_reading; /* it runs on the HTTP library's thread */
	/* The reply. */
	bool has_reply;
	struct ctl_reply reply;
};

/* NULL: no memory. */
struct ctl_exchange *exchange_create(struct listener *listener,
				     struct MHD_Connection *connection,
				     struct caller *caller, size_t body_max);
void exchange_destroy(struct ctl_exchange *e);
void exchange_take_body(struct ctl_exchange *e, const char *data, size_t len);
/* Nothing more is read before its reply. */
void exchange_suspend(struct ctl_exchange *e);
/* The reply is there: the HTTP library goes on with the connection. From here
 * on `e` may be gone. */
void exchange_finish(struct ctl_exchange *e);

#endif
