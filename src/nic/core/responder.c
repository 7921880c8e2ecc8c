/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The responder: executes requests of the connected peer. The checks stand in
 * the order of the specification (IBA 9.7.4): packet number, opcode sequence,
 * rights of the queue pair, length, resources, key; nothing has an effect
 * before all of them passed. Answers are sent by answer.c.
 *
 * Each rule stands here once. READs, which come most, are quick because the
 * compiler makes a copy of the checks for their row of the opcode table.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "access_priv.h"
#include "walk_priv.h"

/* What a request meets: go on, or a NAK syndrome, or nothing at all. */
enum verdict {
	V_OK = 0,
	V_RNR = WIRE_RNR_NAK,
	V_INVALID = WIRE_NAK_INVALID,
	V_ACCESS = WIRE_NAK_ACCESS,
	V_OP = WIRE_NAK_OP,
};

/* The row of READ requests in wire_opcodes, as a constant for the compiler. */
static const struct wire_opcode read_row = {
	.kind = WIRE_READ,
	.flags = WIRE_OP_FIRST | WIRE_OP_LAST | WIRE_OP_RETH,
};

int responder_init(struct nic_qp *qp, uint32_t res_count)
{
	struct responder *rsp = &qp->rsp;
	struct resp_res *res = NULL;

	ASSERT(wire_opcodes[WIRE_RC_READ_REQ].kind == read_row.kind &&
	       wire_opcodes[WIRE_RC_READ_REQ].flags == read_row.flags);
	if (res_count) {
		res = calloc(res_count, sizeof(*res));
		if (!res)
			return -ENOMEM;
	}
	if (walk_res_init(qp, res_count)) {
		free(res);
		return -ENOMEM;
	}
	free(rsp->res);
	rsp->res = res;
	rsp->res_count = res_count;
	rsp->res_next = 0;
	rsp->res_pending = 0;
	rsp->res_scan = 0;
	return 0;
}

void responder_release(struct nic_qp *qp)
{
	walk_res_release(qp);
	free(qp->rsp.res);
	qp->rsp = (struct responder){0};
}

/* How far an entry is from the oldest one, along the ring. */
static uint32_t age_rank(const struct responder *rsp, uint32_t i)
{
	return i >= rsp->res_next ? i - rsp->res_next
				  : i + rsp->res_count - rsp->res_next;
}

static void make_pending(struct nic_qp *qp, struct resp_res *res)
{
	struct responder *rsp = &qp->rsp;
	uint32_t i = (uint32_t)(res - rsp->res);

	if (rsp->res_pending == 0 ||
	    age_rank(rsp, i) < age_rank(rsp, rsp->res_scan))
		rsp->res_scan = i;
	if (!res->pending)
		rsp->res_pending++;
	res->pending = true;
	qp_make_ready(qp);
}

static void ack_later(struct nic_qp *qp, uint32_t psn, bool may_wait)
{
	struct responder *rsp = &qp->rsp;

	ASSERT(wire_psn_diff(psn, rsp->epsn) < 0);
	if (rsp->ack_due)
		count(qp->nic, NIC_C_acks_coalesced);
	else
		rsp->ack_waits = true;
	rsp->ack_due = true;
	rsp->ack_waits &= may_wait;
	if (rsp->held < UINT8_MAX)
		rsp->held++;
	rsp->ack_psn = psn;
	qp_make_ready(qp);
}

/* Does the peer wait for something else than the acknowledgement? On a path
 * that loses, a chain's answer takes the acknowledgement along. */
static bool ack_may_wait(const struct nic_qp *qp, const struct wire_opcode *op)
{
	if (UNLIKELY(qp->managed_sq))
		return (op->flags & WIRE_OP_RECV) && !qp->lossy;
	return op->flags & WIRE_OP_IMM;
}

/* ---- errors ------------------------------------------------------------- */

static void not_ready(struct nic_qp *qp)
{
	/* Followers are out of sequence and get no NAK of their own: it would
	 * use up the retries of a peer that is told to wait. */
	qp->rsp.rnr_sent = true;
	nak_expected(qp, (uint8_t)(WIRE_RNR_NAK | qp->attr.min_rnr_timer));
}

