/* SPDX-License-Identifier: Apache-2.0 */
/* Masked atomics of the scenario: they have a call of their own. */
#include <aquifer/aqdv.h>

#include "verbs_op.h"

bool vs_masked_available(struct vs_ep *ep)
{
	struct aqdv_device_attr attr = {0};
	uint32_t both = AQDV_CAP_MASKED_CAS | AQDV_CAP_MASKED_FAA;

	return aqdv_query_device(ep->node->ctx, &attr) == 0 &&
	       (attr.caps & both) == both;
}

int vs_masked_post(struct vs_ep *ep, struct vs_op *op)
{
	struct ibv_sge sge = {.addr = ep->land.area.iova + op->pieces[0].off,
			      .length = 8,
			      .lkey = ep->land.mr->lkey};
	struct aqdv_masked_wr wr = {.wr_id = op->id,
				    .sg_list = &sge,
				    .num_sge = 1,
				    .remote_addr = op->target_iova,
				    .rkey = op->target_key};
	struct aqdv_masked_wr *bad;

	if (op->signaled)
		wr.send_flags |= IBV_SEND_SIGNALED;
	if (op->fence)
		wr.send_flags |= IBV_SEND_FENCE;
	if (op->kind == VS_MASKED_FAA) {
		wr.faa.add = op->atomic.swap_add;
		wr.faa.boundary = op->atomic.boundary;
		return aqdv_post_masked_faa(ep->qp, &wr, &bad);
	}
	wr.cas.compare = op->atomic.compare;
	wr.cas.compare_mask = op->atomic.compare_mask;
	wr.cas.swap = op->atomic.swap_add;
	wr.cas.swap_mask = op->atomic.swap_mask;
	return aqdv_post_masked_cas(ep->qp, &wr, &bad);
}
