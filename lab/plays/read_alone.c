/* SPDX-License-Identifier: Apache-2.0 */
/* Two hosts, one queue pair, one READ, in small steps of time. */
#include "read_alone.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "sim/rack.h"
#include "verbs/verbs.h"

enum {
	BYTES_MAX = 4096,
	QUEUE_FRAMES = 64,
	STEP_PS = 10, /* all latencies here are multiples of it */
	ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
};

#define LIMIT_PS (20 * SIM_US) /* far below the NIC's timer */

struct side {
	struct sim_host *host;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	union ibv_gid gid;
	uint8_t mem[BYTES_MAX];
};

struct world {
	struct sim *sim;
	struct sim_rack *rack;
	struct side side[2];
};

static int side_open(struct side *s, struct ibv_device *dev)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
					.sq_sig_all = 1,
					.cap = {.max_send_wr = 1,
						.max_recv_wr = 1,
						.max_send_sge = 1,
						.max_recv_sge = 1}};

	s->ctx = ibv_open_device(dev);
	if (!s->ctx)
		return -errno;
	s->pd = ibv_alloc_pd(s->ctx);
	s->cq = ibv_create_cq(s->ctx, 4, NULL, NULL, 0);
	if (!s->pd || !s->cq)
		return -ENOMEM;
	s->mr = ibv_reg_mr(s->pd, s->mem, BYTES_MAX, ACCESS);
	attr.send_cq = s->cq;
	attr.recv_cq = s->cq;
	s->qp = ibv_create_qp(s->pd, &attr);
	if (!s->mr || !s->qp)
		return -ENOMEM;
	return -ibv_query_gid(s->ctx, 1, 0, &s->gid);
}

static void side_close(struct side *s)
{
	/* Nothing refers to them any more; the rack asserts that they go. */
	if (s->qp)
		(void)ibv_destroy_qp(s->qp);
	if (s->mr)
		(void)ibv_dereg_mr(s->mr);
	if (s->cq)
		(void)ibv_destroy_cq(s->cq);
	if (s->pd)
		(void)ibv_dealloc_pd(s->pd);
	if (s->ctx)
		(void)ibv_close_device(s->ctx);
}

static int side_connect(struct side *s, const struct side *peer)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = ACCESS};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = peer->qp->qp_num,
		.max_dest_rd_atomic = 1,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer->gid, .hop_limit = 64}}};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 14, .max_rd_atomic = 1};
	int err;

	err = ibv_modify_qp(s->qp, &init,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS);
	if (!err)
		err = ibv_modify_qp(s->qp, &rtr,
				    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					    IBV_QP_MAX_DEST_RD_ATOMIC |
					    IBV_QP_MIN_RNR_TIMER);
	if (!err)
		err = ibv_modify_qp(s->qp, &rts,
				    IBV_QP_STATE | IBV_QP_TIMEOUT |
					    IBV_QP_RETRY_CNT |
					    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					    IBV_QP_MAX_QP_RD_ATOMIC);
	return -err;
}

static int world_open(struct world *w, const struct sim_fabric_choice *fabric)
{
	struct sim_host_config cfg = {0};
	struct ibv_device **list;
	int err, count = 0;

	err = sim_create(1, &w->sim);
	if (!err)
		err = sim_rack_create(w->sim, &w->rack);
	if (!err)
		err = sim_fabric_plug(fabric, sim_rack_net(w->rack), 2);
	if (err)
		return err;
	if (fabric) {
		cfg.link = fabric->link;
		sim_net_set_switch_ps(sim_rack_net(w->rack), fabric->switch_ps);
	}
	cfg.link.queue_frames = QUEUE_FRAMES;
	for (unsigned i = 0; i < 2 && !err; i++)
		err = sim_host_add(w->rack, &cfg, &w->side[i].host);
	if (err)
		return err;
	verbs_set_provider(sim_rack_provider(w->rack));
	list = ibv_get_device_list(&count);
	if (!list)
		return -ENOMEM;
	for (unsigned i = 0; i < 2 && !err; i++)
		err = side_open(&w->side[i], list[i]);
	ibv_free_device_list(list);
	if (!err)
		err = side_connect(&w->side[0], &w->side[1]);
	return err ? err : side_connect(&w->side[1], &w->side[0]);
}

static void world_close(struct world *w)
{
	for (unsigned i = 0; i < 2; i++)
		side_close(&w->side[i]);
	verbs_set_provider(NULL);
	sim_rack_destroy(w->rack);
	if (w->sim)
		sim_destroy(w->sim);
	free(w);
}

static int read_once(struct world *w, uint32_t bytes, uint64_t *out)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibv_sge sge = {(uintptr_t)a->mem, bytes, a->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_READ},
			   *bad;
	uint64_t start_ps = sim_now_ps(w->sim);
	struct ibv_wc wc;
	int n;

	memset(b->mem, 0xa5, sizeof(b->mem));
	wr.wr.rdma.remote_addr = (uintptr_t)b->mem;
	wr.wr.rdma.rkey = b->mr->rkey;
	if (ibv_post_send(a->qp, &wr, &bad))
		return -EREMOTEIO;
	while ((n = ibv_poll_cq(a->cq, 1, &wc)) == 0) {
		if (sim_now_ps(w->sim) - start_ps > LIMIT_PS)
			return -EREMOTEIO;
		sim_run_until(w->sim, sim_now_ps(w->sim) + STEP_PS);
	}
	if (n != 1 || wc.status || memcmp(a->mem, b->mem, bytes) != 0)
		return -EREMOTEIO;
	*out = sim_now_ps(w->sim) - start_ps;
	return 0;
}

int sim_read_alone_ps(const struct sim_fabric_choice *fabric, uint32_t bytes,
		      uint64_t *out)
{
	struct world *w;
	int err;

	if (!bytes || bytes > BYTES_MAX)
		return -EINVAL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	err = world_open(w, fabric);
	if (!err)
		err = read_once(w, bytes, out);
	world_close(w);
	return err;
}