/* The receive that was in use completes with the local reason, when the queue
 * pair ends: who sees that may destroy it, with all answers that it owes. */
static enum verdict fail_recv(struct nic_qp *qp, enum ibv_wc_status status)
{
	qp->rsp.recv_status = (uint8_t)status;
	return status == IBV_WC_LOC_LEN_ERR ? V_INVALID : V_OP;
}

static enum verdict deny_key(struct nic_qp *qp, enum key_verdict v,
			     uint32_t rkey)
{
	key_count_denial(qp->nic, v);
	if (v == KEY_OTHER_PD ||
	    (v == KEY_UNKNOWN && !key_was_known(&qp->nic->keys, rkey)))
		guess_failure(qp->nic, qp->out.dst_ip, qp->dest_qpn);
	return v == KEY_GONE ? V_OP : V_ACCESS;
}

/* The memory was unmapped under its key. */
static enum verdict deny_gone(struct nic_qp *qp)
{
	count(qp->nic, NIC_C_deny_unmapped);
	return V_OP;
}

/* ---- checks ------------------------------------------------------------- */

static inline enum verdict check_sequence(struct nic_qp *qp,
					  const struct wire_opcode *op)
{
	bool in_message = qp->rsp.kind != 0;
	bool starts = op->flags & WIRE_OP_FIRST;

	if (in_message ? starts || op->kind != qp->rsp.kind : !starts) {
		count(qp->nic, NIC_C_deny_sequence);
		return V_INVALID;
	}
	return V_OK;
}

static inline enum verdict check_rights(struct nic_qp *qp,
					const struct wire_opcode *op)
{
	static const uint32_t needed[] = {
		[WIRE_SEND] = 0,
		[WIRE_WRITE] = IBV_ACCESS_REMOTE_WRITE,
		[WIRE_READ] = IBV_ACCESS_REMOTE_READ,
		[WIRE_ATOMIC] = IBV_ACCESS_REMOTE_ATOMIC,
		[WIRE_WALK] = IBV_ACCESS_REMOTE_READ,
	};

	if ((qp->access & needed[op->kind]) == needed[op->kind] &&
	    (op->kind != WIRE_WALK || walk_is_allowed(qp)))
		return V_OK;
	count(qp->nic, NIC_C_deny_qp_access);
	return V_INVALID;
}

/* Needs this message nothing of a receive but its completion, as the answers of
 * chains do: a WRITE with an immediate value, or the value alone? */
static inline bool is_notice(const struct nic_qp *qp,
			     const struct wire_opcode *op,
			     const struct wire_pkt *pkt)
{
	const struct recvq *q = &qp->rq;
	uint32_t needed = WIRE_OP_FIRST | WIRE_OP_LAST | WIRE_OP_IMM;

	return (op->flags & needed) == needed &&
	       (op->kind == WIRE_WRITE || pkt->payload_len == 0) && !qp->srq &&
	       !qp->recv.active && q->wr_ids && q->head != q->tail &&
	       !PLANTED_ANY();
}

/* Requests that are answered by more than an acknowledgement. */
static inline bool needs_resource(const struct wire_opcode *op)
{
	return op->kind == WIRE_READ || op->kind == WIRE_ATOMIC ||
	       op->kind == WIRE_WALK;
}

static inline enum verdict check_resources(struct nic_qp *qp,
					   const struct wire_opcode *op,
					   const struct wire_pkt *pkt)
{
	struct responder *rsp = &qp->rsp;
	bool takes_recv = op->kind == WIRE_SEND ? op->flags & WIRE_OP_FIRST
						: op->flags & WIRE_OP_RECV;

	if (needs_resource(op)) {
		const struct resp_res *res =
			rsp->res_count ? &rsp->res[rsp->res_next] : NULL;

		if (res && (!res->pending || res->answered))
			return V_OK;
		count(qp->nic, NIC_C_deny_resources);
		return V_INVALID;
	}
	if (takes_recv && !qp->recv.active && !is_notice(qp, op, pkt) &&
	    !recvq_take(qp, &qp->recv))
		return rsp->recv_status ? V_OP : V_RNR;
	return V_OK;
}

