/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that attach. Nobody gets anything before the kernel has
 * said who he is and he has shown the token. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/log.h"
#include "broker.h"
#include "pager_priv.h"
#include "peer.h"
#include "place.h"
#include "uffd.h"

int run_attach_open(struct pager *p)
{
	int err;

	p->listen = run_place_listen(&p->start->place);
	if (p->listen < 0)
		return p->listen;
	err = run_pager_watch(p, p->listen, &p->listen);
	if (err)
		(void)close(p->listen);
	return err;
}

/* ---- places -------------------------------------------------------------- */

static void hang_up(struct pager *p, struct attachment *c)
{
	if (c->fd < 0)
		return;
	(void)epoll_ctl(p->epoll, EPOLL_CTL_DEL, c->fd, NULL);
	(void)close(c->fd);
	c->fd = -1;
}

static void attachment_close(struct pager *p, struct attachment *c)
{
	hang_up(p, c);
	run_share_put(c->share);
	*c = (struct attachment){.fd = -1};
	/* Who waits outside is still there. */
	if (p->is_attach_full && run_pager_watch(p, p->listen, &p->listen) == 0)
		p->is_attach_full = false;
}

static bool is_overdue(const struct attachment *c, uint64_t now_ns)
{
	uint64_t ms = c->state == ATTACH_SILENT ? RUN_HELLO_MS : RUN_ATTACH_MS;

	return c->state != ATTACH_NONE && now_ns - c->since_ns > ms * 1000000;
}

void run_attach_sweep(struct pager *p)
{
	uint64_t now = clock_mono_ns();

	for (unsigned i = 0; i < RUN_PENDING_HELLOS && p->is_attach_full; i++)
		if (is_overdue(&p->attachment[i], now))
			attachment_close(p, &p->attachment[i]);
}

static struct attachment *find_place(struct pager *p)
{
	for (unsigned i = 0; i < RUN_PENDING_HELLOS; i++)
		if (p->attachment[i].state == ATTACH_NONE)
			return &p->attachment[i];
	return NULL;
}

/* ---- messages ------------------------------------------------------------ */

static int answer(struct pager *p, const struct attachment *c, int err,
		  const int *fd, unsigned count)
{
	struct run_welcome w = {
		.magic = RUN_MAGIC,
		.err = err,
		.buffer_bytes = (uint64_t)p->writeback.total * RUN_BATCH_PAGES *
				RUN_PAGE_BYTES,
		.min_bytes = p->options.min_bytes,
		.has_uffd_dev = count > 1,
		.bell_page = c->bell_page,
	};

	return fds_send(c->fd, &w, sizeof(w), fd, count, MSG_DONTWAIT);
}

/* A message of that many bytes with `fd_count` descriptors, at most 1. */
static int receive(int sock, void *bytes, size_t len, int *fd,
		   unsigned fd_count)
{
	unsigned count;
	int err = fds_receive(sock, bytes, len, fd, fd_count, &count,
			      MSG_DONTWAIT);

	return !err && count != fd_count ? -EPROTO : err;
}

/* In a time that does not tell how many bytes are right. */
static bool is_token(const uint8_t *a, const uint8_t *b)
{
	uint8_t differs = 0;

	for (unsigned i = 0; i < RUN_TOKEN_BYTES; i++)
		differs |= a[i] ^ b[i];
	return differs == 0;
}

/* ---- steps --------------------------------------------------------------- */

void run_attach_accept(struct pager *p)
{
	struct attachment *c = find_place(p);
	socklen_t len = sizeof(struct ucred);
	struct ucred cred;
	int fd;

	if (!c) {
		/* The kernel keeps them; asking again and again would not help.
		 */
		(void)epoll_ctl(p->epoll, EPOLL_CTL_DEL, p->listen, NULL);
		p->is_attach_full = true;
		return;
	}
	fd = accept4(p->listen, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0 ||
	    !run_peer_is_allowed(cred.uid, cred.pid, p->options.user->uid,
				 p->start->supervisor)) {
		count(&p->stats->refused, 1);
		(void)close(fd);
		return;
	}
	if (run_pager_watch(p, fd, c) != 0) {
		(void)close(fd);
		return;
	}
	*c = (struct attachment){.state = ATTACH_SILENT,
				 .fd = fd,
				 .pid = cred.pid,
				 .since_ns = clock_mono_ns()};
}

