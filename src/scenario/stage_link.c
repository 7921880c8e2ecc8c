/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for peers, and links to it. */
#include <aquifer/aqdv.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model_host.h"
#include "sim.h"
#include "stage_priv.h"
#include "verbs_api.h"

enum {
	PAGE = 4096,
	/* 4.096 us << 10 = 4.2 ms: a lost packet is noticed sooner by those
	 * behind it; this is for the last one. */
	ACK_TIMEOUT = 10,
	RETRIES = 7,
	RNR_TIMER = 12,
};

#define ACCESS                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* ---- memory ------------------------------------------------------------- */

static int make_device_memory(struct scenario_region *r)
{
	struct ibv_alloc_dm_attr attr = {.length = r->size_bytes};

	r->dm = ibv_alloc_dm(r->host->context, &attr);
	if (!r->dm)
		return -ENOSPC;
	r->mr = ibv_reg_dm_mr(r->host->pd, r->dm, 0, r->size_bytes,
			      ACCESS | IBV_ACCESS_ZERO_BASED);
	if (!r->mr)
		return -ENOMEM;
	return r->host->model ? sim_model_host_add_device_key(r->host->model,
							      r->mr->rkey)
			      : 0;
}

static int make_memory(struct scenario_region *r)
{
	r->mem = aligned_alloc(PAGE, align_up(r->size_bytes, PAGE));
	if (!r->mem)
		return -ENOMEM;
	memset(r->mem, 0, align_up(r->size_bytes, PAGE));
	r->mr = r->host->stage->verbs->reg_mr(r->host->pd, r->mem,
					      r->size_bytes, ACCESS);
	if (!r->mr)
		return -ENOMEM;
	r->addr = (uint64_t)(uintptr_t)r->mem;
	return 0;
}

int scenario_region_create(struct scenario_host *host, uint64_t size_bytes,
			   bool in_device, struct scenario_region **out)
{
	struct scenario_region *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->host = host;
	r->size_bytes = size_bytes;
	r->next = host->stage->regions;
	host->stage->regions = r;
	err = in_device ? make_device_memory(r) : make_memory(r);
	if (err) {
		scenario_region_close(r);
		return err;
	}
	r->rkey = r->mr->rkey;
	*out = r;
	return 0;
}

void scenario_region_close(struct scenario_region *r)
{
	r->host->stage->regions = r->next;
	if (r->mr)
		(void)r->host->stage->verbs->dereg_mr(r->mr);
	if (r->dm)
		(void)ibv_free_dm(r->dm);
	free(r->mem);
	free(r);
}

/* ---- queue pairs -------------------------------------------------------- */

static int to_init(const struct client_verbs *v, struct ibv_qp *qp)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = ACCESS};

	return -v->modify_qp(qp, &init,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     IBV_QP_ACCESS_FLAGS);
}

static int to_rts(const struct client_verbs *v, struct ibv_qp *qp,
		  const struct scenario_host *peer, uint32_t peer_qpn,
		  uint32_t own_psn, uint32_t peer_psn, uint32_t rd_atomic)
{
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = peer_qpn,
		.rq_psn = peer_psn,
		.max_dest_rd_atomic = (uint8_t)rd_atomic,
		.min_rnr_timer = RNR_TIMER,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer->gid, .hop_limit = 64}}};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
				  .timeout = ACK_TIMEOUT,
				  .retry_cnt = RETRIES,
				  .rnr_retry = RETRIES,
				  .sq_psn = own_psn,
				  .max_rd_atomic = (uint8_t)rd_atomic};
	int err;

	err = v->modify_qp(qp, &rtr,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				   IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER);
	if (!err)
		err = v->modify_qp(qp, &rts,
				   IBV_QP_STATE | IBV_QP_TIMEOUT |
					   IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					   IBV_QP_SQ_PSN |
					   IBV_QP_MAX_QP_RD_ATOMIC);
	return -err;
}