/* Sizes that the opcode and the message so far leave possible (C9-92..95). */
static inline enum verdict check_length(struct nic_qp *qp,
					const struct wire_opcode *op,
					const struct wire_pkt *pkt)
{
	const struct responder *rsp = &qp->rsp;
	bool first = op->flags & WIRE_OP_FIRST;
	bool last = op->flags & WIRE_OP_LAST;
	uint64_t left;
	bool ok = true;

	if (op->flags & WIRE_OP_PAYLOAD) {
		if (!last)
			ok = pkt->payload_len == qp->mtu;
		else
			ok = pkt->payload_len <= qp->mtu &&
			     (first || pkt->payload_len > 0);
	}
	if (op->kind == WIRE_WRITE) {
		left = first ? pkt->dma_len : rsp->dma_len - rsp->offset;
		ok = ok && (last ? left == pkt->payload_len
				 : left > pkt->payload_len);
	}
	if ((op->flags & WIRE_OP_RETH) && pkt->dma_len > NIC_MSG_BYTES_MAX)
		ok = false;
	if (op->kind == WIRE_WALK && !walk_fits(qp, pkt))
		ok = false;
	if (op->kind == WIRE_SEND &&
	    rsp->offset + (uint64_t)pkt->payload_len > NIC_MSG_BYTES_MAX)
		ok = false;
	if (ok)
		return V_OK;
	count(qp->nic, NIC_C_deny_length);
	return V_INVALID;
}

static inline enum verdict check_key(struct nic_qp *qp,
				     const struct wire_opcode *op,
				     const struct wire_pkt *pkt, uint8_t **host)
{
	struct responder *rsp = &qp->rsp;
	enum key_verdict v = KEY_OK;

	switch (op->kind) {
	case WIRE_WRITE:
		/* The whole range at the start; then each piece again, because
		 * the region may be gone meanwhile. */
		if ((op->flags & WIRE_OP_FIRST) && pkt->dma_len)
			v = key_check(qp, pkt->rkey, pkt->va, pkt->dma_len,
				      IBV_ACCESS_REMOTE_WRITE, host);
		else if (pkt->payload_len)
			v = key_check(qp, rsp->rkey, rsp->va + rsp->offset,
				      pkt->payload_len, IBV_ACCESS_REMOTE_WRITE,
				      host);
		break;
	case WIRE_READ:
		if (pkt->dma_len)
			v = key_check(qp, pkt->rkey, pkt->va, pkt->dma_len,
				      IBV_ACCESS_REMOTE_READ, host);
		break;
	case WIRE_ATOMIC:
		if (pkt->va % 8) {
			count(qp->nic, NIC_C_deny_align);
			return V_INVALID;
		}
		v = key_check(qp, pkt->rkey, pkt->va, 8,
			      IBV_ACCESS_REMOTE_ATOMIC, host);
		if (v == KEY_OK && (uintptr_t)*host % 8) {
			count(qp->nic, NIC_C_deny_align);
			return V_INVALID;
		}
		break;
	default:
		break;
	}
	if (LIKELY(v == KEY_OK))
		return V_OK;
	return deny_key(qp, v,
			op->flags & WIRE_OP_FIRST ? pkt->rkey : rsp->rkey);
}

static enum verdict check_walk_key(struct nic_qp *qp,
				   const struct wire_pkt *pkt)
{
	const struct nic_key *key;
	enum key_verdict v = walk_check_key(qp, pkt->walk.key, &key);

	return v == KEY_OK ? V_OK : deny_key(qp, v, pkt->walk.key);
}

/* ---- execution ---------------------------------------------------------- */

/* The oldest entry is reused, also when a late duplicate had it sent again:
 * whoever sends a new request has no use for that answer any more. */
