/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requester: turns send requests into packets, in order, within the window,
 * and sends again from the oldest unacknowledged packet when something is lost
 * (IBA 9.7.5). What comes back is completer.c's.
 */
#include <errno.h>
#include <string.h>

#include "access_priv.h"
#include "direct_priv.h"
#include "requester_timer_priv.h"
#include "turn_priv.h"
#include "walk_request.h"
#include "wqe_shape.h"

STATIC_ASSERT(NIC_MSG_BYTES_MAX / NIC_MTU_MIN <= NIC_WINDOW_PSNS,
	      "the numbers of one message fit the window");

enum step {
	STEP_SENT,  /* go on */
	STEP_WAIT,  /* nothing may be sent now */
	STEP_FULL,  /* the path takes no more */
	STEP_ERROR, /* the queue pair failed */
};

static uint32_t packet_count(const struct nic_qp *qp, uint32_t length)
{
	return length <= qp->mtu ? 1 : (length + qp->mtu - 1) / qp->mtu;
}

void requester_progress(struct nic_qp *qp)
{
	struct requester *req = &qp->req;

	req->restarted = false;
	req->repeats = 0;
	req->stalled_ns = 0;
	req->waited = 0;
	req->retry_left = qp->retry_cnt;
	req->rnr_left = qp->rnr_retry;
	if (UNLIKELY(qp->lossy) &&
	    congestion_answered(&qp->cc, req->una_psn,
				requester_in_flight(req)))
		congestion_sample(&qp->cc, env_now_ns(qp->nic->env));
	if (req->una_psn != req->next_psn && !req->rnr_wait) {
		requester_start_timer(qp);
		requester_start_rto(qp);
	}
}

/* A slot that was sent before and is sent again counts anew. */
static void uncount_reads(struct nic_qp *qp)
{
	uint32_t i;

	for (i = qp->sq.tail; i != qp->sq.head; i++) {
		struct send_slot *slot = sendq_slot(&qp->sq, i);

		if (!slot->has_psn)
			break;
		slot->rd_count = 0;
	}
	qp->req.rd_outstanding = 0;
}

void requester_go_back(struct nic_qp *qp)
{
	struct requester *req = &qp->req;
	const struct send_slot *slot = sendq_slot(&qp->sq, qp->sq.tail);

	count(qp->nic, NIC_C_retries);
	uncount_reads(qp);
	requester_assert_window(req);
	qp->sq.send = qp->sq.tail;
	req->send_pkt = 0;
	if (qp->sq.tail != qp->sq.head && slot->has_psn) {
		ASSERT(wire_psn_is_within(req->una_psn, slot->first_psn,
					  slot->last_psn));
		req->send_pkt =
			(req->una_psn - slot->first_psn) & WIRE_PSN_MASK;
	}
	if (PLANTED(retry_from_next) && slot->has_psn &&
	    slot->last_psn != slot->first_psn && req->una_psn != slot->last_psn)
		req->send_pkt++;
	req->restarted = true;
	if (qp->lossy)
		req->restart_ns = env_now_ns(qp->nic->env);
	qp_make_ready(qp);
}

/*
 * Whether a response that came too early tells of a loss that is not known yet.
 * Responses come in order; numbers that start over are those to what was sent
 * again, without the one that we wait for.
 */
bool requester_is_new_loss(struct nic_qp *qp, uint32_t psn)
{
	struct requester *req = &qp->req;
	bool again = qp->lossy && wire_psn_diff(psn, req->ahead_psn) <= 0;

	req->ahead_psn = psn;
	return !req->restarted || again;
}

/* The same for a NAK, which can be about what was sent again only after the
 * shortest round trip. */
bool requester_is_new_nak(const struct nic_qp *qp)
{
	const struct requester *req = &qp->req;

	return !req->restarted || (qp->lossy && qp->cc.min_rtt_ns &&
				   env_now_ns(qp->nic->env) - req->restart_ns >=
					   qp->cc.min_rtt_ns);
}

