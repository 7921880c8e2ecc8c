/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagram sockets. The first datagram to somebody goes over UDP, with the
 * number of our queue pair; it answers with its own, and from then on both use
 * their queue pairs. Once in a while, when nothing has come back, one more goes
 * over UDP: a peer that was restarted has another queue pair.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "rs_dgram_priv.h"

enum {
	UDP_PER_TURN = 64,
};

/* ---- life ---------------------------------------------------------------- */

int rs_dgram_open(struct rsock *rs)
{
	struct rs_dgram *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return -ENOMEM;
	rs->dgram = d;
	d->udp_fd = socket(rs->domain, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (d->udp_fd < 0)
		return -errno;
	/* A machine without RDMA fails here, as for streams. */
	err = rs_dgram_has_device();
	return err ? err : rs_service_watch(d->udp_fd, rs->fd);
}

void rs_dgram_close(struct rsock *rs)
{
	rs_endpoint_close(rs->dgram);
	if (rs->dgram->udp_fd >= 0)
		close(rs->dgram->udp_fd);
	free(rs->dgram);
	rs->dgram = NULL;
}

/* In the child of a fork, where nobody else is: the parent's service thread
 * would else hear of it after the parent has closed it. */
void rs_dgram_abandon(struct rsock *rs)
{
	close(rs->dgram->udp_fd);
}

int rs_dgram_has_device(void)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP))
		return -errno;
	rs_watch_forks();
	(void)rdma_destroy_id(id); /* cannot fail */
	return 0;
}

bool rs_dgram_progress(struct rsock *rs)
{
	bool moved = rs_endpoint_progress(rs);

	if (moved)
		rs_kick(rs);
	return moved;
}

void rs_dgram_arm(struct rsock *rs)
{
	struct rs_dgram *d = rs->dgram;

	if (!d->cq || d->armed)
		return;
	if (ibv_req_notify_cq(d->cq, 0))
		rs->so_error = EIO;
	d->armed = true;
}

int rs_dgram_fd(const struct rsock *rs)
{
	return rs->dgram->channel ? rs->dgram->channel->fd : -1;
}

/* A datagram, or an error. */
static bool can_recv(struct rsock *rs)
{
	return rs->dgram->arrival_count || rs->so_error;
}

static bool can_send(struct rsock *rs)
{
	return !rs->dgram->cq || rs->dgram->send_count;
}

short rs_dgram_events(struct rsock *rs)
{
	return (short)((can_recv(rs) ? POLLIN | POLLRDNORM : 0) |
		       (can_send(rs) ? POLLOUT | POLLWRNORM : 0) |
		       (rs->so_error ? POLLERR : 0));
}

/* ---- names --------------------------------------------------------------- */

int rs_dgram_bind(struct rsock *rs, const struct sockaddr *addr,
		  socklen_t addrlen)
{
	if (rs->opt.reuseaddr &&
	    setsockopt(rs->dgram->udp_fd, SOL_SOCKET, SO_REUSEADDR,
		       &rs->opt.reuseaddr, sizeof(int)))
		return -1;
	return bind(rs->dgram->udp_fd, addr, addrlen);
}

/* The UDP socket itself stays open to all, so that peers may move to another
 * queue pair; strangers are left out when their datagrams come. */
int rs_dgram_connect(struct rsock *rs, const struct sockaddr *addr,
		     socklen_t addrlen)
{
	struct rs_dest *dest;
	struct rs_name name;
	int err;

	if (addr->sa_family == AF_UNSPEC) {
		rs->dgram->connected = false;
		return 0;
	}
	err = rs_name_read(addr, addrlen, &name);
	if (!err && rs->domain == AF_INET && !rs_name_is_ipv4(&name))
		err = -EAFNOSUPPORT;
	if (!err)
		err = rs_dest_get(rs, &name, &dest);
	if (err)
		return rs_fail(err);
	rs->dgram->peer = name;
	rs->dgram->connected = true;
	return 0;
}

int rs_dgram_name(struct rsock *rs, struct sockaddr *addr, socklen_t *len)
{
	return getsockname(rs->dgram->udp_fd, addr, len);
}

static void give_name(struct rsock *rs, const struct rs_name *name,
		      struct sockaddr *addr, socklen_t *len)
{
	struct sockaddr_storage sa;
	socklen_t size = rs_name_write(name, rs->domain, &sa);

