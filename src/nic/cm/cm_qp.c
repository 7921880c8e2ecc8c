/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pairs and what belongs to them, made for an identifier. */
#include <rdma/rdma_verbs.h>
#include <stdlib.h>
#include <string.h>

#include "cm_priv.h"

/* ---- attributes --------------------------------------------------------- */

static int attr_init(struct cm_id *id, struct ibv_qp_attr *a, int *mask)
{
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	a->pkey_index = 0;
	a->port_num = 1;
	if (cm_id_is_datagram(id)) {
		*mask |= IBV_QP_QKEY;
		a->qkey = RDMA_UDP_QKEY;
	} else {
		*mask |= IBV_QP_ACCESS_FLAGS;
		a->qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				     IBV_ACCESS_REMOTE_READ |
				     IBV_ACCESS_REMOTE_ATOMIC;
	}
	return 0;
}

static bool is_active(const struct cm_id *id)
{
	return id->conn.req.local_id == id->conn.local_id;
}

struct ibv_ah_attr cm_ah_attr(const struct cm_id *id)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = id->peer.gid,
			.sgid_index = id->device->gid_index,
			.hop_limit = CM_HOP_LIMIT,
			.traffic_class = id->tos},
	};
}

static int attr_rtr(struct cm_id *id, struct ibv_qp_attr *a, int *mask)
{
	const struct cm_conn *c = &id->conn;
	const struct cm_side *local = &c->local, *remote = &c->remote;

	*mask = IBV_QP_STATE;
	if (cm_id_is_datagram(id))
		return 0;
	if (!remote->qpn)
		return -EINVAL;
	*mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	a->ah_attr = cm_ah_attr(id);
	a->path_mtu = (enum ibv_mtu)c->req.mtu;
	a->dest_qp_num = remote->qpn;
	/* What we announced is where the peer begins (IBA 12.7.31). */
	a->rq_psn = id->psn;
	/* The peer starts no more than it said, and we promised. Before the
	 * answer we have promised nothing: then what the peer asked for. */
	a->max_dest_rd_atomic = is_active(id) || !local->qpn
					? remote->initiator_depth
					: local->responder_resources;
	/* A peer that may not repeat for ever shall be able to bear a receiver
	 * that is slow to post: it waits as long each time as with the kernel's
	 * CM. What it may is what we tell it; before that, what it told us. */
	a->min_rnr_timer =
		(local->qpn ? local : remote)->rnr_retry_count == CM_RNR_FOREVER
			? CM_MIN_RNR_TIMER
			: CM_FEW_RNR_TIMER;
	return 0;
}

static int attr_rts(struct cm_id *id, struct ibv_qp_attr *a, int *mask)
{
	const struct cm_conn *c = &id->conn;
	const struct cm_side *local = &c->local, *remote = &c->remote;

	*mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	a->sq_psn = cm_id_is_datagram(id) ? 0 : remote->psn;
	if (cm_id_is_datagram(id))
		return 0;
	*mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		 IBV_QP_MAX_QP_RD_ATOMIC;
	a->timeout = id->ack_timeout;
	a->retry_cnt = c->req.retry_count;
	a->rnr_retry = remote->rnr_retry_count;
	a->max_rd_atomic = is_active(id) || !local->qpn
				   ? remote->responder_resources
				   : local->initiator_depth;
	return 0;
}

static int attr_fill(struct cm_id *id, struct ibv_qp_attr *a, int *mask)
{
	switch (a->qp_state) {
	case IBV_QPS_INIT:
		return attr_init(id, a, mask);
	case IBV_QPS_RTR:
		return attr_rtr(id, a, mask);
	case IBV_QPS_RTS:
		return attr_rts(id, a, mask);
	case IBV_QPS_RESET:
	case IBV_QPS_SQD:
	case IBV_QPS_SQE:
	case IBV_QPS_ERR:
	case IBV_QPS_UNKNOWN:
		break;
	}
	return -EINVAL;
}

CM_EXPORT int rdma_init_qp_attr(struct rdma_cm_id *pub,
				struct ibv_qp_attr *qp_attr, int *qp_attr_mask)
{
	int err;

	cm_lock();
	err = to_id(pub)->device ? attr_fill(to_id(pub), qp_attr, qp_attr_mask)
				 : -EINVAL;
	cm_unlock();
	return err ? cm_fail(err) : 0;
}

static int step(struct cm_id *id, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask;
	int err = attr_fill(id, &attr, &mask);

	return err ? err : -ibv_modify_qp(id->pub.qp, &attr, mask);
}

int cm_qp_connect(struct cm_id *id)
{
	int err = step(id, IBV_QPS_RTR);

	return err ? err : step(id, IBV_QPS_RTS);
}

int cm_qp_error(struct cm_id *id)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (!id->pub.qp)
		return 0;
	return -ibv_modify_qp(id->pub.qp, &attr, IBV_QP_STATE);
}

