/* SPDX-License-Identifier: Apache-2.0 */
/* A board's life, its sleep, and its list of links. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/relax.h"
#include "board_priv.h"
#include "slot.h"

enum {
	EVENT_MAX = 64,
};

/* Descriptors of the driver are told from pointers by this bit. */
#define WATCH_BIT (1ull << 63)

/* ---- the env ------------------------------------------------------------ */

static struct os_board *board_of(struct env *env)
{
	return container_of(env, struct os_board, env);
}

static uint64_t env_now(struct env *env)
{
	return board_now(board_of(env));
}

static void env_bytes(struct env *env, void *buf, size_t len_bytes)
{
	entropy_get(&board_of(env)->entropy, buf, len_bytes);
}

static void env_rest(struct env *env)
{
	relax_briefly();
}

static const struct env_ops env_ops = {
	.now_ns = env_now,
	.random = env_bytes,
	.relax = env_rest,
};

/* ---- life --------------------------------------------------------------- */

static int epoll_add(struct os_board *b, int fd, uint64_t mark)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLRDHUP,
				 .data.u64 = mark};

	return epoll_ctl(b->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static uint64_t mark_of(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static int open_sockets(struct os_board *b, const struct os_board_config *cfg)
{
	int err;

	b->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (b->epoll_fd < 0)
		return -errno;
	err = trust_load(&b->trust);
	if (!err)
		err = rack_sockets_open(cfg->rack, &b->sockets);
	if (!err)
		err = slot_switch_listen(&b->sockets, cfg->name, &b->listen_fd);
	if (err == -EADDRINUSE)
		return error_set(err, "rack %s has a switch '%s' already",
				 cfg->rack, cfg->name);
	if (!err)
		err = epoll_add(b, b->listen_fd, mark_of(&b->listen_fd));
	return err;
}

int os_board_open(const struct os_board_config *cfg, struct os_board **out)
{
	struct os_board *b;
	int err;

	if (!cfg->name[0] || strlen(cfg->name) >= BOARD_NAME_MAX ||
	    strchr(cfg->name, '/'))
		return error_set(-EINVAL,
				 "a switch's name has 1 to %d characters and "
				 "no slash",
				 BOARD_NAME_MAX - 1);
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->env.ops = &env_ops;
	b->epoll_fd = b->listen_fd = b->sockets.dir_fd = -1;
	snprintf(b->name, sizeof(b->name), "%s", cfg->name);
	b->ops = cfg->ops;
	b->ctx = cfg->ctx;
	b->stats = &b->own_stats;
	os_clock_init(&b->clock);
	err = bell_init(&b->bell);
	if (err) {
		free(b);
		return err;
	}
	err = open_sockets(b, cfg);
	if (err) {
		os_board_close(b);
		return err;
	}
	*out = b;
	return 0;
}

static void link_free(struct os_link *l)
{
	struct os_link **at = &l->board->links;

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	l->board->link_count--;
	l->ops->free(l);
}

static void link_down(struct os_link *l)
{
	if (l->up) {
		l->up = false;
		l->board->ops->link_down(l->board->ctx, l);
	}
	link_free(l);
}

void os_board_close(struct os_board *b)
{
	if (!b)
		return;
	while (b->links)
		link_down(b->links);
	if (b->listen_fd >= 0)
		slot_switch_release(&b->sockets, b->name, b->listen_fd);
	rack_sockets_close(&b->sockets);
	if (b->epoll_fd >= 0)
		close(b->epoll_fd);
	bell_release(&b->bell);
	free(b);
}

struct env *os_board_env(struct os_board *b)
{
	return &b->env;
}

void os_board_set_stats(struct os_board *b, struct os_board_stats *stats)
{
	*stats = *b->stats;
	b->stats = stats;
}

/* ---- links -------------------------------------------------------------- */

int board_link_add(struct os_board *b, struct os_link *l)
{
	int err;

	if (b->link_count == BOARD_LINK_MAX)
		return -ENOSPC;
	err = l->fd >= 0 ? epoll_add(b, l->fd, mark_of(l)) : 0;
	if (err)
		return err;
	l->board = b;
	l->next = b->links;
	b->links = l;
	b->link_count++;
	return 0;
}

int board_link_up(struct os_link *l)
{
	int err = l->board->ops->link_up(l->board->ctx, l);

	if (!err)
		l->up = true;
	return err;
}

void board_link_doom(struct os_link *l)
{
	l->doomed = true;
	l->board->any_doomed = true;
}

static void reap(struct os_board *b)
{
	struct os_link *l = b->links;

	if (LIKELY(!b->any_doomed))
		return;
	b->any_doomed = false;
	while (l) {
		struct os_link *next = l->next;

		if (l->doomed)
			link_down(l);
		l = next;
	}
}

const char *os_link_name(const struct os_link *l)
{
	return l->name;
}

bool os_link_takes_hints(const struct os_link *l)
{
	return l->takes_hints;
}

bool os_link_claims(const struct os_link *l, uint8_t ips[2][16], uint32_t *slot)
{
	return board_cable_claims(l, ips, slot);
}

void os_link_set_user(struct os_link *l, void *user)
{
	l->user = user;
}

void *os_link_user(const struct os_link *l)
{
	return l->user;
}

void *os_link_driver(const struct os_link *l)
{
	return l->board->ctx;
}

HOT bool os_link_tx(struct os_link *l, const uint8_t *frame, size_t len_bytes,
		    const void *hint)
{
	return l->ops->tx(l, frame, len_bytes, hint);
}

bool os_link_has_room(const struct os_link *l)
{
	return l->ops->tx_begin;
}

HOT uint8_t *os_link_tx_begin(struct os_link *l, size_t len_bytes)
{
	return l->ops->tx_begin(l, len_bytes);
}

HOT void os_link_tx_end(struct os_link *l, size_t len_bytes)
{
	l->ops->tx_end(l, len_bytes);
}

HOT void os_link_flush(struct os_link *l)
{
	if (l->ops->flush)
		l->ops->flush(l);
}

/* ---- frames, events, sleep ---------------------------------------------- */

HOT unsigned os_board_poll(struct os_board *b, unsigned budget)
{
	unsigned n = 0;

	for (struct os_link *l = b->links; l; l = l->next)
		if (l->up || l->hidden)
			n += l->ops->poll(l, budget);
	bell_turn(&b->bell);
	/* Who waits for us on our own core lets us run at once. */
	if (n == 0)
		bell_set_place(&b->bell, (uint32_t)sched_getcpu() + 1);
	return n;
}

void os_board_nudge(struct os_board *b)
{
	uint64_t now_ns = board_now(b);

	for (struct os_link *l = b->links; l; l = l->next)
		if (l->up && l->ops->nudge)
			l->ops->nudge(l, now_ns);
}

static void accept_all(struct os_board *b)
{
	for (unsigned i = 0; i < OS_BACKLOG; i++) {
		int sock = accept4(b->listen_fd, NULL, NULL,
				   SOCK_NONBLOCK | SOCK_CLOEXEC);
		int err;

		if (sock < 0)
			return;
		err = board_cable_accept(b, sock);
		if (err)
			log_warn_limited(&b->log_limit, board_now(b), "os",
					 "a NIC cannot plug in: %s",
					 error_text(err));
	}
}

static void handle(struct os_board *b, const struct epoll_event *ev, int count)
{
	for (int i = 0; i < count; i++) {
		uint64_t mark = ev[i].data.u64;

		if (mark == mark_of(&b->listen_fd)) {
			accept_all(b);
		} else if (mark & WATCH_BIT) {
			b->ops->event(b->ctx, (int)(mark & ~WATCH_BIT));
		} else {
			struct os_link *l = (void *)(uintptr_t)mark;

			l->ops->event(l);
		}
	}
	/* Not before: later events may point to a link that is doomed. */
	reap(b);
}

static void tend(struct os_board *b)
{
	uint64_t now_ns = board_now(b);

	for (struct os_link *l = b->links; l; l = l->next)
		if (l->ops->tend)
			l->ops->tend(l, now_ns);
}

void os_board_events(struct os_board *b)
{
	struct epoll_event ev[EVENT_MAX];
	int n = epoll_wait(b->epoll_fd, ev, EVENT_MAX, 0);

	tend(b);
	handle(b, ev, n > 0 ? n : 0);
}

static bool any_ready(const struct os_board *b)
{
	for (struct os_link *l = b->links; l; l = l->next)
		if ((l->up || l->hidden) && l->ops->ready && l->ops->ready(l))
			return true;
	return false;
}

void os_board_sleep(struct os_board *b, uint64_t deadline_ns)
{
	struct epoll_event ev[EVENT_MAX];
	struct timespec timeout;
	uint64_t now_ns = board_now(b);
	uint64_t wait_ns;
	int n;

	if (deadline_ns <= now_ns)
		return;
	tend(b);
	reap(b);
	os_board_nudge(b);
	/* BELL-1 */
	bell_sleep(&b->bell, true);
	if (any_ready(b)) {
		bell_wake(&b->bell);
		return;
	}
	b->stats->sleeps++;
	wait_ns = u64_min(deadline_ns - now_ns, OS_SLEEP_MAX_NS);
	timeout.tv_sec = (time_t)(wait_ns / 1000000000ull);
	timeout.tv_nsec = (long)(wait_ns % 1000000000ull);
	n = epoll_pwait2(b->epoll_fd, ev, EVENT_MAX, &timeout, NULL);
	bell_wake(&b->bell);
	handle(b, ev, n > 0 ? n : 0);
}

int os_board_watch(struct os_board *b, int fd)
{
	return epoll_add(b, fd, WATCH_BIT | (uint32_t)fd);
}

void os_board_unwatch(struct os_board *b, int fd)
{
	(void)epoll_ctl(b->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}
