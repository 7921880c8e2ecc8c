/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that make sockets, name them and move data, for both kinds. */
#include <limits.h>
#include <string.h>
#include <sys/uio.h>

#include "rs_priv.h"

/* ---- both kinds ---------------------------------------------------------- */

bool rs_progress(struct rsock *rs)
{
	return rs->dgram ? rs_dgram_progress(rs) : rs_stream_progress(rs);
}

void rs_arm(struct rsock *rs)
{
	if (rs->dgram)
		rs_dgram_arm(rs);
	else
		rs_stream_arm(rs);
}

int rs_wait_fd(const struct rsock *rs)
{
	if (rs->dgram)
		return rs_dgram_fd(rs);
	return rs->s.channel ? rs->s.channel->fd : -1;
}

/* ---- making -------------------------------------------------------------- */

static int check_kind(int domain, int type, int protocol)
{
	int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (domain != AF_INET && domain != AF_INET6)
		return EAFNOSUPPORT;
	if (kind == SOCK_STREAM)
		return !protocol || protocol == IPPROTO_TCP ? 0
							    : EPROTONOSUPPORT;
	if (kind == SOCK_DGRAM)
		return !protocol || protocol == IPPROTO_UDP ? 0
							    : EPROTONOSUPPORT;
	return EPROTONOSUPPORT;
}

static int make_id(struct rsock *rs)
{
	struct rdma_event_channel *channel = rs_service_channel();

	if (!channel)
		return -errno;
	if (rdma_create_id(channel, &rs->id, rs, RDMA_PS_TCP)) {
		rs->id = NULL;
		return -errno;
	}
	rs_watch_forks();
	return 0;
}

RS_EXPORT int rsocket(int domain, int type, int protocol)
{
	struct rs_options opt;
	struct rsock *rs;
	int err = check_kind(domain, type, protocol);

	/* The preloaded library then asks the kernel. */
	if (!err && rs_thread_is_inside())
		err = EBUSY;
	if (err)
		return rs_fail(err);
	rs_options_default(&opt);
	rs = rs_new(domain, type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC), &opt);
	if (!rs)
		return -1;
	rs->nonblocking = type & SOCK_NONBLOCK;
	rs_depth++;
	err = rs->type == SOCK_DGRAM ? rs_dgram_open(rs) : make_id(rs);
	if (!err)
		err = rs_publish(rs);
	if (err)
		rs_put(rs);
	rs_depth--;
	return err ? rs_fail(err) : rs->fd;
}

/* ---- names --------------------------------------------------------------- */

static int bind_stream(struct rsock *rs, const struct sockaddr *addr,
		       socklen_t len)
{
	if (addr->sa_family != rs->domain)
		return rs_fail(EAFNOSUPPORT);
	if (len < (addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
					      : sizeof(struct sockaddr_in6)))
		return rs_fail(EINVAL);
	if (rs->state != RS_NEW || rs->bound)
		return rs_fail(EINVAL);
	if (rdma_bind_addr(rs->id, (struct sockaddr *)addr))
		return rs_fail(errno == ENODEV ? EADDRNOTAVAIL : errno);
	rs->bound = true;
	return 0;
}

RS_EXPORT int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct rsock *rs = rs_get(socket);
	int ret;

	if (!rs)
		return -1;
	if (!addr || addrlen < sizeof(addr->sa_family))
		ret = rs_fail(EINVAL);
	else
		ret = rs->dgram ? rs_dgram_bind(rs, addr, addrlen)
				: bind_stream(rs, addr, addrlen);
	rs_leave(rs);
	return ret;
}

static int give_name(const struct rsock *rs, const struct sockaddr *from,
		     struct sockaddr *addr, socklen_t *len)
{
	struct sockaddr_storage none = {.ss_family = (sa_family_t)rs->domain};
	socklen_t size;

	if (!addr || !len)
		return rs_fail(EFAULT);
	if (!from->sa_family)
		from = (struct sockaddr *)&none;
	size = from->sa_family == AF_INET ? sizeof(struct sockaddr_in)
					  : sizeof(struct sockaddr_in6);
	memcpy(addr, from, *len < size ? *len : size);
	*len = size;
	return 0;
}

RS_EXPORT int rgetsockname(int socket, struct sockaddr *addr,
			   socklen_t *addrlen)
{
	struct rsock *rs = rs_get(socket);
	int ret;

	if (!rs)
		return -1;
	ret = rs->dgram ? rs_dgram_name(rs, addr, addrlen)
			: give_name(rs, rdma_get_local_addr(rs->id), addr,
				    addrlen);
	rs_leave(rs);
	return ret;
}

