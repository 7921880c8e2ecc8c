/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pairs: creation, states, destruction. */
#include <aquifer/aqdv.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_priv.h"

static int cap_check(const struct verbs_ctx *ctx,
		     const struct ibv_qp_init_attr_ex *a)
{
	const struct ibv_device_attr *max = &ctx->limits;
	const struct ibv_qp_cap *cap = &a->cap;

	if (cap->max_send_wr > (uint32_t)max->max_qp_wr ||
	    cap->max_send_sge > (uint32_t)max->max_sge)
		return -EINVAL;
	if (a->srq)
		return 0;
	if (cap->max_recv_wr > (uint32_t)max->max_qp_wr ||
	    cap->max_recv_sge > (uint32_t)max->max_sge)
		return -EINVAL;
	return 0;
}

static int init_check(const struct ibv_qp_init_attr_ex *a)
{
	struct ibv_context *context;

	if (!a->pd)
		return -EINVAL;
	context = a->pd->context;
	if (!verbs_host(context) || !to_pd(a->pd)->nic)
		return -EIO;
	if (a->qp_type != IBV_QPT_RC && a->qp_type != IBV_QPT_UD)
		return -EOPNOTSUPP;
	if (!a->send_cq || a->send_cq->context != context || !a->recv_cq ||
	    a->recv_cq->context != context ||
	    (a->srq && a->srq->context != context))
		return -EINVAL;
	if (!to_cq(a->send_cq)->nic || !to_cq(a->recv_cq)->nic ||
	    (a->srq && !to_srq(a->srq)->nic))
		return -EIO;
	return cap_check(to_ctx(context), a);
}

static void qp_free(struct verbs_qp *qp)
{
	verbs_stage_destroy(qp->stage);
	pthread_cond_destroy(&qp->ibv.cond);
	pthread_mutex_destroy(&qp->ibv.mutex);
	free(qp);
}

/* What ibv_qp_init_attr cannot say. */
struct special {
	bool is_gsi;
	const struct nic_chain_attr *chain;
};

static const struct special nothing_special;

static int qp_make(struct verbs_qp *qp, const struct ibv_qp_init_attr_ex *a,
		   const struct special *special)
{
	struct nic_qp_attr attr = {
		.type = a->qp_type,
		.send_cq = to_cq(a->send_cq)->nic,
		.recv_cq = to_cq(a->recv_cq)->nic,
		.srq = a->srq ? to_srq(a->srq)->nic : NULL,
		.cap = a->cap,
		.sq_sig_all = a->sq_sig_all != 0,
		.is_gsi = special->is_gsi,
		.chain = special->chain,
		.owner = qp,
	};
	int rc;

	lock_take(&qp->host->lock);
	rc = nic_qp_create(to_pd(a->pd)->nic, &attr, &qp->nic);
	if (!rc) {
		qp->ibv.qp_num = nic_qp_number(qp->nic);
		qp->ibv.state = nic_qp_state(qp->nic);
	}
	lock_drop(&qp->host->lock);
	if (rc)
		return rc;
	qp->cap = attr.cap;
	return 0;
}

static struct verbs_qp *qp_create(struct ibv_qp_init_attr_ex *a,
				  const struct special *special)
{
	struct verbs_qp *qp;
	int rc = init_check(a);

	if (rc)
		return verbs_none(-rc);
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	qp->host = verbs_host(a->pd->context);
	qp->sq_sig_all = a->sq_sig_all != 0;
	qp->ibv.context = a->pd->context;
	qp->ibv.qp_context = a->qp_context;
	qp->ibv.pd = a->pd;
	qp->ibv.send_cq = a->send_cq;
	qp->ibv.recv_cq = a->recv_cq;
	qp->ibv.srq = a->srq;
	qp->ibv.qp_type = a->qp_type;
	qp->ibv.handle = verbs_handle(to_ctx(a->pd->context));
	pthread_mutex_init(&qp->ibv.mutex, NULL);
	pthread_cond_init(&qp->ibv.cond, NULL);
	rc = qp_make(qp, a, special);
	if (rc) {
		qp_free(qp);
		return verbs_none(-rc);
	}
	a->cap = qp->cap;
	verbs_obj_link(to_ctx(a->pd->context), &qp->obj, VERBS_QP);
	return qp;
}

static struct ibv_qp *create_plain(struct ibv_pd *pd,
				   struct ibv_qp_init_attr *init,
				   const struct special *special)
{
	struct ibv_qp_init_attr_ex a = {
		.qp_context = init->qp_context,
		.send_cq = init->send_cq,
		.recv_cq = init->recv_cq,
		.srq = init->srq,
		.cap = init->cap,
		.qp_type = init->qp_type,
		.sq_sig_all = init->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct verbs_qp *qp = qp_create(&a, special);

	if (!qp)
		return NULL;
	init->cap = a.cap;
	return &qp->ibv;
}

VERBS_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd,
					  struct ibv_qp_init_attr *init)
{
	return create_plain(pd, init, &nothing_special);
}

