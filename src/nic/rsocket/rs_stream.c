/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connected stream: posts WRITEs into the peer's ring and takes completions.
 * Each of its calls has the socket's lock. Nothing is allocated here.
 */
#include <endian.h>
#include <string.h>

#include "base/log.h"
#include "rs_priv.h"

#define WR_RECV (1ull << 63)

/* ---- posting ------------------------------------------------------------- */

static int post(struct rsock *rs, struct ibv_send_wr *wr, uint32_t ring_bytes)
{
	struct ibv_send_wr *bad;
	int err;

	wr->wr_id = ring_bytes;
	wr->send_flags |= IBV_SEND_SIGNALED;
	err = ibv_post_send(rs->id->qp, wr, &bad);
	if (err) {
		rs_stream_fail(rs, err == EINVAL ? ECONNRESET : err);
		return -rs->err;
	}
	rs_tx_posted(&rs->s.tx, ring_bytes);
	rs->s.posted++;
	return 0;
}

static void say(struct ibv_send_wr *wr, enum rs_op op, uint32_t value)
{
	wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr->imm_data = htobe32(rs_msg_build(op, value));
}

int rs_stream_post_data(struct rsock *rs, const struct rs_sge *to,
			uint32_t bytes, bool inlined, const void *data,
			bool plain)
{
	struct rs_stream *s = &rs->s;
	uint32_t first = u32_min(bytes, s->tx.size - s->tx.head);
	struct ibv_sge sge[2] = {
		{.addr = (uintptr_t)s->tx_ring + s->tx.head,
		 .length = first,
		 .lkey = s->send_mr->lkey},
		{.addr = (uintptr_t)s->tx_ring,
		 .length = bytes - first,
		 .lkey = s->send_mr->lkey},
	};
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE,
		.sg_list = sge,
		.num_sge = first < bytes ? 2 : 1,
		.wr.rdma = {.remote_addr = to->addr, .rkey = to->key},
	};

	if (!plain)
		say(&wr, RS_OP_DATA, bytes);
	if (inlined) {
		sge[0] = (struct ibv_sge){.addr = (uintptr_t)data,
					  .length = bytes};
		wr.num_sge = 1;
		wr.send_flags = IBV_SEND_INLINE;
	}
	return post(rs, &wr, inlined ? 0 : bytes);
}

int rs_stream_post_entry(struct rsock *rs, enum rs_op op, uint32_t value,
			 const uint8_t *entry, uint32_t bytes, uint64_t addr)
{
	struct ibv_sge sge = {.addr = (uintptr_t)entry, .length = bytes};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = bytes ? 1 : 0,
		.send_flags = IBV_SEND_INLINE,
		.wr.rdma = {.remote_addr = addr, .rkey = rs->s.peer.slots.key},
	};

	say(&wr, op, value);
	return post(rs, &wr, 0);
}

int rs_stream_post_ctrl(struct rsock *rs, enum rs_ctrl ctrl)
{
	return rs_stream_post_entry(rs, RS_OP_CTRL, ctrl, NULL, 0,
				    rs->s.peer.slots.addr);
}

static int post_recvs(struct rsock *rs, unsigned count)
{
	struct ibv_recv_wr wr = {.wr_id = WR_RECV}, *bad;

	while (count--) {
		int err = ibv_post_recv(rs->id->qp, &wr, &bad);

		if (err)
			return -err;
	}
	return 0;
}

/* ---- what the peer is told ----------------------------------------------- */

void rs_stream_tell(struct rsock *rs)
{
	struct rs_stream *s = &rs->s;
	uint8_t entry[RS_SGE_BYTES];
	struct rs_update u;
	uint64_t addr =
		s->peer.slots.addr + (uint64_t)s->remote_slot * RS_SGE_BYTES;

	if (rs->state != RS_CONNECTED || rs->peer_gone || rs->said_bye)
		return;
	/* The last entry is for what the application has to say. */
	if (s->tx.queue_free < 2 || !rs_rx_due(&s->rx, &u))
		return;
	if (u.grants) {
		struct rs_sge sge = {
			.addr = (uintptr_t)s->rx_ring + u.offset,
			.key = s->shared_mr->rkey,
			.length = u.length,
		};

		rs_sge_build(&sge, s->peer.big, entry);
	}
	if (rs_stream_post_entry(rs, RS_OP_CREDIT, u.limit, entry,
				 u.grants ? RS_SGE_BYTES : 0, addr))
		return;
	rs_rx_told(&s->rx, &u);
	if (u.grants)
		s->remote_slot = (s->remote_slot + 1) % s->peer.slots.length;
}

/* ---- completions --------------------------------------------------------- */

void rs_stream_fail(struct rsock *rs, int err)
{
	if (rs->state == RS_FAILED)
		return;
	rs->state = RS_FAILED;
	rs->err = err;
	rs->so_error = err;
	rs_kick(rs);
}