	memcpy(addr, &sa, *len < size ? *len : size);
	*len = size;
}

int rs_dgram_peer(struct rsock *rs, struct sockaddr *addr, socklen_t *len)
{
	if (!rs->dgram->connected)
		return rs_fail(ENOTCONN);
	if (!addr || !len)
		return rs_fail(EFAULT);
	give_name(rs, &rs->dgram->peer, addr, len);
	return 0;
}

/* ---- sending ------------------------------------------------------------- */

/* Without data: the answer to one who told us its queue pair. */
static ssize_t send_udp(struct rsock *rs, const struct rs_dest *dest,
			const struct iovec *iov, size_t count)
{
	struct rs_dgram *d = rs->dgram;
	struct rs_udp_header h = {.is_data = iov != NULL,
				  .qpn = d->id->qp->qp_num,
				  .own = dest->own};
	uint8_t header[RS_UDP_HEADER_MAX];
	uint8_t data[RS_DGRAM_MAX];
	struct iovec parts[2] = {{.iov_base = header}, {.iov_base = data}};
	struct sockaddr_storage sa;
	struct msghdr msg = {
		.msg_name = &sa,
		.msg_namelen = rs_name_write(&dest->name, rs->domain, &sa),
		.msg_iov = parts,
		.msg_iovlen = 2,
	};
	ssize_t sent;

	parts[0].iov_len = rs_udp_build(&h, header);
	for (size_t i = 0; i < count; i++) {
		if (iov[i].iov_len)
			memcpy(data + parts[1].iov_len, iov[i].iov_base,
			       iov[i].iov_len);
		parts[1].iov_len += iov[i].iov_len;
	}
	sent = sendmsg(d->udp_fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	return sent < 0 ? -1 : (ssize_t)parts[1].iov_len;
}

static ssize_t send_ud(struct rsock *rs, struct rs_dest *dest,
		       const struct iovec *iov, size_t count)
{
	struct rs_dgram *d = rs->dgram;
	uint32_t slot = d->send_free[d->send_count - 1];
	uint8_t *out =
		rs_endpoint_slot(d, d->recv_slots + RS_DGRAM_PARKED + slot);
	uint32_t header = rs_ud_build(&dest->own, out);
	uint32_t bytes = header;
	int err;

	for (size_t i = 0; i < count; i++) {
		if (iov[i].iov_len)
			memcpy(out + bytes, iov[i].iov_base, iov[i].iov_len);
		bytes += (uint32_t)iov[i].iov_len;
	}
	err = rs_endpoint_post(rs, dest, bytes);
	return err ? rs_fail(err) : (ssize_t)(bytes - header);
}

static int find_dest(struct rsock *rs, const struct sockaddr *to,
		     socklen_t to_len, struct rs_dest **dest)
{
	struct rs_name name = rs->dgram->peer;
	int err = 0;

	if (to)
		err = rs_name_read(to, to_len, &name);
	else if (!rs->dgram->connected)
		err = -EDESTADDRREQ;
	if (!err && rs->domain == AF_INET && !rs_name_is_ipv4(&name))
		err = -EAFNOSUPPORT;
	return err ? err : rs_dest_get(rs, &name, dest);
}

static bool is_stale(struct rs_dest *dest)
{
	uint64_t now_ns = clock_mono_ns();

	if (dest->qpn && now_ns - dest->heard_ns < RS_DEST_STALE_NS)
		return false;
	dest->heard_ns = now_ns;
	return true;
}

ssize_t rs_dgram_send(struct rsock *rs, const struct iovec *iov, size_t count,
		      int flags, const struct sockaddr *to, socklen_t to_len)
{
	uint64_t total = 0;
	struct rs_dest *dest;
	int err = find_dest(rs, to, to_len, &dest);

	if (err)
		return rs_fail(err);
	for (size_t i = 0; i < count; i++)
		total += iov[i].iov_len;
	if (total > rs->dgram->mtu - RS_UD_HEADER_MAX)
		return rs_fail(EMSGSIZE);
	if (!dest->qpn || is_stale(dest))
		return send_udp(rs, dest, iov, count);
	if (!rs->dgram->send_count)
		(void)rs_dgram_progress(rs);
	if (!rs->dgram->send_count) {
		if (!rs_may_wait(rs, flags))
			return rs_fail(EAGAIN);
		err = rs_wait(rs, can_send,
			      rs_deadline(rs->opt.send_timeout_ns));
		if (err)
			return rs_fail(err == -ETIMEDOUT ? EAGAIN : err);
		/* The lock was free meanwhile: the entry may be another's. */
		err = find_dest(rs, to, to_len, &dest);
		if (err)
			return rs_fail(err);
		if (!dest->qpn)
			return send_udp(rs, dest, iov, count);
	}
	return send_ud(rs, dest, iov, count);
}

/* ---- receiving ----------------------------------------------------------- */

static ssize_t take(struct rsock *rs, const struct iovec *iov, size_t count,
		    int flags, struct sockaddr *from, socklen_t *from_len)
{
	struct rs_dgram *d = rs->dgram;
	struct rs_arrival a = d->arrivals[d->arrival_head];
	const uint8_t *data = rs_endpoint_slot(d, a.slot) + a.offset;
	uint32_t done = 0;

	for (size_t i = 0; i < count && done < a.length; i++) {
		uint32_t n = (uint32_t)u64_min(iov[i].iov_len, a.length - done);

		if (n)
			memcpy(iov[i].iov_base, data + done, n);
		done += n;
	}
	if (from && from_len)
		give_name(rs, &a.from, from, from_len);
	if (!(flags & MSG_PEEK))
		rs_endpoint_release(rs);
	return flags & MSG_TRUNC ? (ssize_t)a.length : (ssize_t)done;
}

ssize_t rs_dgram_recv(struct rsock *rs, const struct iovec *iov, size_t count,
		      int flags, struct sockaddr *from, socklen_t *from_len)
{
	int err;

	if (!can_recv(rs))
		(void)rs_dgram_progress(rs);
	if (!can_recv(rs)) {
		if (!rs_may_wait(rs, flags))
			return rs_fail(EAGAIN);
		err = rs_wait(rs, can_recv,
			      rs_deadline(rs->opt.recv_timeout_ns));
		if (err)
			return rs_fail(err == -ETIMEDOUT ? EAGAIN : err);
	}
	if (rs->dgram->arrival_count)
		return take(rs, iov, count, flags, from, from_len);
	err = rs->so_error;
	rs->so_error = 0;
	return rs_fail(err);
}

/* ---- what comes over UDP, in the service thread -------------------------- */

static void keep(struct rsock *rs, const struct rs_name *from,
		 const uint8_t *data, uint32_t bytes)
{
	struct rs_dgram *d = rs->dgram;
	struct rs_arrival a = {.length = bytes, .from = *from};
	uint8_t *at;

	if (d->connected && !rs_name_equal(from, &d->peer))
		return;
	/* Full, or too long for us: lost, as datagrams may be. */
	if (bytes > d->slot_bytes)
		return;
	at = rs_endpoint_park(d, &a.slot);
	if (!at)
		return;
	if (bytes)
		memcpy(at, data, bytes);
	rs_endpoint_arrive(d, &a);
}

static void on_udp(struct rsock *rs, const uint8_t *data, size_t bytes,
		   const struct rs_name *from)
{
	struct rs_udp_header h;
	struct rs_dest *dest;
	int header = rs_udp_parse(data, bytes, &h);

	if (header < 0 || rs_dest_get(rs, from, &dest))
		return;
	dest->qpn = h.qpn;
	dest->heard_ns = clock_mono_ns();
	if (!h.is_data)
		return;
	(void)send_udp(rs, dest, NULL, 0); /* it will ask again */
	keep(rs, from, data + header, (uint32_t)bytes - (uint32_t)header);
}

void rs_dgram_udp(struct rsock *rs)
{
	uint8_t data[RS_UDP_HEADER_MAX + RS_DGRAM_MAX];
	struct sockaddr_storage sa;
	struct rs_name from;

	for (unsigned i = 0; i < UDP_PER_TURN; i++) {
		socklen_t len = sizeof(sa);
		ssize_t n = recvfrom(rs->dgram->udp_fd, data, sizeof(data),
				     MSG_DONTWAIT | MSG_TRUNC,
				     (struct sockaddr *)&sa, &len);

		if (n < 0)
			break;
		if ((size_t)n > sizeof(data) ||
		    rs_name_read((struct sockaddr *)&sa, len, &from))
			continue;
		on_udp(rs, data, (size_t)n, &from);
	}
	rs_kick(rs);
}
