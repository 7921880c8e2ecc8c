/* SPDX-License-Identifier: Apache-2.0 */
/* The play's nodes, memory and connections: made from the seed, undone. */
#include <aquifer/aqdv.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/verbs.h"
#include "verbs_priv.h"

enum {
	CQE_COUNT = VS_CONN_MAX * 2 * (VS_SQ_MAX + VS_RQ_MAX) + VS_SRQ_WR,
};

#define WINDOW_ACCESS                                        \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |  \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
	 IBV_ACCESS_MW_BIND)
#define WORDS_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

static int add_host(struct vs *vs, struct vs_node *node)
{
	struct rng *r = &vs->run.rand;
	static const uint8_t gbits[] = {5, 10, 25, 40};
	struct sim_host_config cfg = {0};

	/* One draw per statement: inside an initializer their order is the
	 * compiler's, and a seed must mean the same to all of them. */
	node->witness = (struct nic_witness){.saw = vs_record_saw, .ctx = node};
	cfg.witness = &node->witness;
	cfg.link.faults = vs->faults;
	cfg.link.latency_ps = sim_rand_range(r, 200, 1500) * SIM_NS;
	cfg.link.bits_per_s = gbits[sim_rand_below(r, 4)] * 1000000000ull;
	cfg.link.queue_frames = sim_rand_range(r, 2, 64);
	if (vs->opt->udp) {
		cfg.link.latency_ps = sim_rand_range(r, 2, 60) * SIM_US;
		cfg.link.bits_per_s = sim_rand_range(r, 1, 10) * 1000000000ull;
		cfg.link.switch_queue_bytes = sim_rand_range(r, 12, 200) * 1024;
		cfg.link.switch_mark_bytes =
			cfg.link.switch_queue_bytes / sim_rand_range(r, 2, 8);
	}
	if (sim_rand_below(r, 3) == 0)
		cfg.rx_batch_ps = sim_rand_range(r, 100, 4000) * SIM_NS;
	cfg.relax_ps = sim_rand_range(r, 50, 1000) * SIM_NS;
	return sim_host_add(vs->rack, &cfg, &node->host);
}

static int open_device(struct vs_node *node, struct ibv_device **list)
{
	node->ctx = ibv_open_device(list[node->index]);
	if (!node->ctx)
		return -errno;
	node->pd = ibv_alloc_pd(node->ctx);
	if (!node->pd)
		return -errno;
	return -ibv_query_gid(node->ctx, 1, 0, &node->gid);
}

static int add_queues(struct vs_node *node)
{
	struct rng *r = &node->vs->run.rand;
	struct ibv_srq_init_attr srq = {
		.attr = {.max_wr = VS_SRQ_WR, .max_sge = 4}};
	int err;

	node->channel = ibv_create_comp_channel(node->ctx);
	if (!node->channel)
		return -errno;
	node->cq_count = sim_rand_range(r, 1, VS_CQ_MAX);
	for (unsigned i = 0; i < node->cq_count; i++) {
		node->cqs[i] = ibv_create_cq(node->ctx, CQE_COUNT, NULL,
					     node->channel, 0);
		if (!node->cqs[i])
			return -errno;
	}
	node->srq = ibv_create_srq(node->pd, &srq);
	if (!node->srq)
		return -errno;
	err = vs_slots_init(node, &node->srq_slots, VS_SRQ_WR,
			    VS_MSG_SLOT_BYTES);
	return err;
}

static int add_memory(struct vs_node *node)
{
	int err = vs_area_add(node, VS_SOURCE_BYTES, &node->source);

	if (!err)
		err = vs_area_add(node, 8 * VS_SHARED, &node->shared);
	if (err)
		return err;
	rng_fill(&node->vs->run.rand, node->source.base, VS_SOURCE_BYTES);
	memset(node->shared.base, 0, 8 * VS_SHARED);
	node->source_mr = vs_reg(node, &node->source, IBV_ACCESS_REMOTE_READ);
	node->shared_mr = vs_reg(node, &node->shared, WORDS_ACCESS);
	return node->source_mr && node->shared_mr ? 0 : -errno;
}

