/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP server around a handler: a unix socket, and TCP with or without TLS
 * beside it. Every connection has a thread of its own, so a request that takes
 * long (memory to be cleared) does not hold up another one's heartbeat; the
 * number of connections, also of one address, the size of a request, the time
 * from its first byte to its last, and the time that a silent connection may
 * live are bounded. When all places are taken, a new connection replaces one
 * whose request is not complete (caller_priv.h). Answers to unknown tokens are
 * delayed more and more (stranger_priv.h).
 */
#ifndef AQ_CTL_SERVER_H
#define AQ_CTL_SERVER_H

#include "base/base.h"

/* TLS 1.2 and 1.3, in the words of GnuTLS. */
#define CTL_SERVER_TLS "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

enum {
	CTL_SERVER_CONNECTIONS = 1024, /* of each socket */
	CTL_SERVER_IDLE_S = 60,
	CTL_SERVER_STACK_BYTES = 256 << 10,
	CTL_SERVER_MEMORY_BYTES = 32 << 10, /* headers of one connection */
	CTL_SERVER_BACKLOG = 128,
	CTL_SERVER_PEM_MAX = 256 << 10, /* certificate or key */
};

struct ctl_request;
struct ctl_reply;

/* Called by any number of threads at a time. The reply comes zeroed. */
typedef void (*ctl_handle_fn)(void *ctx, const struct ctl_request *request,
			      struct ctl_reply *reply);

struct ctl_server_config {
	/* A socket found there is replaced; NULL: only TCP. */
	const char *unix_path;
	const char *listen;   /* "ADDRESS:PORT", "[v6]:PORT", or NULL */
	const char *tls_cert; /* PEM files, both or none */
	const char *tls_key;
	ctl_handle_fn handle;
	void *ctx;
	unsigned connections; /* of each socket; 0: CTL_SERVER_CONNECTIONS */
};

struct ctl_server;

/* Raises the process's limit of open files as far as it may. -EINVAL: the
 * address or a PEM file is wrong, and what bind(2) returned; error_last() has
 * the words. */
int ctl_server_start(const struct ctl_server_config *config,
		     struct ctl_server **out) MUST_CHECK;
/* The TCP port in use, 0 without TCP. */
uint16_t ctl_server_port(const struct ctl_server *s);
/* No new connections from here on; the unix socket's name goes away. */
void ctl_server_quiesce(struct ctl_server *s);
/* Waits for requests that are being handled. */
void ctl_server_stop(struct ctl_server *s);

#endif
