/* SPDX-License-Identifier: Apache-2.0 */
/* Posting work: the caller's half of the data path. One lock for the whole
 * list, one kick at its end. */
#include "verbs_priv.h"

/* The public handles inside a request, turned into the NIC's. */
static COLD int post_translated(struct verbs_qp *qp,
				const struct ibv_send_wr *wr)
{
	struct nic_send_extra extra = {0};
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;

	if (!wr->bind_mw.mw)
		return -EINVAL;
	extra.mw = to_mw(wr->bind_mw.mw)->nic;
	if (info->mr)
		extra.bind_mr = to_mr(info->mr)->nic;
	else if (info->addr || info->length)
		return -EINVAL;
	return nic_qp_post_send(qp->nic, wr, &extra);
}

HOT int verbs_post_one(struct verbs_qp *qp, const struct ibv_send_wr *wr)
{
	struct nic_send_extra extra = {0};

	if (UNLIKELY(wr->opcode == IBV_WR_BIND_MW))
		return post_translated(qp, wr);
	if (LIKELY(qp->ibv.qp_type == IBV_QPT_RC))
		return nic_qp_post_send(qp->nic, wr, NULL);
	if (UNLIKELY(!wr->wr.ud.ah))
		return -EINVAL;
	extra.ah = to_ah(wr->wr.ud.ah)->nic;
	return nic_qp_post_send(qp->nic, wr, &extra);
}

HOT int verbs_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
			struct ibv_send_wr **bad_wr)
{
	struct verbs_qp *qp = to_qp(ibqp);
	struct nic_host *host = qp->host;
	int rc = 0;

	if (UNLIKELY(!qp->nic)) {
		if (bad_wr)
			*bad_wr = wr;
		return EIO;
	}
	/* The lock waits for earlier stores to leave: time to fetch what is
	 * needed behind it, where there are many queue pairs. */
	nic_qp_prefetch(qp->nic);
	lock_take(&host->lock);
	for (; wr; wr = wr->next) {
		/* Binding a window of type 1 is a verb of its own. */
		if (UNLIKELY(wr->opcode == IBV_WR_BIND_MW && wr->bind_mw.mw &&
			     wr->bind_mw.mw->type != IBV_MW_TYPE_2))
			rc = -EINVAL;
		else
			rc = verbs_post_one(qp, wr);
		if (UNLIKELY(rc)) {
			if (bad_wr)
				*bad_wr = wr;
			break;
		}
	}
	nic_qp_kick(qp->nic);
	lock_drop(&host->lock);
	return -rc;
}

/* To the queue pair, or, without one, to the shared queue. */
static inline int post_recvs(struct nic_host *host, struct nic_qp *qp,
			     struct nic_srq *srq, struct ibv_recv_wr *wr,
			     struct ibv_recv_wr **bad_wr)
{
	int rc = 0;

	if (UNLIKELY(!qp && !srq)) {
		if (bad_wr)
			*bad_wr = wr;
		return EIO;
	}
	lock_take(&host->lock);
	for (; wr; wr = wr->next) {
		rc = qp ? nic_qp_post_recv(qp, wr) : nic_srq_post(srq, wr);
		if (UNLIKELY(rc)) {
			if (bad_wr)
				*bad_wr = wr;
			break;
		}
	}
	lock_drop(&host->lock);
	return -rc;
}

HOT int verbs_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
			struct ibv_recv_wr **bad_wr)
{
	struct verbs_qp *qp = to_qp(ibqp);

	return post_recvs(qp->host, qp->nic, NULL, wr, bad_wr);
}

HOT int verbs_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
			    struct ibv_recv_wr **bad_wr)
{
	struct verbs_srq *srq = to_srq(ibsrq);

	return post_recvs(srq->host, NULL, srq->nic, wr, bad_wr);
}