int vs_mw_renew(struct vs_ep *ep)
{
	if (ep->mw && ibv_dealloc_mw(ep->mw))
		return -EBUSY;
	ep->mw_key = 0;
	ep->mw_busy = false;
	ep->mw = ibv_alloc_mw(ep->node->pd, IBV_MW_TYPE_2);
	return ep->mw ? 0 : -errno;
}

static int add_target(struct vs_ep *ep)
{
	int err = vs_area_add(ep->node, VS_WINDOW_BYTES, &ep->window);

	if (!err)
		err = vs_area_add(ep->node, 8 * VS_WORDS, &ep->words);
	if (err)
		return err;
	ep->shadow = malloc(VS_WINDOW_BYTES);
	if (!ep->shadow)
		return -ENOMEM;
	rng_fill(&ep->rand, ep->window.base, VS_WINDOW_BYTES);
	memcpy(ep->shadow, ep->window.base, VS_WINDOW_BYTES);
	memset(ep->words.base, 0, 8 * VS_WORDS);
	ep->window_mr = vs_reg(ep->node, &ep->window, WINDOW_ACCESS);
	ep->words_mr = vs_reg(ep->node, &ep->words, WORDS_ACCESS);
	return ep->window_mr && ep->words_mr ? vs_mw_renew(ep) : -errno;
}

static int add_ep(struct vs_conn *s, unsigned side, struct vs_node *node)
{
	struct vs_ep *ep = &s->ep[side];
	struct rng *r = &ep->rand;
	int err;

	sim_rand_init(r, s->vs->run.opt->seed, 100 + 2 * s->index + side);
	ep->s = s;
	ep->node = node;
	ep->peer = &s->ep[1 - side];
	ep->msg_last = &ep->msg_first;
	snprintf(ep->name, sizeof(ep->name), "s%u%c@n%u", s->index,
		 side ? 'b' : 'a', node->index);
	ep->use_srq = sim_rand_below(r, 3) == 0;
	ep->sig_all = sim_rand_below(r, 4) == 0;
	ep->sge_max =
		sim_rand_below(r, 2) ? VS_SGE_MAX : sim_rand_range(r, 1, 8);
	ep->inline_max =
		sim_rand_below(r, 4) ? sim_rand_below(r, VS_INLINE_MAX + 1) : 0;
	ep->sq_max = sim_rand_range(r, 4, VS_SQ_MAX);
	ep->rq_max = sim_rand_range(r, 2, VS_RQ_MAX);
	ep->send_cq = node->cqs[sim_rand_below(r, node->cq_count)];
	ep->recv_cq = node->cqs[sim_rand_below(r, node->cq_count)];
	ep->psn = (uint32_t)rng_u64(r) & 0xffffff;
	err = add_target(ep);
	if (!err)
		err = vs_slots_init(node, &ep->land, VS_LAND_SLOTS,
				    VS_LAND_SLOT_BYTES);
	if (!err)
		err = vs_slots_init(node, &ep->rq_slots, ep->rq_max,
				    VS_MSG_SLOT_BYTES);
	return err ? err : vs_ep_create_qp(ep);
}

static int add_session(struct vs *vs, unsigned index)
{
	struct vs_conn *s = &vs->conns[index];
	unsigned a = sim_rand_below(&vs->run.rand, vs->node_count);
	unsigned b = sim_rand_below(&vs->run.rand, vs->node_count);
	int err;

	/* Mostly between two nodes, sometimes a NIC with itself. */
	if (a == b && sim_rand_below(&vs->run.rand, 4))
		b = (a + 1) % vs->node_count;
	s->vs = vs;
	s->index = index;
	vs->conn_count = index + 1;
	err = add_ep(s, 0, &vs->nodes[a]);
	if (!err)
		err = add_ep(s, 1, &vs->nodes[b]);
	return err ? err : vs_conn_connect(s);
}

