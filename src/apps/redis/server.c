/* SPDX-License-Identifier: Apache-2.0 */
/* The gateway as a daemon: what it listens on, and its threads. */
#include <errno.h>
#include <fcntl.h>
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
#include "server_priv.h"
#include "show.h"
#include "uplink/uplink.h"

enum {
	ACCEPTS_PER_TURN = 64,
	PAUSED_LOOK_MS = 100,	 /* while listeners wait */
	LISTENER_PAUSE_MS = 200, /* without a descriptor for a client */
};

static const struct redis_options *options_of(const struct server *v)
{
	return v->daemon->self;
}

/* ---- listeners ---------------------------------------------------------- */

static void refuse(struct server *v, int fd)
{
	static const char words[] = "-ERR max number of clients reached\r\n";

	v->member[0].gateway.stats.connections_refused++;
	(void)!send(fd, words, sizeof(words) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	(void)close(fd); /* it was told, if it listens */
}

/* The one with fewest clients; those that have as few take turns. */
static struct member *choose(struct server *v)
{
	struct member *best = NULL;
	uint32_t fewest = UINT32_MAX;

	v->chosen++;
	for (uint32_t i = 0; i < v->member_count; i++) {
		struct member *m =
			&v->member[(v->chosen + i) % v->member_count];
		uint32_t load =
			atomic_load_explicit(&m->load, memory_order_relaxed);

		if (!best || load < fewest) {
			fewest = load;
			best = m;
		}
	}
	return best;
}

/* Whether epoll looks at the listeners. */
static void watch_listeners(struct server *v, bool is_open)
{
	for (unsigned i = 0; i < ARRAY_LEN(v->listener_fd); i++) {
		struct epoll_event ev = {.events = is_open ? EPOLLIN : 0,
					 .data.ptr = &v->listener_fd[i]};

		if (v->listener_fd[i] >= 0)
			(void)epoll_ctl(v->member[0].epoll_fd, EPOLL_CTL_MOD,
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

	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		int fd = listener_accept(listener_fd, address, sizeof(address));

		if (fd == -EMFILE || fd == -ENFILE || fd == -ENOBUFS ||
		    fd == -ENOMEM)
			out_of_descriptors(v, listener_fd);
		if (fd < 0)
			return;
		if (atomic_load_explicit(&v->group.client_count,
					 memory_order_relaxed) >=
		    options_of(v)->clients_max)
			refuse(v, fd);
		else
			member_give(choose(v), fd, address);
	}
}

void server_ready(struct server *v, int *fd)
{
	if (fd == &v->daemon->signal_fd)
		(void)daemon_is_ending(v->daemon, 0); /* ->signal */
	else
		listener_ready(v, *fd);
}

int server_wait_ms(const struct server *v, int ms)
{
	return v->listeners_ms && ms > PAUSED_LOOK_MS ? PAUSED_LOOK_MS : ms;
}

void server_turn(struct server *v)
{
	resume_listeners(v);
}

/* ---- life --------------------------------------------------------------- */

static int run(struct daemon *d)
{
	struct server *v = d->served;
	struct uplink *up = gateway_show(d);
	int err = members_start(v), other;

	if (!err)
		err = member_serve(&v->member[0]);
	if (err)
		(void)snprintf(v->member[0].why, sizeof(v->member[0].why), "%s",
			       error_last());
	other = members_stop(v);
	if (err)
		err = error_set(err, "%s", v->member[0].why);
	uplink_stop(up);
	return err ? err : other;
}

static void handle(void *ctx, const struct ctl_request *request,
		   struct ctl_reply *reply)
{
	struct server *v = ctx;

	http_answer(&v->view, request, reply);
}

static int open_listeners(struct server *v)
{
	const struct redis_options *o = options_of(v);
	struct member *m = &v->member[0];
	int err = 0;

	if (o->port >= 0) {
		err = listener_tcp(o->bind ? o->bind : "127.0.0.1",
				   (uint16_t)o->port, &m->gateway.port,
				   &v->listener_fd[0]);
		if (!err)
			err = member_watch(m, &v->listener_fd[0]);
	}
	if (!err && o->unix_path) {
		err = listener_unix(o->unix_path, &v->listener_fd[1]);
		if (!err)
			err = member_watch(m, &v->listener_fd[1]);
	}
	for (uint32_t i = 1; i < v->member_count; i++)
		v->member[i].gateway.port = m->gateway.port;
	return err;
}

static void set_limits(struct redis_options *o)
{
	if (!o->threads)
		o->threads = 1;
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

static int open_members(struct server *v)
{
	int err = 0;

	for (uint32_t i = 0; i < v->member_count && !err; i++)
		err = member_open(&v->member[i], v, i);
	/* Keys of before may have an end. */
	if (!err)
		reap_wake(&v->member[0].gateway);
	return err;
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
	v->listener_fd[0] = v->listener_fd[1] = -1;
	v->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	v->member = calloc(o->threads, sizeof(*v->member));
	if (!v->member)
		return error_set(-ENOMEM, "no memory for the gateway");
	v->member_count = o->threads;
	err = group_init(&v->group);
	if (!err)
		err = bound_check_address(o);
	if (!err)
		err = http_view_init(&v->view, o->table, o->threads);
	if (!err)
		err = open_members(v);
	if (!err)
		err = member_watch(&v->member[0], &d->signal_fd);
	if (!err)
		err = open_listeners(v);
	if (!err && o->port >= 0)
		o->port = v->member[0].gateway.port;
	for (uint32_t i = 0; i < v->member_count && !err; i++)
		http_publish(&v->view, i, &v->member[i].gateway);
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
	for (uint32_t i = 0; i < v->member_count; i++)
		member_close(&v->member[i]);
	if (v->listener_fd[1] >= 0)
		(void)unlink(options_of(v)->unix_path);
	for (unsigned i = 0; i < ARRAY_LEN(v->listener_fd); i++)
		close_fd(v->listener_fd[i]);
	close_fd(v->spare_fd);
	http_view_release(&v->view);
	if (v->member_count)
		group_release(&v->group);
	free(v->member);
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
