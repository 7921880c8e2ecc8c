/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completions: each must belong to the oldest request that can still have one,
 * carry what was asked for, and come exactly once.
 */
#include <string.h>

#include "verbs_priv.h"

enum {
	POLL_BATCH = 16,
};

/* ---- the send side ------------------------------------------------------ */

static enum ibv_wc_status wanted_status(enum vs_expect e)
{
	static const enum ibv_wc_status status[] = {
		[VS_OK] = IBV_WC_SUCCESS,
		[VS_REMOTE_ACCESS] = IBV_WC_REM_ACCESS_ERR,
		[VS_REMOTE_INVALID] = IBV_WC_REM_INV_REQ_ERR,
		[VS_LOCAL_PROTECTION] = IBV_WC_LOC_PROT_ERR,
	};

	return status[e];
}

static void retire_success(struct vs_ep *ep, struct vs_op *op)
{
	if (op->expect != VS_OK)
		vs_fail(ep->s->vs,
			"%s: request %lu must fail with status %u, but "
			"succeeded",
			ep->name, op->id, wanted_status(op->expect));
	op->acked = true;
	vs_record_check(ep, op, IBV_WC_SUCCESS);
	vs_shadow_success(ep, op);
	if (op->kind == VS_BIND)
		ep->mw_key = op->inv_key;
	vs_op_put(op);
}

/* Is this a way in which the first request of a broken connection may end? */
static bool may_fail(struct vs_ep *ep, const struct vs_op *op,
		     enum ibv_wc_status status)
{
	if (op->strict)
		return false;
	if (op->expect != VS_OK && status == wanted_status(op->expect)) {
		ep->failed_cause = true;
		return true;
	}
	if (status == IBV_WC_RETRY_EXC_ERR) {
		ep->gave_up = true;
		ep->gave_up_whole = ep->harmed == op->harmed;
		ep->gave_up_clean = ep->gave_up_whole &&
				    ep->peer->harmed == op->peer_harmed;
		ep->failed_cause = true;
		return true;
	}
	if (status == IBV_WC_RNR_RETRY_EXC_ERR && vs_op_is_message(op) &&
	    ep->rnr_retry < 7) {
		ep->failed_cause = true;
		return true;
	}
	if (status == IBV_WC_REM_INV_REQ_ERR && vs_op_is_message(op)) {
		ep->short_claimed = true;
		ep->failed_cause = true;
		return true;
	}
	if (status == IBV_WC_WR_FLUSH_ERR) {
		ep->flush_seen |= !ep->failed_itself;
		return true;
	}
	return false;
}

static void retire_failed(struct vs_ep *ep, struct vs_op *op,
			  enum ibv_wc_status status)
{
	struct vs *vs = ep->s->vs;

	if (!ep->failed_send) {
		vs->n->errors++;
		if (!may_fail(ep, op, status))
			vs_fail(vs,
				"%s: request %lu (kind %u, expect %u%s) failed "
				"with status %u",
				ep->name, op->id, op->kind, op->expect,
				op->strict ? ", strict" : "", status);
	} else if (status != IBV_WC_WR_FLUSH_ERR) {
		vs_fail(vs, "%s: second error, request %lu, status %u",
			ep->name, op->id, status);
	}
	vs_record_check(ep, op, status);
	ep->failed_send = true;
	vs->n->flushes += status == IBV_WC_WR_FLUSH_ERR;
	if (op->land >= 0)
		vs_slot_give(vs, &ep->land, (unsigned)op->land, op->pieces,
			     op->piece_count, NULL, 0, "failed request");
	op->land = -1;
	ep->unsure[ep->unsure_count++] = op;
	vs_conn_break(ep->s);
}

static void check_send_wc(struct vs_ep *ep, const struct vs_op *op,
			  const struct ibv_wc *wc)
{
	static const enum ibv_wc_opcode opcodes[VS_KIND_COUNT] = {
		[VS_SEND] = IBV_WC_SEND,
		[VS_SEND_IMM] = IBV_WC_SEND,
		[VS_SEND_INV] = IBV_WC_SEND,
		[VS_WRITE] = IBV_WC_RDMA_WRITE,
		[VS_WRITE_IMM] = IBV_WC_RDMA_WRITE,
		[VS_READ] = IBV_WC_RDMA_READ,
		[VS_CAS] = IBV_WC_COMP_SWAP,
		[VS_FAA] = IBV_WC_FETCH_ADD,
		[VS_MASKED_CAS] = IBV_WC_COMP_SWAP,
		[VS_MASKED_FAA] = IBV_WC_FETCH_ADD,
		[VS_SHARED_FAA] = IBV_WC_FETCH_ADD,
		[VS_BIND] = IBV_WC_BIND_MW,
		[VS_WALK] = IBV_WC_RDMA_READ,
	};

	if (wc->opcode != opcodes[op->kind])
		vs_fail(ep->s->vs, "%s: request %lu completed as opcode %u",
			ep->name, op->id, wc->opcode);
	if ((op->kind == VS_READ || op->kind == VS_WALK ||
	     vs_op_is_atomic(op)) &&
	    wc->byte_len != op->len)
		vs_fail(ep->s->vs, "%s: request %lu: %u bytes, not %u",
			ep->name, op->id, wc->byte_len, op->len);
	if (!op->signaled)
		vs_fail(ep->s->vs,
			"%s: request %lu was not signaled, but completed",
			ep->name, op->id);
}