static int on_message(struct rsock *rs, uint32_t word)
{
	struct rs_msg msg;
	int err = rs_msg_parse(word, &msg);

	if (err)
		return err;
	switch (msg.op) {
	case RS_OP_DATA:
		return rs->peer_done ? -EBADMSG
				     : rs_rx_data(&rs->s.rx, msg.value);
	case RS_OP_CREDIT:
		return rs_tx_credit(&rs->s.tx, msg.value);
	case RS_OP_IOMAP:
		/* Whoever writes looks into the table. */
		return msg.value < rs->opt.iomap_count ? 0 : -EBADMSG;
	case RS_OP_CTRL:
		if (msg.value != RS_CTRL_KEEPALIVE)
			rs->peer_done = true;
		if (msg.value == RS_CTRL_DISCONNECT)
			rs->peer_gone = true;
		return 0;
	}
	return -EBADMSG;
}

static void on_completion(struct rsock *rs, const struct ibv_wc *wc)
{
	bool is_recv = wc->wr_id & WR_RECV;
	int err;

	if (!is_recv) {
		rs_tx_completed(&rs->s.tx, (uint32_t)wc->wr_id);
		rs->s.posted--;
	}
	if (wc->status != IBV_WC_SUCCESS) {
		/* After a goodbye the peer's queue pair just goes away. */
		if (rs->state == RS_CONNECTED && !rs->peer_gone &&
		    !rs->said_bye)
			rs_stream_fail(rs, ECONNRESET);
		return;
	}
	if (!is_recv || rs->state == RS_FAILED)
		return;
	err = wc->wc_flags & IBV_WC_WITH_IMM
		      ? on_message(rs, be32toh(wc->imm_data))
		      : -EBADMSG;
	if (!err)
		err = post_recvs(rs, 1);
	if (err == -EBADMSG) {
		log_warn("rsocket", "a peer breaks the protocol: %#x",
			 be32toh(wc->imm_data));
		rs_stream_fail(rs, EPROTO);
		(void)rdma_disconnect(rs->id); /* it may be gone already */
	} else if (err && !rs->peer_gone) {
		rs_stream_fail(rs, ECONNRESET);
	}
}

static void take_signs(struct rsock *rs)
{
	struct rs_stream *s = &rs->s;
	struct ibv_cq *cq;
	void *context;
	unsigned n = 0;

	if (!s->armed)
		return;
	while (!ibv_get_cq_event(s->channel, &cq, &context))
		n++;
	if (n) {
		ibv_ack_cq_events(s->cq, n);
		s->armed = false;
	}
}

bool rs_stream_progress(struct rsock *rs)
{
	struct ibv_wc wc[RS_WCS];
	bool moved = false;
	int n;

	if (!rs->s.cq)
		return false;
	take_signs(rs);
	while ((n = ibv_poll_cq(rs->s.cq, RS_WCS, wc)) > 0) {
		moved = true;
		for (int i = 0; i < n; i++)
			on_completion(rs, &wc[i]);
		if (n < RS_WCS)
			break;
	}
	rs_stream_tell(rs);
	if (moved)
		rs_kick(rs);
	return moved;
}

void rs_stream_arm(struct rsock *rs)
{
	if (!rs->s.cq || rs->s.armed)
		return;
	if (ibv_req_notify_cq(rs->s.cq, 0))
		rs_stream_fail(rs, EIO);
	rs->s.armed = true;
}

/* ---- questions ----------------------------------------------------------- */

/* Data, the end of data, or an error. */
bool rs_can_recv(struct rsock *rs)
{
	return rs->s.rx.ready || rs->rd_shut || rs->peer_done ||
	       rs->state != RS_CONNECTED;
}

bool rs_can_send(struct rsock *rs)
{
	return rs->state != RS_CONNECTED || rs->wr_shut || rs->peer_gone ||
	       rs_tx_room(&rs->s.tx);
}

bool rs_sends_done(struct rsock *rs)
{
	return !rs->s.posted || rs->state != RS_CONNECTED;
}

bool rs_is_settled(struct rsock *rs)
{
	return rs->state != RS_CONNECTING;
}

/* ---- start --------------------------------------------------------------- */

void rs_stream_hello(const struct rsock *rs, uint8_t out[RS_HELLO_BYTES])
{
	const struct rs_stream *s = &rs->s;
	struct rs_hello hello = {
		.credits = (uint16_t)rs->opt.rq_size,
		.iomap_count = (uint16_t)rs->opt.iomap_count,
		.slots = {.addr = (uintptr_t)s->tx.slots,
			  .key = s->shared_mr->rkey,
			  .length = RS_SLOTS},
		.buf = {.addr = (uintptr_t)s->rx_ring,
			.key = s->shared_mr->rkey,
			.length = s->rx.granted},
	};

	rs_hello_build(&hello, out);
}

void rs_stream_start(struct rsock *rs, const struct rs_hello *peer)
{
	rs->s.peer = *peer;
	rs->s.remote_slot = 1 % peer->slots.length;
	rs_tx_start(&rs->s.tx, peer);
}

int rs_stream_post_first(struct rsock *rs)
{
	return post_recvs(rs, rs->opt.rq_size + RS_CTRL_QUEUE);
}
