/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of managed queues whose other end is on the same NIC: executed at
 * once, after the checks that requester and responder make, with the errors
 * that they report.
 */
#include "access_priv.h"
#include "base/landing.h"
#include "wqe_shape.h"

struct nic_qp *chain_near_peer(const struct nic_qp *qp)
{
	struct nic_qp *peer;

	if (!qp->chain->own_address)
		return NULL;
	peer = qp_find(qp->nic, qp->dest_qpn);
	if (!peer || peer->dest_qpn != qp->qpn || peer->type != IBV_QPT_RC)
		return NULL;
	return peer->state == IBV_QPS_RTS || peer->state == IBV_QPS_RTR ||
			       peer->state == IBV_QPS_SQD
		       ? peer
		       : NULL;
}

/* May the other end serve it? *far is the memory it is about. */
static enum ibv_wc_status check_far(struct nic_qp *peer,
				    const struct send_op *op, uint8_t **far)
{
	uint32_t access = op->info->access;
	enum key_verdict v;

	if (UNLIKELY((peer->access & access) != access)) {
		count(peer->nic, NIC_C_deny_qp_access);
		return IBV_WC_REM_INV_REQ_ERR;
	}
	if (op->length == 0)
		return IBV_WC_SUCCESS;
	v = key_check(peer, op->rkey, op->va, op->length, access, far);
	if (UNLIKELY(v != KEY_OK)) {
		key_count_denial(peer->nic, v);
		return v == KEY_GONE ? IBV_WC_REM_OP_ERR
				     : IBV_WC_REM_ACCESS_ERR;
	}
	if ((op->info->flags & WQE_OP_ATOMIC) &&
	    UNLIKELY(op->va % 8 || (uintptr_t)*far % 8)) {
		count(peer->nic, NIC_C_deny_align);
		return IBV_WC_REM_INV_REQ_ERR;
	}
	return IBV_WC_SUCCESS;
}

/* Which end lost its memory? The other one fails as a responder would. */
static COLD enum ibv_wc_status status_gone(struct nic_qp *qp,
					   struct nic_qp *peer,
					   const uint8_t *far, uint32_t len)
{
	if (!landing_hit(far, len)) {
		count(qp->nic, NIC_C_local_protection);
		return IBV_WC_LOC_PROT_ERR;
	}
	count(qp->nic, NIC_C_deny_unmapped);
	if (peer != qp)
		qp_fail(peer);
	return IBV_WC_REM_OP_ERR;
}

static int move(bool read, uint8_t *far, uint8_t *near, uint32_t len)
{
	return read ? touch_move(near, far, len) : touch_move(far, near, len);
}

