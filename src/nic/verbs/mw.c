/* SPDX-License-Identifier: Apache-2.0 */
/* Memory windows. Binding is a work request of the queue pair, for type 2 an
 * ordinary one, for type 1 one that is made here. */
#include <stdlib.h>

#include "verbs_priv.h"

struct ibv_mw *verbs_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct nic_host *host = verbs_host(pd->context);
	struct verbs_mw *mw;
	int rc;

	rc = host && to_pd(pd)->nic ? 0 : -EIO;
	if (!rc && type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		rc = -EINVAL;
	if (rc)
		return verbs_none(-rc);
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return NULL;
	lock_take(&host->lock);
	rc = nic_mw_alloc(to_pd(pd)->nic, type, &mw->nic);
	if (!rc)
		mw->ibv.rkey = nic_mw_key(mw->nic);
	lock_drop(&host->lock);
	if (rc) {
		free(mw);
		return verbs_none(-rc);
	}
	mw->ibv.context = pd->context;
	mw->ibv.pd = pd;
	mw->ibv.type = type;
	mw->ibv.handle = verbs_handle(to_ctx(pd->context));
	verbs_obj_link(to_ctx(pd->context), &mw->obj, VERBS_MW);
	return &mw->ibv;
}

int verbs_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *ibmw,
		  struct ibv_mw_bind *bind)
{
	struct verbs_qp *qp = to_qp(ibqp);
	struct nic_host *host = qp->host;
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = {.mw = ibmw,
			    .rkey = ibv_inc_rkey(ibmw->rkey),
			    .bind_info = bind->bind_info},
	};
	int rc;

	if (!qp->nic || !to_mw(ibmw)->nic)
		return EIO;
	if (ibqp->context != ibmw->context || ibqp->pd != ibmw->pd)
		return EINVAL;
	lock_take(&host->lock);
	rc = verbs_post_one(qp, &wr);
	if (!rc) {
		nic_qp_kick(qp->nic);
		/* The caller reads the new key as soon as this returns. */
		ibmw->rkey = wr.bind_mw.rkey;
	}
	lock_drop(&host->lock);
	return -rc;
}

int verbs_dealloc_mw(struct ibv_mw *ibmw)
{
	return -VERBS_END(to_mw(ibmw), nic_mw_dealloc);
}
