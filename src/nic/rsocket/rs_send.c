/* SPDX-License-Identifier: Apache-2.0 */
/* Sending: bytes are copied to our ring, or inline, and written to the peer's.
 */
#include <string.h>
#include <sys/uio.h>

#include "rs_priv.h"

/* A place in an array of buffers. */
struct cursor {
	const struct iovec *iov;
	size_t count;
	size_t skip; /* of the first one */
};

static void gather(struct cursor *c, uint8_t *out, size_t bytes)
{
	while (bytes) {
		size_t n = c->iov->iov_len - c->skip;

		if (n > bytes)
			n = bytes;
		if (n)
			memcpy(out, (const uint8_t *)c->iov->iov_base + c->skip,
			       n);
		out += n;
		bytes -= n;
		c->skip += n;
		if (c->skip == c->iov->iov_len) {
			c->iov++;
			c->skip = 0;
		}
	}
}

static int send_error(const struct rsock *rs)
{
	if (rs->state == RS_FAILED)
		return rs->err;
	if (rs->state != RS_CONNECTED)
		return ENOTCONN;
	return rs->wr_shut || rs->peer_gone ? EPIPE : 0;
}

static int post_some(struct rsock *rs, struct cursor *c, uint32_t bytes,
		     const struct rs_sge *to, bool plain)
{
	struct rs_tx *tx = &rs->s.tx;
	uint32_t first = u32_min(bytes, tx->size - tx->head);
	uint8_t small[RS_INLINE_MAX];

	if (bytes <= rs->opt.inline_size && bytes <= sizeof(small)) {
		gather(c, small, bytes);
		return rs_stream_post_data(rs, to, bytes, true, small, plain);
	}
	gather(c, rs->s.tx_ring + tx->head, first);
	gather(c, rs->s.tx_ring, bytes - first);
	return rs_stream_post_data(rs, to, bytes, false, NULL, plain);
}

/* Waits until it is so, or there is an error; 0, or that one. */
static int wait_until(struct rsock *rs, bool (*is_so)(struct rsock *rs),
		      int flags, uint64_t deadline_ns)
{
	int err;

	if (is_so(rs))
		return send_error(rs);
	if (!rs_may_wait(rs, flags))
		return EAGAIN;
	err = rs_wait(rs, is_so, deadline_ns);
	if (err)
		return err == -ETIMEDOUT ? EAGAIN : -err;
	return send_error(rs);
}

/* Waits for room; 0, or an error that is to be reported unless something was
 * sent already. */
static int want_room(struct rsock *rs, int flags, uint64_t deadline_ns)
{
	int err;

	if (rs->state == RS_CONNECTING && rs_may_wait(rs, flags)) {
		err = rs_wait(rs, rs_is_settled, deadline_ns);
		if (err)
			return err == -ETIMEDOUT ? EAGAIN : -err;
	}
	return rs->state == RS_CONNECTING
		       ? EAGAIN
		       : wait_until(rs, rs_can_send, flags, deadline_ns);
}

ssize_t rs_stream_send(struct rsock *rs, const struct iovec *iov, size_t count,
		       int flags)
{
	uint64_t deadline_ns = rs_deadline(rs->opt.send_timeout_ns);
	struct cursor c = {.iov = iov, .count = count};
	size_t total = 0, sent = 0;
	int err = 0;

	for (size_t i = 0; i < count; i++)
		total += iov[i].iov_len;
	(void)rs_progress(rs);
	if (!total)
		err = send_error(rs);
	while (sent < total) {
		struct rs_sge to;
		uint32_t bytes;

		err = want_room(rs, flags, deadline_ns);
		if (err)
			break;
		bytes = (uint32_t)u64_min(rs_tx_room(&rs->s.tx), total - sent);
		rs_tx_data(&rs->s.tx, bytes, &to);
		err = -post_some(rs, &c, bytes, &to, false);
		if (err)
			break;
		sent += bytes;
	}
	if (sent || !err)
		return (ssize_t)sent;
	return rs_fail(err);
}

/* ---- into mapped buffers ------------------------------------------------- */

/* The peer writes its table at any time: each entry is read once, and what it
 * says is only of the peer's own memory. */
static bool find_map(struct rsock *rs, uint64_t offset, struct rs_sge *to)
{
	for (uint32_t i = 0; i < rs->opt.iomap_count; i++) {
		struct rs_iomap m;

		rs_iomap_parse(rs->s.iomaps + (size_t)i * RS_IOMAP_BYTES, &m);
		if (offset < m.offset || offset - m.offset >= m.sge.length ||
		    m.sge.addr > UINT64_MAX - m.sge.length)
			continue;
		*to = (struct rs_sge){
			.addr = m.sge.addr + (offset - m.offset),
			.key = m.sge.key,
			.length =
				(uint32_t)(m.sge.length - (offset - m.offset)),
		};
		return true;
	}
	return false;
}

static bool can_write(struct rsock *rs)
{
	return send_error(rs) || rs_tx_room_plain(&rs->s.tx);
}

static size_t write_mapped(struct rsock *rs, const void *buf, size_t count,
			   uint64_t offset, int flags)
{
	uint64_t deadline_ns = rs_deadline(rs->opt.send_timeout_ns);
	struct iovec iov = {.iov_base = (void *)buf, .iov_len = count};
	struct cursor c = {.iov = &iov, .count = 1};
	size_t sent = 0;
	int err = 0;

	(void)rs_progress(rs);
	while (sent < count) {
		struct rs_sge to;
		uint32_t bytes;

		err = wait_until(rs, can_write, flags, deadline_ns);
		if (!err && !find_map(rs, offset + sent, &to))
			err = EINVAL;
		if (err)
			break;
		bytes = u32_min(rs_tx_room_plain(&rs->s.tx), to.length);
		bytes = (uint32_t)u64_min(bytes, count - sent);
		err = -post_some(rs, &c, bytes, &to, true);
		if (err)
			break;
		sent += bytes;
	}
	if (sent || !err)
		return sent;
	errno = err;
	return (size_t)-1;
}

RS_EXPORT size_t riowrite(int socket, const void *buf, size_t count,
			  off_t offset, int flags)
{
	struct rsock *rs = rs_get(socket);
	size_t ret;

	if (!rs)
		return (size_t)-1;
	if (rs->dgram || (!buf && count)) {
		errno = rs->dgram ? EOPNOTSUPP : EFAULT;
		ret = (size_t)-1;
	} else {
		ret = write_mapped(rs, buf, count, (uint64_t)offset, flags);
	}
	rs_leave(rs);
	return ret;
}
