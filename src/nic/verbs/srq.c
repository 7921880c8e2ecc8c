/* SPDX-License-Identifier: Apache-2.0 */
/* Shared receive queues of the basic type. */
#include <stdlib.h>

#include "verbs_priv.h"

static int srq_check(const struct verbs_ctx *ctx,
		     const struct ibv_srq_attr *attr)
{
	if (!attr->max_wr || attr->max_wr > (uint32_t)ctx->limits.max_srq_wr ||
	    attr->max_sge > (uint32_t)ctx->limits.max_srq_sge)
		return -EINVAL;
	return 0;
}

VERBS_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd,
					    struct ibv_srq_init_attr *init)
{
	struct nic_host *host = verbs_host(pd->context);
	struct verbs_srq *srq;
	int rc;

	rc = host && to_pd(pd)->nic
		     ? srq_check(to_ctx(pd->context), &init->attr)
		     : -EIO;
	if (rc)
		return verbs_none(-rc);
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	srq->host = host;
	srq->ibv.context = pd->context;
	srq->ibv.srq_context = init->srq_context;
	srq->ibv.pd = pd;
	srq->ibv.handle = verbs_handle(to_ctx(pd->context));
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
	lock_take(&host->lock);
	rc = nic_srq_create(to_pd(pd)->nic, &init->attr, srq, &srq->nic);
	if (!rc)
		nic_srq_query(srq->nic, &init->attr);
	lock_drop(&host->lock);
	if (rc) {
		free(srq);
		return verbs_none(-rc);
	}
	verbs_obj_link(to_ctx(pd->context), &srq->obj, VERBS_SRQ);
	return &srq->ibv;
}

/* The header sends basic queues to ibv_create_srq unless odd bits are set. */
struct ibv_srq *verbs_create_srq_ex(struct ibv_context *context,
				    struct ibv_srq_init_attr_ex *attr)
{
	static const uint32_t known =
		IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;

	if ((attr->comp_mask & ~known) ||
	    ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) &&
	     attr->srq_type != IBV_SRQT_BASIC))
		return verbs_none(EOPNOTSUPP);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd ||
	    attr->pd->context != context)
		return verbs_none(EINVAL);
	return ibv_create_srq(attr->pd, (struct ibv_srq_init_attr *)attr);
}

VERBS_EXPORT int ibv_modify_srq(struct ibv_srq *ibsrq,
				struct ibv_srq_attr *attr, int mask)
{
	struct nic_host *host = verbs_host(ibsrq->context);
	int rc;

	if (!host || !to_srq(ibsrq)->nic)
		return EIO;
	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return EINVAL;
	lock_take(&host->lock);
	rc = nic_srq_modify(to_srq(ibsrq)->nic, attr, mask);
	lock_drop(&host->lock);
	return -rc;
}

VERBS_EXPORT int ibv_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct nic_host *host = verbs_host(ibsrq->context);

	if (!host || !to_srq(ibsrq)->nic)
		return EIO;
	lock_take(&host->lock);
	nic_srq_query(to_srq(ibsrq)->nic, attr);
	lock_drop(&host->lock);
	return 0;
}

int verbs_get_srq_num(struct ibv_srq *ibsrq, uint32_t *srq_num)
{
	struct nic_host *host = verbs_host(ibsrq->context);

	if (!host || !to_srq(ibsrq)->nic)
		return EIO;
	*srq_num = nic_srq_number(to_srq(ibsrq)->nic);
	return 0;
}

static int srq_detach(struct verbs_srq *srq)
{
	struct verbs_ctx *ctx = to_ctx(srq->ibv.context);
	int rc = 0;

	if (srq->nic) {
		lock_take(&srq->host->lock);
		rc = nic_srq_destroy(srq->nic);
		lock_drop(&srq->host->lock);
	}
	if (!rc)
		verbs_obj_unlink(ctx, &srq->obj);
	return rc;
}

static void srq_free(struct verbs_srq *srq)
{
	pthread_cond_destroy(&srq->ibv.cond);
	pthread_mutex_destroy(&srq->ibv.mutex);
	free(srq);
}

VERBS_EXPORT int ibv_destroy_srq(struct ibv_srq *ibsrq)
{
	struct verbs_srq *srq = to_srq(ibsrq);
	bool was_live = srq->nic != NULL;
	int rc = srq_detach(srq);

	if (rc)
		return -rc;
	if (was_live) {
		pthread_mutex_lock(&ibsrq->mutex);
		while (ibsrq->events_completed != srq->obj.async_delivered)
			pthread_cond_wait(&ibsrq->cond, &ibsrq->mutex);
		pthread_mutex_unlock(&ibsrq->mutex);
	}
	srq_free(srq);
	return 0;
}

void verbs_srq_drop(struct verbs_srq *srq)
{
	int rc = srq_detach(srq);

	ASSERT(!rc); /* queue pairs went before */
	srq_free(srq);
}