RS_EXPORT int rgetpeername(int socket, struct sockaddr *addr,
			   socklen_t *addrlen)
{
	struct rsock *rs = rs_get(socket);
	int ret;

	if (!rs)
		return -1;
	if (rs->dgram)
		ret = rs_dgram_peer(rs, addr, addrlen);
	else if (rs->state != RS_CONNECTED)
		ret = rs_fail(ENOTCONN);
	else
		ret = give_name(rs, rdma_get_peer_addr(rs->id), addr, addrlen);
	rs_leave(rs);
	return ret;
}

/* ---- data ---------------------------------------------------------------- */

static int check_buffers(const struct iovec *iov, size_t count, int flags)
{
	uint64_t total = 0;

	if (flags & (MSG_OOB | MSG_ERRQUEUE))
		return EOPNOTSUPP;
	if (count > IOV_MAX)
		return EMSGSIZE;
	if (count && !iov)
		return EFAULT;
	for (size_t i = 0; i < count; i++) {
		if (iov[i].iov_len && !iov[i].iov_base)
			return EFAULT;
		if (iov[i].iov_len > SSIZE_MAX - total)
			return EINVAL;
		total += iov[i].iov_len;
	}
	return 0;
}

static ssize_t receive(int socket, const struct iovec *iov, size_t count,
		       int flags, struct sockaddr *from, socklen_t *from_len)
{
	int err = check_buffers(iov, count, flags);
	struct rsock *rs;
	ssize_t ret;

	if (err)
		return rs_fail(err);
	rs = rs_get(socket);
	if (!rs)
		return -1;
	if (rs->dgram) {
		ret = rs_dgram_recv(rs, iov, count, flags, from, from_len);
	} else {
		ret = rs_stream_recv(rs, iov, count, flags);
		if (ret > 0 && from && from_len && rs->state == RS_CONNECTED)
			(void)give_name(rs, rdma_get_peer_addr(rs->id), from,
					from_len);
	}
	rs_leave(rs);
	return ret;
}

static ssize_t transmit(int socket, const struct iovec *iov, size_t count,
			int flags, const struct sockaddr *to, socklen_t to_len)
{
	int err = check_buffers(iov, count, flags);
	struct rsock *rs;
	ssize_t ret;

	if (err)
		return rs_fail(err);
	rs = rs_get(socket);
	if (!rs)
		return -1;
	if (rs->dgram)
		ret = rs_dgram_send(rs, iov, count, flags, to, to_len);
	else
		ret = rs_stream_send(rs, iov, count, flags);
	rs_leave(rs);
	return ret;
}

RS_EXPORT ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
	struct iovec iov = {.iov_base = buf, .iov_len = len};

	return receive(socket, &iov, 1, flags, NULL, NULL);
}

RS_EXPORT ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags,
			    struct sockaddr *src_addr, socklen_t *addrlen)
{
	struct iovec iov = {.iov_base = buf, .iov_len = len};

	return receive(socket, &iov, 1, flags, src_addr, addrlen);
}

RS_EXPORT ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
	ssize_t ret;

	if (!msg)
		return rs_fail(EFAULT);
	ret = receive(socket, msg->msg_iov, msg->msg_iovlen, flags,
		      msg->msg_name, msg->msg_name ? &msg->msg_namelen : NULL);
	if (ret >= 0) {
		msg->msg_controllen = 0; /* there is never any */
		msg->msg_flags = 0;
	}
	return ret;
}

RS_EXPORT ssize_t rread(int socket, void *buf, size_t count)
{
	return rrecv(socket, buf, count, 0);
}

RS_EXPORT ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt)
{
	if (iovcnt < 0)
		return rs_fail(EINVAL);
	return receive(socket, iov, (size_t)iovcnt, 0, NULL, NULL);
}

RS_EXPORT ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
	struct iovec iov = {.iov_base = (void *)buf, .iov_len = len};

	return transmit(socket, &iov, 1, flags, NULL, 0);
}

RS_EXPORT ssize_t rsendto(int socket, const void *buf, size_t len, int flags,
			  const struct sockaddr *dest_addr, socklen_t addrlen)
{
	struct iovec iov = {.iov_base = (void *)buf, .iov_len = len};

	return transmit(socket, &iov, 1, flags, dest_addr, addrlen);
}

RS_EXPORT ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
	if (!msg)
		return rs_fail(EFAULT);
	if (msg->msg_control && msg->msg_controllen)
		return rs_fail(EOPNOTSUPP);
	return transmit(socket, msg->msg_iov, msg->msg_iovlen, flags,
			msg->msg_name, msg->msg_namelen);
}

RS_EXPORT ssize_t rwrite(int socket, const void *buf, size_t count)
{
	return rsend(socket, buf, count, 0);
}

RS_EXPORT ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
	if (iovcnt < 0)
		return rs_fail(EINVAL);
	return transmit(socket, iov, (size_t)iovcnt, 0, NULL, 0);
}