static struct resp_res *new_resource(struct nic_qp *qp,
				     const struct wire_pkt *pkt,
				     uint32_t packets)
{
	struct responder *rsp = &qp->rsp;
	struct resp_res *res = &rsp->res[rsp->res_next];
	bool was_pending = res->pending;

	ASSERT(packets - 1 < NIC_WINDOW_PSNS);
	rsp->res_next =
		rsp->res_next + 1 == rsp->res_count ? 0 : rsp->res_next + 1;
	/* The entry becomes the newest: others that wait come first. */
	if (was_pending) {
		rsp->res_pending--;
		rsp->res_scan = rsp->res_next;
	}
	*res = (struct resp_res){
		.first_psn = pkt->psn,
		.next_psn = pkt->psn,
		.last_psn = wire_psn_add(pkt->psn, packets - 1),
		.rkey = pkt->rkey,
		.va = pkt->va,
		.used = true,
		.restart = true,
	};
	make_pending(qp, res);
	return res;
}

static enum verdict execute_send(struct nic_qp *qp, const struct wire_pkt *pkt)
{
	int err;

	if (qp->rsp.offset + (uint64_t)pkt->payload_len > qp->recv.capacity)
		return fail_recv(qp, IBV_WC_LOC_LEN_ERR);
	err = recv_scatter(qp, qp->rsp.offset, pkt->payload, pkt->payload_len);
	if (err)
		return fail_recv(qp, IBV_WC_LOC_PROT_ERR);
	qp->rsp.offset += pkt->payload_len;
	return V_OK;
}

static enum verdict execute_write(struct nic_qp *qp,
				  const struct wire_opcode *op,
				  const struct wire_pkt *pkt, uint8_t *host)
{
	struct responder *rsp = &qp->rsp;
	uint32_t len = pkt->payload_len;

	if (op->flags & WIRE_OP_FIRST) {
		rsp->rkey = pkt->rkey;
		rsp->va = pkt->va;
		rsp->dma_len = pkt->dma_len;
		rsp->offset = 0;
	}
	if (PLANTED(skip_last_byte) && len)
		len--;
	if (UNLIKELY(touch_place(host, pkt->payload, len)))
		return deny_gone(qp);
	rsp->offset += pkt->payload_len;
	return V_OK;
}

/* Where a managed receive wants the immediate value. */
static enum verdict place_imm(struct nic_qp *qp, const struct wire_opcode *op,
			      const struct wire_pkt *pkt)
{
	uint8_t *dst;

	if (!(op->flags & WIRE_OP_IMM))
		return fail_recv(qp, IBV_WC_LOC_LEN_ERR);
	for (uint32_t i = 0; i < qp->recv.imm_count; i++) {
		const struct ibv_sge *sge = &qp->recv.imm[i];

		if (key_check(qp, sge->lkey, sge->addr, sizeof(pkt->imm),
			      IBV_ACCESS_LOCAL_WRITE, &dst) != KEY_OK ||
		    touch_write(dst, &pkt->imm, sizeof(pkt->imm))) {
			count(qp->nic, NIC_C_local_protection);
			return fail_recv(qp, IBV_WC_LOC_PROT_ERR);
		}
	}
	return V_OK;
}

/* The last packet of a message that consumes a receive. */
static enum verdict finish_recv(struct nic_qp *qp, const struct wire_opcode *op,
				const struct wire_pkt *pkt)
{
	struct recvq *q = &qp->rq;
	struct nic_cqe cqe = {
		.status = IBV_WC_SUCCESS,
		.opcode = op->kind == WIRE_SEND ? IBV_WC_RECV
						: IBV_WC_RECV_RDMA_WITH_IMM,
		.byte_len = qp->rsp.offset,
		.solicited = pkt->solicited,
		.src_qp = qp->dest_qpn,
	};

	if (!qp->recv.active) { /* a notice: check_resources took none */
		qp_complete_notice(qp, q->wr_ids[q->tail++ & (q->count - 1)],
				   pkt, cqe.opcode);
		return V_OK;
	}
	if (UNLIKELY(qp->recv.imm_count)) {
		enum verdict v = place_imm(qp, op, pkt);

		if (v != V_OK)
			return v;
	}
	if (op->flags & WIRE_OP_IMM) {
		cqe.wc_flags = IBV_WC_WITH_IMM;
		memcpy(&cqe.imm_or_key, &pkt->imm, sizeof(cqe.imm_or_key));
	}
	if (op->flags & WIRE_OP_INV) {
		/* After the data was placed (IBA 9.4.1.1.3). */
		if (key_invalidate(qp, pkt->rkey)) {
			(void)fail_recv(qp, IBV_WC_LOC_QP_OP_ERR);
			return V_ACCESS;
		}
		cqe.wc_flags = IBV_WC_WITH_INV;
		cqe.imm_or_key = pkt->rkey;
	}
	qp_complete_recv(qp, &cqe);
	return V_OK;
}