void requester_retry(struct nic_qp *qp, enum ibv_wc_status exhausted)
{
	struct requester *req = &qp->req;
	uint8_t *left = exhausted == IBV_WC_RNR_RETRY_EXC_ERR
				? &req->rnr_left
				: &req->retry_left;

	/* For RNR, and only for it, seven means for ever (IBA 9.7.5.2.8). */
	if (*left == 0 && !(left == &req->rnr_left && qp->rnr_retry == 7)) {
		count(qp->nic, NIC_C_retry_exceeded);
		req->gave_up = left == &req->retry_left;
		qp_complete_send(qp, exhausted);
		qp_fail(qp);
		return;
	}
	if (*left)
		(*left)--;
	requester_go_back(qp);
}

void requester_resend(struct nic_qp *qp)
{
	/* A network that loses may lose the same packet several times within
	 * a timeout; whether to give up is the timer's to say. But a peer that
	 * answers everything except one request is not asked for it at the
	 * speed of its answers. */
	if (!qp->lossy) {
		requester_retry(qp, IBV_WC_RETRY_EXC_ERR);
		return;
	}
	if (qp->req.repeats == NIC_REPEATS_MAX)
		return;
	qp->req.repeats++;
	congestion_lost(&qp->cc, qp->req.next_psn, false);
	requester_go_back(qp);
}

static inline bool has_queued(const struct nic_qp *qp)
{
	return qp->sq.send != qp->sq.head && !qp->req.rnr_wait;
}

bool requester_has_work(const struct nic_qp *qp)
{
	return has_queued(qp) ||
	       (UNLIKELY(qp->managed_sq) && chain_has_work(qp));
}

/* ---- one packet --------------------------------------------------------- */

static uint8_t packet_opcode(const struct wqe_op *info, uint32_t i, uint32_t n)
{
	if (n == 1)
		return info->wire[WQE_WIRE_ONLY];
	if (i == 0)
		return info->wire[WQE_WIRE_FIRST];
	return info->wire[i == n - 1 ? WQE_WIRE_LAST : WQE_WIRE_MIDDLE];
}

/* A quarter of the window may wait for its acknowledgement to be asked for: a
 * window that is cut then still has room. */
static uint32_t ask_every(const struct nic_qp *qp)
{
	return qp->lossy ? u32_min(qp->cc.window / 4, NIC_ACK_EVERY_PACKETS)
			 : NIC_ACK_EVERY_PACKETS;
}

/* Fills the request packet `i` of `n` into qp->out. */
static void fill_packet(struct nic_qp *qp, const struct send_slot *slot,
			const struct send_op *op, uint32_t i, uint32_t n)
{
	struct wire_pkt *out = &qp->out;
	uint32_t offset = i * qp->mtu;
	bool last = i == n - 1;

	out->opcode = packet_opcode(op->info, i, n);
	out->psn = wire_psn_add(slot->first_psn, i);
	out->dest_qpn = qp->dest_qpn;
	/* Only a message that ends in a completion can ask for an event. */
	out->solicited = last && (op->flags & WQE_CTRL_SOLICITED) &&
			 (wire_opcodes[out->opcode].flags & WIRE_OP_RECV);
	out->rkey = op->info->flags & WQE_OP_KEY ? op->imm : op->rkey;
	out->va = op->va;
	out->dma_len = op->length;
	out->payload = NULL;
	out->payload_len = u32_min(qp->mtu, op->length - offset);
	memcpy(&out->imm, &op->imm, sizeof(out->imm));
	/* Asking for it costs the peer an acknowledgement: only at the end of
	 * a message, and often enough to keep the window open. */
	out->ack_req = last || ++qp->req.unasked >= ask_every(qp);
	out->becn = false;
	if (out->ack_req)
		qp->req.unasked = 0;
}

/* READs and atomics: one packet, whatever the length of the answer. A READ
 * that was answered in part asks for the rest. */
static void fill_response_request(struct nic_qp *qp,
				  const struct send_slot *slot,
				  const struct send_op *op, uint32_t i,
				  uint32_t end)
{
	struct wire_pkt *out = &qp->out;

	out->opcode = op->info->wire[WQE_WIRE_ONLY];
	out->psn = wire_psn_add(slot->first_psn, i);
	out->dest_qpn = qp->dest_qpn;
	out->solicited = false;
	out->ack_req = true;
	out->rkey = op->rkey;
	out->va = op->va + (uint64_t)i * qp->mtu;
	out->dma_len = u32_min(op->length, end * qp->mtu) - i * qp->mtu;
	out->becn = false;
	out->atomic = op->atomic;
	out->payload = NULL;
	out->payload_len = 0;
}

