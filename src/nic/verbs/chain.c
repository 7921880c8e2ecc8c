/* SPDX-License-Identifier: Apache-2.0 */
/* Managed queue pairs and counting CQs (include/aquifer/aqdv.h). */
#include <aquifer/aqdv.h>

#include "core/nic_limits.h"
#include "verbs_priv.h"

STATIC_ASSERT((unsigned)AQDV_CHAIN_ORDERED == (unsigned)NIC_CHAIN_ORDERED &&
		      (unsigned)AQDV_CHAIN_CYCLIC == (unsigned)NIC_CHAIN_CYCLIC,
	      "passed through");
STATIC_ASSERT(AQDV_CHAIN_STEPS_DEFAULT == (unsigned)NIC_CHAIN_STEPS &&
		      AQDV_CHAIN_STEPS_MAX == (unsigned)NIC_CHAIN_STEPS_MAX,
	      "limits");

VERBS_EXPORT struct ibv_qp *aqdv_create_chain_qp(
	struct ibv_pd *pd, struct ibv_qp_init_attr *init,
	const struct aqdv_chain_attr *attr)
{
	struct nic_chain_attr chain;

	if (!pd || !verbs_is_own(pd->context))
		return verbs_none(EOPNOTSUPP);
	if (!init || !attr || attr->comp_mask)
		return verbs_none(EINVAL);
	chain = (struct nic_chain_attr){
		.flags = attr->flags,
		.sq_addr = attr->sq_addr,
		.sq_lkey = attr->sq_lkey,
		.sq_blocks = attr->sq_blocks,
		.rq_addr = attr->rq_addr,
		.rq_lkey = attr->rq_lkey,
		.rq_entries = attr->rq_entries,
		.rq_segs = attr->rq_segs,
		.rq_dbr_lkey = attr->rq_dbr_lkey,
		.rq_dbr_addr = attr->rq_dbr_addr,
		.max_steps = attr->max_steps,
	};
	return verbs_create_chain_qp(pd, init, &chain);
}

VERBS_EXPORT int aqdv_enable_send(struct ibv_qp *ibqp, uint32_t index)
{
	struct verbs_qp *qp;
	int rc = verbs_own_qp(ibqp, &qp);

	if (rc)
		return rc;
	lock_take(&qp->host->lock);
	rc = nic_qp_enable_send(qp->nic, index);
	if (!rc) {
		nic_qp_kick(qp->nic);
		/* The NIC thread does the rest. */
		(void)nic_flush(qp->host->nic);
	}
	lock_drop(&qp->host->lock);
	return rc;
}

VERBS_EXPORT int aqdv_enable_recv(struct ibv_qp *ibqp, uint32_t index)
{
	struct verbs_qp *qp;
	int rc = verbs_own_qp(ibqp, &qp);

	if (rc)
		return rc;
	lock_take(&qp->host->lock);
	rc = nic_qp_enable_recv(qp->nic, index);
	lock_drop(&qp->host->lock);
	return rc;
}

static int own_cq(struct ibv_cq *ibcq, struct verbs_cq **cq)
{
	if (!ibcq)
		return -EINVAL;
	if (!verbs_is_own(ibcq->context))
		return -EOPNOTSUPP;
	*cq = to_cq(ibcq);
	return (*cq)->nic ? 0 : -EIO;
}

VERBS_EXPORT int aqdv_count_cq(struct ibv_cq *ibcq, uint32_t *number)
{
	struct verbs_cq *cq;
	int rc = own_cq(ibcq, &cq);

	if (rc)
		return rc;
	if (!number)
		return -EINVAL;
	lock_take(&cq->host->lock);
	rc = nic_cq_make_counting(cq->nic);
	*number = nic_cq_number(cq->nic);
	lock_drop(&cq->host->lock);
	return rc;
}

VERBS_EXPORT int aqdv_cq_count(struct ibv_cq *ibcq, uint32_t *counted)
{
	struct verbs_cq *cq;
	int rc = own_cq(ibcq, &cq);

	if (rc)
		return rc;
	if (!counted)
		return -EINVAL;
	lock_take(&cq->host->lock);
	*counted = nic_cq_counted(cq->nic);
	lock_drop(&cq->host->lock);
	return 0;
}
