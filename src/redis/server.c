/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets, epoll and signals around the sessions: one thread. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "command.h"
#include "door.h"
#include "error.h"
#include "log.h"
#include "session.h"

enum {
	EVENTS_PER_TURN = 64,
	TICK_MS = 1000,
};

/* A session with its socket. */
struct peer {
	struct session session;
	struct server *server;
	int fd;
	uint32_t events; /* that epoll watches for */
	bool is_over;	 /* the connection */
};

struct server {
	struct gateway gateway;
	int epoll_fd;
	int signal_fd;
	int door_fd[2]; /* TCP, unix; -1: none */
	bool is_stopping;
};

/* ---- clients ------------------------------------------------------------ */

static void peer_end(struct peer *p)
{
	(void)close(p->fd); /* epoll forgets it, too */
	p->server->gateway.session_count--;
	session_release(&p->session);
	free(p);
}

static void watch(struct peer *p)
{
	const struct session *s = &p->session;
	struct epoll_event ev = {.data.ptr = p};

	if (session_unsent(s))
		ev.events |= EPOLLOUT;
	if (!s->is_ending && !session_is_full(s))
		ev.events |= EPOLLIN;
	if (ev.events == p->events)
		return;
	p->events = ev.events;
	/* Both are ours and the file is there, so it cannot fail. */
	(void)epoll_ctl(p->server->epoll_fd, EPOLL_CTL_MOD, p->fd, &ev);
}

/* False: the connection is over. */
static bool peer_send(struct peer *p)
{
	struct session *s = &p->session;

	while (session_unsent(s)) {
		ssize_t n = send(p->fd, s->out.buf + s->out_at,
				 session_unsent(s), MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		p->server->gateway.stats.bytes_out += (uint64_t)n;
		session_sent(s, (size_t)n);
	}
	return !s->is_ending && !s->out.is_lost;
}

static bool peer_receive(struct peer *p)
{
	char *at;
	size_t space;
	ssize_t n;

	if (session_space(&p->session, &at, &space)) {
		log_warn("redis", "no memory for a client's command");
		return false;
	}
	n = recv(p->fd, at, space, 0);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n == 0)
		return false;
	session_filled(&p->server->gateway, &p->session, (size_t)n);
	return true;
}

/* The first half of a turn: reads, and collects what can run together. */
static void peer_take(struct peer *p, uint32_t events)
{
	if (events & EPOLLIN)
		p->is_over = !peer_receive(p);
	else if (events & (EPOLLHUP | EPOLLERR))
		p->is_over = true;
}

/* The second half, when everything that was collected is answered. */
static void peer_answer(struct peer *p)
{
	struct session *s = &p->session;
	bool goes_on = !p->is_over && peer_send(p);

	/* Now that answers were read, what waited can run. */
	while (goes_on && s->in_at < s->in_len && !session_is_full(s)) {
		size_t before = s->in_at;

		session_run(&p->server->gateway, s);
		batch_flush(&p->server->gateway);
		goes_on = peer_send(p);
		if (s->in_at == before)
			break;
	}
	if (goes_on)
		watch(p);
	else
		peer_end(p);
}

/* ---- doors -------------------------------------------------------------- */

