/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The completer: what comes back for requests (IBA 9.7.5.1, 9.7.6): ACKs and
 * NAKs, READ responses, results of atomics and walks. Completes requests in the
 * order in which they were posted.
 */
#include <errno.h>

#include "access_priv.h"
#include "walk_request.h"

/* RNR timer codes in units of 10 microseconds (IBA table 45). */
static const uint32_t rnr_delay_10us[32] = {
	65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	  32,
	48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024,  1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

/* The oldest request, if any packet of it was ever sent. */
static struct send_slot *oldest(struct nic_qp *qp)
{
	struct send_slot *slot = sendq_slot(&qp->sq, qp->sq.tail);

	return qp->sq.tail != qp->sq.head && slot->has_psn ? slot : NULL;
}

/* A response was lost: ask again, once until something else happens. */
static void lost_response(struct nic_qp *qp, uint32_t psn)
{
	if (!requester_is_new_loss(qp, psn))
		return;
	requester_resend(qp);
}

static inline void complete(struct nic_qp *qp, struct send_slot *slot)
{
	ASSERT(wire_psn_is_within(qp->req.una_psn, slot->first_psn,
				  slot->last_psn));
	qp->req.una_psn = wire_psn_add(slot->last_psn, 1);
	qp->req.rd_outstanding -= slot->rd_count;
	slot->rd_count = 0;
	qp_complete_send(qp, IBV_WC_SUCCESS);
}

/*
 * Everything up to and including `psn` reached the peer. Returns false when a
 * READ or atomic among it has no answer yet: its response was lost.
 */
static bool acknowledge(struct nic_qp *qp, uint32_t psn)
{
	struct send_slot *slot;
	bool moved = false, ok = true;

	/* What a NAK says of the packets before it may be known already. That
	 * is no progress, and says nothing about answers. */
	if (wire_psn_diff(psn, qp->req.una_psn) < 0)
		return true;
	while ((slot = oldest(qp)) &&
	       wire_psn_diff(slot->first_psn, psn) <= 0) {
		if (slot_needs_response(slot) && !PLANTED(complete_lost_read)) {
			ok = false;
			break;
		}
		moved = true;
		if (wire_psn_diff(slot->last_psn, psn) > 0) {
			ASSERT(wire_psn_is_within(psn, qp->req.una_psn,
						  slot->last_psn));
			qp->req.una_psn = wire_psn_add(psn, 1);
			break;
		}
		complete(qp, slot);
	}
	if (moved)
		requester_progress(qp);
	return ok;
}

static void fail_oldest(struct nic_qp *qp, enum ibv_wc_status status)
{
	qp_complete_send(qp, status);
	qp_fail(qp);
}

static void on_nak(struct nic_qp *qp, const struct wire_pkt *pkt)
{
	count(qp->nic, NIC_C_naks_received);
	switch (pkt->syndrome) {
	case WIRE_NAK_PSN:
		/* Told to wait, it goes back anyway when the wait is over. */
		if (!qp->req.rnr_wait && requester_is_new_nak(qp))
			requester_resend(qp);
		return;
	case WIRE_NAK_INVALID:
		fail_oldest(qp, IBV_WC_REM_INV_REQ_ERR);
		return;
	case WIRE_NAK_ACCESS:
		fail_oldest(qp, IBV_WC_REM_ACCESS_ERR);
		return;
	case WIRE_NAK_OP:
		fail_oldest(qp, IBV_WC_REM_OP_ERR);
		return;
	default:
		fail_oldest(qp, IBV_WC_BAD_RESP_ERR);
	}
}

static void on_rnr(struct nic_qp *qp, const struct wire_pkt *pkt)
{
	struct requester *req = &qp->req;
	struct nic *nic = qp->nic;

	count(nic, NIC_C_rnr_naks_received);
	if (req->rnr_wait)
		return;
	requester_retry(qp, IBV_WC_RNR_RETRY_EXC_ERR);
	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)
		return;
	req->rnr_wait = true;
	req->restarted = false;
	timer_set(&nic->wheel, &req->timer,
		  env_now_ns(nic->env) +
			  rnr_delay_10us[pkt->syndrome & 0x1f] * 10000ull);
}

/* An ACK packet: its PSN acknowledges, or is where things went wrong. */
static void on_ack(struct nic_qp *qp, const struct wire_pkt *pkt)
{
	if (wire_syndrome_is_ack(pkt->syndrome)) {
		if (!acknowledge(qp, pkt->psn))
			lost_response(qp, pkt->psn);
		return;
	}
	if (!acknowledge(qp, (pkt->psn - 1) & WIRE_PSN_MASK)) {
		lost_response(qp, pkt->psn);
		return;
	}
	if (!oldest(qp) || pkt->psn != qp->req.una_psn) {
		count(qp->nic, NIC_C_drop_response);
		return;
	}
	if (wire_syndrome_is_rnr(pkt->syndrome))
		on_rnr(qp, pkt);
	else
		on_nak(qp, pkt);
}

/* Responses must come in order; everything before them is acknowledged. */
static struct send_slot *expect_response(struct nic_qp *qp,
					 const struct wire_pkt *pkt)
{
	struct send_slot *slot = oldest(qp);

	/* Acknowledge what was sent before the request being answered. */
	while (slot && wire_psn_diff(slot->last_psn, pkt->psn) < 0) {
		if (!acknowledge(qp, slot->last_psn)) {
			lost_response(qp, pkt->psn);
			return NULL;
		}
		slot = oldest(qp);
	}
	if (!slot || !slot_needs_response(slot)) {
		count(qp->nic, NIC_C_drop_response);
		return NULL;
	}
	if (pkt->psn != qp->req.una_psn && !PLANTED(stale_psn)) {
		count(qp->nic, NIC_C_drop_multi);
		if (wire_psn_diff(pkt->psn, qp->req.una_psn) > 0)
			lost_response(qp, pkt->psn);
		return NULL;
	}
	return slot;
}

