/* SPDX-License-Identifier: Apache-2.0 */
/* Receive queues and shared receive queues: posting and taking requests. */
#include <errno.h>
#include <stdlib.h>

#include "access_priv.h"
#include "base/landing.h"
#include "turn_priv.h"

int recvq_init(struct nic *nic, struct recvq *q, uint32_t wr_count,
	       uint32_t max_sge)
{
	q->max_sge = u32_max(max_sge, 1);
	q->stride = u32_pow2_ceil(q->max_sge) * (uint32_t)WQE_SEG_BYTES;
	q->limit = u32_max(wr_count, 1);
	q->count = u32_pow2_ceil(q->limit);
	q->wqes = nic->env->ops->pages_alloc(nic->env,
					     (size_t)q->count * q->stride);
	if (!q->wqes)
		return -ENOMEM;
	q->wr_ids = calloc(q->count, sizeof(*q->wr_ids));
	if (!q->wr_ids) {
		nic->env->ops->pages_free(nic->env, q->wqes,
					  (size_t)q->count * q->stride);
		return -ENOMEM;
	}
	return 0;
}

void recvq_init_managed(struct recvq *q, uint32_t wr_count, uint32_t max_sge)
{
	q->max_sge = max_sge;
	q->stride = max_sge * (uint32_t)WQE_SEG_BYTES;
	q->limit = wr_count;
	q->count = wr_count;
}

void recvq_release(struct nic *nic, struct recvq *q)
{
	if (q->wr_ids && q->wqes)
		nic->env->ops->pages_free(nic->env, q->wqes,
					  (size_t)q->count * q->stride);
	free(q->wr_ids);
	*q = (struct recvq){0};
}

int recvq_post(struct recvq *q, const struct ibv_recv_wr *wr)
{
	uint32_t i = q->head & (q->count - 1);
	struct wqe_data *seg = (struct wqe_data *)(q->wqes + i * q->stride);
	int s;

	if (UNLIKELY(q->head - q->tail >= q->limit))
		return -ENOMEM;
	if (UNLIKELY(wr->num_sge < 0 || (uint32_t)wr->num_sge > q->max_sge))
		return -EINVAL;
	for (s = 0; s < wr->num_sge; s++, seg++) {
		seg->byte_count = be32_put(wr->sg_list[s].length);
		seg->lkey = be32_put(wr->sg_list[s].lkey);
		seg->addr = be64_put(wr->sg_list[s].addr);
	}
	if ((uint32_t)wr->num_sge < q->stride / WQE_SEG_BYTES)
		*seg = (struct wqe_data){
			.lkey = be32_put(WQE_INVALID_LKEY),
		};
	q->wr_ids[i] = wr->wr_id;
	q->head++;
	return 0;
}

static void decode(const struct recvq *q, uint32_t i, struct recv_op *op)
{
	const struct wqe_data *seg =
		(const struct wqe_data *)(q->wqes + i * q->stride);
	uint32_t s;

	op->active = true;
	op->wr_id = q->wr_ids ? q->wr_ids[i] : q->tail;
	op->capacity = 0;
	op->sge_count = op->imm_count = 0;
	for (s = 0; s < q->max_sge; s++, seg++) {
		struct ibv_sge sge = {
			.addr = be64_get(seg->addr),
			.length = be32_get(seg->byte_count),
			.lkey = be32_get(seg->lkey),
		};

		if (sge.lkey == WQE_INVALID_LKEY)
			break;
		if (UNLIKELY(!q->wr_ids && sge.length & WQE_INLINE_FLAG)) {
			if (op->imm_count < NIC_RECV_IMMS)
				op->imm[op->imm_count++] = sge;
			continue;
		}
		op->sge[op->sge_count++] = sge;
		op->capacity += sge.length;
	}
}

static size_t decode_far(void *op, const void *q, uintptr_t i)
{
	decode(q, (uint32_t)i, op);
	return 1;
}

/* The entry of a managed queue is in the application's memory. */
static bool decode_managed(const struct recvq *q, uint32_t i,
			   struct recv_op *op)
{
	uintptr_t entry = (uintptr_t)q->wqes + i * q->stride;

	return landing_call(op, q, i, decode_far, entry, entry + q->stride);
}

