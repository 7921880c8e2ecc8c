/* SPDX-License-Identifier: Apache-2.0 */
/* The queue pair for management: messages out as datagrams, and in through its
 * completion channel, which the thread watches. */
#include <aquifer/aqdv.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cm_priv.h"
#include "wire/wire.h"

enum {
	RECV_BYTES = WIRE_GRH_BYTES + WIRE_MAD_BYTES,
	POLL_BATCH = 16,
};

struct cm_gsi {
	struct cm_device *device;
	struct cm_watch watch;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t bufs[CM_GSI_RECVS][RECV_BYTES];
};

/* ---- in ----------------------------------------------------------------- */

static int post_recv(struct cm_gsi *g, uint64_t index)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)g->bufs[index],
		.length = RECV_BYTES,
		.lkey = g->mr->lkey,
	};
	struct ibv_recv_wr wr = {
		.wr_id = index,
		.sg_list = &sge,
		.num_sge = 1,
	};
	struct ibv_recv_wr *bad;

	return -ibv_post_recv(g->qp, &wr, &bad);
}

static void receive(struct cm_gsi *g, struct ibv_wc *wc)
{
	uint8_t *buf = g->bufs[wc->wr_id];
	struct ibv_ah_attr ah;
	struct wire_cm_msg msg;
	struct cm_addr from;

	if (wc->status == IBV_WC_SUCCESS && wc->byte_len == RECV_BYTES &&
	    !ibv_init_ah_from_wc(g->device->verbs, 1, wc, (struct ibv_grh *)buf,
				 &ah) &&
	    !wire_cm_parse(buf + WIRE_GRH_BYTES, WIRE_MAD_BYTES, &msg)) {
		from.gid = ah.grh.dgid;
		from.qpn = wc->src_qp;
		cm_route_input(g->device, &from, &msg);
	}
	if (wc->status != IBV_WC_WR_FLUSH_ERR && post_recv(g, wc->wr_id))
		log_warn("cm", "a receive of the management queue is lost");
}

static void gsi_ready(struct cm_watch *w)
{
	struct cm_gsi *g = container_of(w, struct cm_gsi, watch);
	struct ibv_wc wc[POLL_BATCH];
	struct ibv_cq *cq;
	void *context;
	int n;

	if (ibv_get_cq_event(g->channel, &cq, &context))
		return;
	ibv_ack_cq_events(cq, 1);
	if (ibv_req_notify_cq(cq, 0))
		log_warn("cm", "the management queue cannot be armed");
	while ((n = ibv_poll_cq(cq, POLL_BATCH, wc)) > 0)
		for (int i = 0; i < n; i++)
			receive(g, &wc[i]);
}

/* ---- out ---------------------------------------------------------------- */

void cm_gsi_addr(const struct cm_device *dev, struct cm_addr *addr)
{
	addr->gid = dev->gid;
	addr->qpn = dev->gsi->qp->qp_num;
}

void cm_gsi_send(struct cm_device *dev, const struct cm_addr *to,
		 const struct wire_cm_msg *msg)
{
	struct cm_gsi *g = dev->gsi;
	uint8_t mad[WIRE_MAD_BYTES];
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh =
			{
				.dgid = to->gid,
				.sgid_index = dev->gid_index,
				.hop_limit = CM_HOP_LIMIT,
			},
	};
	struct ibv_sge sge = {
		.addr = (uintptr_t)mad,
		.length = sizeof(mad),
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_INLINE,
		.wr.ud = {.remote_qpn = to->qpn, .remote_qkey = WIRE_GSI_QKEY},
	};
	struct ibv_send_wr *bad;

	if (!g)
		return;
	wr.wr.ud.ah = ibv_create_ah(g->qp->pd, &attr);
	if (!wr.wr.ud.ah)
		return;
	wire_cm_build(msg, mad);
	if (ibv_post_send(g->qp, &wr, &bad))
		log_debug("cm", "a message was not sent");
	/* What is queued keeps what it needs of it. */
	(void)ibv_destroy_ah(wr.wr.ud.ah);
}

/* ---- life --------------------------------------------------------------- */

static int queue_pair_start(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = WIRE_GSI_QKEY,
	};
	int err = ibv_modify_qp(qp, &attr,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					IBV_QP_QKEY);

	attr.qp_state = IBV_QPS_RTR;
	if (!err)
		err = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	if (!err)
		err = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	return -err;
}

static void gsi_free(struct cm_gsi *g)
{
	/* Errors mean that there is nothing more to give back. */
	if (g->qp)
		(void)ibv_destroy_qp(g->qp);
	if (g->cq)
		(void)ibv_destroy_cq(g->cq);
	if (g->channel)
		(void)ibv_destroy_comp_channel(g->channel);
	if (g->mr)
		(void)ibv_dereg_mr(g->mr);
	free(g);
}

static int gsi_make(struct cm_gsi *g)
{
	struct ibv_context *verbs = g->device->verbs;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.cap = {.max_send_wr = CM_GSI_SENDS,
			.max_recv_wr = CM_GSI_RECVS,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = WIRE_MAD_BYTES},
	};

	g->mr = ibv_reg_mr(g->device->pd, g->bufs, sizeof(g->bufs),
			   IBV_ACCESS_LOCAL_WRITE);
	g->channel = ibv_create_comp_channel(verbs);
	if (!g->mr || !g->channel)
		return -errno;
	g->cq = ibv_create_cq(verbs, CM_GSI_RECVS + CM_GSI_SENDS, NULL,
			      g->channel, 0);
	if (!g->cq)
		return -errno;
	init.send_cq = init.recv_cq = g->cq;
	g->qp = aqdv_create_gsi(g->device->pd, &init);
	if (!g->qp)
		return -errno;
	if (fcntl(g->channel->fd, F_SETFL,
		  fcntl(g->channel->fd, F_GETFL) | O_NONBLOCK) < 0)
		return -errno;
	return -ibv_req_notify_cq(g->cq, 0);
}

int cm_gsi_open(struct cm_device *dev)
{
	struct cm_gsi *g;
	int err;

	if (dev->gsi)
		return 0;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->device = dev;
	err = gsi_make(g);
	if (!err)
		err = queue_pair_start(g->qp);
	for (uint64_t i = 0; i < CM_GSI_RECVS && !err; i++)
		err = post_recv(g, i);
	if (err)
		goto err_free;
	g->watch = (struct cm_watch){.fd = g->channel->fd, .ready = gsi_ready};
	err = cm_watch_add(&g->watch);
	if (err)
		goto err_free;
	dev->gsi = g;
	return 0;

err_free:
	gsi_free(g);
	return err;
}
