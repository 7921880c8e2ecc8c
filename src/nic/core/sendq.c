/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Send queues: writing a request as a WQE (wire/wqe.h), reading it back when
 * its turn comes, and finding the message bytes that it points to.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "access_priv.h"
#include "walk_request.h"
#include "wqe_shape.h"

enum {
	/* Control, remote address, and the largest thing behind them. */
	FIXED_BYTES = WQE_SEG_BYTES + sizeof(struct wqe_datagram),
};

int sendq_init(struct nic *nic, struct sendq *q, struct ibv_qp_cap *cap)
{
	uint32_t data_bytes =
		u32_max(cap->max_send_sge * (uint32_t)WQE_SEG_BYTES,
			cap->max_inline_data + 4);
	uint32_t blocks_per_wqe =
		(uint32_t)align_up(FIXED_BYTES + data_bytes, WQE_BLOCK_BYTES) /
		WQE_BLOCK_BYTES;
	uint32_t slots;

	q->limit = u32_max(cap->max_send_wr, 1);
	q->max_sge = cap->max_send_sge;
	/* All that an entry has room for: there are programs that send a few
	 * bytes inline without asking, as every adapter lets them. */
	q->max_inline =
		u32_min(NIC_INLINE_MAX,
			blocks_per_wqe * WQE_BLOCK_BYTES - FIXED_BYTES - 4);
	cap->max_inline_data = q->max_inline;
	slots = u32_pow2_ceil(q->limit);
	q->slot_mask = slots - 1;
	q->block_count = u32_pow2_ceil(q->limit * blocks_per_wqe);
	q->wqes = nic->env->ops->pages_alloc(nic->env, sendq_bytes(q));
	if (!q->wqes)
		return -ENOMEM;
	q->slots = calloc(slots, sizeof(*q->slots));
	if (!q->slots) {
		sendq_release(nic, q);
		return -ENOMEM;
	}
	return 0;
}

void sendq_release(struct nic *nic, struct sendq *q)
{
	if (q->wqes)
		nic->env->ops->pages_free(nic->env, q->wqes, sendq_bytes(q));
	free(q->slots);
	*q = (struct sendq){0};
}

/* ---- posting ------------------------------------------------------------ */

static int opcode_of(const struct ibv_send_wr *wr,
		     const struct nic_send_extra *extra)
{
	if (UNLIKELY(extra && extra->masked))
		return extra->masked->is_add ? WQE_MASKED_FAA : WQE_MASKED_CAS;
	if (extra && extra->walk)
		return WQE_WALK;
	return wqe_opcode_from_wr(wr->opcode);
}

/* Writes the segments between control and data; returns their bytes. */
static uint32_t put_address(const struct sendq *q, uint32_t at, uint8_t opcode,
			    const struct ibv_send_wr *wr)
{
	struct wqe_raddr *raddr = sendq_seg(q, at);

	switch (opcode) {
	case WQE_WRITE:
	case WQE_WRITE_IMM:
	case WQE_READ:
		raddr->addr = be64_put(wr->wr.rdma.remote_addr);
		raddr->rkey = be32_put(wr->wr.rdma.rkey);
		return sizeof(*raddr);
	case WQE_CAS:
	case WQE_FAA: {
		struct wqe_atomic *a = sendq_seg(q, at + WQE_SEG_BYTES);
		bool cas = opcode == WQE_CAS;

		raddr->addr = be64_put(wr->wr.atomic.remote_addr);
		raddr->rkey = be32_put(wr->wr.atomic.rkey);
		a->swap_add = be64_put(cas ? wr->wr.atomic.swap
					   : wr->wr.atomic.compare_add);
		a->compare = be64_put(cas ? wr->wr.atomic.compare_add : 0);
		return sizeof(*raddr) + sizeof(*a);
	}
	default:
		return 0;
	}
}

