/* SPDX-License-Identifier: Apache-2.0 */
/* Completion queues: creation, polling into struct ibv_wc, notification. */
#include <stdlib.h>

#include "verbs_priv.h"

static int cq_check(struct ibv_context *context, uint32_t cqe,
		    struct ibv_comp_channel *channel, uint32_t comp_vector)
{
	struct verbs_ctx *ctx;

	if (!verbs_host(context))
		return -EIO;
	ctx = to_ctx(context);
	if (!cqe || cqe > (uint32_t)ctx->limits.max_cqe)
		return -EINVAL;
	if (comp_vector >= (uint32_t)context->num_comp_vectors)
		return -EINVAL;
	if (channel &&
	    (channel->context != context || to_channel(channel)->wr_fd < 0))
		return -EINVAL;
	return 0;
}

static struct verbs_cq *cq_create(struct ibv_context *context, uint32_t cqe,
				  void *cq_context,
				  struct ibv_comp_channel *channel,
				  uint32_t comp_vector)
{
	struct nic_host *host = verbs_host(context);
	struct verbs_cq *cq;
	int rc;

	rc = cq_check(context, cqe, channel, comp_vector);
	if (rc)
		return verbs_none(-rc);
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	cq->host = host;
	cq->ibv.context = context;
	cq->ibv.channel = channel;
	cq->ibv.cq_context = cq_context;
	cq->ibv.handle = verbs_handle(to_ctx(context));
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	lock_init(&cq->lock);
	lock_take(&host->lock);
	rc = nic_cq_create(host->nic, cqe, cq, &cq->nic);
	if (!rc)
		cq->ibv.cqe = (int)nic_cq_size(cq->nic);
	lock_drop(&host->lock);
	if (rc) {
		free(cq);
		return verbs_none(-rc);
	}
	if (channel)
		verbs_channel_attach(to_channel(channel), cq);
	verbs_obj_link(to_ctx(context), &cq->obj, VERBS_CQ);
	return cq;
}

VERBS_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe,
					  void *cq_context,
					  struct ibv_comp_channel *channel,
					  int comp_vector)
{
	struct verbs_cq *cq =
		cq_create(context, cqe < 0 ? 0 : (uint32_t)cqe, cq_context,
			  channel, (uint32_t)comp_vector);

	return cq ? &cq->ibv : NULL;
}

struct ibv_cq_ex *verbs_create_cq_ex(struct ibv_context *context,
				     struct ibv_cq_init_attr_ex *attr)
{
	static const uint64_t wc_supported =
		IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
		IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
	static const uint32_t flags_supported =
		IBV_CREATE_CQ_ATTR_SINGLE_THREADED |
		IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	struct verbs_cq *cq;

	if ((attr->comp_mask & ~(uint32_t)IBV_CQ_INIT_ATTR_MASK_FLAGS) ||
	    (attr->wc_flags & ~wc_supported) ||
	    ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
	     (attr->flags & ~flags_supported)))
		return verbs_none(EOPNOTSUPP);
	cq = cq_create(context, attr->cqe, attr->cq_context, attr->channel,
		       attr->comp_vector);
	if (!cq)
		return NULL;
	verbs_cq_ex_init(cq, attr->wc_flags);
	return &cq->ex;
}

VERBS_EXPORT int ibv_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct verbs_cq *cq = to_cq(ibcq);
	struct nic_host *host = verbs_host(ibcq->context);
	int rc;

	if (!host || !cq->nic)
		return EIO;
	if (cqe <= 0 || cqe > to_ctx(ibcq->context)->limits.max_cqe)
		return EINVAL;
	lock_take(&cq->lock);
	lock_take(&host->lock);
	rc = nic_cq_resize(cq->nic, (uint32_t)cqe);
	if (!rc)
		ibcq->cqe = (int)nic_cq_size(cq->nic);
	lock_drop(&host->lock);
	lock_drop(&cq->lock);
	return -rc;
}

