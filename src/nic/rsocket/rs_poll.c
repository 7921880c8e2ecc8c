/* SPDX-License-Identifier: Apache-2.0 */
/* rpoll and rselect, over sockets of this library and any other descriptors. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "rs_priv.h"

enum {
	FEW = 32, /* so many without an allocation */
};

struct entry {
	struct rsock *rs; /* NULL: a descriptor of the kernel */
	struct rs_sleeper sleeper;
};

struct set {
	struct pollfd *user;
	struct pollfd *kernel; /* what is slept on; one more at the end */
	struct entry *entries;
	nfds_t count;
	unsigned ours;
};

/* ---- states -------------------------------------------------------------- */

static short stream_events(struct rsock *rs)
{
	short e = 0;

	switch (rs->state) {
	case RS_NEW:
		return POLLOUT | POLLHUP;
	case RS_LISTENING:
		return rs_accept_ready(rs) ? POLLIN | POLLRDNORM : 0;
	case RS_CONNECTING:
		return 0;
	case RS_FAILED:
		return POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM | POLLERR |
		       POLLHUP;
	case RS_CONNECTED:
		break;
	}
	if (rs_can_recv(rs))
		e |= POLLIN | POLLRDNORM;
	if (rs->rd_shut || rs->peer_done)
		e |= POLLRDHUP;
	if (rs_can_send(rs))
		e |= POLLOUT | POLLWRNORM;
	/* Programs take it for the end of data, so data comes first. */
	if ((rs->peer_gone || rs->said_bye) && !rs->s.rx.ready)
		e |= POLLHUP;
	return e;
}

short rs_events(struct rsock *rs)
{
	if (rs->closed)
		return POLLNVAL;
	return rs->dgram ? rs_dgram_events(rs) : stream_events(rs);
}

static short look(struct rsock *rs, short wanted)
{
	return (short)(rs_events(rs) & (wanted | POLLERR | POLLHUP | POLLNVAL));
}

/* ---- one turn ------------------------------------------------------------ */

static int look_at_ours(struct set *s)
{
	int ready = 0;

	for (nfds_t i = 0; i < s->count; i++) {
		struct rsock *rs = s->entries[i].rs;

		if (!rs)
			continue;
		pthread_mutex_lock(&rs->lock);
		(void)rs_progress(rs);
		s->user[i].revents = look(rs, s->user[i].events);
		pthread_mutex_unlock(&rs->lock);
		ready += s->user[i].revents != 0;
	}
	return ready;
}

static int look_at_others(struct set *s, int found)
{
	for (nfds_t i = 0; i < s->count; i++) {
		if (s->entries[i].rs)
			continue;
		s->user[i].revents = s->kernel[i].revents;
		found += s->user[i].revents != 0;
	}
	return found;
}

/* Whoever is registered is woken by all that happens afterwards; false if
 * something happened before. */
static bool lie_down(struct set *s, int fd)
{
	bool quiet = true;

	for (nfds_t i = 0; i < s->count && quiet; i++) {
		struct entry *e = &s->entries[i];

		if (!e->rs)
			continue;
		pthread_mutex_lock(&e->rs->lock);
		rs_arm(e->rs);
		quiet = !rs_progress(e->rs) && !look(e->rs, s->user[i].events);
		if (quiet) {
			e->sleeper.fd = fd;
			list_append(&e->rs->sleepers, &e->sleeper.node);
			s->kernel[i].fd = rs_wait_fd(e->rs);
			s->kernel[i].events = POLLIN;
		}
		pthread_mutex_unlock(&e->rs->lock);
	}
	return quiet;
}

static void stand_up(struct set *s, int fd)
{
	for (nfds_t i = 0; i < s->count; i++) {
		struct entry *e = &s->entries[i];

		if (!e->rs)
			continue;
		pthread_mutex_lock(&e->rs->lock);
		list_remove(&e->sleeper.node);
		pthread_mutex_unlock(&e->rs->lock);
		s->kernel[i].fd = -1;
	}
	rs_sleeper_drain(fd);
}

static int kernel_poll(struct set *s, nfds_t count, uint64_t deadline_ns)
{
	uint64_t now_ns = clock_mono_ns();
	uint64_t left = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
	struct timespec ts = {.tv_sec = (time_t)(left / 1000000000ull),
			      .tv_nsec = (long)(left % 1000000000ull)};

	return ppoll(s->kernel, count, deadline_ns == RS_FOREVER ? NULL : &ts,
		     NULL);
}