/* The expected packet was executed; its answer, if any, has that many. */
static inline void pass(struct nic_qp *qp, const struct wire_opcode *op,
			uint32_t psn, uint32_t packets)
{
	struct responder *rsp = &qp->rsp;

	ASSERT(psn == rsp->epsn || PLANTED_ANY());
	witness(qp, NIC_DEED_EXECUTED, psn, packets);
	rsp->epsn = wire_psn_add(rsp->epsn, packets);
	if (op->flags & WIRE_OP_LAST) {
		rsp->msn = (rsp->msn + 1) & WIRE_PSN_MASK;
		count(qp->nic, NIC_C_served);
		rsp->kind = 0;
		rsp->offset = 0;
	} else {
		rsp->kind = op->kind;
	}
}

static inline enum verdict execute(struct nic_qp *qp,
				   const struct wire_opcode *op,
				   const struct wire_pkt *pkt, uint8_t *host)
{
	struct responder *rsp = &qp->rsp;
	struct resp_res *res;
	uint32_t packets = 1;
	uint64_t original;
	enum verdict v = V_OK;

	switch (op->kind) {
	case WIRE_SEND:
		if (op->flags & WIRE_OP_FIRST)
			rsp->offset = 0;
		v = execute_send(qp, pkt);
		break;
	case WIRE_WRITE:
		v = execute_write(qp, op, pkt, host);
		break;
	case WIRE_READ:
		if (pkt->dma_len > qp->mtu)
			packets = (pkt->dma_len + qp->mtu - 1) / qp->mtu;
		res = new_resource(qp, pkt, packets);
		res->length = pkt->dma_len;
		if (pkt->dma_len) {
			res->host = host;
			res->epoch = qp->nic->keys.epoch;
		}
		break;
	case WIRE_WALK:
		res = new_resource(qp, pkt, 1);
		res->kind = RESP_WALK;
		walk_take(qp, res, pkt);
		pass(qp, op, pkt->psn, 1);
		walk_start(walk_of(&qp->rsp, res));
		return V_OK;
	default:
		if (UNLIKELY(touch_atomic(&pkt->atomic, host, &original)))
			return deny_gone(qp);
		res = new_resource(qp, pkt, 1);
		res->kind = RESP_ATOMIC;
		res->original = original;
		break;
	}
	if (v == V_OK && (op->flags & WIRE_OP_RECV) &&
	    (op->flags & WIRE_OP_LAST))
		v = finish_recv(qp, op, pkt);
	if (v != V_OK)
		return v;
	pass(qp, op, pkt->psn, packets);
	return V_OK;
}

/* ---- duplicates --------------------------------------------------------- */

static struct resp_res *find_resource(struct nic_qp *qp, uint32_t psn)
{
	uint32_t i;

	for (i = 0; i < qp->rsp.res_count; i++) {
		struct resp_res *res = &qp->rsp.res[i];

		if (res->used && wire_psn_diff(psn, res->first_psn) >= 0 &&
		    wire_psn_diff(psn, res->last_psn) <= 0)
			return res;
	}
	return NULL;
}

static void resend(struct nic_qp *qp, struct resp_res *res, uint32_t psn)
{
	/* Still on its way the first time: the packets that are missing will
	 * come, but the peer wants those before them again. */
	ASSERT(wire_psn_is_within(psn, res->first_psn, res->last_psn));
	res->restart = true;
	res->next_psn = psn;
	make_pending(qp, res);
}