static enum step fail_request(struct nic_qp *qp, enum ibv_wc_status status)
{
	/* What was sent before it must be answered first: its completion
	 * would otherwise overtake theirs. */
	if (qp->sq.tail != qp->sq.send)
		return STEP_WAIT;
	if (qp->managed_sq)
		count(qp->nic, NIC_C_chain_faults);
	qp_complete_send(qp, status);
	qp_fail_sends(qp);
	return STEP_ERROR;
}

/* The request of this slot begins: it gets the next `n` packet numbers. `host`
 * is where its answer goes, if that is one place. */
static inline void begin_request(struct nic_qp *qp, struct send_slot *slot,
				 uint32_t length, struct send_data data,
				 uint8_t *host, uint32_t n)
{
	struct requester *req = &qp->req;

	if (req->next_psn == req->una_psn) {
		requester_start_timer(qp);
		requester_start_rto(qp);
	}
	slot->length = length;
	slot->data = data;
	slot->host = host;
	slot->epoch = host ? qp->nic->keys.epoch : 0;
	slot->first_psn = req->next_psn;
	slot->last_psn = wire_psn_add(req->next_psn, n - 1);
	slot->has_psn = true;
	req->next_psn = wire_psn_add(req->next_psn, n);
	requester_assert_window(req);
}

/* May this slot start now? Gives it its packet numbers. */
static enum step start_slot(struct nic_qp *qp, struct send_slot *slot,
			    const struct send_op *op)
{
	struct requester *req = &qp->req;
	uint32_t n = packet_count(qp, op->length);
	uint32_t in_flight = requester_in_flight(req);
	uint32_t access =
		op->info->flags & WQE_OP_RESPONSE ? IBV_ACCESS_LOCAL_WRITE : 0;
	uint8_t *host = NULL;

	if ((op->info->flags & WQE_OP_WALK) &&
	    !walk_has_room(qp, op->length, op->walk.send_bytes))
		return fail_request(qp, IBV_WC_LOC_LEN_ERR);
	/* A single packet is checked when its bytes are fetched. */
	if ((n > 1 || access) && sendq_check(qp, op, access, &host))
		return fail_request(qp, IBV_WC_LOC_PROT_ERR);
	if (in_flight && in_flight + n > NIC_WINDOW_PSNS)
		return STEP_WAIT;
	slot->opcode = op->opcode;
	begin_request(qp, slot, op->length, op->data, host, n);
	req->alone = (op->info->flags & WQE_OP_WALK) && op->walk.forward;
	return STEP_SENT;
}

/* Where the piece that starts with packet `i` of `n` ends: a READ over a
 * network that loses is asked for in pieces, everything else that is answered
 * at once. */
static uint32_t piece_end(const struct nic_qp *qp, uint32_t i, uint32_t n)
{
	if (LIKELY(!qp->lossy))
		return n;
	return u32_min(n, (i / NIC_READ_CHUNK_PACKETS + 1) *
				  NIC_READ_CHUNK_PACKETS);
}

/* May packets `psn` to `psn + count - 1` be on the way now? */
static bool fits_window(const struct nic_qp *qp, uint32_t psn, uint32_t count,
			bool one)
{
	const struct requester *req = &qp->req;
	uint32_t flying = (psn - req->una_psn) & WIRE_PSN_MASK;

	if (wire_psn_diff(psn, req->una_psn) <= 0)
		return true;
	if (UNLIKELY(qp->lossy))
		return flying + count <= qp->cc.window;
	return one || flying < NIC_WINDOW_PACKETS;
}

static void time_packet(struct nic_qp *qp, uint32_t last_psn)
{
	if (UNLIKELY(qp->lossy) && congestion_wants_time(&qp->cc) &&
	    qp->out.ack_req)
		congestion_time(&qp->cc, last_psn, env_now_ns(qp->nic->env));
}