static bool is_bell_taken(const struct pager *p, const struct attachment *c)
{
	for (unsigned i = 0; i < RUN_PENDING_HELLOS; i++)
		if (&p->attachment[i] != c &&
		    p->attachment[i].state == ATTACH_FORKED &&
		    p->attachment[i].bell_page == c->bell_page)
			return true;
	return false;
}

/* A page that no other attachment has. With 64 of them and 2^18 pages, one in
 * 4,000 is taken: then the next ones are tried. */
static bool choose_bell(const struct pager *p, struct attachment *c)
{
	uint32_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return false;
	do {
		c->bell_page = (uint32_t)(1 + number++ % (RUN_BELL_PAGES - 1));
	} while (is_bell_taken(p, c));
	return true;
}

/* The first message; from then on it has a share. */
static int take_hello(struct pager *p, struct attachment *c)
{
	struct run_hello h;
	int err = receive(c->fd, &h, sizeof(h), NULL, 0);
	int fd[2] = {-1, p->start->uffd_dev};
	bool is_new;

	if (err)
		return err;
	if (h.magic != RUN_MAGIC || !is_token(h.token, p->start->token)) {
		count(&p->stats->refused, 1);
		return -EACCES;
	}
	if (h.kind != RUN_HELLO_NEW && h.kind != RUN_HELLO_FORKED)
		return -EPROTO;
	is_new = h.kind == RUN_HELLO_NEW;
	if (!is_new && !choose_bell(p, c))
		return -EIO;
	err = run_share_create(p->writeback.total, &c->share, &fd[0]);
	if (err)
		return err;
	if (p->tiers.is_on)
		run_share_set_node(c->share, p->tiers.share_node);
	run_share_channel(c->share)->may_move = p->start->can_move;
	c->state = is_new ? ATTACH_NEW : ATTACH_FORKED;
	c->since_ns = clock_mono_ns();
	err = answer(p, c, 0, fd, is_new && fd[1] >= 0 ? 2 : 1);
	(void)close(fd[0]);
	if (!err && !is_new)
		hang_up(p, c);
	return err;
}

/* The second one of a new process. */
static int take_range(struct pager *p, struct attachment *c)
{
	struct run_range r;
	struct space *s;
	int fd = -1;
	int err = receive(c->fd, &r, sizeof(r), &fd, 1);

	if (err)
		return err;
	err = -EPROTO;
	if (r.magic != RUN_MAGIC || !r.start || r.start % RUN_RANGE_ALIGN ||
	    r.start > 1ull << 47)
		goto err_close;
	/* Only then it is one. */
	err = run_broker_enable(p->broker, fd);
	/* Whoever sent it, we do not wait in it. */
	if (!err && fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
		err = -errno;
	if (!err)
		err = run_uffd_register(fd, r.start, RUN_RANGE_BYTES);
	if (err)
		goto err_close;
	/* A process that called exec: its old memory is gone. Soon, not now:
	 * events that were read already may still name it. */
	p->sweep_ns = 0;
	err = run_space_create(p, fd, r.start, &s);
	if (err)
		goto err_close;
	run_space_set_share(p, s, c->share, c->pid);
	return 0;
err_close:
	(void)close(fd);
	return err;
}

void run_attach_read(struct pager *p, struct attachment *c)
{
	bool is_first = c->state == ATTACH_SILENT;
	int err = is_first ? take_hello(p, c) : take_range(p, c);

	if (err == -EAGAIN || (is_first && !err))
		return;
	if (!is_first || err != -EPIPE)
		(void)!answer(p, c, err, NULL, 0);
	attachment_close(p, c);
}

/* Not by the process's number: in a namespace of its own a process can have any
 * that it likes. And who guesses has one try. */
int run_attach_bind(struct pager *p, struct space *s, uint64_t bell_page)
{
	for (unsigned i = 0; i < RUN_PENDING_HELLOS && !s->has_misrung; i++) {
		struct attachment *c = &p->attachment[i];

		if (c->state != ATTACH_FORKED || c->bell_page != bell_page)
			continue;
		run_space_set_share(p, s, c->share, c->pid);
		attachment_close(p, c);
		return 0;
	}
	s->has_misrung = true;
	return -ENOENT;
}