static uint32_t put_masked(const struct sendq *q, uint32_t at,
			   const struct nic_masked_atomic *m)
{
	struct wqe_raddr *raddr = sendq_seg(q, at);
	struct wqe_atomic *a = sendq_seg(q, at + WQE_SEG_BYTES);
	struct wqe_masked_faa *faa = (void *)a;
	struct wqe_cas_mask *mask = sendq_seg(q, at + 2 * WQE_SEG_BYTES);

	raddr->addr = be64_put(m->remote_addr);
	raddr->rkey = be32_put(m->rkey);
	if (m->is_add) {
		faa->add = be64_put(m->swap_add);
		faa->boundary = be64_put(m->boundary);
		return sizeof(*raddr) + sizeof(*faa);
	}
	a->swap_add = be64_put(m->swap_add);
	a->compare = be64_put(m->compare);
	mask->swap_mask = be64_put(m->swap_mask);
	mask->compare_mask = be64_put(m->compare_mask);
	return sizeof(*raddr) + sizeof(*a) + sizeof(*mask);
}

static uint32_t put_walk(const struct sendq *q, uint32_t at,
			 const struct nic_walk_request *w)
{
	struct wqe_raddr *raddr = sendq_seg(q, at);
	struct wqe_walk *walk = sendq_seg(q, at + WQE_SEG_BYTES);

	raddr->addr = be64_put(w->at);
	raddr->rkey = be32_put(w->rkey);
	walk->program = be64_put(w->program);
	walk->iterations = be32_put(w->iterations);
	walk->send_bytes =
		be32_put(w->send_bytes | (w->forward ? WQE_WALK_FORWARD : 0));
	return sizeof(*raddr) + sizeof(*walk);
}

/* Three segments, which may wrap: written one by one. */
static uint32_t put_three_segs(const struct sendq *q, uint32_t at,
			       const void *three)
{
	unsigned i;

	for (i = 0; i < 3; i++)
		memcpy(sendq_seg(q, at + i * WQE_SEG_BYTES),
		       (const uint8_t *)three + i * WQE_SEG_BYTES,
		       WQE_SEG_BYTES);
	return 3 * WQE_SEG_BYTES;
}

static uint32_t put_datagram(const struct sendq *q, uint32_t at,
			     const struct ibv_send_wr *wr)
{
	struct wqe_datagram dg = {
		.qkey = be32_put(wr->wr.ud.remote_qkey),
		.dest_qpn = be32_put(wr->wr.ud.remote_qpn),
	};

	return put_three_segs(q, at, &dg);
}

static uint32_t put_bind(const struct sendq *q, uint32_t at,
			 const struct ibv_send_wr *wr,
			 const struct nic_send_extra *extra)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;
	struct wqe_bind bind = {
		.addr = be64_put(info->addr),
		.length = be64_put(info->length),
		.mw_rkey = be32_put(extra->mw->key.key),
		.new_rkey = be32_put(wr->bind_mw.rkey),
		.mr_lkey =
			be32_put(extra->bind_mr ? extra->bind_mr->key.key : 0),
		.access = be32_put(info->mw_access_flags),
	};

	return put_three_segs(q, at, &bind);
}

static uint32_t put_inline(const struct sendq *q, uint32_t at,
			   const struct ibv_send_wr *wr, uint32_t length)
{
	be32 *header = sendq_seg(q, at);
	uint32_t end = sendq_bytes(q), pos = at + 4;
	int s;

	*header = be32_put(length | WQE_INLINE_FLAG);
	for (s = 0; s < wr->num_sge; s++) {
		const uint8_t *src =
			(const uint8_t *)(uintptr_t)wr->sg_list[s].addr;
		uint32_t left = wr->sg_list[s].length;

		while (left) {
			uint32_t off = pos & (end - 1);
			uint32_t n = u32_min(left, end - off);

			memcpy(q->wqes + off, src, n);
			src += n;
			pos += n;
			left -= n;
		}
	}
	return (uint32_t)align_up(4 + length, WQE_SEG_BYTES);
}