/* The request for packets `i` to `end` - 1 of an answer. */
static bool send_response_request(struct nic_qp *qp,
				  const struct send_slot *slot,
				  const struct send_op *op, uint32_t i,
				  uint32_t end)
{
	const struct wire_stamp *stamp =
		wire_stamps_find(&qp->nic->stamps, qp->flow,
				 op->info->wire[WQE_WIRE_ONLY], false, 0);
	struct wire_vary v;

	if (!stamp || qp->lossy) {
		fill_response_request(qp, slot, op, i, end);
		return nic_send(qp) > 0;
	}
	v = (struct wire_vary){
		.ecn_qpn = qp->dest_qpn,
		.ack_psn = wire_vary_ack(wire_psn_add(slot->first_psn, i)),
		.va = op->va + (uint64_t)i * qp->mtu,
		.rkey = op->rkey,
		.dma_len = u32_min(op->length, end * qp->mtu) - i * qp->mtu,
	};
	return nic_send_stamped(qp, stamp, &v) > 0;
}

/* Packet `i` of `n` of a SEND or WRITE. */
static enum step send_data_packet(struct nic_qp *qp,
				  const struct send_slot *slot,
				  const struct send_op *op, uint32_t i,
				  uint32_t n)
{
	struct env *env = qp->nic->env;
	uint8_t *frame = env->ops->tx_begin(
		env, qp->path, wire_frame_bound(u32_min(qp->mtu, op->length)));
	size_t header;

	if (UNLIKELY(!frame))
		return STEP_FULL;
	fill_packet(qp, slot, op, i, n);
	header =
		wire_header_bytes(qp->out.opcode, wire_is_ipv4(qp->out.dst_ip));
	if (UNLIKELY(sendq_gather(qp, &op->data, i * qp->mtu, frame + header,
				  qp->out.payload_len))) {
		env->ops->tx_end(env, qp->path, 0);
		return fail_request(qp, IBV_WC_LOC_PROT_ERR);
	}
	nic_tx(qp, qp->path, frame);
	return STEP_SENT;
}

/* The request for packets `i` to `end` - 1 of an answer, of any kind. */
static enum step send_request(struct nic_qp *qp, const struct send_slot *slot,
			      const struct send_op *op, uint32_t i,
			      uint32_t end)
{
	int sent;

	if (LIKELY(!(op->info->flags & WQE_OP_WALK)))
		return LIKELY(send_response_request(qp, slot, op, i, end))
			       ? STEP_SENT
			       : STEP_FULL;
	fill_response_request(qp, slot, op, i, end);
	sent = walk_send(qp, slot, op);
	if (sent < 0)
		return fail_request(qp, IBV_WC_LOC_PROT_ERR);
	return sent ? STEP_SENT : STEP_FULL;
}

static enum step send_packets(struct nic_qp *qp, struct send_slot *slot,
			      const struct send_op *op, uint32_t *budget)
{
	struct requester *req = &qp->req;
	uint32_t n = packet_count(qp, slot->length);
	bool one = slot_needs_response(slot);
	enum step s;

	ASSERT(wire_psn_add(slot->first_psn, n - 1) == slot->last_psn);
	while (req->send_pkt < n) {
		uint32_t psn = wire_psn_add(slot->first_psn, req->send_pkt);
		uint32_t end = one ? piece_end(qp, req->send_pkt, n)
				   : req->send_pkt + 1;

		if (*budget == 0)
			return STEP_SENT;
		if (!fits_window(qp, psn, end - req->send_pkt, one) ||
		    (one && req->rd_outstanding >= qp->max_rd_atomic))
			return STEP_WAIT;
		if (one) {
			s = send_request(qp, slot, op, req->send_pkt, end);
			if (UNLIKELY(s != STEP_SENT))
				return s;
			slot->rd_count++;
			req->rd_outstanding++;
		} else {
			s = send_data_packet(qp, slot, op, req->send_pkt, n);
			if (UNLIKELY(s != STEP_SENT))
				return s;
		}
		time_packet(qp, wire_psn_add(slot->first_psn, end - 1));
		(*budget)--;
		req->send_pkt = end;
	}
	return STEP_SENT;
}

/* Requests that never leave this NIC, and those that mapped memory serves. They
 * execute only when everything before them is done. */
static enum step run_local(struct nic_qp *qp, const struct send_op *op)
{
	int err = 0;

	if (op->opcode == WQE_BIND_MW)
		err = mw_bind(qp, &op->bind);
	else if (op->opcode == WQE_LOCAL_INVAL)
		err = key_invalidate(qp, op->imm);
	if (err) {
		qp_complete_send(qp, IBV_WC_MW_BIND_ERR);
		qp_fail(qp);
		return STEP_ERROR;
	}
	qp_complete_send(qp, IBV_WC_SUCCESS);
	return STEP_SENT;
}

