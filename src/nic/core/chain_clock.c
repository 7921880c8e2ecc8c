/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed queues on a clock: whoever serves the NIC (a simulator that has the
 * costs of hardware) says when each request may be executed. A queue asks once
 * per request, when the request's turn comes, and pauses if it must; a WAIT is
 * asked about when it is over, because waiting itself costs nothing.
 */
#include "access_priv.h"
#include "cq_priv.h"

enum {
	SEGS_PER_BLOCK = WQE_BLOCK_BYTES / WQE_SEG_BYTES,
	RDMA_HEAD_SEGS = 2, /* control, remote address */
};

static bool ask(struct nic_qp *qp, const struct nic_chain_step *step)
{
	const struct nic_chain_clock *clock = qp->nic->cfg.chain_clock;
	struct chain *ch = qp->chain;

	if (ch->pause == CHAIN_PAUSED)
		return false;
	if (ch->pause == CHAIN_FREE && !clock->may_go(clock->ctx, step)) {
		ch->pause = CHAIN_PAUSED;
		return false;
	}
	ch->pause = CHAIN_FREE;
	return true;
}

/* Segment `i` of the request that is next; nothing of it is trusted. */
static const void *segment(const struct chain *ch, const uint8_t *ring,
			   uint32_t i)
{
	uint32_t at = ch->place * SEGS_PER_BLOCK + i;

	return ring +
	       at % (ch->blocks * SEGS_PER_BLOCK) * (uint32_t)WQE_SEG_BYTES;
}

static bool is_atomic(uint8_t opcode)
{
	return opcode == WQE_CAS || opcode == WQE_FAA ||
	       opcode == WQE_MASKED_CAS || opcode == WQE_MASKED_FAA;
}

static void describe(const struct nic_qp *qp, const uint8_t *ring,
		     struct nic_chain_step *out)
{
	const struct chain *ch = qp->chain;
	const struct wqe_ctrl *ctrl = segment(ch, ring, 0);
	const struct wqe_raddr *raddr = segment(ch, ring, 1);
	uint32_t segs = be32_get(ctrl->qpn_ds) & 0xff, i;

	*out = (struct nic_chain_step){
		.qpn = qp->qpn,
		.opcode = (uint8_t)(be32_get(ctrl->opmod_idx_opcode) & 0xff),
		.is_near = chain_near_peer(qp) != NULL,
		.addr = be64_get(raddr->addr),
		.pieces = 1,
		.bytes = 8,
	};
	if (is_atomic(out->opcode))
		return;
	i = out->opcode == WQE_SEND || out->opcode == WQE_SEND_IMM
		    ? 1
		    : RDMA_HEAD_SEGS;
	out->pieces = segs > i ? segs - i : 0;
	out->bytes = 0;
	for (; i < segs; i++) {
		const struct wqe_data *d = segment(ch, ring, i);

		out->bytes += be32_get(d->byte_count) & ~WQE_INLINE_FLAG;
	}
}

/* A WAIT for what is not there yet is executed at once: then it waits. */
static bool will_wait(const struct nic_qp *qp, const uint8_t *ring)
{
	const struct wqe_order *o = segment(qp->chain, ring, 1);
	uint32_t index = 0;
	const struct nic_cq *cq = chain_wait_target(qp->nic, o, &index);

	return !cq || (int32_t)(cq->counted - index) < 0;
}

bool chain_clock_go(struct nic_qp *qp)
{
	const uint8_t *ring = chain_memory_host(qp, &qp->chain->sq);
	struct nic_chain_step step;

	if (!ring)
		return true; /* an error is reported at once */
	describe(qp, ring, &step);
	if (step.opcode == WQE_WAIT && will_wait(qp, ring))
		return true;
	return ask(qp, &step);
}

bool chain_clock_wait(struct nic_qp *qp)
{
	const struct chain *ch = qp->chain;
	struct nic_chain_step step = {.qpn = qp->qpn, .opcode = WQE_WAIT};

	if ((int32_t)(ch->wait_cq->counted - ch->wait_index) < 0)
		return false;
	return ask(qp, &step);
}

void nic_chain_resume(struct nic *nic, uint32_t qpn)
{
	struct nic_qp *qp = qp_find(nic, qpn);

	/* The queue pair may have ended meanwhile, or be another. */
	if (!qp || !qp->managed_sq || qp->chain->pause != CHAIN_PAUSED)
		return;
	qp->chain->pause = CHAIN_PAID;
	chain_wake(qp);
}