static uint32_t put_pointers(const struct sendq *q, uint32_t at,
			     const struct ibv_send_wr *wr)
{
	int s;

	for (s = 0; s < wr->num_sge; s++) {
		struct wqe_data *seg =
			sendq_seg(q, at + (uint32_t)s * WQE_SEG_BYTES);

		seg->byte_count = be32_put(wr->sg_list[s].length);
		seg->lkey = be32_put(wr->sg_list[s].lkey);
		seg->addr = be64_put(wr->sg_list[s].addr);
	}
	return (uint32_t)wr->num_sge * WQE_SEG_BYTES;
}

/* The message's length, or why it cannot be posted. */
static int64_t check_request(const struct nic_qp *qp, const struct wqe_op *op,
			     const struct ibv_send_wr *wr,
			     const struct nic_send_extra *extra)
{
	const struct sendq *q = &qp->sq;
	uint64_t length = 0;
	int s;

	if (qp->type == IBV_QPT_UD &&
	    (!(op->flags & WQE_OP_UD) || !extra || !extra->ah))
		return -EINVAL;
	if (op->wc == IBV_WC_BIND_MW && (!extra || !extra->mw))
		return -EINVAL;
	if (!(op->flags & WQE_OP_DATA))
		return 0;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > q->max_sge)
		return -EINVAL;
	for (s = 0; s < wr->num_sge; s++)
		length += wr->sg_list[s].length;
	if ((wr->send_flags & IBV_SEND_INLINE) &&
	    (length > q->max_inline || (op->flags & WQE_OP_RESPONSE)))
		return -EINVAL;
	if (length > NIC_MSG_BYTES_MAX ||
	    ((op->flags & WQE_OP_ATOMIC) && length != 8) ||
	    ((op->flags & WQE_OP_WALK) &&
	     !walk_has_room(qp, length, extra->walk->send_bytes)))
		return -EINVAL;
	return (int64_t)length;
}

static uint32_t blocks_for(const struct wqe_op *op, bool ud, bool is_inline,
			   const struct ibv_send_wr *wr, uint32_t length)
{
	uint32_t bytes = WQE_SEG_BYTES;

	bytes += ud ? (uint32_t)sizeof(struct wqe_datagram)
		    : (uint32_t)op->seg_count * WQE_SEG_BYTES;
	if (op->flags & WQE_OP_DATA)
		bytes += is_inline
				 ? (uint32_t)align_up(4 + length, WQE_SEG_BYTES)
				 : (uint32_t)wr->num_sge * WQE_SEG_BYTES;
	return (bytes + WQE_BLOCK_BYTES - 1) / WQE_BLOCK_BYTES;
}

static uint8_t ctrl_flags(const struct nic_qp *qp, const struct ibv_send_wr *wr)
{
	unsigned flags = 0;

	if (wr->send_flags & IBV_SEND_SOLICITED)
		flags |= WQE_CTRL_SOLICITED;
	if (wr->send_flags & IBV_SEND_FENCE)
		flags |= WQE_CTRL_FENCE;
	if (qp->sq_sig_all || (wr->send_flags & IBV_SEND_SIGNALED))
		flags |= WQE_CTRL_CQE;
	return (uint8_t)flags;
}

static inline bool is_message(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM;
}

static inline bool is_plain(const struct nic_qp *qp,
			    const struct ibv_send_wr *wr,
			    const struct nic_send_extra *extra)
{
	return (wr->opcode == IBV_WR_RDMA_READ ||
		wr->opcode == IBV_WR_RDMA_WRITE || is_message(wr)) &&
	       wr->num_sge == 1 && qp->sq.max_sge &&
	       !(wr->send_flags & IBV_SEND_INLINE) &&
	       wr->sg_list[0].length <= NIC_MSG_BYTES_MAX && !extra &&
	       qp->type == IBV_QPT_RC;
}