/* 0, or -EBUSY while queue pairs use it. */
static int cq_detach(struct verbs_cq *cq)
{
	struct verbs_ctx *ctx = to_ctx(cq->ibv.context);
	int rc = 0;

	if (cq->nic) {
		lock_take(&cq->host->lock);
		rc = nic_cq_destroy(cq->nic);
		lock_drop(&cq->host->lock);
	}
	if (rc)
		return rc;
	if (cq->ibv.channel)
		verbs_channel_detach(to_channel(cq->ibv.channel), cq);
	verbs_obj_unlink(ctx, &cq->obj);
	return 0;
}

static void cq_free(struct verbs_cq *cq)
{
	pthread_cond_destroy(&cq->ibv.cond);
	pthread_mutex_destroy(&cq->ibv.mutex);
	free(cq);
}

VERBS_EXPORT int ibv_destroy_cq(struct ibv_cq *ibcq)
{
	struct verbs_cq *cq = to_cq(ibcq);
	bool was_live = cq->nic != NULL;
	int rc = cq_detach(cq);

	if (rc)
		return -rc;
	if (was_live) {
		/* No new event can be delivered; those that were must have been
		 * acknowledged before the memory goes. */
		pthread_mutex_lock(&ibcq->mutex);
		while (ibcq->comp_events_completed != cq->comp_delivered ||
		       ibcq->async_events_completed != cq->obj.async_delivered)
			pthread_cond_wait(&ibcq->cond, &ibcq->mutex);
		pthread_mutex_unlock(&ibcq->mutex);
	}
	cq_free(cq);
	return 0;
}

void verbs_cq_drop(struct verbs_cq *cq)
{
	int rc = cq_detach(cq);

	ASSERT(!rc); /* queue pairs went before */
	cq_free(cq);
}

static inline void wc_fill(struct ibv_wc *wc, const struct nic_cqe *cqe)
{
	wc->wr_id = cqe->wr_id;
	wc->status = (enum ibv_wc_status)cqe->status;
	wc->opcode = (enum ibv_wc_opcode)cqe->opcode;
	wc->vendor_err = cqe->vendor_err;
	wc->byte_len = cqe->byte_len;
	wc->invalidated_rkey = cqe->imm_or_key;
	wc->qp_num = cqe->qp_num;
	wc->src_qp = cqe->src_qp;
	wc->wc_flags = cqe->wc_flags;
	wc->pkey_index = 0;
	wc->slid = 0;
	wc->sl = cqe->sl;
	wc->dlid_path_bits = 0;
}

static inline int cq_drain(struct verbs_cq *cq, int max, struct ibv_wc *wc)
{
	const struct nic_cqe *cqe;
	int n = 0;

	if (nic_cq_is_empty(cq->nic))
		return 0;
	lock_take(&cq->lock);
	while (n < max && (cqe = nic_cq_peek(cq->nic))) {
		wc_fill(&wc[n++], cqe);
		nic_cq_pop(cq->nic);
	}
	lock_drop(&cq->lock);
	return n;
}

HOT int verbs_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc)
{
	struct verbs_cq *cq = to_cq(ibcq);
	struct nic_host *host = cq->host;
	int n;

	if (UNLIKELY(!cq->nic))
		return -EIO;
	n = cq_drain(cq, num_entries, wc);
	if (n == 0 && num_entries > 0) {
		host->ops->drive(host);
		n = cq_drain(cq, num_entries, wc);
	}
	/* Nothing to wait for: the caller will be away for a while. */
	if (n > 0 && nic_outstanding(host->nic) == 0)
		host->ops->leave(host);
	return n;
}

int verbs_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct verbs_cq *cq = to_cq(ibcq);
	struct nic_host *host = cq->host;

	if (!cq->nic)
		return EIO;
	lock_take(&host->lock);
	nic_cq_arm(cq->nic, solicited_only != 0);
	lock_drop(&host->lock);
	host->ops->leave(host);
	return 0;
}
