/* SPDX-License-Identifier: Apache-2.0 */
/* One thread of the gateway: epoll around its clients, turn after turn. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "command.h"
#include "daemon/daemon.h"
#include "server_priv.h"

enum {
	TICK_MS = 1000,
	PAUSED_LOOK_MS = 100, /* while clients wait */
};

/* ---- new clients --------------------------------------------------------- */

/* It ends without having begun. */
static void turn_away(struct peer *p)
{
	struct member *m = p->member;

	(void)close(p->fd);
	free(p);
	(void)atomic_fetch_sub_explicit(&m->load, 1, memory_order_relaxed);
	(void)atomic_fetch_sub_explicit(&m->server->group.client_count, 1,
					memory_order_relaxed);
}

static void begin(struct peer *p)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = p};
	int one = 1;

	/* Fails on a unix socket, which has no delay anyway. */
	(void)setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	p->events = EPOLLIN;
	client_init(&p->client, &p->member->gateway, p->address);
	if (epoll_ctl(p->member->epoll_fd, EPOLL_CTL_ADD, p->fd, &ev) < 0)
		peer_end(p);
}

void member_give(struct member *m, int fd, const char *address)
{
	struct peer *p = calloc(1, sizeof(*p));

	if (!p) {
		(void)close(fd);
		return;
	}
	p->member = m;
	p->fd = fd;
	(void)snprintf(p->address, sizeof(p->address), "%s", address);
	(void)atomic_fetch_add_explicit(&m->load, 1, memory_order_relaxed);
	(void)atomic_fetch_add_explicit(&m->server->group.client_count, 1,
					memory_order_relaxed);
	if (m->index == 0) {
		begin(p);
		return;
	}
	pthread_mutex_lock(&m->lock);
	p->next = m->accepted;
	m->accepted = p;
	pthread_mutex_unlock(&m->lock);
	/* It fails only if the thread has been woken often already. */
	(void)eventfd_write(m->gateway.wake_fd, 1);
}

static struct peer *take_accepted(struct member *m)
{
	struct peer *p;

	pthread_mutex_lock(&m->lock);
	p = m->accepted;
	m->accepted = NULL;
	pthread_mutex_unlock(&m->lock);
	return p;
}

static void wake(struct member *m)
{
	eventfd_t count;
	struct peer *next;

	(void)eventfd_read(m->gateway.wake_fd, &count); /* only to be quiet */
	for (struct peer *p = take_accepted(m); p; p = next) {
		next = p->next;
		begin(p);
	}
}

/* ---- turns --------------------------------------------------------------- */

static bool is_peer(const struct member *m, const void *what)
{
	const struct server *v = m->server;

	return what != &m->gateway.wake_fd && what != &v->daemon->signal_fd &&
	       what != &v->listener_fd[0] && what != &v->listener_fd[1];
}

/* Ends the turn of these clients, whose commands are collected. */
static void answer(struct member *m, const struct epoll_event *ev, int count)
{
	batch_flush(&m->gateway);
	for (int i = 0; i < count; i++)
		if (is_peer(m, ev[i].data.ptr))
			peer_answer(ev[i].data.ptr);
}

/* Clients whose commands fill a batch are answered before others are read: they
 * work with their answers meanwhile. */
static void handle_events(struct member *m, const struct epoll_event *ev,
			  int count)
{
	int answered = 0;

	for (int i = 0; i < count; i++) {
		void *what = ev[i].data.ptr;

		if (what == &m->gateway.wake_fd)
			wake(m);
		else if (!is_peer(m, what))
			server_ready(m->server, what);
		else
			peer_take(what, ev[i].events);
		if (m->gateway.batch_len >= BATCH_FULL) {
			answer(m, ev + answered, i + 1 - answered);
			answered = i + 1;
		}
	}
	answer(m, ev + answered, count - answered);
}

static int wait_ms(const struct member *m)
{
	/* What has changed since then is to be seen over HTTP, too. */
	if (m->gateway.paused_count ||
	    m->gateway.stats.commands != m->published_commands)
		return PAUSED_LOOK_MS;
	return m->gateway.reaper.is_awake ? REAP_MS : TICK_MS;
}

/* For who asks over HTTP. */
static void publish(struct member *m)
{
	uint64_t now_ms = clock_mono_ms();

	if (now_ms < m->published_ms + HTTP_PUBLISH_MS)
		return;
	m->published_ms = now_ms;
	m->published_commands = m->gateway.stats.commands;
	http_publish(&m->server->view, m->index, &m->gateway);
}