static bool in_queue(const struct vs_ep *ep, uint64_t id)
{
	return ep->sq_head != ep->sq_tail &&
	       id >= ep->sq[ep->sq_head % VS_SQ_MAX]->id &&
	       id <= ep->sq[(ep->sq_tail - 1) % VS_SQ_MAX]->id;
}

static void complete_send(struct vs_ep *ep, const struct ibv_wc *wc)
{
	struct vs *vs = ep->s->vs;
	struct vs_op *op;

	if (!in_queue(ep, wc->wr_id)) {
		vs_fail(vs, "%s: completion %lu for no request, or twice",
			ep->name, wc->wr_id);
		return;
	}
	for (;;) {
		op = ep->sq[ep->sq_head++ % VS_SQ_MAX];
		if (op->id == wc->wr_id)
			break;
		/* It had no completion of its own: then it was unsignaled and
		 * went well. After an error, all have one. */
		if (op->signaled || ep->failed_send)
			vs_fail(vs,
				"%s: completion of request %lu is missing or "
				"late (got %lu)",
				ep->name, op->id, wc->wr_id);
		retire_success(ep, op);
	}
	if (wc->status != IBV_WC_SUCCESS) {
		retire_failed(ep, op, wc->status);
		return;
	}
	if (ep->failed_send)
		vs_fail(vs, "%s: request %lu succeeded after an error",
			ep->name, op->id);
	check_send_wc(ep, op, wc);
	retire_success(ep, op);
}

void vs_retire_silent(struct vs_ep *ep)
{
	if (ep->failed_send)
		return;
	for (uint32_t i = ep->sq_head; i != ep->sq_tail; i++) {
		if (ep->sq[i % VS_SQ_MAX]->signaled)
			return;
	}
	while (ep->sq_head != ep->sq_tail)
		retire_success(ep, ep->sq[ep->sq_head++ % VS_SQ_MAX]);
}

/* ---- the receive side --------------------------------------------------- */

void vs_msg_pop(struct vs_ep *from)
{
	struct vs_op *op = from->msg_first;

	from->msg_first = op->msg_next;
	if (!from->msg_first)
		from->msg_last = &from->msg_first;
	vs_op_put(op);
}

static void check_recv_wc(struct vs_ep *ep, const struct vs_op *op,
			  const struct ibv_wc *wc)
{
	bool imm = op->kind == VS_SEND_IMM || op->kind == VS_WRITE_IMM;
	unsigned flags = 0;
	enum ibv_wc_opcode opcode = op->kind == VS_WRITE_IMM
					    ? IBV_WC_RECV_RDMA_WITH_IMM
					    : IBV_WC_RECV;

	if (imm)
		flags = IBV_WC_WITH_IMM;
	if (op->kind == VS_SEND_INV)
		flags = IBV_WC_WITH_INV;
	if (wc->opcode != opcode || wc->byte_len != op->len ||
	    wc->wc_flags != flags)
		vs_fail(ep->s->vs,
			"%s: receive of message %lu: opcode %u, %u bytes, "
			"flags %u; not %u, %u, %u",
			ep->name, op->id, wc->opcode, wc->byte_len,
			(unsigned)wc->wc_flags, opcode, op->len, flags);
	else if (imm && wc->imm_data != op->imm)
		vs_fail(ep->s->vs, "%s: message %lu: wrong immediate", ep->name,
			op->id);
	else if (op->kind == VS_SEND_INV && wc->invalidated_rkey != op->inv_key)
		vs_fail(ep->s->vs, "%s: message %lu: wrong key invalidated",
			ep->name, op->id);
}

/* The receive's buffer, and giving it back. */
struct taken {
	struct vs_slots *slots;
	struct vs_recv *recv;
	unsigned slot;
};

static bool take_recv(struct vs_ep *ep, uint64_t id, struct taken *t)
{
	struct vs *vs = ep->s->vs;

	t->slot = (unsigned)(id % VS_ID_SLOTS);
	if (id & VS_ID_SRQ) {
		t->slots = &ep->node->srq_slots;
		t->recv = &ep->node->srq_recvs[t->slot % VS_SRQ_WR];
		if (!ep->use_srq || !t->recv->posted || t->recv->id != id) {
			vs_fail(vs,
				"%s: receive %lx of the SRQ completed twice",
				ep->name, id);
			return false;
		}
		t->recv->posted = false;
		return true;
	}
	t->slots = &ep->rq_slots;
	t->recv = &ep->rq[ep->rq_head % VS_RQ_MAX];
	if (ep->rq_head == ep->rq_tail || t->recv->id != id) {
		vs_fail(vs, "%s: receive %lx completed twice or out of order",
			ep->name, id);
		return false;
	}
	ep->rq_head++;
	return true;
}

