/* SPDX-License-Identifier: Apache-2.0 */
/* Sends and receives cable messages with descriptors; what they mean is left
 * to cable.c, grant.c and direct.c. */
#include "cable_msg.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union fd_space {
	struct cmsghdr align;
	char buf[CMSG_SPACE(CABLE_FD_MAX * sizeof(int))];
};

void cable_msg_init(struct cable_msg *msg, enum cable_msg_type type)
{
	*msg = (struct cable_msg){
		.magic = CABLE_MAGIC,
		.major = CABLE_MAJOR,
		.minor = CABLE_MINOR,
		.type = type,
	};
}

int cable_msg_send(int sock, const struct cable_msg *msg, const int *fds,
		   unsigned fd_count)
{
	struct iovec iov = {(void *)(uintptr_t)msg, sizeof(*msg)};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	union fd_space space;
	ssize_t n;

	ASSERT(fd_count <= CABLE_FD_MAX);
	if (fd_count) {
		struct cmsghdr *c;

		memset(&space, 0, sizeof(space));
		mh.msg_control = space.buf;
		mh.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, fd_count * sizeof(int));
	}
	do {
		n = sendmsg(sock, &mh, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

/*
 * Every descriptor that came is either in *fds or closed. The kernel rounds the
 * control buffer up to whole words, so it can hold one descriptor more than
 * was asked for: what counts is CABLE_FD_MAX, not what had room. False: more
 * descriptors, or other control messages, than any message of ours has.
 */
static bool take_fds(struct msghdr *mh, struct cable_fds *fds)
{
	bool as_agreed = !(mh->msg_flags & MSG_CTRUNC);

	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
		const unsigned char *data = CMSG_DATA(c);
		size_t bytes, at;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
		    c->cmsg_len < CMSG_LEN(0)) {
			as_agreed = false;
			continue;
		}
		bytes = c->cmsg_len - CMSG_LEN(0);
		for (at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
			int fd;

			memcpy(&fd, data + at, sizeof(fd));
			if (fds->count < CABLE_FD_MAX) {
				fds->fd[fds->count++] = fd;
				continue;
			}
			close(fd);
			as_agreed = false;
		}
	}
	return as_agreed;
}

int cable_msg_recv(int sock, struct cable_msg *msg, struct cable_fds *fds)
{
	struct iovec iov = {msg, sizeof(*msg)};
	union fd_space space;
	struct msghdr mh = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = space.buf,
		.msg_controllen = sizeof(space.buf),
	};
	bool as_agreed;
	ssize_t n;

	fds->count = 0;
	do {
		n = recvmsg(sock, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	as_agreed = take_fds(&mh, fds);
	/* An empty packet looks like the end, and may bring descriptors. */
	if (n == 0) {
		cable_fds_close(fds);
		return -EPIPE;
	}
	if (!as_agreed || (size_t)n < offsetof(struct cable_msg, bytes) ||
	    msg->magic != CABLE_MAGIC) {
		cable_fds_close(fds);
		return -EBADMSG;
	}
	if (msg->major != CABLE_MAJOR) {
		cable_fds_close(fds);
		return -EPROTONOSUPPORT;
	}
	if ((size_t)n != sizeof(*msg) || (mh.msg_flags & MSG_TRUNC)) {
		cable_fds_close(fds);
		return -EBADMSG;
	}
	return 0;
}

void cable_fds_close(struct cable_fds *fds)
{
	for (unsigned i = 0; i < fds->count; i++)
		if (fds->fd[i] >= 0)
			close(fds->fd[i]);
	fds->count = 0;
}