/* READ and WRITE. The pieces were checked; a key cannot have changed since. */
static enum ibv_wc_status copy(struct nic_qp *qp, struct nic_qp *peer,
			       const struct send_op *op, uint8_t *far)
{
	uint32_t offset, n;

	for (offset = 0; offset < op->length; offset += n) {
		uint8_t *near;

		n = op->length - offset;
		near = sendq_piece(qp, &op->data, offset, 0, &n);
		if (UNLIKELY(!near))
			return IBV_WC_LOC_PROT_ERR;
		if (UNLIKELY(move(op->opcode == WQE_READ, far + offset, near,
				  n)))
			return status_gone(qp, peer, far + offset, n);
	}
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status execute(struct nic_qp *qp, struct nic_qp *peer,
				  const struct send_op *op, uint8_t *far)
{
	uint32_t local =
		op->info->flags & WQE_OP_RESPONSE ? IBV_ACCESS_LOCAL_WRITE : 0;
	uint8_t *near = NULL;
	uint64_t original;

	/* Nothing happens unless all of it can. */
	if (UNLIKELY(sendq_check(qp, op, local, &near)))
		return IBV_WC_LOC_PROT_ERR;
	if (op->info->flags & WQE_OP_ATOMIC) {
		if (UNLIKELY(touch_atomic(&op->atomic, far, &original)))
			return status_gone(qp, peer, far, 8);
		if (sendq_scatter(qp, &op->data, 0, (const uint8_t *)&original,
				  8))
			return IBV_WC_LOC_PROT_ERR;
		return IBV_WC_SUCCESS;
	}
	if (UNLIKELY(!near))
		return copy(qp, peer, op, far);
	if (UNLIKELY(move(op->opcode == WQE_READ, far, near, op->length)))
		return status_gone(qp, peer, far, op->length);
	return IBV_WC_SUCCESS;
}

/* ---- the short way ------------------------------------------------------ */

enum {
	AMO_SEGS = sizeof(((union chain_wqe *)0)->amo) / WQE_SEG_BYTES,
};

/* May `peer` serve the whole of it, and may `qp` touch its piece? */
static inline __attribute__((always_inline)) bool is_permitted(
	const struct nic_qp *qp, const struct nic_qp *peer,
	const struct wqe_raddr *raddr, const struct wqe_data *data,
	uint32_t access, uint32_t local, uint8_t **far, uint8_t **near)
{
	uint32_t length = be32_get(data->byte_count);

	return (peer->access & access) == access && length &&
	       length <= NIC_MSG_BYTES_MAX &&
	       key_check(peer, be32_get(raddr->rkey), be64_get(raddr->addr),
			 length, access, far) == KEY_OK &&
	       key_check(qp, be32_get(data->lkey), be64_get(data->addr), length,
			 local, near) == KEY_OK;
}

static bool quick_add(struct nic_qp *qp, struct nic_qp *peer,
		      const union chain_wqe *wqe, enum ibv_wc_status *status)
{
	struct atomic_op op = {
		.is_add = true,
		.swap_add = be64_get(wqe->amo.atomic.swap_add),
	};
	uint8_t *far, *near;
	uint64_t original;

	if ((be32_get(wqe->ctrl.qpn_ds) & 0xff) != AMO_SEGS ||
	    be32_get(wqe->amo.data.byte_count) != 8 ||
	    be64_get(wqe->amo.raddr.addr) % 8 ||
	    !is_permitted(qp, peer, &wqe->amo.raddr, &wqe->amo.data,
			  IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_LOCAL_WRITE,
			  &far, &near) ||
	    (uintptr_t)far % 8)
		return false;
	*status = IBV_WC_SUCCESS;
	if (UNLIKELY(touch_atomic(&op, far, &original)))
		*status = status_gone(qp, peer, far, 8);
	else if (UNLIKELY(touch_place(near, (const uint8_t *)&original, 8)))
		*status = status_gone(qp, peer, NULL, 0);
	return true;
}

static bool quick_copy(struct nic_qp *qp, struct nic_qp *peer,
		       const union chain_wqe *wqe, bool read,
		       enum ibv_wc_status *status)
{
	uint32_t length = be32_get(wqe->plain.data.byte_count);
	uint8_t *far, *near;

	if ((be32_get(wqe->ctrl.qpn_ds) & 0xff) != PLAIN_WQE_SEGS ||
	    !is_permitted(qp, peer, &wqe->plain.raddr, &wqe->plain.data,
			  read ? IBV_ACCESS_REMOTE_READ
			       : IBV_ACCESS_REMOTE_WRITE,
			  read ? IBV_ACCESS_LOCAL_WRITE : 0, &far, &near))
		return false;
	*status = LIKELY(move(read, far, near, length) == 0)
			  ? IBV_WC_SUCCESS
			  : status_gone(qp, peer, far, length);
	qp->nic->chain_bytes += length;
	return true;
}

HOT bool chain_loop_quick(struct nic_qp *qp, struct nic_qp *peer,
			  const union chain_wqe *wqe,
			  enum ibv_wc_status *status)
{
	uint8_t opcode = chain_opcode(wqe);
	bool done = false;

	if (opcode == WQE_FAA)
		done = quick_add(qp, peer, wqe, status);
	else if (opcode == WQE_READ || opcode == WQE_WRITE)
		done = quick_copy(qp, peer, wqe, opcode == WQE_READ, status);
	if (done && LIKELY(*status == IBV_WC_SUCCESS))
		count(qp->nic, NIC_C_chain_loops);
	return done;
}

/* ---- every way ---------------------------------------------------------- */

HOT enum ibv_wc_status chain_loop(struct nic_qp *qp, struct nic_qp *peer,
				  const struct send_op *op)
{
	uint8_t *far = NULL;
	enum ibv_wc_status status = check_far(peer, op, &far);

	if (UNLIKELY(status != IBV_WC_SUCCESS)) {
		if (peer == qp)
			return status; /* fails anyway */
		if (status != IBV_WC_REM_OP_ERR)
			qp_event(peer, status == IBV_WC_REM_ACCESS_ERR
					       ? IBV_EVENT_QP_ACCESS_ERR
					       : IBV_EVENT_QP_REQ_ERR);
		qp_fail(peer);
		return status;
	}
	status = execute(qp, peer, op, far);
	if (LIKELY(status == IBV_WC_SUCCESS))
		count(qp->nic, NIC_C_chain_loops);
	qp->nic->chain_bytes += op->length;
	return status;
}
