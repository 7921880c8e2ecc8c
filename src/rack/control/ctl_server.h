/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP server around a handler: a unix socket, and TCP with or without TLS
 * beside it. Few threads serve all connections: one accepts and watches, one
 * (of TCP two) reads and writes, and the handlers run on threads of their own,
 * so a request that takes long (memory to be cleared) does not hold up another
 * one's heartbeat. A connection that is idle, or whose request is held, costs
 * no thread. The number of connections, also of one address, the size of a
 * request, the time from its first byte to its last, and the time that a silent
 * connection may live are bounded. When all places are taken, a new connection
 * replaces one whose request is not complete (caller_priv.h). Answers to
 * unknown tokens are delayed more and more (stranger_priv.h).
 */
#ifndef AQ_CTL_SERVER_H
#define AQ_CTL_SERVER_H

#include "base/base.h"

/* TLS 1.2 and 1.3, in the words of GnuTLS. */
#define CTL_SERVER_TLS "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

enum {
	CTL_SERVER_CONNECTIONS = 8192, /* of each socket */
	CTL_SERVER_IDLE_S = 60,
	CTL_SERVER_THREADS = 2, /* of TCP, that read and write */
	CTL_SERVER_STACK_BYTES = 256 << 10,
	CTL_SERVER_MEMORY_BYTES = 8 << 10, /* headers of one connection */
	CTL_SERVER_BACKLOG = 128,
	CTL_SERVER_PEM_MAX = 256 << 10, /* certificate or key */
};

struct ctl_request;
struct ctl_reply;
struct ctl_routes;

/* Called by any number of threads at a time. The reply comes zeroed. */
typedef void (*ctl_handle_fn)(void *ctx, const struct ctl_request *request,
			      struct ctl_reply *reply);
/* Answers or holds what needs no other thread, on the one that has read the
 * request. False: nothing was done, and the request goes to ctl_handle_fn. It
 * must not block. */
typedef bool (*ctl_quick_fn)(void *ctx, const struct ctl_request *request,
			     struct ctl_reply *reply);

struct ctl_server_config {
	/* A socket found there is replaced; NULL: only TCP. */
	const char *unix_path;
	const char *listen;   /* "ADDRESS:PORT", "[v6]:PORT", or NULL */
	const char *tls_cert; /* PEM files, both or none */
	const char *tls_key;
	/* Callers over TCP need a certificate of an authority in this PEM file;
	 * NULL: they need none. */
	const char *tls_ca;
	/* Also without TLS where others can reach it; else -EPERM. */
	bool is_insecure;
	ctl_handle_fn handle;
	ctl_quick_fn quick; /* or NULL */
	void *ctx;
	unsigned connections; /* of each socket; 0: CTL_SERVER_CONNECTIONS */
	/* What bodies may have before the handler sees a request; NULL: all of
	 * them CTL_BODY_MAX bytes. */
	const struct ctl_routes *routes;
	/* Who sent a held request has hung up, or the server ends: it cannot be
	 * answered any more. On the server's own thread, and it must not block.
	 * May be NULL. */
	void (*gone)(void *ctx, uint64_t id);
};

struct ctl_server;

/* Raises the process's limit of open files as far as it may. -EINVAL: the
 * address or a PEM file is wrong; -EPERM: it would serve others without TLS;
 * and what bind(2) returned; error_last() has the words. */
int ctl_server_start(const struct ctl_server_config *config,
		     struct ctl_server **out) MUST_CHECK;
/* The TCP port in use, 0 without TCP. */
uint16_t ctl_server_port(const struct ctl_server *s);
/*
 * Serves the same at the first free port from `first` on of this machine's
 * loopback, without TLS, for browsers; 0: at any port. Requests that come there
 * cannot be held. It may be called on any thread, once, before the server is
 * stopped. -EADDRINUSE: none of `count` ports is free.
 */
int ctl_server_open_loopback(struct ctl_server *s, uint16_t first,
			     unsigned count, uint16_t *port) MUST_CHECK;
/* Reads the PEM files again, for connections that are made from now on. Those
 * that exist go on. If it fails, all stays as it was; error_last() has the
 * words. Without TLS it does nothing. */
int ctl_server_reload(struct ctl_server *s) MUST_CHECK;
/* No new connections from here on; the unix socket's name goes away. */
void ctl_server_quiesce(struct ctl_server *s);
/* Waits for requests that are being handled; held ones are told that the server
 * ends. */
void ctl_server_stop(struct ctl_server *s);

/*
 * Replies that come later. A handler that calls ctl_hold leaves its reply as it
 * came; whoever has the number answers the request at any time, on any thread,
 * until `gone` is told that number or the server is stopped. The request itself
 * must not be used after the call: its answer may be on its way already.
 * -EOPNOTSUPP: it came over no connection (tests, the simulator) or the server
 * ends, so it must be answered now.
 */
int ctl_hold(const struct ctl_request *request, uint64_t *id) MUST_CHECK;
/* The same, for a moment only: nobody watches for a caller that hangs up
 * meanwhile, so `gone` is told the number only when the server ends. */
int ctl_hold_briefly(const struct ctl_request *request,
		     uint64_t *id) MUST_CHECK;
/* False: ctl_hold would fail in any case. */
bool ctl_may_hold(const struct ctl_request *request);
/* Takes the reply over in any case. -ENOENT: it was answered, or its sender is
 * gone. */
int ctl_server_answer(struct ctl_server *s, uint64_t id,
		      struct ctl_reply *reply) MUST_CHECK;

#endif
