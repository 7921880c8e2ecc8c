/* SPDX-License-Identifier: Apache-2.0 */
/* Clients with their sockets: what they send is read, answers are sent, and
 * they are ended when they are over, idle, or have too much. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "bound.h"
#include "command.h"
#include "server_priv.h"

void peer_end(struct peer *p)
{
	(void)close(p->fd); /* epoll forgets it, too */
	client_release(&p->member->gateway, &p->client);
	(void)atomic_fetch_sub_explicit(&p->member->load, 1,
					memory_order_relaxed);
	(void)atomic_fetch_sub_explicit(&p->member->server->group.client_count,
					1, memory_order_relaxed);
	free(p);
}

static void watch(struct peer *p)
{
	const struct client *s = &p->client;
	struct epoll_event ev = {.data.ptr = p};

	if (client_unsent(s) && !s->resume_ms)
		ev.events |= EPOLLOUT;
	if (!s->is_ending && !client_is_full(s) && !s->resume_ms)
		ev.events |= EPOLLIN;
	if (ev.events == p->events)
		return;
	p->events = ev.events;
	/* Both are ours and the file is there, so it cannot fail. */
	(void)epoll_ctl(p->member->epoll_fd, EPOLL_CTL_MOD, p->fd, &ev);
}

/* False: the connection is over. */
static bool peer_send(struct peer *p)
{
	struct client *s = &p->client;

	if (s->out.is_lost) {
		p->member->gateway.stats.output_limit++;
		return false;
	}
	if (s->resume_ms)
		return true;
	while (client_unsent(s)) {
		ssize_t n = send(p->fd, s->out.buf + s->out_at,
				 client_unsent(s), MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		p->member->gateway.stats.bytes_out += (uint64_t)n;
		client_sent(s, (size_t)n);
	}
	return !s->is_ending;
}

static bool peer_receive(struct peer *p)
{
	char *at;
	size_t space;
	ssize_t n;

	struct gateway *g = &p->member->gateway;
	int err = client_space(g, &p->client, &at, &space);

	if (err == -E2BIG)
		g->stats.query_limit++;
	if (err) {
		if (err == -ENOMEM)
			log_warn("redis", "no memory for a client's command");
		return false;
	}
	n = recv(p->fd, at, space, 0);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n == 0)
		return false;
	client_filled(g, &p->client, (size_t)n);
	bound_account(g, &p->client);
	return true;
}

void peer_take(struct peer *p, uint32_t events)
{
	if (events & EPOLLIN)
		p->is_over = !peer_receive(p);
	else if (events & (EPOLLHUP | EPOLLERR))
		p->is_over = true;
}

void peer_answer(struct peer *p)
{
	struct client *s = &p->client;
	bool goes_on = !p->is_over && peer_send(p);

	/* Now that answers were read, what waited can run. */
	while (goes_on && s->in_at < s->in_len && !client_is_full(s) &&
	       !s->resume_ms) {
		size_t before = s->in_at;

		client_run(&p->member->gateway, s);
		batch_flush(&p->member->gateway);
		goes_on = peer_send(p);
		if (s->in_at == before)
			break;
	}
	bound_account(&p->member->gateway, s);
	if (goes_on)
		watch(p);
	else
		peer_end(p);
}

void peers_resume(struct member *m)
{
	struct list *head = &m->gateway.clients, *at = head->next;
	uint64_t mono_ms = clock_mono_ms();

	while (m->gateway.paused_count && at != head) {
		struct client *s = container_of(at, struct client, link);

		at = at->next;
		if (bound_resume(&m->gateway, s, mono_ms))
			peer_answer(container_of(s, struct peer, client));
	}
}

void peers_end_largest(struct member *m)
{
	struct client *s;

	while ((s = bound_largest(&m->gateway))) {
		m->gateway.stats.evicted++;
		log_info("redis",
			 "client %s is ended: its buffers have %llu "
			 "bytes, all clients' more than they may",
			 s->address, (unsigned long long)s->counted_bytes);
		peer_end(container_of(s, struct peer, client));
	}
}

void peers_end_idle(struct member *m)
{
	uint64_t limit_ms = 1000ull * m->gateway.options->idle_timeout_s;
	struct list *head = &m->gateway.clients, *at = head->next;
	uint64_t now_ms = clock_mono_ms();

	while (limit_ms && at != head) {
		struct client *s = container_of(at, struct client, link);

		at = at->next;
		if (now_ms > s->active_ms + limit_ms)
			peer_end(container_of(s, struct peer, client));
	}
}
