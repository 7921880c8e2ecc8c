/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wr_* interface: requests are staged between wr_start and wr_complete and
 * then posted together. Inline data is copied when it is named, because the
 * caller may reuse its buffer at once.
 */
#include <stdlib.h>
#include <string.h>

#include "verbs_priv.h"

static const uint64_t OPS_RC =
	IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
	IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
	IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
	IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV |
	IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV;
static const uint64_t OPS_UD =
	IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;

static struct verbs_qp *ex_to_qp(struct ibv_qp_ex *ex)
{
	return container_of(ex, struct verbs_qp, ex);
}

static struct verbs_stage *ex_stage(struct ibv_qp_ex *ex)
{
	return ex_to_qp(ex)->stage;
}

VERBS_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return to_qp(qp)->stage ? &to_qp(qp)->ex : NULL;
}

static void stage_clear(struct verbs_stage *st)
{
	st->err = 0;
	st->count = 0;
	/* Setters without a builder go nowhere. */
	st->current = &st->wrs[st->capacity];
}

static void stage_fail(struct verbs_stage *st, int err)
{
	if (!st->err)
		st->err = err;
}

/* Opens the next request. */
static struct ibv_send_wr *stage_add(struct ibv_qp_ex *ex,
				     enum ibv_wr_opcode opcode)
{
	struct verbs_stage *st = ex_stage(ex);
	struct ibv_send_wr *wr = &st->wrs[st->count];

	if (LIKELY(st->count < st->capacity))
		st->count++;
	else
		stage_fail(st, ENOMEM);
	st->current = wr;
	wr->wr_id = ex->wr_id;
	wr->num_sge = 0;
	wr->opcode = opcode;
	wr->send_flags = ex->wr_flags;
	return wr;
}

static void ex_start(struct ibv_qp_ex *ex)
{
	struct verbs_stage *st = ex_stage(ex);

	lock_take(&st->lock);
	stage_clear(st);
}

static int ex_complete(struct ibv_qp_ex *ex)
{
	struct verbs_qp *qp = ex_to_qp(ex);
	struct verbs_stage *st = qp->stage;
	struct nic_host *host = qp->host;
	int rc = -st->err;
	uint32_t i;

	if (UNLIKELY(!qp->nic))
		rc = -EIO;
	if (LIKELY(!rc)) {
		lock_take(&host->lock);
		for (i = 0; i < st->count; i++) {
			rc = verbs_post_one(qp, &st->wrs[i]);
			if (UNLIKELY(rc)) {
				/* All or nothing. */
				nic_qp_unpost(qp->nic, i);
				break;
			}
		}
		nic_qp_kick(qp->nic);
		lock_drop(&host->lock);
	}
	lock_drop(&st->lock);
	return -rc;
}

static void ex_abort(struct ibv_qp_ex *ex)
{
	lock_drop(&ex_stage(ex)->lock);
}

static void add_rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode,
		     uint32_t rkey, uint64_t remote_addr, __be32 imm)
{
	struct ibv_send_wr *wr = stage_add(ex, opcode);

	wr->imm_data = imm;
	wr->wr.rdma.remote_addr = remote_addr;
	wr->wr.rdma.rkey = rkey;
}

static void ex_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	add_rdma(ex, IBV_WR_RDMA_WRITE, rkey, addr, 0);
}

static void ex_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey,
			      uint64_t addr, __be32 imm)
{
	add_rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr, imm);
}

static void ex_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	add_rdma(ex, IBV_WR_RDMA_READ, rkey, addr, 0);
}

static void ex_send(struct ibv_qp_ex *ex)
{
	stage_add(ex, IBV_WR_SEND);
}

static void ex_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	stage_add(ex, IBV_WR_SEND_WITH_IMM)->imm_data = imm;
}

static void ex_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	stage_add(ex, IBV_WR_SEND_WITH_INV)->invalidate_rkey = rkey;
}

static void ex_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	stage_add(ex, IBV_WR_LOCAL_INV)->invalidate_rkey = rkey;
}

static void ex_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr,
		       uint64_t compare, uint64_t swap)
{
	struct ibv_send_wr *wr = stage_add(ex, IBV_WR_ATOMIC_CMP_AND_SWP);

	wr->wr.atomic.remote_addr = addr;
	wr->wr.atomic.compare_add = compare;
	wr->wr.atomic.swap = swap;
	wr->wr.atomic.rkey = rkey;
}

static void ex_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr,
			 uint64_t add)
{
	struct ibv_send_wr *wr = stage_add(ex, IBV_WR_ATOMIC_FETCH_AND_ADD);

	wr->wr.atomic.remote_addr = addr;
	wr->wr.atomic.compare_add = add;
	wr->wr.atomic.swap = 0;
	wr->wr.atomic.rkey = rkey;
}

static void ex_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr *wr = stage_add(ex, IBV_WR_BIND_MW);

	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = rkey;
	wr->bind_mw.bind_info = *info;
	if (!mw || mw->type != IBV_MW_TYPE_2)
		stage_fail(ex_stage(ex), EINVAL);
}