struct ibv_qp *verbs_create_chain_qp(struct ibv_pd *pd,
				     struct ibv_qp_init_attr *init,
				     const struct nic_chain_attr *chain)
{
	struct special special = {.chain = chain};

	return create_plain(pd, init, &special);
}

VERBS_EXPORT struct ibv_qp *aqdv_create_gsi(struct ibv_pd *pd,
					    struct ibv_qp_init_attr *init)
{
	static const struct special special = {.is_gsi = true};

	if (!pd || !verbs_is_own(pd->context))
		return verbs_none(EOPNOTSUPP);
	return create_plain(pd, init, &special);
}

struct ibv_qp *verbs_create_qp_ex(struct ibv_context *context,
				  struct ibv_qp_init_attr_ex *attr)
{
	static const uint32_t known = IBV_QP_INIT_ATTR_PD |
				      IBV_QP_INIT_ATTR_CREATE_FLAGS |
				      IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	struct verbs_qp *qp;
	int rc;

	if ((attr->comp_mask & ~known) ||
	    ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) &&
	     attr->create_flags))
		return verbs_none(EOPNOTSUPP);
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd ||
	    attr->pd->context != context)
		return verbs_none(EINVAL);
	qp = qp_create(attr, &nothing_special);
	if (!qp)
		return NULL;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		rc = verbs_qp_ex_init(qp, attr->send_ops_flags);
		if (rc) {
			verbs_qp_drop(qp);
			errno = -rc;
			return NULL;
		}
	}
	return &qp->ibv;
}

/* Resetting or destroying a queue pair takes its completions out of its CQs;
 * nobody may be polling them meanwhile. */
static void cqs_take(struct verbs_qp *qp)
{
	struct verbs_cq *a = to_cq(qp->ibv.send_cq);
	struct verbs_cq *b = to_cq(qp->ibv.recv_cq);

	if (a > b) {
		struct verbs_cq *t = a;

		a = b;
		b = t;
	}
	lock_take(&a->lock);
	if (b != a)
		lock_take(&b->lock);
}

static void cqs_drop(struct verbs_qp *qp)
{
	struct verbs_cq *a = to_cq(qp->ibv.send_cq);
	struct verbs_cq *b = to_cq(qp->ibv.recv_cq);

	if (b != a)
		lock_drop(&b->lock);
	lock_drop(&a->lock);
}

VERBS_EXPORT int ibv_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr,
			       int mask)
{
	struct verbs_qp *qp = to_qp(ibqp);
	bool resets;
	int rc;

	if (!qp->nic)
		return EIO;
	if (!attr)
		return EINVAL;
	resets = (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET;
	if (resets)
		cqs_take(qp);
	lock_take(&qp->host->lock);
	rc = nic_qp_modify(qp->nic, attr, mask);
	if (!rc)
		ibqp->state = nic_qp_state(qp->nic);
	lock_drop(&qp->host->lock);
	if (resets)
		cqs_drop(qp);
	return -rc;
}

VERBS_EXPORT int ibv_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr,
			      int mask, struct ibv_qp_init_attr *init)
{
	struct verbs_qp *qp = to_qp(ibqp);

	if (!qp->nic)
		return EIO;
	memset(attr, 0, sizeof(*attr));
	lock_take(&qp->host->lock);
	nic_qp_query(qp->nic, attr);
	ibqp->state = nic_qp_state(qp->nic);
	lock_drop(&qp->host->lock);
	attr->qp_state = ibqp->state;
	attr->cur_qp_state = ibqp->state;
	attr->cap = qp->cap;
	*init = (struct ibv_qp_init_attr){
		.qp_context = ibqp->qp_context,
		.send_cq = ibqp->send_cq,
		.recv_cq = ibqp->recv_cq,
		.srq = ibqp->srq,
		.cap = qp->cap,
		.qp_type = ibqp->qp_type,
		.sq_sig_all = qp->sq_sig_all,
	};
	return 0;
}

VERBS_EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp,
					    enum ibv_wr_opcode op,
					    uint32_t flags)
{
	return 0;
}

static void qp_detach(struct verbs_qp *qp)
{
	struct verbs_ctx *ctx = to_ctx(qp->ibv.context);

	if (qp->nic) {
		cqs_take(qp);
		lock_take(&qp->host->lock);
		nic_qp_destroy(qp->nic);
		lock_drop(&qp->host->lock);
		cqs_drop(qp);
	}
	verbs_obj_unlink(ctx, &qp->obj);
}

VERBS_EXPORT int ibv_destroy_qp(struct ibv_qp *ibqp)
{
	struct verbs_qp *qp = to_qp(ibqp);

	qp_detach(qp);
	if (qp->nic) {
		pthread_mutex_lock(&ibqp->mutex);
		while (ibqp->events_completed != qp->obj.async_delivered)
			pthread_cond_wait(&ibqp->cond, &ibqp->mutex);
		pthread_mutex_unlock(&ibqp->mutex);
	}
	qp_free(qp);
	return 0;
}

void verbs_qp_drop(struct verbs_qp *qp)
{
	qp_detach(qp);
	qp_free(qp);
}
