/* SPDX-License-Identifier: Apache-2.0 */
/* Extended completion queues: one completion at a time, read field by field.
 * The CQ's lock is held from start_poll to end_poll. */

#include "base/clock.h"
#include "verbs_priv.h"

static struct verbs_cq *ex_to_cq(struct ibv_cq_ex *ex)
{
	return container_of(ex, struct verbs_cq, ex);
}

static const struct nic_cqe *current_cqe(struct ibv_cq_ex *ex)
{
	return ex_to_cq(ex)->current;
}

/* ENOENT: empty. */
static int ex_load(struct verbs_cq *cq)
{
	const struct nic_cqe *cqe = nic_cq_peek(cq->nic);

	if (!cqe)
		return ENOENT;
	cq->current = cqe;
	cq->ex.wr_id = cqe->wr_id;
	cq->ex.status = (enum ibv_wc_status)cqe->status;
	return 0;
}

static int ex_start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct verbs_cq *cq = ex_to_cq(ex);
	int rc;

	if (UNLIKELY(attr && attr->comp_mask))
		return EINVAL;
	if (UNLIKELY(!cq->nic))
		return EIO;
	lock_take(&cq->lock);
	rc = ex_load(cq);
	if (!rc)
		return 0;
	lock_drop(&cq->lock);
	cq->host->ops->drive(cq->host);
	lock_take(&cq->lock);
	rc = ex_load(cq);
	if (rc)
		lock_drop(&cq->lock);
	return rc;
}

static void ex_pop(struct verbs_cq *cq)
{
	if (cq->current)
		nic_cq_pop(cq->nic);
	cq->current = NULL;
}

static int ex_next_poll(struct ibv_cq_ex *ex)
{
	struct verbs_cq *cq = ex_to_cq(ex);

	ex_pop(cq);
	return ex_load(cq);
}

static void ex_end_poll(struct ibv_cq_ex *ex)
{
	struct verbs_cq *cq = ex_to_cq(ex);
	struct nic_host *host = cq->host;

	ex_pop(cq);
	lock_drop(&cq->lock);
	if (nic_outstanding(host->nic) == 0)
		host->ops->leave(host);
}

static enum ibv_wc_opcode ex_read_opcode(struct ibv_cq_ex *ex)
{
	return (enum ibv_wc_opcode)current_cqe(ex)->opcode;
}

static uint32_t ex_read_vendor_err(struct ibv_cq_ex *ex)
{
	return current_cqe(ex)->vendor_err;
}

static uint32_t ex_read_byte_len(struct ibv_cq_ex *ex)
{
	return current_cqe(ex)->byte_len;
}

static __be32 ex_read_imm_data(struct ibv_cq_ex *ex)
{
	return current_cqe(ex)->imm_or_key;
}

static uint32_t ex_read_qp_num(struct ibv_cq_ex *ex)
{
	return current_cqe(ex)->qp_num;
}

static uint32_t ex_read_src_qp(struct ibv_cq_ex *ex)
{
	return current_cqe(ex)->src_qp;
}

static unsigned ex_read_wc_flags(struct ibv_cq_ex *ex)
{
	return current_cqe(ex)->wc_flags;
}

/* RoCE has no local identifiers. */
static uint32_t ex_read_slid(struct ibv_cq_ex *ex)
{
	return 0;
}

static uint8_t ex_read_sl(struct ibv_cq_ex *ex)
{
	return current_cqe(ex)->sl;
}

static uint8_t ex_read_dlid_path_bits(struct ibv_cq_ex *ex)
{
	return 0;
}

static uint64_t ex_read_completion_ts(struct ibv_cq_ex *ex)
{
	return current_cqe(ex)->timestamp_ns;
}

static uint64_t ex_read_wallclock_ns(struct ibv_cq_ex *ex)
{
	uint64_t then_ns = current_cqe(ex)->timestamp_ns;
	struct nic_host *host = ex_to_cq(ex)->host;

	/* Virtual time is all the time that a simulation has. */
	if (host->ops->is_simulated)
		return then_ns;
	return clock_real_ns() - (env_now_ns(host->env) - then_ns);
}

static const uint64_t WC_TIMESTAMPS =
	IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
	IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

/* Only what was asked for gets a reader; the rest stays NULL, as the API
 * promises nothing about it. */
void verbs_cq_ex_init(struct verbs_cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *ex = &cq->ex;

	ex->start_poll = ex_start_poll;
	ex->next_poll = ex_next_poll;
	ex->end_poll = ex_end_poll;
	ex->read_opcode = ex_read_opcode;
	ex->read_vendor_err = ex_read_vendor_err;
	ex->read_wc_flags = ex_read_wc_flags;
	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		ex->read_byte_len = ex_read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		ex->read_imm_data = ex_read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		ex->read_qp_num = ex_read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		ex->read_src_qp = ex_read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		ex->read_slid = ex_read_slid;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		ex->read_sl = ex_read_sl;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		ex->read_dlid_path_bits = ex_read_dlid_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ex->read_completion_ts = ex_read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		ex->read_completion_wallclock_ns = ex_read_wallclock_ns;
	if (wc_flags & WC_TIMESTAMPS) {
		lock_take(&cq->host->lock);
		nic_cq_enable_timestamps(cq->nic);
		lock_drop(&cq->host->lock);
	}
}
