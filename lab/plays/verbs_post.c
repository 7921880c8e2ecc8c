/* SPDX-License-Identifier: Apache-2.0 */
/* Random receives, and turning a request into a work request. */
#include <string.h>

#include "verbs_priv.h"

/* ---- receives ----------------------------------------------------------- */

static unsigned recv_sges(struct vs_slots *slots, const struct vs_recv *recv,
			  struct ibv_sge *sge)
{
	for (unsigned i = 0; i < recv->piece_count; i++)
		sge[i] = (struct ibv_sge){.addr = slots->area.iova +
						  recv->pieces[i].off,
					  .length = recv->pieces[i].len,
					  .lkey = slots->mr->lkey};
	return recv->piece_count;
}

static bool post_recv(struct vs_ep *ep)
{
	struct vs_recv *recv = &ep->rq[ep->rq_tail % VS_RQ_MAX];
	struct ibv_sge sge[VS_SGE_MAX];
	struct ibv_recv_wr wr = {.sg_list = sge}, *bad;
	struct vs *vs = ep->s->vs;
	int slot;

	*recv = (struct vs_recv){.posted = true, .room = VS_MSG_MAX};
	if (!ep->s->final && vs->phase == VS_CHAOS &&
	    sim_rand_chance(&ep->rand, vs->bad_ppm / 4))
		recv->room = sim_rand_below(&ep->rand, 200);
	slot = vs_slot_take(vs, &ep->rq_slots, &ep->rand, recv->room,
			    ep->sge_max, recv->pieces, &recv->piece_count);
	if (slot < 0)
		return false;
	recv->id =
		VS_ID_RECV | ep->node->recv_id++ * VS_ID_SLOTS | (unsigned)slot;
	wr.wr_id = recv->id;
	wr.num_sge = (int)recv_sges(&ep->rq_slots, recv, sge);
	if (ibv_post_recv(ep->qp, &wr, &bad)) {
		vs_fail(vs, "%s: posting a receive failed", ep->name);
		return false;
	}
	ep->rq_tail++;
	return true;
}

void vs_post_recvs(struct vs_ep *ep)
{
	uint32_t want = ep->rq_max;

	if (ep->use_srq) {
		vs_post_srq(ep->node);
		return;
	}
	if (ep->s->vs->phase == VS_CHAOS && !ep->s->final) {
		if (sim_rand_below(&ep->rand, 8) == 0)
			ep->held = !ep->held;
		if (ep->held)
			return;
		want = sim_rand_range(&ep->rand, 1, want);
	}
	while (ep->rq_tail - ep->rq_head < want && post_recv(ep))
		;
}

void vs_post_srq(struct vs_node *node)
{
	struct vs *vs = node->vs;
	unsigned want = VS_SRQ_WR;

	if (!node->srq)
		return;
	if (vs->phase == VS_CHAOS)
		want = sim_rand_below(&vs->run.rand, 4) ? 8 : 0;
	for (unsigned n = 0; n < want; n++) {
		struct vs_recv recv = {.posted = true, .room = VS_MSG_MAX};
		struct ibv_sge sge[VS_SGE_MAX];
		struct ibv_recv_wr wr = {.sg_list = sge}, *bad;
		int slot = vs_slot_take(vs, &node->srq_slots, &vs->run.rand,
					recv.room, 4, recv.pieces,
					&recv.piece_count);

		if (slot < 0)
			return;
		recv.id = VS_ID_RECV | VS_ID_SRQ |
			  node->recv_id++ * VS_ID_SLOTS | (unsigned)slot;
		node->srq_recvs[slot] = recv;
		wr.wr_id = recv.id;
		wr.num_sge = (int)recv_sges(&node->srq_slots, &recv, sge);
		if (ibv_post_srq_recv(node->srq, &wr, &bad)) {
			vs_fail(vs, "node %u: posting to the SRQ failed",
				node->index);
			return;
		}
	}
}

/* ---- requests --------------------------------------------------------------
 */

enum {
	CHAIN_MAX = 4,
	PARTING_GOOD = VS_LAND_SLOTS - 1, /* each may need a slot */
	PARTING_BEHIND = 3,
	PARTING_DRAWS = 100,
};

