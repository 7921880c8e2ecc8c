/* SPDX-License-Identifier: Apache-2.0 */
/* One listening socket of the server. */
#ifndef AQ_CTL_DOOR_PRIV_H
#define AQ_CTL_DOOR_PRIV_H

#include <microhttpd.h>
#include <stdarg.h>
#include <stdatomic.h>

#include "base/log.h"
#include "caller_priv.h"
#include "ctl_server.h"
#include "stranger_priv.h"

struct door {
	ctl_handle_fn handle;
	void *ctx;
	bool is_local; /* a unix socket */
	/* The rest is door.c's own. */
	bool is_open;
	bool is_secure;
	bool has_thread;
	int listen_fd;
	int wake_fd; /* ends the thread */
	pthread_t thread;
	struct MHD_Daemon *daemon;
	struct callers callers;
	struct strangers strangers;
	struct log_limit limit; /* of the thread that accepts */
	atomic_bool has_warned; /* about tokens in clear; only a hint */
	/* Wakes those that wait with an answer. */
	pthread_mutex_t lock;
	pthread_cond_t stop;
	bool stops;
};

/* Takes the descriptor over, also when it fails; door_close comes in any case.
 * With a certificate: TLS. error_last() has the words. */
int door_open(struct door *door, int fd, unsigned connections, const char *cert,
	      const char *key) MUST_CHECK;
/* No new connections. */
void door_quiesce(struct door *door);
/* Requests that are being handled come to their end first. */
void door_close(struct door *door);

/* ---- door_http.c: for libmicrohttpd; cls is the door --------------------- */

enum MHD_Result door_request(void *cls, struct MHD_Connection *connection,
			     const char *url, const char *method,
			     const char *version, const char *data,
			     size_t *data_bytes, void **request_cls);
void door_completed(void *cls, struct MHD_Connection *connection,
		    void **request_cls, enum MHD_RequestTerminationCode code);
void door_log(void *cls, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));
/* Names cannot hold anything that needs escaping, so nothing is decoded: what
 * is compared is what was sent. */
size_t door_keep_escapes(void *cls, struct MHD_Connection *connection,
			 char *text);

#endif