static void ex_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah,
			   uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct ibv_send_wr *wr = ex_stage(ex)->current;

	wr->wr.ud.ah = ah;
	wr->wr.ud.remote_qpn = remote_qpn;
	wr->wr.ud.remote_qkey = remote_qkey;
}

static void ex_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge,
			    const struct ibv_sge *list)
{
	struct verbs_stage *st = ex_stage(ex);
	struct ibv_send_wr *wr = st->current;

	if (UNLIKELY(num_sge > st->sge_stride)) {
		stage_fail(st, EINVAL);
		return;
	}
	memcpy(wr->sg_list, list, num_sge * sizeof(*list));
	wr->num_sge = (int)num_sge;
}

static void ex_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr,
		       uint32_t length)
{
	struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};

	ex_set_sge_list(ex, 1, &sge);
}

static void ex_set_inline_list(struct ibv_qp_ex *ex, size_t num_buf,
			       const struct ibv_data_buf *list)
{
	struct verbs_stage *st = ex_stage(ex);
	struct ibv_send_wr *wr = st->current;
	size_t slot = (size_t)(wr - st->wrs);
	uint8_t *to = st->bytes + slot * st->inline_stride;
	size_t total = 0;
	size_t i;

	for (i = 0; i < num_buf; i++) {
		if (UNLIKELY(list[i].length > st->inline_stride - total)) {
			stage_fail(st, EINVAL);
			return;
		}
		memcpy(to + total, list[i].addr, list[i].length);
		total += list[i].length;
	}
	wr->sg_list[0] = (struct ibv_sge){.addr = (uintptr_t)to,
					  .length = (uint32_t)total};
	wr->num_sge = 1;
	wr->send_flags |= IBV_SEND_INLINE;
}

static void ex_set_inline(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf buf = {.addr = addr, .length = length};

	ex_set_inline_list(ex, 1, &buf);
}

static struct verbs_stage *stage_create(const struct ibv_qp_cap *cap)
{
	struct verbs_stage *st = calloc(1, sizeof(*st));
	size_t slots = (size_t)cap->max_send_wr + 1;
	size_t i;

	if (!st)
		return NULL;
	lock_init(&st->lock);
	st->capacity = cap->max_send_wr;
	st->sge_stride = u32_max(cap->max_send_sge, 1);
	st->inline_stride = cap->max_inline_data;
	st->wrs = calloc(slots, sizeof(*st->wrs));
	st->sges = calloc(slots * st->sge_stride, sizeof(*st->sges));
	st->bytes = calloc(slots, u32_max(st->inline_stride, 1));
	if (!st->wrs || !st->sges || !st->bytes) {
		verbs_stage_destroy(st);
		return NULL;
	}
	for (i = 0; i < slots; i++)
		st->wrs[i].sg_list = &st->sges[i * st->sge_stride];
	stage_clear(st);
	return st;
}

void verbs_stage_destroy(struct verbs_stage *st)
{
	if (!st)
		return;
	free(st->bytes);
	free(st->sges);
	free(st->wrs);
	free(st);
}

/* Builders only for what was asked for: a program that asks for an operation we
 * lack must hear so now, not call through NULL later. */
int verbs_qp_ex_init(struct verbs_qp *qp, uint64_t ops)
{
	bool is_ud = qp->ibv.qp_type == IBV_QPT_UD;
	struct ibv_qp_ex *ex = &qp->ex;

	if (ops & ~(is_ud ? OPS_UD : OPS_RC))
		return -EOPNOTSUPP;
	qp->stage = stage_create(&qp->cap);
	if (!qp->stage)
		return -ENOMEM;
	if (ops & IBV_QP_EX_WITH_RDMA_WRITE)
		ex->wr_rdma_write = ex_rdma_write;
	if (ops & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
		ex->wr_rdma_write_imm = ex_rdma_write_imm;
	if (ops & IBV_QP_EX_WITH_SEND)
		ex->wr_send = ex_send;
	if (ops & IBV_QP_EX_WITH_SEND_WITH_IMM)
		ex->wr_send_imm = ex_send_imm;
	if (ops & IBV_QP_EX_WITH_RDMA_READ)
		ex->wr_rdma_read = ex_rdma_read;
	if (ops & IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP)
		ex->wr_atomic_cmp_swp = ex_cmp_swp;
	if (ops & IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
		ex->wr_atomic_fetch_add = ex_fetch_add;
	if (ops & IBV_QP_EX_WITH_LOCAL_INV)
		ex->wr_local_inv = ex_local_inv;
	if (ops & IBV_QP_EX_WITH_BIND_MW)
		ex->wr_bind_mw = ex_bind_mw;
	if (ops & IBV_QP_EX_WITH_SEND_WITH_INV)
		ex->wr_send_inv = ex_send_inv;
	if (is_ud)
		ex->wr_set_ud_addr = ex_set_ud_addr;
	ex->wr_set_inline_data = ex_set_inline;
	ex->wr_set_inline_data_list = ex_set_inline_list;
	ex->wr_set_sge = ex_set_sge;
	ex->wr_set_sge_list = ex_set_sge_list;
	ex->wr_start = ex_start;
	ex->wr_complete = ex_complete;
	ex->wr_abort = ex_abort;
	return 0;
}