int vs_world_create(struct vs *vs)
{
	struct ibv_device **list;
	unsigned conns = sim_rand_range(&vs->run.rand, 2, VS_CONN_MAX);
	int count, err = 0;

	vs->node_count =
		sim_rand_range(&vs->run.rand, VS_NODE_MIN, VS_NODE_MAX);
	for (unsigned i = 0; !err && i < vs->node_count; i++) {
		vs->nodes[i].vs = vs;
		vs->nodes[i].index = i;
		err = add_host(vs, &vs->nodes[i]);
	}
	if (err)
		return err;
	verbs_set_provider(sim_rack_provider(vs->rack));
	list = ibv_get_device_list(&count);
	if (!list)
		return -errno;
	if (count != (int)vs->node_count)
		err = -ENODEV;
	for (unsigned i = 0; !err && i < vs->node_count; i++)
		err = open_device(&vs->nodes[i], list);
	ibv_free_device_list(list);
	for (unsigned i = 0; !err && i < vs->node_count; i++) {
		err = add_memory(&vs->nodes[i]);
		if (!err)
			err = add_queues(&vs->nodes[i]);
		if (!err)
			err = vs_ud_create(&vs->nodes[i]);
		if (!err)
			err = vs_walk_create(&vs->nodes[i]);
	}
	for (unsigned i = 0; !err && i < conns; i++)
		err = add_session(vs, i);
	return err;
}

/* ---- taking it down ----------------------------------------------------- */

/* In teardown a refusal is a finding, too: nothing uses these any more. */
static void undo(struct vs *vs, int err, const char *what)
{
	if (err && !vs->run.res->violations)
		vs_fail(vs, "%s failed with %d at the end", what, err);
}

static void remove_ep(struct vs_ep *ep)
{
	struct vs *vs = ep->s->vs;

	if (ep->qp)
		undo(vs, ibv_destroy_qp(ep->qp), "ibv_destroy_qp");
	if (ep->mw)
		undo(vs, ibv_dealloc_mw(ep->mw), "ibv_dealloc_mw");
	if (ep->window_mr)
		undo(vs, ibv_dereg_mr(ep->window_mr), "ibv_dereg_mr");
	if (ep->words_mr)
		undo(vs, ibv_dereg_mr(ep->words_mr), "ibv_dereg_mr");
	vs_slots_release(&ep->land);
	vs_slots_release(&ep->rq_slots);
	while (ep->sq_head != ep->sq_tail)
		vs_op_put(ep->sq[ep->sq_head++ % VS_SQ_MAX]);
	while (ep->unsure_count)
		vs_op_put(ep->unsure[--ep->unsure_count]);
	while (ep->msg_first)
		vs_msg_pop(ep);
	free(ep->shadow);
}

static void remove_node(struct vs_node *node)
{
	struct vs *vs = node->vs;

	if (!node->ctx)
		return;
	vs_ud_destroy(node);
	if (node->srq)
		undo(vs, ibv_destroy_srq(node->srq), "ibv_destroy_srq");
	for (unsigned i = 0; i < node->cq_count; i++) {
		if (node->cqs[i])
			undo(vs, ibv_destroy_cq(node->cqs[i]),
			     "ibv_destroy_cq");
	}
	if (node->channel)
		undo(vs, ibv_destroy_comp_channel(node->channel),
		     "ibv_destroy_comp_channel");
	vs_slots_release(&node->srq_slots);
	if (node->source_mr)
		undo(vs, ibv_dereg_mr(node->source_mr), "ibv_dereg_mr");
	if (node->shared_mr)
		undo(vs, ibv_dereg_mr(node->shared_mr), "ibv_dereg_mr");
	if (node->trail_mr)
		undo(vs, ibv_dereg_mr(node->trail_mr), "ibv_dereg_mr");
	undo(vs, aqdv_set_walker(node->ctx, NULL), "aqdv_set_walker");
	if (node->pd)
		undo(vs, ibv_dealloc_pd(node->pd), "ibv_dealloc_pd");
	undo(vs, ibv_close_device(node->ctx), "ibv_close_device");
}

void vs_world_destroy(struct vs *vs)
{
	for (unsigned i = 0; i < vs->conn_count; i++) {
		for (unsigned side = 0; side < 2; side++) {
			if (vs->conns[i].ep[side].node)
				remove_ep(&vs->conns[i].ep[side]);
		}
	}
	for (unsigned i = 0; i < vs->node_count; i++) {
		remove_node(&vs->nodes[i]);
		vs_areas_release(&vs->nodes[i]);
	}
	verbs_set_provider(NULL);
}