int scenario_qp_connect(struct scenario_host *a, struct ibv_qp *qa,
			struct scenario_host *b, struct ibv_qp *qb,
			uint32_t rd_atomic)
{
	const struct client_verbs *v = a->stage->verbs;
	struct env *env = sim_host_env(a->sim_host);
	uint32_t psn[2];
	int err;

	env_random(env, psn, sizeof(psn));
	psn[0] &= 0xffffff;
	psn[1] &= 0xffffff;
	err = to_init(v, qa);
	if (!err)
		err = to_init(v, qb);
	if (!err)
		err = to_rts(v, qa, b, qb->qp_num, psn[0], psn[1], rd_atomic);
	if (!err)
		err = to_rts(v, qb, a, qa->qp_num, psn[1], psn[0], rd_atomic);
	return err;
}

static int make_queues(struct stage_link *l,
		       const struct client_link_options *o)
{
	const struct client_verbs *v = l->near->stage->verbs;
	uint32_t depth = o->send_depth ? o->send_depth : CLIENT_LINK_SEND_DEPTH;
	struct ibv_qp_init_attr near = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = depth,
			.max_recv_wr = 1,
			.max_send_sge = o->max_sge ? o->max_sge : 1,
			.max_recv_sge = 1,
			.max_inline_data = o->max_inline}};
	struct ibv_qp_init_attr far = {.qp_type = IBV_QPT_RC,
				       .cap = {1, 1, 1, 1, 0}};

	l->link.cq = o->share_cq;
	if (!l->link.cq) {
		l->link.cq =
			v->create_cq(l->near->context,
				     (int)(o->cq_depth ? o->cq_depth : depth),
				     NULL, NULL, 0);
		l->owns_cq = l->link.cq != NULL;
	}
	l->far_cq = v->create_cq(l->far->context, 2, NULL, NULL, 0);
	if (!l->link.cq || !l->far_cq)
		return -ENOMEM;
	near.send_cq = near.recv_cq = l->link.cq;
	far.send_cq = far.recv_cq = l->far_cq;
	l->link.qp = v->create_qp(l->near->pd, &near);
	l->far_qp = v->create_qp(l->far->pd, &far);
	return l->link.qp && l->far_qp ? 0 : -ENOMEM;
}

static bool has_masked(struct ibv_context *context)
{
	const uint32_t masked = AQDV_CAP_MASKED_CAS | AQDV_CAP_MASKED_FAA;
	struct aqdv_device_attr attr = {0};

	return aqdv_query_device(context, &attr) == 0 &&
	       (attr.caps & masked) == masked;
}

int scenario_link_open(struct scenario_host *host,
		       struct scenario_region *region,
		       const struct client_link_options *options,
		       struct client_link **out)
{
	static const struct client_link_options none;
	const struct client_link_options *o = options ? options : &none;
	struct scenario_stage *s = host->stage;
	struct stage_link *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->near = host;
	l->far = region->host;
	l->next = s->links;
	l->prev = &s->links;
	if (l->next)
		l->next->prev = &l->next;
	s->links = l;
	l->link = (struct client_link){
		.verbs = s->verbs,
		.context = host->context,
		.pd = host->pd,
		.addr = region->addr,
		.size_bytes = region->size_bytes,
		.rkey = region->rkey,
		.node = sim_host_index(region->host->sim_host),
		.has_masked_atomics = has_masked(host->context),
		.clock = &host->clock,
	};
	err = make_queues(l, o);
	if (!err)
		err = scenario_qp_connect(
			l->near, l->link.qp, l->far, l->far_qp,
			o->rd_atomic ? o->rd_atomic : CLIENT_LINK_RD_ATOMIC);
	if (err) {
		scenario_link_close(&l->link);
		return err;
	}
	*out = &l->link;
	return 0;
}

void scenario_link_close(struct client_link *link)
{
	struct stage_link *l;
	const struct client_verbs *v;

	if (!link)
		return;
	l = container_of(link, struct stage_link, link);
	v = link->verbs;
	if (link->qp)
		(void)v->destroy_qp(link->qp);
	if (l->owns_cq)
		(void)v->destroy_cq(link->cq);
	if (l->far_qp)
		(void)v->destroy_qp(l->far_qp);
	if (l->far_cq)
		(void)v->destroy_cq(l->far_cq);
	*l->prev = l->next;
	if (l->next)
		l->next->prev = l->prev;
	free(l);
}

struct ibv_qp *scenario_link_far_qp(struct client_link *link)
{
	return container_of(link, struct stage_link, link)->far_qp;
}
