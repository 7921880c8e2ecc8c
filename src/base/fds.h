/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that come with a message, for both ends of a socket. */
#ifndef AQ_FDS_H
#define AQ_FDS_H

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base.h"

enum {
	FDS_MAX = 2, /* of any message */
};

/* Room for the control data of a message. */
union fds_room {
	char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
	struct cmsghdr align;
};

/*
 * Takes the descriptors of a received message: the first `max` go to fd[], the
 * rest are closed. Returns how many there were, also when that is more than
 * `max`: then all are closed. The room that the kernel fills is aligned, so
 * more may come than it was made for.
 */
static inline unsigned fds_take(struct msghdr *msg, int *fd, unsigned max)
{
	unsigned count = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c;
	     c = CMSG_NXTHDR(msg, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
		    c->cmsg_len < CMSG_LEN(0))
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int one;

			memcpy(&one, CMSG_DATA(c) + i * sizeof(int),
			       sizeof(one));
			if (count < max)
				fd[count] = one;
			else
				(void)close(one);
			count++;
		}
	}
	for (unsigned i = 0; count > max && i < max; i++)
		(void)close(fd[i]);
	return count;
}

/* Puts `count` descriptors, at most FDS_MAX, into a message to send. */
static inline void fds_put(struct msghdr *msg, union fds_room *room,
			   const int *fd, unsigned count)
{
	struct cmsghdr *c;

	if (!count)
		return;
	msg->msg_control = room;
	msg->msg_controllen = CMSG_SPACE(count * sizeof(int));
	c = CMSG_FIRSTHDR(msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(c), fd, count * sizeof(int));
}

/* 0, or -EPIPE. */
static inline int fds_send(int sock, void *bytes, size_t len, const int *fd,
			   unsigned count, int flags)
{
	union fds_room room = {{0}};
	struct iovec iov = {bytes, len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	fds_put(&msg, &room, fd, count);
	return sendmsg(sock, &msg, MSG_NOSIGNAL | flags) == (ssize_t)len
		       ? 0
		       : -EPIPE;
}

/* A message of that many bytes. The first `max` descriptors go to fd[], and
 * *count says how many came; those of any other message are closed. */
static inline int fds_receive(int sock, void *bytes, size_t len, int *fd,
			      unsigned max, unsigned *count, int flags)
{
	union fds_room room;
	struct iovec iov = {bytes, len};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &room,
			     .msg_controllen = sizeof(room)};
	ssize_t n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC | flags);

	*count = 0;
	if (n < 0)
		return -errno;
	*count = fds_take(&msg, fd, max);
	if (n == (ssize_t)len && *count <= max && !(msg.msg_flags & MSG_TRUNC))
		return 0;
	for (unsigned i = 0; *count <= max && i < *count; i++)
		(void)close(fd[i]);
	*count = 0;
	return -EPROTO;
}

#endif