bool recvq_take_if(struct nic_qp *qp, struct recv_op *op, uint32_t need)
{
	struct nic_srq *srq = qp->srq;
	struct recvq *q = srq ? &srq->q : &qp->rq;

	if (UNLIKELY(!q->wr_ids) && !chain_recv_ready(qp))
		return false;
	if (q->head == q->tail)
		return false;
	if (LIKELY(q->wr_ids != NULL)) {
		decode(q, q->tail & (q->count - 1), op);
	} else if (!decode_managed(q, q->tail & (q->count - 1), op)) {
		op->active = false;
		chain_recv_fail(qp);
		return false;
	}
	if (UNLIKELY(op->capacity < need)) {
		op->active = false;
		return true;
	}
	q->tail++;
	/* What a chain does with it is counted there. */
	if (LIKELY(q->wr_ids != NULL))
		turn_count(qp->pd->turns, NIC_TURN_MESSAGE);
	if (srq && srq->low_mark && q->head - q->tail < srq->low_mark) {
		srq->low_mark = 0;
		if (qp->nic->up)
			qp->nic->up->async_event(srq->owner,
						 IBV_EVENT_SRQ_LIMIT_REACHED);
	}
	return true;
}

int recv_scatter(struct nic_qp *qp, uint32_t offset, const uint8_t *src,
		 uint32_t len_bytes)
{
	const struct recv_op *op = &qp->recv;
	const struct nic_key *key = NULL;
	uint32_t s;

	for (s = 0; s < op->sge_count && len_bytes; s++) {
		const struct ibv_sge *sge = &op->sge[s];
		uint32_t n;
		uint8_t *dst;

		if (offset >= sge->length) {
			offset -= sge->length;
			continue;
		}
		n = u32_min(sge->length - offset, len_bytes);
		if (!key || key->key != sge->lkey)
			key = key_find(&qp->nic->keys, sge->lkey);
		if (key_covers(qp, key, sge->addr + offset, n,
			       IBV_ACCESS_LOCAL_WRITE, &dst) != KEY_OK ||
		    UNLIKELY(touch_write(dst, src, n))) {
			count(qp->nic, NIC_C_local_protection);
			return -EFAULT;
		}
		src += n;
		len_bytes -= n;
		offset = 0;
	}
	return len_bytes ? -EMSGSIZE : 0;
}

int nic_srq_create(struct nic_pd *pd, const struct ibv_srq_attr *attr,
		   void *owner, struct nic_srq **out)
{
	struct nic *nic = pd->nic;
	struct nic_srq *srq;
	int err;

	if (attr->max_wr == 0 || attr->max_wr > NIC_SRQ_WR_MAX ||
	    attr->max_sge > NIC_SGE_MAX)
		return -EINVAL;
	if (nic->srq_count >= NIC_SRQ_MAX)
		return -ENOMEM;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	err = recvq_init(nic, &srq->q, attr->max_wr, attr->max_sge);
	if (err) {
		free(srq);
		return err;
	}
	srq->nic = nic;
	srq->pd = pd;
	srq->owner = owner;
	srq->number = ++nic->srq_numbers & WIRE_QPN_MASK;
	pd->users++;
	nic->srq_count++;
	*out = srq;
	return 0;
}

int nic_srq_destroy(struct nic_srq *srq)
{
	if (srq->users)
		return -EBUSY;
	recvq_release(srq->nic, &srq->q);
	srq->pd->users--;
	srq->nic->srq_count--;
	free(srq);
	return 0;
}

int nic_srq_modify(struct nic_srq *srq, const struct ibv_srq_attr *attr,
		   int mask)
{
	if (mask & IBV_SRQ_MAX_WR)
		return -EOPNOTSUPP; /* the device does not claim it */
	if (mask & IBV_SRQ_LIMIT) {
		if (attr->srq_limit > srq->q.limit)
			return -EINVAL;
		srq->low_mark = attr->srq_limit;
	}
	return 0;
}

void nic_srq_query(const struct nic_srq *srq, struct ibv_srq_attr *attr)
{
	*attr = (struct ibv_srq_attr){
		.max_wr = srq->q.limit,
		.max_sge = srq->q.max_sge,
		.srq_limit = srq->low_mark,
	};
}

uint32_t nic_srq_number(const struct nic_srq *srq)
{
	return srq->number;
}

int nic_srq_post(struct nic_srq *srq, const struct ibv_recv_wr *wr)
{
	return recvq_post(&srq->q, wr);
}