static int poll_set(struct set *s, uint64_t deadline_ns)
{
	uint64_t spin_ns = clock_mono_ns() + RS_SPIN_US * 1000ull;
	bool others = s->ours < s->count;
	int fd, ready;

	for (;;) {
		ready = look_at_ours(s);
		if (others) {
			if (kernel_poll(s, s->count, 0) < 0)
				return -1;
			ready = look_at_others(s, ready);
		}
		if (ready || clock_mono_ns() >= deadline_ns)
			return ready;
		if (clock_mono_ns() < spin_ns)
			continue;
		fd = rs_sleeper_fd();
		if (fd < 0)
			return -1;
		s->kernel[s->count] =
			(struct pollfd){.fd = fd, .events = POLLIN};
		ready = 0;
		if (lie_down(s, fd))
			ready = kernel_poll(s, s->count + 1, deadline_ns);
		stand_up(s, fd);
		if (ready < 0)
			return -1;
	}
}

/* ---- calls --------------------------------------------------------------- */

static void find_ours(struct set *s)
{
	for (nfds_t i = 0; i < s->count; i++) {
		struct entry *e = &s->entries[i];

		e->rs = s->user[i].fd >= 0 ? rs_find(s->user[i].fd) : NULL;
		list_init(&e->sleeper.node);
		s->kernel[i] = s->user[i];
		s->kernel[i].revents = 0;
		if (e->rs) {
			s->kernel[i].fd = -1;
			s->ours++;
		}
	}
}

static void put_ours(struct set *s)
{
	for (nfds_t i = 0; i < s->count; i++) {
		if (s->entries[i].rs)
			rs_put(s->entries[i].rs);
	}
}

static int poll_many(struct pollfd *fds, nfds_t nfds, uint64_t deadline_ns,
		     struct pollfd *kernel, struct entry *entries)
{
	struct set s = {.user = fds,
			.kernel = kernel,
			.entries = entries,
			.count = nfds};
	int ret;

	rs_depth++;
	find_ours(&s);
	ret = poll_set(&s, deadline_ns);
	put_ours(&s);
	rs_depth--;
	return ret;
}

RS_EXPORT int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	uint64_t deadline_ns = rs_deadline(
		timeout < 0 ? RS_FOREVER : (uint64_t)timeout * 1000000ull);
	struct pollfd few_fds[FEW + 1], *kernel = few_fds;
	struct entry few_entries[FEW], *entries = few_entries;
	struct rlimit limit;
	int ret;

	if (!fds && nfds)
		return rs_fail(EFAULT);
	if (nfds > FEW) {
		if (!getrlimit(RLIMIT_NOFILE, &limit) && nfds > limit.rlim_cur)
			return rs_fail(EINVAL);
		kernel = calloc(nfds + 1, sizeof(*kernel));
		entries = calloc(nfds, sizeof(*entries));
	}
	if (kernel && entries)
		ret = poll_many(fds, nfds, deadline_ns, kernel, entries);
	else
		ret = rs_fail(ENOMEM);
	if (nfds > FEW) {
		int err = errno;

		free(kernel);
		free(entries);
		errno = err;
	}
	return ret;
}

static bool has(const fd_set *set, int fd)
{
	return set && FD_ISSET(fd, set);
}

static int fill(struct pollfd *fds, int nfds, const fd_set *r, const fd_set *w,
		const fd_set *x)
{
	int n = 0;

	for (int fd = 0; fd < nfds; fd++) {
		short events = (short)((has(r, fd) ? POLLIN : 0) |
				       (has(w, fd) ? POLLOUT : 0) |
				       (has(x, fd) ? POLLPRI : 0));

		if (events)
			fds[n++] = (struct pollfd){.fd = fd, .events = events};
	}
	return n;
}

static int report(const struct pollfd *p, short bits, bool asked, fd_set *set)
{
	if (!set)
		return 0;
	if (asked && p->revents & bits)
		return 1;
	FD_CLR(p->fd, set);
	return 0;
}

RS_EXPORT int rselect(int nfds, fd_set *readfds, fd_set *writefds,
		      fd_set *exceptfds, struct timeval *timeout)
{
	struct pollfd fds[FD_SETSIZE];
	int ms = -1, n, ret, bits = 0;

	if (nfds < 0 || nfds > FD_SETSIZE)
		return rs_fail(EINVAL);
	if (timeout) {
		if (timeout->tv_sec < 0 || timeout->tv_usec < 0)
			return rs_fail(EINVAL);
		/* Rounded up: never shorter than asked for. */
		ms = timeout->tv_sec > INT32_MAX / 1000 - 1
			     ? INT32_MAX
			     : (int)(timeout->tv_sec * 1000 +
				     (timeout->tv_usec + 999) / 1000);
	}
	n = fill(fds, nfds, readfds, writefds, exceptfds);
	ret = rpoll(fds, (nfds_t)n, ms);
	if (ret < 0)
		return ret;
	for (int i = 0; i < n; i++) {
		const struct pollfd *p = &fds[i];

		if (p->revents & POLLNVAL)
			return rs_fail(EBADF);
		bits += report(p, POLLIN | POLLHUP | POLLERR,
			       p->events & POLLIN, readfds);
		bits += report(p, POLLOUT | POLLERR, p->events & POLLOUT,
			       writefds);
		bits += report(p, POLLPRI, p->events & POLLPRI, exceptfds);
	}
	return bits;
}