/* A work request with everything it points to. */
struct request {
	struct ibv_send_wr wr;
	struct ibv_sge sge[VS_SGE_MAX];
	uint8_t copy[VS_INLINE_MAX];
	struct vs_op *op;
};

static const enum ibv_wr_opcode wr_opcodes[VS_KIND_COUNT] = {
	[VS_SEND] = IBV_WR_SEND,
	[VS_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
	[VS_SEND_INV] = IBV_WR_SEND_WITH_INV,
	[VS_WRITE] = IBV_WR_RDMA_WRITE,
	[VS_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
	[VS_READ] = IBV_WR_RDMA_READ,
	[VS_CAS] = IBV_WR_ATOMIC_CMP_AND_SWP,
	[VS_FAA] = IBV_WR_ATOMIC_FETCH_AND_ADD,
	[VS_SHARED_FAA] = IBV_WR_ATOMIC_FETCH_AND_ADD,
	[VS_BIND] = IBV_WR_BIND_MW,
};

static void fill_sges(struct vs_ep *ep, struct request *rq)
{
	struct vs_op *op = rq->op;
	bool lands = op->land >= 0;
	const struct vs_area *area = lands ? &ep->land.area : &ep->node->source;
	uint32_t lkey = lands ? ep->land.mr->lkey : ep->node->source_mr->lkey;

	for (unsigned i = 0; i < op->piece_count; i++)
		rq->sge[i] =
			(struct ibv_sge){.addr = area->iova + op->pieces[i].off,
					 .length = op->pieces[i].len,
					 .lkey = lkey};
	rq->wr.sg_list = rq->sge;
	rq->wr.num_sge = (int)op->piece_count;
	if (op->expect == VS_LOCAL_PROTECTION)
		rq->sge[op->piece_count - 1].lkey ^= 0x11;
}

/* Inline data is the NIC's after the post: it is given from a buffer that is
 * scribbled over at once, and with a key that means nothing. */
static void make_inline(struct vs_ep *ep, struct request *rq)
{
	struct vs_op *op = rq->op;

	memcpy(rq->copy, op->data, op->len);
	rq->sge[0] = (struct ibv_sge){.addr = (uintptr_t)rq->copy,
				      .length = op->len,
				      .lkey = 0xdeadbeef};
	rq->wr.num_sge = 1;
	rq->wr.send_flags |= IBV_SEND_INLINE;
}

static void fill_remote(struct vs_ep *ep, struct request *rq)
{
	struct ibv_send_wr *wr = &rq->wr;
	const struct vs_op *op = rq->op;

	switch (op->kind) {
	case VS_WRITE:
	case VS_WRITE_IMM:
	case VS_READ:
		wr->wr.rdma.remote_addr = op->target_iova;
		wr->wr.rdma.rkey = op->target_key;
		break;
	case VS_CAS:
		wr->wr.atomic.compare_add = op->atomic.compare;
		wr->wr.atomic.swap = op->atomic.swap_add;
		wr->wr.atomic.remote_addr = op->target_iova;
		wr->wr.atomic.rkey = op->target_key;
		break;
	case VS_FAA:
	case VS_SHARED_FAA:
		wr->wr.atomic.compare_add = op->atomic.swap_add;
		wr->wr.atomic.remote_addr = op->target_iova;
		wr->wr.atomic.rkey = op->target_key;
		break;
	case VS_BIND:
		wr->bind_mw.mw = ep->mw;
		wr->bind_mw.rkey = op->inv_key;
		wr->bind_mw.bind_info = (struct ibv_mw_bind_info){
			.mr = ep->window_mr,
			.addr = ep->window.iova,
			.length = ep->window.len_bytes,
			.mw_access_flags = IBV_ACCESS_REMOTE_READ |
					   IBV_ACCESS_REMOTE_WRITE};
		break;
	case VS_SEND_INV:
		wr->invalidate_rkey = op->inv_key;
		break;
	case VS_SEND:
	case VS_SEND_IMM:
	case VS_MASKED_CAS:
	case VS_MASKED_FAA:
	case VS_WALK:
	case VS_KIND_COUNT:
		break;
	}
}

static void fill_request(struct vs_ep *ep, struct request *rq)
{
	const struct vs_op *op = rq->op;
	struct ibv_send_wr *wr = &rq->wr;

	*wr = (struct ibv_send_wr){.wr_id = op->id,
				   .opcode = wr_opcodes[op->kind]};
	if (op->signaled)
		wr->send_flags |= IBV_SEND_SIGNALED;
	if (op->fence)
		wr->send_flags |= IBV_SEND_FENCE;
	if (op->solicited)
		wr->send_flags |= IBV_SEND_SOLICITED;
	if (op->kind == VS_SEND_IMM || op->kind == VS_WRITE_IMM)
		wr->imm_data = op->imm;
	if (op->kind != VS_BIND)
		fill_sges(ep, rq);
	fill_remote(ep, rq);
	if (op->land < 0 && op->kind != VS_BIND && op->expect == VS_OK &&
	    op->len <= ep->inline_max && sim_rand_below(&ep->rand, 2))
		make_inline(ep, rq);
}

static void enqueue(struct vs_ep *ep, struct vs_op *op)
{
	vs_trace(ep->s->vs,
		 "%s: post %lu kind %u len %u off %u%s%s%s expect %u", ep->name,
		 op->id, op->kind, op->len, op->off,
		 op->signaled ? " signaled" : "", op->fence ? " fence" : "",
		 op->strict ? " strict" : "", op->expect);
	vs_record_post(ep, op);
	vs_shadow_post(ep, op);
	ep->sq[ep->sq_tail++ % VS_SQ_MAX] = op;
	ep->posted++;
	if (vs_op_is_message(op) && op->expect != VS_LOCAL_PROTECTION) {
		op->refs++;
		op->msg_next = NULL;
		*ep->msg_last = op;
		ep->msg_last = &op->msg_next;
	}
}

/* Those that have a call of their own. */
static void post_alone(struct vs_ep *ep, struct vs_op *op)
{
	bool is_walk = op->kind == VS_WALK;

	if (is_walk ? vs_walk_post(ep, op) : vs_masked_post(ep, op))
		vs_fail(ep->s->vs, "%s: posting a %s failed", ep->name,
			is_walk ? "walk" : "masked atomic");
}

/* Posts up to `count` requests, chained as one list. */
static void post_chain(struct vs_ep *ep, unsigned count)
{
	struct request rq[CHAIN_MAX];
	struct ibv_send_wr *bad;
	unsigned n = 0;

	while (n < count) {
		struct vs_op *op = vs_op_make(ep);

		if (!op)
			break;
		enqueue(ep, op);
		if (vs_op_is_masked(op) || op->kind == VS_WALK) {
			/* Behind the others. */
			if (n) {
				rq[n - 1].wr.next = NULL;
				if (ibv_post_send(ep->qp, &rq[0].wr, &bad))
					vs_fail(ep->s->vs, "%s: post failed",
						ep->name);
			}
			post_alone(ep, op);
			return;
		}
		rq[n].op = op;
		fill_request(ep, &rq[n]);
		if (n)
			rq[n - 1].wr.next = &rq[n].wr;
		n++;
	}
	if (!n)
		return;
	if (ibv_post_send(ep->qp, &rq[0].wr, &bad))
		vs_fail(ep->s->vs, "%s: posting %u requests failed", ep->name,
			n);
	memset(rq, 0xee, sizeof(rq));
}

void vs_post_sends(struct vs_ep *ep)
{
	uint32_t room = ep->sq_max - (ep->sq_tail - ep->sq_head);
	unsigned left = ep->quota - ep->posted;
	unsigned n = sim_rand_range(&ep->rand, 1, CHAIN_MAX);

	n = u32_min(n, u32_min(room, left));
	if (n)
		post_chain(ep, n);
}

void vs_post_parting(struct vs_ep *ep)
{
	uint32_t good = u32_min(ep->sq_max - 1, PARTING_GOOD);

	ep->posted = 0;
	ep->spoil_at = sim_rand_range(&ep->rand, 1, good);
	ep->quota = ep->spoil_at + 1 +
		    sim_rand_below(&ep->rand, u32_min(ep->sq_max - ep->spoil_at,
						      PARTING_BEHIND + 1));
	/* A draw may be one that cannot be made, and those behind the bad one
	 * may find no slot for their answers. */
	for (unsigned i = 0; i < PARTING_DRAWS && ep->posted < ep->quota; i++)
		post_chain(ep, u32_min(CHAIN_MAX, ep->quota - ep->posted));
}
