/* SPDX-License-Identifier: Apache-2.0 */
/* Receiving: what the peer wrote to our ring is copied to the application. */
#include <string.h>
#include <sys/uio.h>

#include "rs_priv.h"

/* Copies at most `bytes` that lie `skip` behind the first unread one. */
static uint32_t copy_out(struct rsock *rs, uint32_t skip, uint8_t *out,
			 size_t bytes)
{
	uint32_t done = 0, offset;

	while (done < bytes) {
		uint32_t n = rs_rx_view(&rs->s.rx, skip + done, &offset);

		if (!n)
			break;
		n = (uint32_t)u64_min(n, bytes - done);
		memcpy(out + done, rs->s.rx_ring + offset, n);
		done += n;
	}
	return done;
}

/* Fills the buffers from byte `at` on; the bytes that were there. */
static size_t scatter(struct rsock *rs, const struct iovec *iov, size_t count,
		      size_t at, bool peek)
{
	size_t done = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t n;

		if (at >= iov[i].iov_len) {
			at -= iov[i].iov_len;
			continue;
		}
		n = copy_out(rs, peek ? (uint32_t)done : 0,
			     (uint8_t *)iov[i].iov_base + at,
			     iov[i].iov_len - at);
		if (!peek)
			rs_rx_consume(&rs->s.rx, n);
		done += n;
		if (n < iov[i].iov_len - at)
			break;
		at = 0;
	}
	return done;
}

/* Nothing is there: 0 is the end of the stream. */
static int why_empty(const struct rsock *rs)
{
	if (rs->state == RS_FAILED)
		return rs->err;
	if (rs->state == RS_CONNECTING)
		return EAGAIN;
	if (rs->state != RS_CONNECTED)
		return ENOTCONN;
	return rs->rd_shut || rs->peer_done ? 0 : EAGAIN;
}

static bool can_recv_now(struct rsock *rs)
{
	return rs->state != RS_CONNECTING && rs_can_recv(rs);
}

ssize_t rs_stream_recv(struct rsock *rs, const struct iovec *iov, size_t count,
		       int flags)
{
	uint64_t deadline_ns = rs_deadline(rs->opt.recv_timeout_ns);
	bool peek = flags & MSG_PEEK;
	size_t total = 0, got = 0;
	int err = 0;

	for (size_t i = 0; i < count; i++)
		total += iov[i].iov_len;
	if (!total)
		return 0;
	for (;;) {
		if (!rs->s.rx.ready)
			(void)rs_progress(rs);
		if (rs->s.rx.ready) {
			got += scatter(rs, iov, count, got, peek);
			rs_stream_tell(rs);
		}
		if (got == total || (got && (peek || !(flags & MSG_WAITALL))))
			break;
		err = why_empty(rs);
		if (err != EAGAIN || !rs_may_wait(rs, flags))
			break;
		err = rs_wait(rs, can_recv_now, deadline_ns);
		if (err) {
			err = err == -ETIMEDOUT ? EAGAIN : -err;
			break;
		}
	}
	if (got || !err)
		return (ssize_t)got;
	return rs_fail(err);
}