static int turn(struct member *m, const struct epoll_event *ev, int count)
{
	group_catch_up(&m->gateway);
	handle_events(m, ev, count);
	publish(m);
	peers_resume(m);
	peers_end_largest(m);
	if (m->index == 0)
		server_turn(m->server);
	reap_turn(&m->gateway);
	if (clock_mono_ms() >= m->swept_ms + TICK_MS) {
		m->swept_ms = clock_mono_ms();
		peers_end_idle(m);
	}
	return table_turn(&m->gateway);
}

static bool is_ending(const struct member *m)
{
	struct server *v = m->server;

	return atomic_load_explicit(&v->group.is_ending,
				    memory_order_relaxed) ||
	       (m->index == 0 && v->daemon->signal != 0);
}

int member_serve(struct member *m)
{
	struct epoll_event ev[MEMBER_EVENTS];
	int err = 0;

	m->swept_ms = clock_mono_ms();
	while (!err && !is_ending(m)) {
		int ms = wait_ms(m), n;

		if (m->index == 0)
			ms = server_wait_ms(m->server, ms);
		n = epoll_wait(m->epoll_fd, ev, MEMBER_EVENTS, ms);
		group_turn_begin(&m->server->group);
		err = turn(m, ev, n);
		group_turn_end(&m->server->group);
	}
	return err;
}

/* ---- life ---------------------------------------------------------------- */

int member_watch(struct member *m, int *fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = fd};

	return epoll_ctl(m->epoll_fd, EPOLL_CTL_ADD, *fd, &ev) < 0
		       ? error_set(-errno, "epoll: %s", strerror(errno))
		       : 0;
}

int member_open(struct member *m, struct server *v, uint32_t index)
{
	const struct redis_options *o = v->daemon->self;
	struct gateway *g = &m->gateway;
	int err;

	m->server = v;
	m->index = index;
	list_init(&g->clients);
	group_add(&v->group, g);
	g->options = o;
	g->start_ms = clock_mono_ms();
	g->scratch.limit = g->made.limit = o->output_bytes_max;
	hist_init(&g->latency);
	g->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	m->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	err = -pthread_mutex_init(&m->lock, NULL);
	if (err)
		return error_set(err, "threads: %s", strerror(-err));
	if (m->epoll_fd < 0 || g->wake_fd < 0)
		return error_set(-errno, "epoll: %s", strerror(errno));
	err = member_watch(m, &g->wake_fd);
	return err ? err : table_open(g, v->daemon);
}

static void close_fd(int fd)
{
	if (fd >= 0)
		(void)close(fd); /* nothing was written that could be lost */
}

void member_close(struct member *m)
{
	struct list *clients = &m->gateway.clients;
	struct peer *next;

	if (!m->server)
		return;
	for (struct peer *p = take_accepted(m); p; p = next) {
		next = p->next;
		turn_away(p);
	}
	while (!list_is_empty(clients))
		peer_end(container_of(
			container_of(clients->next, struct client, link),
			struct peer, client));
	close_fd(m->epoll_fd);
	close_fd(m->gateway.wake_fd);
	reply_release(&m->gateway.scratch);
	reply_release(&m->gateway.made);
	table_close(&m->gateway);
	(void)pthread_mutex_destroy(&m->lock); /* nobody has it */
}

/* Ends the other threads' waits. */
static void end_all(struct server *v)
{
	atomic_store_explicit(&v->group.is_ending, true, memory_order_relaxed);
	for (uint32_t i = 0; i < v->member_count; i++)
		(void)eventfd_write(v->member[i].gateway.wake_fd, 1);
}

static void *thread_main(void *arg)
{
	struct member *m = arg;

	m->err = member_serve(m);
	if (m->err) {
		(void)snprintf(m->why, sizeof(m->why), "%s", error_last());
		end_all(m->server);
	}
	return NULL;
}

int members_start(struct server *v)
{
	for (uint32_t i = 1; i < v->member_count; i++) {
		struct member *m = &v->member[i];
		int err = -pthread_create(&m->thread, NULL, thread_main, m);

		if (err)
			return error_set(err, "thread %u of the gateway: %s", i,
					 strerror(-err));
		m->is_running = true;
	}
	return 0;
}

int members_stop(struct server *v)
{
	int err = 0;

	end_all(v);
	for (uint32_t i = 1; i < v->member_count; i++) {
		struct member *m = &v->member[i];

		if (!m->is_running)
			continue;
		(void)pthread_join(m->thread, NULL); /* it is ours */
		m->is_running = false;
		if (m->err && !err)
			err = error_set(m->err, "%s", m->why);
	}
	return err;
}