/* What sendq_post does, for what is posted most. */
static inline int post_plain(struct nic_qp *qp, const struct ibv_send_wr *wr)
{
	struct sendq *q = &qp->sq;
	struct send_slot *slot = sendq_slot(q, q->head);
	const struct ibv_sge *sge = &wr->sg_list[0];
	uint32_t block = q->block_head;
	struct plain_wqe *wqe = sendq_seg(q, block * (uint32_t)WQE_BLOCK_BYTES);
	struct wqe_data *data = &wqe->data;
	uint32_t segs = PLAIN_WQE_SEGS;
	uint8_t opcode = wr->opcode == IBV_WR_RDMA_READ ? WQE_READ : WQE_WRITE;

	if (UNLIKELY(q->head - q->tail >= q->limit ||
		     block - q->block_tail >= q->block_count))
		return -ENOMEM;
	if (is_message(wr)) { /* the piece where others have an address */
		opcode = wr->opcode == IBV_WR_SEND ? WQE_SEND : WQE_SEND_IMM;
		data = (struct wqe_data *)&wqe->raddr;
		segs--;
	} else {
		wqe->raddr.addr = be64_put(wr->wr.rdma.remote_addr);
		wqe->raddr.rkey = be32_put(wr->wr.rdma.rkey);
	}
	wqe->ctrl.opmod_idx_opcode = be32_put((block & 0xffff) << 8 | opcode);
	wqe->ctrl.qpn_ds = be32_put(qp->qpn << 8 | segs);
	wqe->ctrl.flags = ctrl_flags(qp, wr);
	memcpy(&wqe->ctrl.imm, &wr->imm_data, sizeof(wqe->ctrl.imm));
	data->byte_count = be32_put(sge->length);
	data->lkey = be32_put(sge->lkey);
	data->addr = be64_put(sge->addr);
	*slot = (struct send_slot){
		.wr_id = wr->wr_id,
		.block = block,
		.blocks = 1,
		.opcode = opcode,
		.length = sge->length,
		.signaled = wqe->ctrl.flags & WQE_CTRL_CQE,
	};
	q->block_head = block + 1;
	q->head++;
	return 0;
}

static int post_any(struct nic_qp *qp, const struct ibv_send_wr *wr,
		    const struct nic_send_extra *extra)
{
	struct sendq *q = &qp->sq;
	struct send_slot *slot = sendq_slot(q, q->head);
	bool ud = qp->type == IBV_QPT_UD;
	bool is_inline = (wr->send_flags & IBV_SEND_INLINE) && wr->num_sge;
	int opcode = opcode_of(wr, extra);
	const struct wqe_op *info;
	int64_t length;
	uint32_t at, pos, blocks;
	struct wqe_ctrl *ctrl;

	if (UNLIKELY(q->head - q->tail >= q->limit))
		return -ENOMEM;
	if (UNLIKELY(opcode < 0))
		return opcode;
	info = wqe_op_get((uint8_t)opcode);
	length = check_request(qp, info, wr, extra);
	if (UNLIKELY(length < 0))
		return (int)length;
	blocks = blocks_for(info, ud, is_inline, wr, (uint32_t)length);
	if (UNLIKELY(q->block_head - q->block_tail + blocks > q->block_count))
		return -ENOMEM;

	at = q->block_head * (uint32_t)WQE_BLOCK_BYTES;
	pos = at + (uint32_t)sizeof(*ctrl);
	if (opcode == WQE_BIND_MW)
		pos += put_bind(q, pos, wr, extra);
	else if (ud)
		pos += put_datagram(q, pos, wr);
	else if (UNLIKELY(extra && extra->masked))
		pos += put_masked(q, pos, extra->masked);
	else if (opcode == WQE_WALK)
		pos += put_walk(q, pos, extra->walk);
	else
		pos += put_address(q, pos, (uint8_t)opcode, wr);
	if (info->flags & WQE_OP_DATA)
		pos += is_inline ? put_inline(q, pos, wr, (uint32_t)length)
				 : put_pointers(q, pos, wr);
	ctrl = sendq_seg(q, at);
	ctrl->opmod_idx_opcode =
		be32_put((q->block_head & 0xffff) << 8 | (uint32_t)opcode);
	ctrl->qpn_ds = be32_put(qp->qpn << 8 | (pos - at) / WQE_SEG_BYTES);
	ctrl->flags = ctrl_flags(qp, wr);
	/* Immediates are opaque; keys to invalidate are numbers. */
	if (info->flags & WQE_OP_KEY)
		ctrl->imm = be32_put(wr->invalidate_rkey);
	else
		memcpy(&ctrl->imm, &wr->imm_data, sizeof(ctrl->imm));
	*slot = (struct send_slot){
		.wr_id = wr->wr_id,
		.block = q->block_head,
		.blocks = blocks,
		.opcode = (uint8_t)opcode,
		.length = (uint32_t)length,
		.signaled = ctrl->flags & WQE_CTRL_CQE,
		.ah = ud ? extra->ah : NULL,
	};
	if (slot->ah)
		ah_get(slot->ah);
	q->block_head += blocks;
	q->head++;
	return 0;
}