static enum step run_datagram(struct nic_qp *qp, struct send_slot *slot,
			      const struct send_op *op)
{
	int sent = ud_send(qp, slot, op);

	if (sent == 0)
		return STEP_FULL;
	if (sent < 0) {
		qp_complete_send(qp, sent == -EMSGSIZE ? IBV_WC_LOC_LEN_ERR
						       : IBV_WC_LOC_PROT_ERR);
		qp_fail_sends(qp);
		return STEP_ERROR;
	}
	qp_complete_send(qp, IBV_WC_SUCCESS);
	return STEP_SENT;
}

static enum step try_direct(struct nic_qp *qp, const struct send_op *op,
			    uint32_t *budget)
{
	int done = direct_execute(qp, op);

	if (done == 0)
		return STEP_WAIT;
	if (done < 0) {
		/* -EINPROGRESS: nobody knows whether it was done, as after a
		 * request without an answer; who is refused may try again. */
		qp_complete_send(qp, done == -EFAULT ? IBV_WC_LOC_PROT_ERR
				     : done == -EINPROGRESS
					     ? IBV_WC_REM_ABORT_ERR
					     : IBV_WC_REM_ACCESS_ERR);
		qp_fail(qp);
		return STEP_ERROR;
	}
	if (done == 2)
		*budget -= u32_min(*budget, packet_count(qp, op->length));
	qp_complete_send(qp, IBV_WC_SUCCESS);
	return STEP_SENT;
}

/* Before the first packet of a request; *ended: it is complete already. */
static enum step begin_slot(struct nic_qp *qp, struct send_slot *slot,
			    struct send_op *op, bool *ended, uint32_t *budget)
{
	struct requester *req = &qp->req;
	bool first_of_all = qp->sq.tail == qp->sq.send;
	enum step s;

	*ended = true;
	if (qp->state == IBV_QPS_SQD)
		return STEP_WAIT; /* draining: nothing new starts */
	if (sendq_decode(&qp->sq, slot, op))
		return fail_request(qp, IBV_WC_LOC_QP_OP_ERR);
	if (qp->type == IBV_QPT_UD)
		return run_datagram(qp, slot, op);
	if ((op->flags & WQE_CTRL_FENCE) && req->rd_outstanding)
		return STEP_WAIT;
	if ((op->info->flags & WQE_OP_WALK) && op->walk.forward &&
	    !first_of_all)
		return STEP_WAIT;
	if (op->info->flags & WQE_OP_LOCAL)
		return first_of_all ? run_local(qp, op) : STEP_WAIT;
	if (qp->peer_gone)
		return fail_request(qp, IBV_WC_RETRY_EXC_ERR);
	if (qp->nic->env->ops->direct_find && !first_of_all &&
	    direct_is_worth_waiting(qp, op))
		return STEP_WAIT;
	if (qp->nic->env->ops->direct_find && first_of_all) {
		s = try_direct(qp, op, budget);
		if (s != STEP_WAIT)
			return s;
	}
	*ended = false;
	return start_slot(qp, slot, op);
}

static enum step run_slot(struct nic_qp *qp, struct send_slot *slot,
			  uint32_t *budget)
{
	struct requester *req = &qp->req;
	struct send_op op;
	enum step s;
	bool ended;

	if (!slot->has_psn) {
		if (UNLIKELY(req->alone))
			return STEP_WAIT;
		/* More READs than the peer keeps resources for must wait. */
		if (slot_needs_response(slot)) {
			if (qp->max_rd_atomic == 0)
				return fail_request(qp, IBV_WC_LOC_QP_OP_ERR);
			if (req->rd_outstanding >= qp->max_rd_atomic)
				return STEP_WAIT;
		}
		s = begin_slot(qp, slot, &op, &ended, budget);
		if (s != STEP_SENT || ended)
			return s;
	} else if (sendq_decode_again(&qp->sq, slot, &op)) {
		return fail_request(qp, IBV_WC_LOC_QP_OP_ERR);
	}
	/* Late acknowledgements may have overtaken a retransmission. */
	if (qp->sq.send == qp->sq.tail &&
	    wire_psn_diff(req->una_psn, slot->first_psn) >
		    (int32_t)req->send_pkt)
		req->send_pkt =
			(req->una_psn - slot->first_psn) & WIRE_PSN_MASK;
	s = send_packets(qp, slot, &op, budget);
	if (s != STEP_SENT)
		return s;
	if (req->send_pkt >= packet_count(qp, slot->length)) {
		qp->sq.send++;
		req->send_pkt = 0;
	}
	return STEP_SENT;
}