static void refuse(struct server *v, int fd)
{
	static const char words[] = "-ERR max number of clients reached\r\n";

	v->gateway.stats.connections_refused++;
	(void)!send(fd, words, sizeof(words) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	(void)close(fd); /* it was told, if it listens */
}

static void welcome(struct server *v, int fd, const char *address)
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
	session_init(&p->session, &v->gateway, address);
	ev.data.ptr = p;
	if (epoll_ctl(v->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
		peer_end(p);
}

static void door_ready(struct server *v, int door_fd)
{
	char address[SESSION_ADDRESS_MAX];

	for (int i = 0; i < EVENTS_PER_TURN; i++) {
		int fd = door_accept(door_fd, address, sizeof(address));

		if (fd < 0)
			return;
		if (v->gateway.session_count >= v->gateway.options->clients_max)
			refuse(v, fd);
		else
			welcome(v, fd, address);
	}
}

/* ---- life --------------------------------------------------------------- */

static void end_idle(struct server *v)
{
	uint64_t limit_ms = 1000ull * v->gateway.options->idle_timeout_s;
	struct list *head = &v->gateway.sessions, *at = head->next;
	uint64_t now_ms = gateway_now_ms();

	while (limit_ms && at != head) {
		struct session *s = container_of(at, struct session, link);

		at = at->next;
		if (now_ms > s->active_ms + limit_ms)
			peer_end(container_of(s, struct peer, session));
	}
}

static bool is_peer(const struct server *v, const void *what)
{
	return what != &v->signal_fd && what != &v->door_fd[0] &&
	       what != &v->door_fd[1];
}

static void serve(struct server *v)
{
	struct epoll_event ev[EVENTS_PER_TURN];
	uint64_t swept_ms = gateway_now_ms();

	while (!v->is_stopping) {
		int n = epoll_wait(v->epoll_fd, ev, EVENTS_PER_TURN,
				   v->gateway.reaper.is_awake ? REAP_MS
							      : TICK_MS);

		for (int i = 0; i < n; i++) {
			void *what = ev[i].data.ptr;

			if (what == &v->signal_fd)
				v->is_stopping = true;
			else if (what == &v->door_fd[0] ||
				 what == &v->door_fd[1])
				door_ready(v, *(int *)what);
			else
				peer_take(what, ev[i].events);
		}
		batch_flush(&v->gateway);
		for (int i = 0; i < n; i++)
			if (is_peer(v, ev[i].data.ptr))
				peer_answer(ev[i].data.ptr);
		reap_turn(&v->gateway);
		if (gateway_now_ms() >= swept_ms + TICK_MS) {
			swept_ms = gateway_now_ms();
			end_idle(v);
		}
	}
}

static int add_fd(struct server *v, int *fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = fd};

	return epoll_ctl(v->epoll_fd, EPOLL_CTL_ADD, *fd, &ev) < 0
		       ? error_set(-errno, "epoll: %s", strerror(errno))
		       : 0;
}

static int open_doors(struct server *v)
{
	const struct redis_options *o = v->gateway.options;
	int err = 0;

	if (o->port >= 0) {
		err = door_tcp(o->bind ? o->bind : "127.0.0.1",
			       (uint16_t)o->port, &v->gateway.port,
			       &v->door_fd[0]);
		if (!err)
			err = add_fd(v, &v->door_fd[0]);
	}
	if (!err && o->unix_path) {
		err = door_unix(o->unix_path, &v->door_fd[1]);
		if (!err)
			err = add_fd(v, &v->door_fd[1]);
	}
	return err;
}

static int start(struct server *v)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	v->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	v->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (v->epoll_fd < 0 || v->signal_fd < 0)
		return error_set(-errno, "epoll: %s", strerror(errno));
	return add_fd(v, &v->signal_fd);
}

static void stop(struct server *v)
{
	struct list *head = &v->gateway.sessions;

	while (!list_is_empty(head))
		peer_end(container_of(
			container_of(head->next, struct session, link),
			struct peer, session));
	for (unsigned i = 0; i < ARRAY_LEN(v->door_fd); i++)
		if (v->door_fd[i] >= 0)
			(void)close(v->door_fd[i]);
	if (v->gateway.options->unix_path && v->door_fd[1] >= 0)
		(void)unlink(v->gateway.options->unix_path);
	if (v->signal_fd >= 0)
		(void)close(v->signal_fd);
	if (v->epoll_fd >= 0)
		(void)close(v->epoll_fd);
	reply_release(&v->gateway.scratch);
	reply_release(&v->gateway.made);
}

int redis_serve(const struct redis_options *options, redis_ready_fn ready,
		void *ctx)
{
	struct redis_options o = *options;
	struct aq_kv_client_options client = {.flags = AQ_KV_DIRECT_READS};
	struct server *v = calloc(1, sizeof(*v));
	int err;

	if (!v)
		return error_set(-ENOMEM, "no memory for the gateway");
	if (!o.clients_max)
		o.clients_max = REDIS_CLIENTS_DEFAULT;
	v->epoll_fd = v->signal_fd = v->door_fd[0] = v->door_fd[1] = -1;
	v->gateway.kv = o.kv;
	v->gateway.options = &o;
	v->gateway.start_ms = gateway_now_ms();
	reap_wake(&v->gateway); /* keys of before may have an end */
	list_init(&v->gateway.sessions);
	err = aq_kv_client_open(o.kv, &client, &v->gateway.client);
	if (!err) {
		err = start(v);
		if (!err)
			err = open_doors(v);
		if (!err) {
			ready(ctx, v->gateway.port);
			serve(v);
		}
		stop(v);
		aq_kv_client_close(v->gateway.client);
	}
	free(v);
	return err;
}