HOT int sendq_post(struct nic_qp *qp, const struct ibv_send_wr *wr,
		   const struct nic_send_extra *extra)
{
	return LIKELY(is_plain(qp, wr, extra)) ? post_plain(qp, wr)
					       : post_any(qp, wr, extra);
}

/* ---- execution ---------------------------------------------------------- */

static void get_atomic(const struct sendq *q, uint32_t at, struct send_op *op)
{
	const struct wqe_atomic *a = sendq_seg(q, at);

	op->atomic = (struct atomic_op){
		.is_add = op->info->wc == IBV_WC_FETCH_ADD,
		.swap_add = be64_get(a->swap_add),
		.compare = be64_get(a->compare),
		.swap_mask = UINT64_MAX,
		.compare_mask = UINT64_MAX,
	};
	if (op->opcode == WQE_MASKED_CAS) {
		const struct wqe_cas_mask *m = sendq_seg(q, at + WQE_SEG_BYTES);

		op->atomic.swap_mask = be64_get(m->swap_mask);
		op->atomic.compare_mask = be64_get(m->compare_mask);
	} else if (op->opcode == WQE_MASKED_FAA) {
		const struct wqe_masked_faa *m = (const void *)a;

		op->atomic.boundary = be64_get(m->boundary);
		op->atomic.compare = 0;
	}
}

static void get_walk(const struct sendq *q, uint32_t at, struct send_op *op)
{
	const struct wqe_walk *w = sendq_seg(q, at);

	op->walk.program = be64_get(w->program);
	op->walk.iterations = be32_get(w->iterations);
	op->walk.send_bytes = be32_get(w->send_bytes) & ~WQE_WALK_FORWARD;
	op->walk.forward = be32_get(w->send_bytes) & WQE_WALK_FORWARD;
}

/* What stands between control and data, except in datagrams. */
static void get_address(const struct sendq *q, uint32_t at, struct send_op *op)
{
	const struct wqe_raddr *raddr = sendq_seg(q, at);
	unsigned i;

	if (op->info->flags & WQE_OP_RADDR) {
		op->va = be64_get(raddr->addr);
		op->rkey = be32_get(raddr->rkey);
		if (op->info->flags & WQE_OP_ATOMIC)
			get_atomic(q, at + WQE_SEG_BYTES, op);
		else if (op->info->flags & WQE_OP_WALK)
			get_walk(q, at + WQE_SEG_BYTES, op);
	} else if (op->opcode == WQE_BIND_MW) {
		for (i = 0; i < 3; i++)
			memcpy((uint8_t *)&op->bind + i * WQE_SEG_BYTES,
			       sendq_seg(q, at + i * WQE_SEG_BYTES),
			       WQE_SEG_BYTES);
	}
}

/* Lengths come from the WQE as it is now, not as it was posted. */
static int get_data(const struct sendq *q, uint32_t at, uint32_t bytes,
		    struct send_op *op)
{
	const struct wqe_data *seg = sendq_seg(q, at);
	uint64_t length = 0;
	uint32_t s;