/* ---- completion queues -------------------------------------------------- */

static int cq_make(struct rdma_cm_id *id, uint32_t size,
		   struct ibv_comp_channel **channel, struct ibv_cq **cq)
{
	*channel = ibv_create_comp_channel(id->verbs);
	if (!*channel)
		return -1;
	*cq = ibv_create_cq(id->verbs, size ? (int)size : 1, id, *channel, 0);
	return *cq ? 0 : -1;
}

static void cqs_destroy(struct rdma_cm_id *id)
{
	/* EBUSY would be the application's doing; nothing else can happen. */
	if (id->recv_cq)
		(void)ibv_destroy_cq(id->recv_cq);
	if (id->recv_cq_channel)
		(void)ibv_destroy_comp_channel(id->recv_cq_channel);
	if (id->send_cq && id->send_cq != id->recv_cq)
		(void)ibv_destroy_cq(id->send_cq);
	if (id->send_cq_channel && id->send_cq_channel != id->recv_cq_channel)
		(void)ibv_destroy_comp_channel(id->send_cq_channel);
	id->recv_cq = id->send_cq = NULL;
	id->recv_cq_channel = id->send_cq_channel = NULL;
}

static int cqs_create(struct rdma_cm_id *id, uint32_t send_size,
		      uint32_t recv_size)
{
	if (recv_size &&
	    cq_make(id, recv_size, &id->recv_cq_channel, &id->recv_cq))
		goto err;
	if (send_size &&
	    cq_make(id, send_size, &id->send_cq_channel, &id->send_cq))
		goto err;
	return 0;

err:
	cqs_destroy(id);
	return -1;
}

/* ---- queue pairs -------------------------------------------------------- */

static int make_ready(struct cm_id *id)
{
	int err;

	cm_lock();
	err = step(id, IBV_QPS_INIT);
	if (!err && cm_id_is_datagram(id))
		err = cm_qp_connect(id);
	cm_unlock();
	return err;
}

CM_EXPORT int rdma_create_qp_ex(struct rdma_cm_id *id,
				struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp;
	int err;

	if (id->qp || !id->verbs)
		return cm_fail(EINVAL);
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD)) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = NULL;
	}
	if (!attr->pd)
		attr->pd = id->pd;
	else if (attr->pd->context != id->verbs)
		return cm_fail(EINVAL);
	if (cqs_create(id, attr->send_cq ? 0 : attr->cap.max_send_wr + 1,
		       attr->recv_cq ? 0 : attr->cap.max_recv_wr + 1))
		return -1;
	if (!attr->send_cq)
		attr->send_cq = id->send_cq;
	if (!attr->recv_cq)
		attr->recv_cq = id->recv_cq;
	if (id->srq && !attr->srq)
		attr->srq = id->srq;
	qp = ibv_create_qp_ex(id->verbs, attr);
	if (!qp) {
		err = errno;
		goto err_cqs;
	}
	id->qp = qp;
	err = -make_ready(to_id(id));
	if (err)
		goto err_qp;
	id->pd = attr->pd;
	return 0;

err_qp:
	(void)ibv_destroy_qp(qp); /* the first error counts */
	id->qp = NULL;
err_cqs:
	cqs_destroy(id);
	return cm_fail(err);
}

CM_EXPORT int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd,
			     struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr_ex attr = {
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
	int rc = rdma_create_qp_ex(id, &attr);

	if (!rc)
		init->cap = attr.cap;
	return rc;
}

CM_EXPORT void rdma_destroy_qp(struct rdma_cm_id *id)
{
	if (id->qp)
		(void)ibv_destroy_qp(id->qp); /* the API has no error */
	id->qp = NULL;
	cqs_destroy(id);
}

/* ---- shared receive queues ---------------------------------------------- */

CM_EXPORT int rdma_create_srq_ex(struct rdma_cm_id *id,
				 struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq *srq;

	if (id->srq || !id->verbs)
		return cm_fail(EINVAL);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
		attr->pd = id->pd;
	}
	srq = ibv_create_srq_ex(id->verbs, attr);
	if (!srq)
		return -1;
	id->pd = attr->pd;
	id->srq = srq;
	return 0;
}

CM_EXPORT int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd,
			      struct ibv_srq_init_attr *init)
{
	struct ibv_srq_init_attr_ex attr = {
		.srq_context = init->srq_context,
		.attr = init->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
		.pd = pd,
	};
	int rc = rdma_create_srq_ex(id, &attr);

	if (!rc)
		init->attr = attr.attr;
	return rc;
}

CM_EXPORT void rdma_destroy_srq(struct rdma_cm_id *id)
{
	if (id->srq)
		(void)ibv_destroy_srq(id->srq); /* the API has no error */
	id->srq = NULL;
}
