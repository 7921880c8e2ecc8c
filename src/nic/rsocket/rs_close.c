/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends: shutdown, close, and the end of the process. A goodbye is a message
 * like any other, so whoever hears it has all data that was sent before.
 */
#include "base/clock.h"
#include "rs_priv.h"

static bool can_say(struct rsock *rs)
{
	return rs_tx_room_ctrl(&rs->s.tx) || rs->state != RS_CONNECTED ||
	       rs->peer_gone;
}

/* Signals do not shorten it: there is a deadline. */
static int wait_for(struct rsock *rs, bool (*ready)(struct rsock *rs),
		    uint64_t deadline_ns)
{
	int err;

	do {
		err = rs_wait(rs, ready, deadline_ns);
	} while (err == -EINTR);
	return err;
}

static int say(struct rsock *rs, enum rs_ctrl ctrl, uint64_t deadline_ns)
{
	int err = wait_for(rs, can_say, deadline_ns);

	if (err)
		return err;
	if (rs->state != RS_CONNECTED || rs->peer_gone)
		return 0;
	return rs_stream_post_ctrl(rs, ctrl);
}

int rs_disconnect(struct rsock *rs, uint64_t deadline_ns)
{
	int err;

	if (rs->state != RS_CONNECTED || rs->said_bye)
		return 0;
	err = say(rs, RS_CTRL_DISCONNECT, deadline_ns);
	rs->said_bye = rs->rd_shut = rs->wr_shut = true;
	rs_kick(rs);
	return err ? err : wait_for(rs, rs_sends_done, deadline_ns);
}

static int shut_stream(struct rsock *rs, int how)
{
	uint64_t deadline_ns = rs_deadline(RS_CLOSE_MS * 1000000ull);
	int err = 0;

	if (rs->state != RS_CONNECTED)
		return rs_fail(ENOTCONN);
	if (how == SHUT_RDWR || (how == SHUT_WR && rs->rd_shut) ||
	    (how == SHUT_RD && rs->wr_shut)) {
		err = rs_disconnect(rs, deadline_ns);
	} else if (how == SHUT_WR && !rs->wr_shut) {
		err = say(rs, RS_CTRL_SHUTDOWN, deadline_ns);
		rs->wr_shut = true;
	} else if (how == SHUT_RD) {
		rs->rd_shut = true;
	}
	rs_kick(rs);
	return err ? rs_fail(err) : 0;
}

RS_EXPORT int rshutdown(int socket, int how)
{
	struct rsock *rs = rs_get(socket);
	int ret = 0;

	if (!rs)
		return -1;
	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		ret = rs_fail(EINVAL);
	else if (!rs->dgram)
		ret = shut_stream(rs, how);
	rs_leave(rs);
	return ret;
}

static void end_stream(struct rsock *rs)
{
	uint64_t linger_ns = RS_CLOSE_MS * 1000000ull;
	bool listening = rs->state == RS_LISTENING, connected;

	if (rs->opt.linger.l_onoff)
		linger_ns = (uint64_t)(unsigned)rs->opt.linger.l_linger *
			    1000000000ull;
	/* Without patience the peer learns of a reset. */
	if (linger_ns)
		(void)rs_disconnect(rs, rs_deadline(linger_ns));
	rs->closed = true;
	rs_kick(rs);
	connected = rs->id->qp;
	pthread_mutex_unlock(&rs->lock);
	if (listening)
		rs_accept_end(rs);
	else if (connected)
		(void)rdma_disconnect(rs->id); /* it may be gone already */
	pthread_mutex_lock(&rs->lock);
}

RS_EXPORT int rclose(int socket)
{
	struct rsock *rs = rs_withdraw(socket);

	/* A number that this process inherited is gone now, and no more. */
	if (!rs)
		return errno ? -1 : 0;
	rs_depth++;
	pthread_mutex_lock(&rs->lock);
	if (rs->dgram) {
		rs->closed = true;
		rs_kick(rs);
	} else {
		end_stream(rs);
	}
	rs_leave(rs);
	return 0;
}

/* ---- the end of the process ---------------------------------------------- */

static void say_goodbye(struct rsock *rs)
{
	struct timespec until =
		clock_timespec(clock_real_ns() + RS_EXIT_MS * 1000000ull);

	/* Another thread may sit in a call, and will not come back. */
	if (rs->dgram || pthread_mutex_timedlock(&rs->lock, &until))
		return;
	(void)rs_disconnect(rs, rs_deadline(RS_EXIT_MS * 1000000ull));
	pthread_mutex_unlock(&rs->lock);
}

/* Programs end without closing; a kernel would still deliver what they sent. */
__attribute__((destructor)) static void process_ends(void)
{
	rs_depth++;
	rs_each(say_goodbye);
	rs_depth--;
}