	op->data.off = at;
	op->data.segs = 0;
	op->data.is_inline =
		bytes && be32_get(seg->byte_count) & WQE_INLINE_FLAG;
	if (op->data.is_inline) {
		op->length = be32_get(seg->byte_count) & ~WQE_INLINE_FLAG;
		return op->length + 4 <= bytes ? 0 : -EINVAL;
	}
	op->data.segs = (uint16_t)(bytes / WQE_SEG_BYTES);
	for (s = 0; s < op->data.segs; s++) {
		seg = sendq_seg(q, at + s * WQE_SEG_BYTES);
		length += be32_get(seg->byte_count);
	}
	if (length > NIC_MSG_BYTES_MAX)
		return -EINVAL;
	op->length = (uint32_t)length;
	return 0;
}

/* What sendq_decode does, for a WQE that post_plain could have written. */
static inline bool decode_plain(const struct sendq *q,
				const struct send_slot *slot,
				struct send_op *op)
{
	uint32_t at = slot->block * (uint32_t)WQE_BLOCK_BYTES;
	const struct plain_wqe *wqe = sendq_seg(q, at);
	uint32_t length = be32_get(wqe->data.byte_count);

	op->opcode = (uint8_t)(be32_get(wqe->ctrl.opmod_idx_opcode) & 0xff);
	/* The top bit of a length says that the data are inline. */
	if ((op->opcode != WQE_READ && op->opcode != WQE_WRITE) ||
	    (be32_get(wqe->ctrl.qpn_ds) & 0xff) != PLAIN_WQE_SEGS || slot->ah ||
	    length > NIC_MSG_BYTES_MAX)
		return false;
	op->info = wqe_op_get(op->opcode);
	op->flags = wqe->ctrl.flags;
	memcpy(&op->imm, &wqe->ctrl.imm, sizeof(op->imm));
	op->va = be64_get(wqe->raddr.addr);
	op->rkey = be32_get(wqe->raddr.rkey);
	op->length = length;
	op->data = (struct send_data){
		.off = at + (uint32_t)offsetof(struct plain_wqe, data),
		.segs = 1,
	};
	return true;
}

static int decode_any(const struct sendq *q, const struct send_slot *slot,
		      struct send_op *op)
{
	uint32_t at = slot->block * (uint32_t)WQE_BLOCK_BYTES;
	const struct wqe_ctrl *ctrl = sendq_seg(q, at);
	uint32_t bytes = (be32_get(ctrl->qpn_ds) & 0xff) * WQE_SEG_BYTES;
	uint32_t used = sizeof(*ctrl);

	op->opcode = (uint8_t)(be32_get(ctrl->opmod_idx_opcode) & 0xff);
	op->info = wqe_op_get(op->opcode);
	op->flags = ctrl->flags;
	if (UNLIKELY(!op->info->name ||
		     (slot->ah && !(op->info->flags & WQE_OP_UD))))
		return -EINVAL;
	if (op->info->flags & WQE_OP_KEY)
		op->imm = be32_get(ctrl->imm);
	else
		memcpy(&op->imm, &ctrl->imm, sizeof(op->imm));
	if (slot->ah) {
		struct wqe_datagram dg;

		memcpy(&dg, sendq_seg(q, at + used), WQE_SEG_BYTES);
		op->qkey = be32_get(dg.qkey);
		op->dest_qpn = be32_get(dg.dest_qpn) & WIRE_QPN_MASK;
		used += (uint32_t)sizeof(dg);
	} else {
		get_address(q, at + used, op);
		used += (uint32_t)op->info->seg_count * WQE_SEG_BYTES;
	}
	if (bytes < used || bytes > slot->blocks * WQE_BLOCK_BYTES)
		return -EINVAL;
	/* A request that was switched off keeps what it is about. */
	if (op->opcode == WQE_NOP)
		bytes = used;
	if (get_data(q, at + used, bytes - used, op))
		return -EINVAL;
	if ((op->info->flags & WQE_OP_ATOMIC) && op->length != 8)
		return -EINVAL;
	/* An answer has no place in the queue itself. */
	return (op->info->flags & WQE_OP_RESPONSE) && op->data.is_inline
		       ? -EINVAL
		       : 0;
}