/* Is what is next in the queue new, and nothing before it in its way? Then the
 * short ways may take it. */
static inline bool is_plain(const struct nic_qp *qp,
			    const struct send_slot *slot,
			    const struct wqe_ctrl *ctrl)
{
	return !(ctrl->flags & (WQE_CTRL_FENCE | WQE_CTRL_SOLICITED)) &&
	       !slot->has_psn && !slot->ah && qp->state == IBV_QPS_RTS &&
	       !qp->peer_gone && !qp->req.alone;
}

/* May one more READ be on its way, on a path that does not lose? */
static inline bool has_read_room(const struct nic_qp *qp)
{
	const struct requester *req = &qp->req;

	return !qp->lossy && req->rd_outstanding < qp->max_rd_atomic &&
	       requester_in_flight(req) < NIC_WINDOW_PSNS;
}

/*
 * A new READ that is answered by one packet, and not one for the direct port,
 * which serves only what is the oldest in the queue, nor one for the system:
 * what run_slot does, for what is posted most. False, and nothing happened: let
 * that decide.
 */
static inline bool run_read(struct nic_qp *qp)
{
	struct sendq *q = &qp->sq;
	struct send_slot *slot = sendq_slot(q, q->send);
	uint32_t at = slot->block * (uint32_t)WQE_BLOCK_BYTES;
	const struct plain_wqe *wqe = sendq_seg(q, at);
	uint32_t length = be32_get(wqe->data.byte_count);
	const struct wire_stamp *stamp = wire_stamps_find(
		&qp->nic->stamps, qp->flow, WIRE_RC_READ_REQ, false, 0);
	struct wire_vary v = {
		.ecn_qpn = qp->dest_qpn,
		.ack_psn = wire_vary_ack(qp->req.next_psn),
		.va = be64_get(wqe->raddr.addr),
		.rkey = be32_get(wqe->raddr.rkey),
		.dma_len = length,
	};
	uint8_t *host;

	if (!stamp || length == 0 || length > qp->mtu ||
	    length >= NIC_REACH_LARGE ||
	    (be32_get(wqe->ctrl.qpn_ds) & 0xff) != PLAIN_WQE_SEGS ||
	    !is_plain(qp, slot, &wqe->ctrl) || !has_read_room(qp) ||
	    (q->send == q->tail && !direct_is_far(qp, v.rkey)) ||
	    key_check(qp, be32_get(wqe->data.lkey), be64_get(wqe->data.addr),
		      length, IBV_ACCESS_LOCAL_WRITE, &host) != KEY_OK ||
	    nic_send_stamped(qp, stamp, &v) <= 0)
		return false;
	slot->opcode = WQE_READ;
	begin_request(
		qp, slot, length,
		(struct send_data){
			.off = at + (uint32_t)offsetof(struct plain_wqe, data),
			.segs = 1,
		},
		host, 1);
	slot->rd_count = 1;
	qp->req.rd_outstanding++;
	q->send++;
	return true;
}

/*
 * Where the data segment of a message stands in its request that is one packet
 * with at most one piece: SEND, SEND_IMM or WRITE_IMM. 0: it is something else.
 * *packet is what it is sent as.
 */
static inline uint32_t message_data(const struct plain_wqe *wqe,
				    uint8_t *packet, uint32_t *length)
{
	uint32_t opcode = be32_get(wqe->ctrl.opmod_idx_opcode) & 0xff;
	uint32_t segs = be32_get(wqe->ctrl.qpn_ds) & 0xff;
	const struct wqe_data *data = (const struct wqe_data *)&wqe->raddr;

	if (opcode == WQE_WRITE_IMM) {
		*packet = WIRE_RC_WRITE_ONLY_IMM;
		*length = be32_get(wqe->data.byte_count);
		return segs == PLAIN_WQE_SEGS ? offsetof(struct plain_wqe, data)
					      : 0;
	}
	if ((opcode != WQE_SEND && opcode != WQE_SEND_IMM) || segs == 0 ||
	    segs >= PLAIN_WQE_SEGS)
		return 0;
	*packet =
		opcode == WQE_SEND ? WIRE_RC_SEND_ONLY : WIRE_RC_SEND_ONLY_IMM;
	/* The piece, if any, stands where others have an address. */
	*length = segs == 1 ? 0 : be32_get(data->byte_count);
	return offsetof(struct plain_wqe, raddr);
}

