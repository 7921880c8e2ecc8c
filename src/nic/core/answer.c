/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The responder's answers: READ responses, results of atomics and walks, ACKs
 * and NAKs,
 * in packet-number order. What to answer is responder.c's.
 */
#include "access_priv.h"
#include "turn_priv.h"
#include "walk_priv.h"

bool responder_has_work(const struct nic_qp *qp)
{
	return qp->rsp.res_pending || qp->rsp.ack_due || qp->rsp.nak_due;
}

/*
 * Sends qp->out as an answer; returns what nic_send does. The sender of a
 * marked request learns it from the next answer.
 */
static int send_answer(struct nic_qp *qp)
{
	int sent;

	qp->out.dest_qpn = qp->dest_qpn;
	qp->out.solicited = false;
	qp->out.ack_req = false;
	qp->out.becn = qp->rsp.marked;
	qp->out.msn = qp->rsp.msn;
	sent = nic_send(qp);
	if (UNLIKELY(sent <= 0))
		return sent;
	if (UNLIKELY(qp->rsp.marked)) {
		count(qp->nic, NIC_C_marks_returned);
		qp->rsp.marked = false;
	}
	return 1;
}

/* Sends a packet without payload; false: the path is full. */
static bool send_short(struct nic_qp *qp, uint8_t opcode, uint8_t syndrome,
		       uint32_t psn)
{
	const struct wire_stamp *stamp =
		wire_stamps_find(&qp->nic->stamps, qp->flow, opcode, false, 0);

	if (LIKELY(stamp && !qp->rsp.marked)) {
		struct wire_vary v = {
			.ecn_qpn = qp->dest_qpn,
			.ack_psn = psn,
			.syndrome_msn = (uint32_t)syndrome << 24 | qp->rsp.msn,
		};

		return nic_send_stamped(qp, stamp, &v) > 0;
	}
	qp->out.opcode = opcode;
	qp->out.psn = psn;
	qp->out.syndrome = syndrome;
	qp->out.payload = NULL;
	qp->out.payload_len = 0;
	return send_answer(qp) > 0;
}

bool answer_nak(struct nic_qp *qp, uint8_t syndrome, uint32_t psn)
{
	if (!send_short(qp, WIRE_RC_ACK, syndrome, psn))
		return false;
	count(qp->nic, wire_syndrome_is_rnr(syndrome) ? NIC_C_rnr_naks_sent
						      : NIC_C_naks_sent);
	return true;
}

static uint8_t read_opcode(bool first, bool last)
{
	if (first)
		return last ? WIRE_RC_READ_RESP_ONLY : WIRE_RC_READ_RESP_FIRST;
	return last ? WIRE_RC_READ_RESP_LAST : WIRE_RC_READ_RESP_MIDDLE;
}

static int send_read_data(struct nic_qp *qp, const struct resp_res *res,
			  const uint8_t *src, uint32_t len)
{
	struct wire_pkt *out = &qp->out;
	uint8_t opcode =
		read_opcode(res->restart, res->next_psn == res->last_psn);
	const struct wire_stamp *stamp = wire_stamps_find(
		&qp->nic->stamps, qp->flow, opcode, false, len);

	if (LIKELY(stamp && !qp->rsp.marked)) {
		struct wire_vary v = {
			.ecn_qpn = qp->dest_qpn,
			.ack_psn = res->next_psn,
			.syndrome_msn = (uint32_t)WIRE_ACK_UNLIMITED << 24 |
					qp->rsp.msn,
			.payload = src,
		};

		return nic_send_stamped(qp, stamp, &v);
	}
	out->opcode = opcode;
	out->psn = res->next_psn;
	out->syndrome = WIRE_ACK_UNLIMITED;
	out->payload = src;
	out->payload_len = len;
	return send_answer(qp);
}

/* One packet of a READ response. Memory is read now, under a fresh check of
 * the key if any has changed: the region may be gone since the request came. */