static void failed_recv(struct vs_ep *ep, const struct taken *t,
			const struct ibv_wc *wc)
{
	struct vs *vs = ep->s->vs;
	const struct vs_op *msg = ep->peer->msg_first;

	vs_slot_give(vs, t->slots, t->slot, t->recv->pieces,
		     t->recv->piece_count, NULL, 0, "failed receive");
	if (wc->status == IBV_WC_LOC_LEN_ERR && msg &&
	    msg->len > t->recv->room) {
		ep->short_seen = true;
		vs->n->short_receives++;
	} else if (wc->status == IBV_WC_WR_FLUSH_ERR && !ep->s->final) {
		ep->flush_seen |= !ep->failed_itself;
		vs->n->flushes++;
	} else {
		vs_fail(vs, "%s: a receive failed with status %u", ep->name,
			wc->status);
	}
	vs_conn_break(ep->s);
}

static void complete_recv(struct vs_ep *ep, const struct ibv_wc *wc)
{
	struct vs_ep *from = ep->peer;
	struct vs_op *op = from->msg_first;
	struct vs *vs = ep->s->vs;
	struct taken t;
	char what[64];

	if (!take_recv(ep, wc->wr_id, &t))
		return;
	if (wc->status != IBV_WC_SUCCESS) {
		failed_recv(ep, &t, wc);
		return;
	}
	vs->n->receives++;
	if (!op) {
		vs_fail(vs, "%s: a receive completed, but no message was sent",
			ep->name);
		return;
	}
	snprintf(what, sizeof(what), "%s: message %lu", ep->name, op->id);
	check_recv_wc(ep, op, wc);
	vs_slot_give(vs, t.slots, t.slot, t.recv->pieces, t.recv->piece_count,
		     op->data, op->kind == VS_WRITE_IMM ? 0 : op->len, what);
	if (op->kind == VS_WRITE_IMM)
		vs_shadow_arrived(from, op);
	if (op->kind == VS_SEND_INV)
		ep->mw_busy = false;
	vs_msg_pop(from);
}

/* ---- polling ------------------------------------------------------------ */

struct vs_ep *vs_find_ep(struct vs_node *node, uint32_t qpn)
{
	struct vs *vs = node->vs;

	for (unsigned i = 0; i < vs->conn_count; i++) {
		for (unsigned side = 0; side < 2; side++) {
			struct vs_ep *ep = &vs->conns[i].ep[side];

			if (ep->node == node && ep->qp && ep->qp->qp_num == qpn)
				return ep;
		}
	}
	return NULL;
}

static void note(struct vs_node *node, const struct ibv_wc *wc)
{
	uint64_t words[3] = {wc->wr_id,
			     (uint64_t)wc->qp_num << 32 | wc->byte_len,
			     (uint64_t)wc->status << 32 | node->index};

	sim_note(node->vs->run.sim, SIM_NOTE_COMPLETION, words, sizeof(words));
	vs_trace(node->vs, "node %u: completion %lx qp %u status %u",
		 node->index, wc->wr_id, wc->qp_num, wc->status);
}

static void dispatch(struct vs_node *node, unsigned c, const struct ibv_wc *wc)
{
	struct ibv_cq *cq = node->cqs[c];
	struct vs_ep *ep = vs_find_ep(node, wc->qp_num);
	bool is_recv = wc->wr_id & VS_ID_RECV;

	note(node, wc);
	vs_notify_seen(node, c,
		       wc->status != IBV_WC_SUCCESS ||
			       (is_recv && ep && ep->peer->msg_first &&
				ep->peer->msg_first->solicited));
	if (!ep)
		vs_fail(node->vs, "node %u: completion of unknown queue pair",
			node->index);
	else if (cq != (is_recv ? ep->recv_cq : ep->send_cq))
		vs_fail(node->vs, "%s: completion in the wrong queue",
			ep->name);
	else if (is_recv)
		complete_recv(ep, wc);
	else
		complete_send(ep, wc);
}

unsigned vs_poll(struct vs_node *node)
{
	struct ibv_wc wc[POLL_BATCH];
	unsigned total = 0;

	for (unsigned c = 0; c < node->cq_count; c++) {
		int n;

		do {
			n = ibv_poll_cq(node->cqs[c], POLL_BATCH, wc);
			if (n < 0) {
				vs_fail(node->vs, "ibv_poll_cq: %d", n);
				return total;
			}
			for (int i = 0; i < n && !node->vs->run.res->violations;
			     i++)
				dispatch(node, c, &wc[i]);
			total += (unsigned)n;
		} while (n > 0 && !node->vs->run.res->violations);
		if (!node->vs->run.res->violations)
			vs_notify_check(node, c);
	}
	return total;
}
