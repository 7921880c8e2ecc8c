/* SPDX-License-Identifier: Apache-2.0 */
/* The door: processes that attach. One message each way and again. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "log.h"
#include "pager_priv.h"

int run_door_open(struct pager *p, const char *name)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	size_t n = strlen(name);
	int err;

	for (unsigned i = 0; i < RUN_PENDING_HELLOS; i++)
		p->caller[i] = (struct caller){.fd = -1, .channel_fd = -1};
	p->listen = socket(AF_UNIX,
			   SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->listen < 0)
		return -errno;
	memcpy(sa.sun_path + 1, name, n); /* abstract */
	if (bind(p->listen, (struct sockaddr *)&sa,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) !=
		    0 ||
	    listen(p->listen, SOMAXCONN) != 0)
		goto err_errno;
	return run_pager_watch(p, p->listen, &p->listen);
err_errno:
	err = -errno;
	(void)close(p->listen);
	return err;
}

static void caller_close(struct pager *p, struct caller *c)
{
	if (c->fd >= 0) {
		(void)epoll_ctl(p->epoll, EPOLL_CTL_DEL, c->fd, NULL);
		(void)close(c->fd);
	}
	if (c->channel_fd >= 0)
		(void)close(c->channel_fd);
	*c = (struct caller){.fd = -1, .channel_fd = -1};
}

static int send_welcome(struct pager *p, int sock, int err, bool has_fds)
{
	union {
		char bytes[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct run_welcome w = {
		.magic = RUN_MAGIC,
		.err = err,
		.tray_bytes = (uint64_t)p->trays.count * RUN_BATCH_PAGES *
			      RUN_PAGE_BYTES,
		.min_bytes = p->options.min_bytes,
		.has_uffd_dev = p->uffd_dev >= 0,
	};
	int fd[2] = {p->trays.fd, p->uffd_dev >= 0 ? p->uffd_dev : p->trays.fd};
	struct iovec iov = {&w, sizeof(w)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;

	if (has_fds) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), fd, sizeof(fd));
	}
	return sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) ==
			       (ssize_t)sizeof(w)
		       ? 0
		       : -EPIPE;
}

void run_door_accept(struct pager *p)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	struct caller *c = NULL;
	int fd = accept4(p->listen, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	for (unsigned i = 0; i < RUN_PENDING_HELLOS && !c; i++)
		if (p->caller[i].fd < 0 && p->caller[i].channel_fd < 0)
			c = &p->caller[i];
	if (!c || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0 ||
	    send_welcome(p, fd, 0, true) != 0 ||
	    run_pager_watch(p, fd, c) != 0) {
		(void)close(fd);
		return;
	}
	*c = (struct caller){.fd = fd, .pid = cred.pid, .channel_fd = -1};
}

/* Descriptors of a hello; -1 where there is none. */
static int receive(int sock, struct run_hello *h, int fd[2])
{
	union {
		char bytes[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {h, sizeof(*h)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	struct cmsghdr *c;
	ssize_t n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

	fd[0] = fd[1] = -1;
	if (n < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(c),
		       u64_min(c->cmsg_len - CMSG_LEN(0), 2 * sizeof(int)));
	return n == (ssize_t)sizeof(*h) ? 0 : -EPROTO;
}

static int take_new(struct pager *p, const struct run_hello *h, int fd[2],
		    pid_t pid)
{
	struct space *s;
	int err;

	if (fd[0] < 0 || fd[1] < 0 || h->range_start % RUN_RANGE_ALIGN)
		return -EPROTO;
	/* A process that called exec: its old memory is gone. */
	run_spaces_sweep(p);
	err = run_space_create(p, fd[0], h->range_start, h->features, &s);
	if (err)
		return err;
	fd[0] = -1; /* the space's */
	err = run_space_set_channel(p, s, fd[1], pid);
	if (err)
		s->is_dead = true;
	return err;
}

void run_door_read(struct pager *p, struct caller *c)
{
	struct run_hello h;
	int fd[2];
	int err = receive(c->fd, &h, fd);

	if (err == -EAGAIN)
		return;
	if (!err && (h.magic != RUN_MAGIC ||
		     memcmp(h.token, p->token, RUN_TOKEN_BYTES) != 0))
		err = -EACCES;
	if (!err && h.kind == RUN_HELLO_NEW) {
		err = take_new(p, &h, fd, c->pid);
	} else if (!err && fd[0] >= 0) {
		/* Kept until the child rings. */
		(void)send_welcome(p, c->fd, 0, false);
		c->channel_fd = fd[0];
		(void)epoll_ctl(p->epoll, EPOLL_CTL_DEL, c->fd, NULL);
		(void)close(c->fd);
		c->fd = -1;
		return;
	}
	(void)send_welcome(p, c->fd, err, false);
	for (unsigned i = 0; i < 2; i++)
		if (fd[i] >= 0)
			(void)close(fd[i]);
	caller_close(p, c);
}

int run_door_bind(struct pager *p, struct space *s, pid_t pid)
{
	int err;

	for (unsigned i = 0; i < RUN_PENDING_HELLOS; i++) {
		struct caller *c = &p->caller[i];

		if (c->channel_fd < 0 || c->pid != pid)
			continue;
		err = run_space_set_channel(p, s, c->channel_fd, pid);
		caller_close(p, c);
		return err;
	}
	return -ENOENT;
}