static bool send_read_packet(struct nic_qp *qp, struct resp_res *res)
{
	uint32_t i = (res->next_psn - res->first_psn) & WIRE_PSN_MASK;
	uint32_t offset = i * qp->mtu;
	uint32_t len = u32_min(qp->mtu, res->length - offset);
	uint8_t *src = NULL;
	enum key_verdict v = KEY_OK;
	int sent;

	ASSERT(wire_psn_is_within(res->next_psn, res->first_psn,
				  res->last_psn));
	if (LIKELY(res->epoch == qp->nic->keys.epoch))
		src = res->host + offset;
	else if (len)
		v = key_check(qp, res->rkey, res->va + offset, len,
			      IBV_ACCESS_REMOTE_READ, &src);
	if (UNLIKELY(v != KEY_OK) && res->answered) {
		/* A copy of the request that the network kept until after the
		 * key was taken back; the requester has its answer. */
		count(qp->nic, NIC_C_drop_duplicate);
		res->next_psn = wire_psn_add(res->last_psn, 1);
		return true;
	}
	if (UNLIKELY(v != KEY_OK)) {
		key_count_denial(qp->nic, v);
		nak_refuse(qp, v == KEY_GONE ? WIRE_NAK_OP : WIRE_NAK_ACCESS,
			   res->next_psn);
		return true;
	}
	if (PLANTED(read_wrong_offset) && i > 0 && len > 1)
		src--;
	sent = send_read_data(qp, res, src, len);
	if (UNLIKELY(sent <= 0)) {
		if (sent == 0)
			return false;
		/* Unmapped under its key, perhaps since the request came. */
		count(qp->nic, NIC_C_deny_unmapped);
		nak_refuse(qp, WIRE_NAK_OP, res->next_psn);
		return true;
	}
	witness(qp, NIC_DEED_READ, res->next_psn, 1);
	res->restart = false;
	res->next_psn = wire_psn_add(res->next_psn, 1);
	return true;
}

static bool send_atomic_ack(struct nic_qp *qp, struct resp_res *res)
{
	qp->out.original = res->original;
	if (!send_short(qp, WIRE_RC_ATOMIC_ACK, WIRE_ACK_UNLIMITED,
			res->first_psn))
		return false;
	res->next_psn = wire_psn_add(res->last_psn, 1);
	return true;
}

/* The pad is the resource's own: it is there as long as the resource is. */
static bool send_walk_answer(struct nic_qp *qp, struct resp_res *res)
{
	const struct walk_res *w = walk_of(&qp->rsp, res);
	struct wire_pkt *out = &qp->out;

	if (UNLIKELY(w->refused)) {
		nak_refuse(qp, w->refused, res->first_psn);
		return true;
	}
	out->opcode = WIRE_RC_WALK_ANSWER;
	out->psn = res->first_psn;
	out->syndrome = WIRE_ACK_UNLIMITED;
	out->walk = w->answer;
	if (UNLIKELY(!walk_is_open(w)))
		out->walk.hops = WALK_WIRE_HOPS_MAX;
	out->payload = w->walk.pad;
	out->payload_len = w->answer.pad_bytes;
	if (send_answer(qp) <= 0)
		return false;
	witness(qp, NIC_DEED_READ, res->first_psn, 1);
	res->next_psn = wire_psn_add(res->last_psn, 1);
	return true;
}

/* The oldest resource with something to send; there is one. */
static struct resp_res *next_pending(struct responder *rsp)
{
	while (!rsp->res[rsp->res_scan].pending)
		rsp->res_scan = rsp->res_scan + 1 == rsp->res_count
					? 0
					: rsp->res_scan + 1;
	return &rsp->res[rsp->res_scan];
}

/* A response acknowledges everything before it. */
static void response_acks(struct nic_qp *qp, uint32_t psn)
{
	if (qp->rsp.ack_due && wire_psn_diff(psn, qp->rsp.ack_psn) >= 0) {
		qp->rsp.ack_due = false;
		qp->rsp.held = 0;
		count(qp->nic, NIC_C_acks_coalesced);
	}
}

HOT bool responder_run(struct nic_qp *qp)
{
	struct responder *rsp = &qp->rsp;
	struct nic *nic = qp->nic;
	uint32_t budget = NIC_TURN_PACKETS;

	if (UNLIKELY(qp->type == IBV_QPT_UD))
		return hop_run(qp);
	while (rsp->res_pending) {
		struct resp_res *res = next_pending(rsp);
		bool sent;

		if (budget-- == 0 || turn_is_over(nic)) {
			qp_make_ready(qp);
			return true;
		}
		if (LIKELY(res->kind == RESP_READ))
			sent = send_read_packet(qp, res);
		else if (res->kind == RESP_ATOMIC)
			sent = send_atomic_ack(qp, res);
		else if (res->kind == RESP_WALK)
			sent = send_walk_answer(qp, res);
		else /* what comes after it must not overtake it */
			return true;
		if (!sent)
			return false;
		/* Not if it turned out that it cannot be answered. */
		if (res->pending &&
		    wire_psn_diff(res->next_psn, res->last_psn) > 0) {
			res->pending = false;
			res->answered = true;
			rsp->res_pending--;
			response_acks(qp, res->last_psn);
		}
	}
	/* A refusal acknowledges what came before it, and only that. */
	if (rsp->ack_due && !rsp->refuses) {
		if (!send_short(qp, WIRE_RC_ACK, WIRE_ACK_UNLIMITED,
				(rsp->epsn - 1) & WIRE_PSN_MASK))
			return false;
		rsp->ack_due = false;
		rsp->held = 0;
		count(qp->nic, NIC_C_acks_sent);
	}
	return LIKELY(!rsp->nak_due) || nak_send(qp);
}
