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
#include "stranger_priv.h"

struct listener {
	ctl_handle_fn handle;
	void *ctx;
	bool is_local; /* a unix socket */
	/* The rest is listener.c's own. */
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
	/* Wakes threads that delay an answer. */
	pthread_mutex_t lock;
	pthread_cond_t stop;
	bool stops;
};

/* Takes the descriptor over, also when it fails; the caller calls
 * listener_close in any case. With a certificate it uses TLS. error_last() has
 * the words. */
int listener_open(struct listener *listener, int fd, unsigned connections,
		  const char *cert, const char *key) MUST_CHECK;
/* No new connections. */
void listener_quiesce(struct listener *listener);
/* Waits for requests that are being handled. */
void listener_close(struct listener *listener);

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

#endif
