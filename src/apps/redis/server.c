/* SPDX-License-Identifier: Apache-2.0 */
/* The gateway as a daemon: sockets and epoll around the clients, one
 * thread. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "bound.h"
#include "command.h"
#include "server_priv.h"
#include "show.h"
#include "uplink/uplink.h"

enum {
	EVENTS_PER_TURN = 64,
	TICK_MS = 1000,
	PAUSED_LOOK_MS = 100,	 /* while clients or listeners wait */
	LISTENER_PAUSE_MS = 200, /* without a descriptor for a client */
};

/* ---- listeners ---------------------------------------------------------- */

static void refuse(struct server *v, int fd)
{
	static const char words[] = "-ERR max number of clients reached\r\n";

	v->gateway.stats.connections_refused++;
	(void)!send(fd, words, sizeof(words) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	(void)close(fd); /* it was told, if it listens */
}

static void add_peer(struct server *v, int fd, const char *address)
{
	struct epoll_event ev = {.events = EPOLLIN};
	struct peer *p = calloc(1, sizeof(*p));
	int one = 1;

	if (!p) {
		(void)close(fd);
		return;
	}
	/* Fails on a unix socket, which has no delay anyway. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	p->server = v;
	p->fd = fd;
	p->events = EPOLLIN;
	client_init(&p->client, &v->gateway, address);
	ev.data.ptr = p;
	if (epoll_ctl(v->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
		peer_end(p);
}

/* Whether epoll looks at the listeners. */
static void watch_listeners(struct server *v, bool is_open)
{
	for (unsigned i = 0; i < ARRAY_LEN(v->listener_fd); i++) {
		struct epoll_event ev = {.events = is_open ? EPOLLIN : 0,
					 .data.ptr = &v->listener_fd[i]};

		if (v->listener_fd[i] >= 0)
			(void)epoll_ctl(v->epoll_fd, EPOLL_CTL_MOD,
					v->listener_fd[i], &ev);
	}
}

/* There is no descriptor left. Who waits is told with the spare one, and the
 * listeners pause for a moment: they would be ready again and again. */
static void out_of_descriptors(struct server *v, int listener_fd)
{
	char address[GATEWAY_ADDRESS_MAX];
	int fd;

	if (v->spare_fd >= 0)
		(void)close(v->spare_fd);
	fd = listener_accept(listener_fd, address, sizeof(address));
	if (fd >= 0)
		refuse(v, fd);
	v->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	v->listeners_ms = clock_mono_ms() + LISTENER_PAUSE_MS;
	watch_listeners(v, false);
	log_write_limited(&v->full_log, clock_mono_ms() * 1000000,
			  LOG_LEVEL_WARN, "redis",
			  "no descriptor is left for a client (ulimit -n)");
}

static void resume_listeners(struct server *v)
{
	if (!v->listeners_ms || clock_mono_ms() < v->listeners_ms)
		return;
	v->listeners_ms = 0;
	watch_listeners(v, true);
}

static void listener_ready(struct server *v, int listener_fd)
{
	char address[GATEWAY_ADDRESS_MAX];

	for (int i = 0; i < EVENTS_PER_TURN; i++) {
		int fd = listener_accept(listener_fd, address, sizeof(address));

		if (fd == -EMFILE || fd == -ENFILE || fd == -ENOBUFS ||
		    fd == -ENOMEM)
			out_of_descriptors(v, listener_fd);
		if (fd < 0)
			return;
		if (v->gateway.client_count >= v->gateway.options->clients_max)
			refuse(v, fd);
		else
			add_peer(v, fd, address);
	}
}

/* ---- life --------------------------------------------------------------- */

static bool is_peer(const struct server *v, const void *what)
{
	return what != &v->daemon->signal_fd && what != &v->listener_fd[0] &&
	       what != &v->listener_fd[1];
}

static int wait_ms(const struct server *v)
{
	/* What has changed since then is to be seen over HTTP, too. */
	if (v->gateway.paused_count || v->listeners_ms ||
	    v->gateway.stats.commands != v->view.stats.commands)
		return PAUSED_LOOK_MS;
	return v->gateway.reaper.is_awake ? REAP_MS : TICK_MS;
}

/* For who asks over HTTP. */
static void publish(struct server *v)
{
	uint64_t now_ms = clock_mono_ms();

	if (now_ms < v->published_ms + HTTP_PUBLISH_MS)
		return;
	v->published_ms = now_ms;
	http_publish(&v->view, &v->gateway);
}

/* Ends the turn of these clients, whose commands are collected. */
static void answer(struct server *v, const struct epoll_event *ev, int count)
{
	batch_flush(&v->gateway);
	for (int i = 0; i < count; i++)
		if (is_peer(v, ev[i].data.ptr))
			peer_answer(ev[i].data.ptr);
}

/* Clients whose commands fill a batch are answered before others are read: they
 * work with their answers meanwhile. */
static void handle_events(struct server *v, const struct epoll_event *ev,
			  int count)
{
	int answered = 0;

	for (int i = 0; i < count; i++) {
		void *what = ev[i].data.ptr;

		if (what == &v->daemon->signal_fd)
			(void)daemon_is_ending(v->daemon, 0); /* ->signal */
		else if (!is_peer(v, what))
			listener_ready(v, *(int *)what);
		else
			peer_take(what, ev[i].events);
		if (v->gateway.batch_len >= BATCH_FULL) {
			answer(v, ev + answered, i + 1 - answered);
			answered = i + 1;
		}
	}
	answer(v, ev + answered, count - answered);
}

static int serve(struct daemon *d)
{
	struct server *v = d->served;
	struct epoll_event ev[EVENTS_PER_TURN];
	uint64_t swept_ms = clock_mono_ms();
	int err = 0;

	while (d->signal == 0 && !err) {
		int n = epoll_wait(v->epoll_fd, ev, EVENTS_PER_TURN,
				   wait_ms(v));

		handle_events(v, ev, n);
		publish(v);
		peers_resume(v);
		peers_end_largest(v);
		resume_listeners(v);
		reap_turn(&v->gateway);
		if (clock_mono_ms() >= swept_ms + TICK_MS) {
			swept_ms = clock_mono_ms();
			peers_end_idle(v);
		}
		err = table_turn(&v->gateway);
	}
	return err;
}

static int run(struct daemon *d)
{
	struct uplink *up = gateway_show(d);
	int err = serve(d);

	uplink_stop(up);
	return err;
}

static void handle(void *ctx, const struct ctl_request *request,
		   struct ctl_reply *reply)
{
	struct server *v = ctx;

	http_answer(&v->view, request, reply);
}

static int add_fd(struct server *v, int *fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = fd};

	return epoll_ctl(v->epoll_fd, EPOLL_CTL_ADD, *fd, &ev) < 0
		       ? error_set(-errno, "epoll: %s", strerror(errno))
		       : 0;
}

static int open_listeners(struct server *v)
{
	const struct redis_options *o = v->gateway.options;
	int err = 0;

	if (o->port >= 0) {
		err = listener_tcp(o->bind ? o->bind : "127.0.0.1",
				   (uint16_t)o->port, &v->gateway.port,
				   &v->listener_fd[0]);
		if (!err)
			err = add_fd(v, &v->listener_fd[0]);
	}
	if (!err && o->unix_path) {
		err = listener_unix(o->unix_path, &v->listener_fd[1]);
		if (!err)
			err = add_fd(v, &v->listener_fd[1]);
	}
	return err;
}

static void set_limits(struct redis_options *o)
{
	if (!o->clients_max)
		o->clients_max = REDIS_CLIENTS_DEFAULT;
	o->clients_max = bound_clients(o->clients_max);
	if (!o->query_bytes_max)
		o->query_bytes_max = REDIS_QUERY_BYTES_DEFAULT;
	if (!o->output_bytes_max)
		o->output_bytes_max = REDIS_OUTPUT_BYTES_DEFAULT;
	if (!o->clients_bytes_max)
		o->clients_bytes_max = REDIS_CLIENTS_BYTES_DEFAULT;
}

static int open_gateway(struct daemon *d)
{
	struct redis_options *o = d->self;
	struct server *v = calloc(1, sizeof(*v));
	int err;

	if (!v)
		return error_set(-ENOMEM, "no memory for the gateway");
	d->served = v;
	v->daemon = d;
	set_limits(o);
	list_init(&v->gateway.clients);
	v->listener_fd[0] = v->listener_fd[1] = -1;
	v->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	v->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (v->epoll_fd < 0)
		return error_set(-errno, "epoll: %s", strerror(errno));
	v->gateway.options = o;
	v->gateway.start_ms = clock_mono_ms();
	v->gateway.scratch.limit = v->gateway.made.limit = o->output_bytes_max;
	hist_init(&v->gateway.latency);
	reap_wake(&v->gateway); /* keys of before may have an end */
	err = bound_check_address(o);
	if (!err)
		err = http_view_init(&v->view, o->table);
	if (!err)
		err = table_open(&v->gateway, d);
	if (!err)
		err = add_fd(v, &d->signal_fd);
	if (!err)
		err = open_listeners(v);
	if (o->port >= 0)
		o->port = v->gateway.port;
	if (!err)
		http_publish(&v->view, &v->gateway);
	return err;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		(void)close(fd); /* nothing was written that could be lost */
}

static int close_gateway(struct daemon *d)
{
	struct server *v = d->served;

	if (!v)
		return 0;
	while (!list_is_empty(&v->gateway.clients))
		peer_end(container_of(container_of(v->gateway.clients.next,
						   struct client, link),
				      struct peer, client));
	if (v->gateway.options && v->gateway.options->unix_path &&
	    v->listener_fd[1] >= 0)
		(void)unlink(v->gateway.options->unix_path);
	for (unsigned i = 0; i < ARRAY_LEN(v->listener_fd); i++)
		close_fd(v->listener_fd[i]);
	close_fd(v->spare_fd);
	close_fd(v->epoll_fd);
	reply_release(&v->gateway.scratch);
	reply_release(&v->gateway.made);
	table_close(&v->gateway);
	http_view_release(&v->view);
	free(v);
	return 0;
}

static int allow(struct daemon *d)
{
	const struct redis_options *o = d->self;
	int err = confine_add_parent(&d->confine, CONFINE_SOCKET, o->unix_path);

	if (err || !o->http)
		return err;
	if (!strchr(o->http, '/')) {
		d->options.listen = o->http;
		/* No token comes there, and nothing of the table is shown. */
		d->options.is_insecure = true;
		return 0;
	}
	if (strlen(o->http) >= sizeof(d->socket))
		return error_set(-ENAMETOOLONG, "the path of --http is too "
						"long");
	(void)snprintf(d->socket, sizeof(d->socket), "%s", o->http);
	return confine_add_parent(&d->confine, CONFINE_SOCKET, d->socket);
}

const struct daemon_kind redis_daemon = {
	.what = "a gateway",
	.handle = handle,
	.allow = allow,
	.open = open_gateway,
	.run = run,
	.close = close_gateway,
};