/* A new message as above, like the calls of chains and their answers: what
 * run_slot does. False, and nothing happened: let that decide. */
static inline bool run_message(struct nic_qp *qp)
{
	struct sendq *q = &qp->sq;
	struct send_slot *slot = sendq_slot(q, q->send);
	uint32_t at = slot->block * (uint32_t)WQE_BLOCK_BYTES;
	const struct plain_wqe *wqe = sendq_seg(q, at);
	struct wire_vary v = {
		.ecn_qpn = qp->dest_qpn,
		.ack_psn = wire_vary_ack(qp->req.next_psn),
	};
	const struct wire_stamp *stamp;
	const struct wqe_data *data;
	uint32_t offset, length;
	uint8_t *host = NULL, packet;

	offset = message_data(wqe, &packet, &length);
	data = sendq_seg(q, at + offset);
	if (!offset || length > qp->mtu || !is_plain(qp, slot, &wqe->ctrl) ||
	    !fits_window(qp, qp->req.next_psn, 1, false))
		return false;
	stamp = wire_stamps_find(&qp->nic->stamps, qp->flow, packet, false,
				 length);
	if (!stamp ||
	    (length && key_check(qp, be32_get(data->lkey), be64_get(data->addr),
				 length, 0, &host) != KEY_OK))
		return false;
	v.va = be64_get(wqe->raddr.addr);
	v.rkey = be32_get(wqe->raddr.rkey);
	v.dma_len = length;
	memcpy(&v.imm, &wqe->ctrl.imm, sizeof(v.imm));
	v.payload = host;
	if (nic_send_stamped(qp, stamp, &v) <= 0)
		return false;
	slot->opcode = (uint8_t)(be32_get(wqe->ctrl.opmod_idx_opcode) & 0xff);
	begin_request(
		qp, slot, length,
		(struct send_data){.off = at + offset, .segs = length != 0},
		NULL, 1);
	qp->req.unasked = 0;
	q->send++;
	if (UNLIKELY(qp->lossy) && congestion_wants_time(&qp->cc))
		congestion_time(&qp->cc, slot->first_psn,
				env_now_ns(qp->nic->env));
	return true;
}

/* The short ways; which one, the request says. */
static inline bool run_quick(struct nic_qp *qp)
{
	const struct sendq *q = &qp->sq;
	uint32_t at = sendq_slot(q, q->send)->block * (uint32_t)WQE_BLOCK_BYTES;
	const struct wqe_ctrl *ctrl = sendq_seg(q, at);

	return (be32_get(ctrl->opmod_idx_opcode) & 0xff) == WQE_READ
		       ? run_read(qp)
		       : run_message(qp);
}

HOT bool requester_run_queued(struct nic_qp *qp)
{
	uint32_t budget = NIC_TURN_PACKETS;
	enum step s = STEP_SENT;

	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)
		return true;
	while (has_queued(qp) && s == STEP_SENT) {
		struct send_slot *slot = sendq_slot(&qp->sq, qp->sq.send);

		if (budget == 0 || turn_is_over(qp->nic)) {
			qp_make_ready(qp);
			return true;
		}
		if (qp->sq.send % NIC_DIRECT_AHEAD == 0 &&
		    qp->sq.head - qp->sq.send > 1 &&
		    qp->nic->env->ops->direct_find)
			direct_foretell(qp);
		if (run_quick(qp))
			budget--;
		else
			s = run_slot(qp, slot, &budget);
	}
	if (s == STEP_FULL)
		count(qp->nic, NIC_C_tx_stalls);
	return s != STEP_FULL;
}

HOT bool requester_run(struct nic_qp *qp)
{
	return UNLIKELY(qp->managed_sq) ? chain_run(qp)
					: requester_run_queued(qp);
}