static void on_read_response(struct nic_qp *qp, const struct wire_pkt *pkt)
{
	struct send_slot *slot = expect_response(qp, pkt);
	uint32_t i, offset, expected;
	bool last, ends;

	if (!slot)
		return;
	i = (qp->req.una_psn - slot->first_psn) & WIRE_PSN_MASK;
	offset = i * qp->mtu;
	expected = u32_min(qp->mtu, slot->length - offset);
	last = qp->req.una_psn == slot->last_psn;
	ends = last || qp_ends_chunk(qp, i);
	if (slot->opcode != WQE_READ || pkt->payload_len != expected ||
	    ends != !!(wire_opcodes[pkt->opcode].flags & WIRE_OP_LAST)) {
		if (PLANTED(stale_psn))
			return;
		fail_oldest(qp, IBV_WC_BAD_RESP_ERR);
		return;
	}
	if (sendq_scatter(qp, &slot->data, offset, pkt->payload,
			  pkt->payload_len)) {
		fail_oldest(qp, IBV_WC_LOC_PROT_ERR);
		return;
	}
	if (last) {
		complete(qp, slot);
	} else {
		qp->req.una_psn = wire_psn_add(qp->req.una_psn, 1);
		requester_assert_window(&qp->req);
		if (ends && slot->rd_count) {
			slot->rd_count--;
			qp->req.rd_outstanding--;
		}
	}
	requester_progress(qp);
}

/*
 * The answer that the oldest request waits for, whole in one packet, to memory
 * whose key has not changed since the request was sent: what on_read_response
 * does, for what comes most. False: let that decide.
 */
static inline bool take_response(struct nic_qp *qp, const struct wire_pkt *pkt)
{
	struct send_slot *slot = sendq_slot(&qp->sq, qp->sq.tail);
	uint32_t psn = qp->req.una_psn;

	if (pkt->opcode != WIRE_RC_READ_RESP_ONLY || pkt->psn != psn ||
	    qp->sq.tail == qp->sq.head || !slot->has_psn ||
	    slot->first_psn != psn || slot->last_psn != psn ||
	    slot->opcode != WQE_READ || slot->length != pkt->payload_len ||
	    slot->epoch != qp->nic->keys.epoch ||
	    touch_write(slot->host, pkt->payload, pkt->payload_len))
		return false;
	complete(qp, slot);
	requester_progress(qp);
	return true;
}

static void on_atomic_ack(struct nic_qp *qp, const struct wire_pkt *pkt)
{
	struct send_slot *slot = expect_response(qp, pkt);

	if (!slot)
		return;
	if (!(wqe_op_get(slot->opcode)->flags & WQE_OP_ATOMIC)) {
		fail_oldest(qp, IBV_WC_BAD_RESP_ERR);
		return;
	}
	if (sendq_scatter(qp, &slot->data, 0, (const uint8_t *)&pkt->original,
			  sizeof(pkt->original))) {
		fail_oldest(qp, IBV_WC_LOC_PROT_ERR);
		return;
	}
	complete(qp, slot);
	requester_progress(qp);
}

static void on_walk_answer(struct nic_qp *qp, const struct wire_pkt *pkt)
{
	struct send_slot *slot = expect_response(qp, pkt);
	int err;

	if (!slot)
		return;
	err = walk_accept(qp, slot, pkt);
	if (err) {
		fail_oldest(qp, err == -EFAULT ? IBV_WC_LOC_PROT_ERR
					       : IBV_WC_BAD_RESP_ERR);
		return;
	}
	qp->req.alone = false;
	complete(qp, slot);
	requester_progress(qp);
}

HOT void completer_input(struct nic_qp *qp, const struct wire_pkt *pkt)
{
	const struct requester *req = &qp->req;

	/* Only what answers packets that were sent: una..next-1. */
	if (wire_psn_diff(pkt->psn, req->una_psn) < 0 ||
	    wire_psn_diff(pkt->psn, req->next_psn) >= 0) {
		if (!qp->probe.waits)
			count(qp->nic, NIC_C_drop_response);
		qp->probe.waits = false;
		return;
	}
	/* A mark on a request came back as BECN, one on an answer is fresh. */
	if (UNLIKELY(qp->lossy) &&
	    (pkt->becn || (pkt->tos & WIRE_ECN_MASK) == WIRE_CE)) {
		count(qp->nic, NIC_C_marks_received);
		if (congestion_marked(&qp->cc, req->next_psn))
			count(qp->nic, NIC_C_window_cuts);
	}
	if (LIKELY(take_response(qp, pkt)))
		goto sent_on;
	switch (wire_opcodes[pkt->opcode].kind) {
	case WIRE_ACK:
		on_ack(qp, pkt);
		break;
	case WIRE_READ_RESP:
		on_read_response(qp, pkt);
		break;
	case WIRE_ATOMIC_ACK:
		on_atomic_ack(qp, pkt);
		break;
	case WIRE_WALK_ANSWER:
		on_walk_answer(qp, pkt);
		break;
	default:
		count(qp->nic, NIC_C_drop_response);
		return;
	}
sent_on:
	if (requester_has_work(qp))
		qp_make_ready(qp);
}
