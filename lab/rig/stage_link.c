/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for peers, and links to it. */
#include <aquifer/aqdv.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/verbs_api.h"
#include "pair/pair.h"
#include "sim/model_host.h"
#include "sim/sim.h"
#include "stage_priv.h"

enum {
	PAGE = 4096,
	/* 4.096 us << 10 = 4.2 ms: a lost packet is noticed sooner by those
	 * behind it; this is for the last one. */
	ACK_TIMEOUT = 10,
};

#define ACCESS                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* ---- memory ------------------------------------------------------------- */

static int make_device_memory(struct rig_region *r)
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

static int make_memory(struct rig_region *r)
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

int rig_region_create(struct rig_host *host, uint64_t size_bytes,
		      bool in_device, struct rig_region **out)
{
	struct rig_region *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->host = host;
	r->size_bytes = size_bytes;
	r->next = host->stage->regions;
	host->stage->regions = r;
	err = in_device ? make_device_memory(r) : make_memory(r);
	if (err) {
		rig_region_close(r);
		return err;
	}
	r->rkey = r->mr->rkey;
	*out = r;
	return 0;
}

void rig_region_close(struct rig_region *r)
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

/* What both ends need to know to be connected. */
struct connect {
	enum ibv_mtu mtu;
	uint8_t rd_atomic;
};

static int to_rts(const struct client_verbs *v, const struct connect *c,
		  struct ibv_qp *qp, const struct rig_host *peer,
		  uint32_t peer_qpn, uint32_t own_psn, uint32_t peer_psn)
{
	const struct pair_end end = {
		.gid = peer->gid,
		.qpn = peer_qpn,
		.psn = peer_psn,
		.own_psn = own_psn,
		.mtu = c->mtu,
		.reads_in = c->rd_atomic,
		.reads_out = c->rd_atomic,
		.timeout = ACK_TIMEOUT,
		.retries = PAIR_RETRIES,
		.rnr_timer = PAIR_RNR_TIMER,
	};

	return pair_connect(v->modify_qp, qp, &end);
}

static int connect_both(struct rig_pair *p, const struct connect *c)
{
	const struct client_verbs *v = p->near->stage->verbs;
	uint32_t psn[2];
	int err;

	env_random(sim_host_env(p->near->sim_host), psn, sizeof(psn));
	psn[0] &= PAIR_PSN_MASK;
	psn[1] &= PAIR_PSN_MASK;
	p->near_psn = psn[0];
	p->mtu_bytes = 128u << c->mtu;
	err = pair_init(v->modify_qp, p->near_qp, ACCESS);
	if (!err)
		err = pair_init(v->modify_qp, p->far_qp,
				p->far_is_lent ? 0 : ACCESS);
	if (!err)
		err = to_rts(v, c, p->near_qp, p->far, p->far_qp->qp_num,
			     psn[0], psn[1]);
	if (!err)
		err = to_rts(v, c, p->far_qp, p->near, p->near_qp->qp_num,
			     psn[1], psn[0]);
	return err;
}

static uint32_t or_else(uint32_t value, uint32_t other)
{
	return value ? value : other;
}

static struct ibv_qp *qp_make(struct rig_host *h, struct ibv_pd *pd,
			      struct ibv_cq *cq, uint32_t send_depth,
			      const struct rig_pair_options *o)
{
	struct ibv_qp_init_attr attr = {
		.qp_context = h,
		.send_cq = cq ? cq : h->cq,
		.recv_cq = cq ? cq : h->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = or_else(send_depth, 1),
			.max_recv_wr = or_else(o->recv_depth, 1),
			.max_send_sge = or_else(o->max_sge, 1),
			.max_recv_sge = 1,
			.max_inline_data = o->max_inline}};

	return h->stage->verbs->create_qp(pd ? pd : h->pd, &attr);
}

int rig_pair_open(struct rig_host *near, struct rig_host *far,
		  const struct rig_pair_options *o, struct rig_pair *out)
{
	struct connect c = {.mtu = o->mtu ? o->mtu : IBV_MTU_4096,
			    .rd_atomic = (uint8_t)or_else(
				    o->rd_atomic, CLIENT_LINK_RD_ATOMIC)};
	struct rig_pair p = {.near = near, .far = far};
	int err = -ENOMEM;

	p.near_qp = qp_make(near, NULL, o->cq, o->send_depth, o);
	p.far_qp = o->far_qp;
	p.far_is_lent = o->far_qp != NULL;
	if (!p.far_qp)
		p.far_qp = qp_make(far, o->far_pd, o->far_cq, o->recv_depth, o);
	if (p.near_qp && p.far_qp)
		err = o->walk_pad ? aqdv_qp_set_walk_pad(p.far_qp, o->walk_pad)
				  : 0;
	if (!err)
		err = connect_both(&p, &c);
	if (err)
		rig_pair_close(&p);
	else
		*out = p;
	return err;
}

void rig_pair_close(struct rig_pair *p)
{
	if (p->near_qp)
		(void)p->near->stage->verbs->destroy_qp(p->near_qp);
	if (p->far_qp && !p->far_is_lent)
		(void)p->far->stage->verbs->destroy_qp(p->far_qp);
	p->near_qp = p->far_qp = NULL;
}

/* ---- links -------------------------------------------------------------- */

static int link_queues(struct stage_link *l, struct rig_host *far,
		       const struct client_link_options *o)
{
	uint32_t depth = or_else(o->send_depth, CLIENT_LINK_SEND_DEPTH);
	struct rig_pair_options po = {.send_depth = depth,
				      .max_sge = o->max_sge,
				      .max_inline = o->max_inline,
				      .rd_atomic = o->rd_atomic};
	int err;

	l->link.cq = o->share_cq;
	if (!l->link.cq) {
		l->link.cq =
			rig_cq_create(l->host, or_else(o->cq_depth, depth));
		l->owns_cq = l->link.cq != NULL;
	}
	if (!l->link.cq)
		return -ENOMEM;
	po.cq = l->link.cq;
	err = rig_pair_open(l->host, far, &po, &l->pair);
	if (!err)
		l->link.qp = l->pair.near_qp;
	return err;
}

static bool has_masked(struct ibv_context *context)
{
	const uint32_t masked = AQDV_CAP_MASKED_CAS | AQDV_CAP_MASKED_FAA;
	struct aqdv_device_attr attr = {0};

	return aqdv_query_device(context, &attr) == 0 &&
	       (attr.caps & masked) == masked;
}

int rig_link_open(struct rig_host *host, struct rig_region *region,
		  const struct client_link_options *options,
		  struct client_link **out)
{
	static const struct client_link_options none;
	const struct client_link_options *o = options ? options : &none;
	struct rig_stage *s = host->stage;
	struct stage_link *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->host = host;
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
	err = link_queues(l, region->host, o);
	if (err) {
		rig_link_close(&l->link);
		return err;
	}
	*out = &l->link;
	return 0;
}

void rig_link_close(struct client_link *link)
{
	struct stage_link *l;

	if (!link)
		return;
	l = container_of(link, struct stage_link, link);
	rig_pair_close(&l->pair);
	if (l->owns_cq)
		(void)link->verbs->destroy_cq(link->cq);
	*l->prev = l->next;
	if (l->next)
		l->next->prev = l->prev;
	free(l);
}

struct ibv_qp *rig_link_far_qp(struct client_link *link)
{
	return container_of(link, struct stage_link, link)->pair.far_qp;
}
