/* SPDX-License-Identifier: Apache-2.0 */
/* The server: its two sockets, its certificate, its beginning and end. */
#include "ctl_server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/error.h"
#include "listen_priv.h"
#include "listener_priv.h"

enum {
	LOOPBACK_CONNECTIONS = 256,
};

struct ctl_server {
	char *unix_path;
	unsigned connections; /* of each socket */
	struct tls *tls;      /* of TCP, or NULL */
	uint16_t port;
	struct listener local;
	struct listener tcp;
	struct listener loopback; /* of ctl_server_open_loopback */
};

static int open_tcp(struct ctl_server *s, const struct ctl_server_config *c)
{
	const struct tls_files files = {c->tls_cert, c->tls_key, c->tls_ca};
	int err = 0, fd;

	if (!c->tls_cert != !c->tls_key || (c->tls_ca && !c->tls_cert))
		return error_set(-EINVAL,
				 "TLS needs both a certificate and a key");
	if (c->tls_cert)
		err = tls_create(&files, &s->tls);
	if (err)
		return err;
	fd = listen_tcp(c->listen, s->tls || c->is_insecure, &s->port);
	if (fd < 0)
		return fd;
	return listener_open(&s->tcp, fd, s->connections, s->tls);
}

/* As many descriptors as the process may have; a quarter of them is for each
 * socket, so that there are some left for everything else. */
static unsigned raise_files(unsigned wanted)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return wanted;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit); /* else it is what it was */
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 ||
	    limit.rlim_cur == RLIM_INFINITY)
		return wanted;
	return (unsigned)u64_max(u64_min(wanted, limit.rlim_cur / 4), 1);
}

static void prepare(struct listener *listener,
		    const struct ctl_server_config *c)
{
	listener->handle = c->handle;
	listener->quick = c->quick;
	listener->gone = c->gone;
	listener->ctx = c->ctx;
	listener->routes = c->routes;
}

int ctl_server_start(const struct ctl_server_config *c, struct ctl_server **out)
{
	struct ctl_server *s = calloc(1, sizeof(*s));
	int err, fd;

	if (!s)
		return error_set(-ENOMEM, "no memory for the HTTP server");
	s->connections = raise_files(c->connections ? c->connections
						    : CTL_SERVER_CONNECTIONS);
	prepare(&s->local, c);
	prepare(&s->tcp, c);
	s->local.is_local = true;
	err = c->listen ? open_tcp(s, c) : 0;
	if (!err && c->unix_path) {
		fd = listen_unix(c->unix_path);
		err = fd < 0 ? fd
			     : listener_open(&s->local, fd, s->connections,
					     NULL);
		if (fd >= 0)
			s->unix_path = strdup(c->unix_path);
	}
	if (err) {
		ctl_server_stop(s);
		return err;
	}
	*out = s;
	return 0;
}

uint16_t ctl_server_port(const struct ctl_server *s)
{
	return s->port;
}

/* As it was before anything was tried. */
static void reset_loopback(struct ctl_server *s)
{
	s->loopback = (struct listener){
		.handle = s->local.handle,
		.quick = s->local.quick,
		.gone = s->local.gone,
		.ctx = s->local.ctx,
		.routes = s->local.routes,
		.is_never_held = true,
	};
}

int ctl_server_open_loopback(struct ctl_server *s, uint16_t first,
			     unsigned count, uint16_t *port)
{
	int err, fd = -EADDRINUSE;
	uint16_t got = 0;

	for (unsigned i = 0; i < count && fd == -EADDRINUSE; i++) {
		char address[32];

		(void)snprintf(address, sizeof(address), "127.0.0.1:%u",
			       first ? first + i : 0);
		fd = listen_tcp(address, false, &got);
	}
	if (fd < 0)
		return fd;
	reset_loopback(s);
	err = listener_open(&s->loopback, fd, LOOPBACK_CONNECTIONS, NULL);
	if (err)
		listener_close(&s->loopback);
	else
		*port = got;
	return err;
}

int ctl_server_answer(struct ctl_server *s, uint64_t id,
		      struct ctl_reply *reply)
{
	return held_answer(id & 1 ? &s->tcp : &s->local, id, reply);
}

int ctl_server_reload(struct ctl_server *s)
{
	return s->tls ? tls_reload(s->tls) : 0;
}

void ctl_server_quiesce(struct ctl_server *s)
{
	/* The name first: nobody may find a socket that will not answer. */
	if (s->unix_path) {
		(void)unlink(s->unix_path); /* gone already: just as well */
		free(s->unix_path);
		s->unix_path = NULL;
	}
	listener_quiesce(&s->local);
	listener_quiesce(&s->tcp);
	listener_quiesce(&s->loopback);
}

void ctl_server_stop(struct ctl_server *s)
{
	ctl_server_quiesce(s);
	listener_close(&s->local);
	listener_close(&s->tcp);
	listener_close(&s->loopback);
	tls_destroy(s->tls);
	free(s);
}