/* Must ask for the end of what the original asked for, with the same key. */
static bool is_rest_of(const struct nic_qp *qp, const struct resp_res *res,
		       const struct wire_pkt *pkt)
{
	uint32_t i = (pkt->psn - res->first_psn) & WIRE_PSN_MASK;
	uint64_t offset = (uint64_t)i * qp->mtu;

	return res->kind == RESP_READ && pkt->rkey == res->rkey &&
	       pkt->va == res->va + offset &&
	       pkt->dma_len == res->length - offset;
}

/* What it did is done, and its answer is kept, or is still to come. */
static void duplicate_walk(struct nic_qp *qp, struct resp_res *res,
			   const struct wire_pkt *pkt)
{
	count(qp->nic, NIC_C_duplicate_walks);
	if (res->kind == RESP_WALKING)
		return;
	resend(qp, res, pkt->psn);
	if (PLANTED(reexecute_walk) && walk_fits(qp, pkt)) {
		witness(qp, NIC_DEED_EXECUTED, pkt->psn, 1);
		walk_take(qp, res, pkt);
		walk_start(walk_of(&qp->rsp, res));
	}
}

static void duplicate(struct nic_qp *qp, const struct wire_opcode *op,
		      const struct wire_pkt *pkt)
{
	struct nic *nic = qp->nic;
	struct resp_res *res;

	count(nic, NIC_C_duplicates);
	if (op->kind == WIRE_SEND || op->kind == WIRE_WRITE) {
		ack_later(qp, pkt->psn, false);
		return;
	}
	res = find_resource(qp, pkt->psn);
	if (op->kind == WIRE_READ && res && is_rest_of(qp, res, pkt)) {
		count(nic, NIC_C_duplicate_reads);
		resend(qp, res, pkt->psn);
		return;
	}
	if (op->kind == WIRE_WALK && res && res->kind >= RESP_WALK) {
		duplicate_walk(qp, res, pkt);
		return;
	}
	if (op->kind == WIRE_ATOMIC && res && res->kind == RESP_ATOMIC &&
	    res->first_psn == pkt->psn) {
		uint8_t *host;

		count(nic, NIC_C_duplicate_atomics);
		if (PLANTED(reexecute_atomic) &&
		    key_check(qp, pkt->rkey, pkt->va, 8,
			      IBV_ACCESS_REMOTE_ATOMIC, &host) == KEY_OK &&
		    !touch_atomic(&pkt->atomic, host, &res->original))
			witness(qp, NIC_DEED_EXECUTED, pkt->psn, 1);
		resend(qp, res, pkt->psn);
		return;
	}
	count(nic, NIC_C_drop_duplicate);
}

/* ---- input -------------------------------------------------------------- */

/*
 * One NAK until the expected packet comes (IBA 9.7.5.2.2). But NAKs are lost as
 * well, and so is what is sent again: numbers that start over show a second
 * attempt without the expected packet, many that follow a NAK that nobody got.
 */
static bool wants_nak(struct responder *rsp, uint32_t psn)
{
	bool again = wire_psn_diff(psn, rsp->ahead_psn) < 0 ||
		     ++rsp->ahead_count >= NIC_NAK_EVERY_PACKETS;

	rsp->ahead_psn = psn;
	if (rsp->nak_sent && !again)
		return false;
	rsp->nak_sent = true;
	rsp->ahead_count = 0;
	return true;
}

/* Not the expected packet number; true: it was dealt with. */
static bool out_of_sequence(struct nic_qp *qp, const struct wire_opcode *op,
			    const struct wire_pkt *pkt)
{
	struct responder *rsp = &qp->rsp;
	int32_t ahead = wire_psn_diff(pkt->psn, rsp->epsn);

	if (LIKELY(ahead == 0))
		return false;
	if (ahead < 0) {
		if (PLANTED(skip_duplicate_check) && op->kind == WIRE_SEND &&
		    !rsp->kind && (op->flags & WIRE_OP_FIRST) &&
		    (op->flags & WIRE_OP_LAST))
			return false;
		duplicate(qp, op, pkt);
		return true;
	}
	count(qp->nic, NIC_C_drop_psn);
	if (PLANTED(ack_early)) {
		rsp->epsn = wire_psn_add(pkt->psn, 1);
		ack_later(qp, pkt->psn, false);
		return true;
	}
	if (!rsp->rnr_sent && wants_nak(rsp, pkt->psn))
		nak_expected(qp, WIRE_NAK_PSN);
	return true;
}