HOT int sendq_decode(const struct sendq *q, const struct send_slot *slot,
		     struct send_op *op)
{
	return LIKELY(decode_plain(q, slot, op)) ? 0 : decode_any(q, slot, op);
}

int sendq_decode_again(const struct sendq *q, const struct send_slot *slot,
		       struct send_op *op)
{
	int err = sendq_decode(q, slot, op);

	if (err)
		return err;
	return op->opcode == slot->opcode && op->length == slot->length
		       ? 0
		       : -EINVAL;
}

HOT uint8_t *sendq_piece(struct nic_qp *qp, const struct send_data *data,
			 uint32_t offset, uint32_t access, uint32_t *len_bytes)
{
	const struct sendq *q = &qp->sq;
	uint32_t s;
	uint8_t *host;

	if (data->is_inline) {
		uint32_t off = (data->off + 4 + offset) & (sendq_bytes(q) - 1);

		*len_bytes = u32_min(*len_bytes, sendq_bytes(q) - off);
		return q->wqes + off;
	}
	for (s = 0; s < data->segs; s++) {
		const struct wqe_data *seg =
			sendq_seg(q, data->off + s * WQE_SEG_BYTES);
		uint32_t seg_len = be32_get(seg->byte_count);

		if (offset >= seg_len) {
			offset -= seg_len;
			continue;
		}
		*len_bytes = u32_min(*len_bytes, seg_len - offset);
		if (key_check(qp, be32_get(seg->lkey),
			      be64_get(seg->addr) + offset, *len_bytes, access,
			      &host) == KEY_OK)
			return host;
		break;
	}
	count(qp->nic, NIC_C_local_protection);
	return NULL;
}

HOT int sendq_gather(struct nic_qp *qp, const struct send_data *data,
		     uint32_t offset, uint8_t *dst, uint32_t len_bytes)
{
	while (len_bytes) {
		uint32_t n = len_bytes;
		const uint8_t *src = sendq_piece(qp, data, offset, 0, &n);

		if (UNLIKELY(!src))
			return -EFAULT;
		if (UNLIKELY(touch_read(dst, src, n))) {
			count(qp->nic, NIC_C_local_protection);
			return -EFAULT;
		}
		dst += n;
		offset += n;
		len_bytes -= n;
	}
	return 0;
}

HOT int sendq_scatter(struct nic_qp *qp, const struct send_data *data,
		      uint32_t offset, const uint8_t *src, uint32_t len_bytes)
{
	while (len_bytes) {
		uint32_t n = len_bytes;
		uint8_t *dst = sendq_piece(qp, data, offset,
					   IBV_ACCESS_LOCAL_WRITE, &n);

		if (UNLIKELY(!dst))
			return -EFAULT;
		if (UNLIKELY(touch_write(dst, src, n))) {
			count(qp->nic, NIC_C_local_protection);
			return -EFAULT;
		}
		src += n;
		offset += n;
		len_bytes -= n;
	}
	return 0;
}

HOT int sendq_check(struct nic_qp *qp, const struct send_op *op,
		    uint32_t access, uint8_t **host)
{
	uint32_t offset = 0;

	if (LIKELY(op->data.segs == 1 && op->length)) {
		const struct wqe_data *seg = sendq_seg(&qp->sq, op->data.off);

		if (LIKELY(key_check(qp, be32_get(seg->lkey),
				     be64_get(seg->addr), op->length, access,
				     host) == KEY_OK))
			return 0;
		count(qp->nic, NIC_C_local_protection);
		return -EFAULT;
	}
	while (offset < op->length) {
		uint32_t n = op->length - offset;

		if (!sendq_piece(qp, &op->data, offset, access, &n))
			return -EFAULT;
		offset += n;
	}
	return 0;
}
