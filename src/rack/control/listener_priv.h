/* SPDX-License-Identifier: Apache-2.0 */
/* One listening socket of the server. */
#ifndef AQ_CTL_LISTENER_PRIV_H
#define AQ_CTL_LISTENER_PRIV_H

#include <microhttpd.h>
#include <stdarg.h>
#include <stdatomic.h>

#include "base/log.h"
#include "caller_priv.h"
#include "ctl_server.h"
#include "exchange_priv.h"
#include "stranger_priv.h"
#include "tls_priv.h"
#include "worker_priv.h"

struct head;
struct plain;

/* A held request, in the place of its connection in the table of callers. */
struct held {
	uint64_t id; /* 0: none */
	struct ctl_exchange *exchange;
	bool is_watched; /* for a caller that hangs up */
};

struct listener {
	ctl_handle_fn handle;
	ctl_quick_fn quick; /* or NULL */
	void (*gone)(void *ctx, uint64_t id);
	void *ctx;
	const struct ctl_routes *routes; /* or NULL */
	bool is_local;			 /* a unix socket */
	bool is_never_held; /* numbers of held requests tell two sockets */
	/* The rest is this room's own. */
	bool is_open;
	struct tls *tls; /* or NULL; the server's */
	bool has_thread;
	int listen_fd;
	int wake_fd;	    /* something changed for the thread */
	int watch_fd;	    /* an epoll: the two above and held connections */
	atomic_bool ends;   /* the thread */
	atomic_bool is_set; /* the thread will look after the workers */
	pthread_t thread;
	struct MHD_Daemon *daemon; /* or, of a unix socket: */
	struct plain *plain;
	struct callers callers;
	struct strangers strangers;
	struct workers workers;
	struct body_budget budget;
	struct log_limit limit; /* of the thread that accepts */
	atomic_bool has_warned; /* about tokens in clear; only a hint */
	/* Covers what follows. */
	pthread_mutex_t lock;
	struct list delayed; /* replies, by when they are due */
	struct held *held;   /* as many as callers */
	uint64_t held_count; /* ever: ids come from it */
	bool stops;	     /* nothing can be held or delayed any more */
};

/* Takes the descriptor over, also when it fails; the caller calls
 * listener_close in any case. With `tls` it uses that. error_last() has the
 * words. */
int listener_open(struct listener *listener, int fd, unsigned connections,
		  struct tls *tls) MUST_CHECK;
/* No new connections. */
void listener_quiesce(struct listener *listener);
/* Waits for requests that are being handled. */
void listener_close(struct listener *listener);

/* The thread that accepts shall look at what has changed. */
void listener_wake(struct listener *listener);

/* ---- held.c: replies that come later ------------------------------------- */

/* Delays a reply that is there. */
void held_delay(struct ctl_exchange *e, unsigned ms);
/* Sends what is due; returns for how long nothing is, in ms, or -1. */
int held_send_due(struct listener *listener, uint64_t now_ns);
int held_answer(struct listener *listener, uint64_t id,
		struct ctl_reply *reply) MUST_CHECK;
/* Its sender has hung up. */
void held_hang_up(struct listener *listener, uint64_t id);
/* Sends all that is delayed or held, and lets nothing be so any more. */
void held_end(struct listener *listener);

/* ---- listener_http.c: for libmicrohttpd; cls is the listener
 * --------------------- */

enum MHD_Result listener_request(void *cls, struct MHD_Connection *connection,
				 const char *url, const char *method,
				 const char *version, const char *data,
				 size_t *data_bytes, void **request_cls);
void listener_completed(void *cls, struct MHD_Connection *connection,
			void **request_cls,
			enum MHD_RequestTerminationCode code);
void listener_log(void *cls, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));
/* Names cannot hold anything that needs escaping, so nothing is decoded: what
 * is compared is what was sent. */
size_t listener_keep_escapes(void *cls, struct MHD_Connection *connection,
			     char *text);
/* The request is whole; on the thread that has read it. True: its reply is
 * there, and the caller sends it. False: somebody else does, and by now it may
 * be gone. */
bool listener_serve(struct ctl_exchange *e) MUST_CHECK;
/* The request with this head, which is in `text`; takes that over. NULL: no
 * memory. */
struct ctl_exchange *listener_begin(struct listener *listener,
				    struct line *line, const struct head *h,
				    char *text) MUST_CHECK;
/* Runs the handler; on a worker. */
void listener_handle(struct ctl_exchange *e);

#endif