/* The queue pair is about to end: it serves nobody any more, but what it has
 * answered may have been lost. */
static COLD void input_after_refusal(struct nic_qp *qp,
				     const struct wire_opcode *op,
				     const struct wire_pkt *pkt)
{
	if (wire_psn_diff(pkt->psn, qp->rsp.nak_psn) < 0)
		duplicate(qp, op, pkt);
	else
		count(qp->nic, NIC_C_drop_qp_state);
}

/* A message that starts a chain. False, and nothing happened: it does not. */
static inline bool take_call(struct nic_qp *qp, const struct wire_opcode *op,
			     const struct wire_pkt *pkt)
{
	struct responder *rsp = &qp->rsp;

	if (LIKELY(!qp->chain) || qp->rq.wr_ids || qp->srq ||
	    (pkt->opcode != WIRE_RC_SEND_ONLY &&
	     pkt->opcode != WIRE_RC_SEND_ONLY_IMM) ||
	    pkt->psn != rsp->epsn || rsp->kind || pkt->payload_len > qp->mtu ||
	    PLANTED_ANY() || !chain_recv_call(qp, pkt))
		return false;
	rsp->nak_sent = rsp->rnr_sent = false;
	rsp->nak_due = 0;
	pass(qp, op, pkt->psn, 1);
	if (pkt->ack_req)
		ack_later(qp, pkt->psn, ack_may_wait(qp, op));
	return true;
}

/* The expected packet: all checks, then its effect, then its answer. */
static ALWAYS_INLINE void serve(struct nic_qp *qp, const struct wire_opcode *op,
				const struct wire_pkt *pkt)
{
	struct responder *rsp = &qp->rsp;
	uint8_t *host = NULL;
	enum verdict v;

	rsp->nak_sent = rsp->rnr_sent = false;
	rsp->nak_due = 0;
	v = check_sequence(qp, op);
	if (v == V_OK)
		v = check_rights(qp, op);
	if (v == V_OK)
		v = check_length(qp, op, pkt);
	if (v == V_OK)
		v = check_resources(qp, op, pkt);
	if (v == V_OK)
		v = op->kind == WIRE_WALK ? check_walk_key(qp, pkt)
					  : check_key(qp, op, pkt, &host);
	if (v == V_RNR && PLANTED(forget_rnr)) {
		rsp->epsn = wire_psn_add(rsp->epsn, 1);
		ack_later(qp, pkt->psn, false);
		return;
	}
	if (v == V_OK)
		v = execute(qp, op, pkt, host);
	if (UNLIKELY(v == V_RNR))
		not_ready(qp);
	else if (UNLIKELY(v != V_OK))
		nak_refuse_now(qp, (uint8_t)v, pkt->psn);
	else if (pkt->ack_req && !needs_resource(op))
		ack_later(qp, pkt->psn, ack_may_wait(qp, op));
}

HOT void responder_input(struct nic_qp *qp, const struct wire_pkt *pkt)
{
	const struct wire_opcode *op = &wire_opcodes[pkt->opcode];

	if (UNLIKELY((pkt->tos & WIRE_ECN_MASK) == WIRE_CE))
		qp->rsp.marked = true;
	if (UNLIKELY(qp->rsp.refuses)) {
		input_after_refusal(qp, op, pkt);
		return;
	}
	if (take_call(qp, op, pkt) || out_of_sequence(qp, op, pkt))
		return;
	if (LIKELY(pkt->opcode == WIRE_RC_READ_REQ))
		serve(qp, &read_row, pkt);
	else
		serve(qp, op, pkt);
}
