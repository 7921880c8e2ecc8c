/* SPDX-License-Identifier: Apache-2.0 */
/* Memory nodes for page stores on the looped host, without a rack. */
#ifndef AQ_TEST_PAGE_RIG_H
#define AQ_TEST_PAGE_RIG_H

#include "verbs_pair.h"

#include <errno.h>
#include <stdlib.h>

#include "client/link.h"
#include "client/verbs_api.h"
#include "page/page_priv.h"
#include "pageframe/pframe_chain.h"
#include "pageframe/pframe_server.h"

enum {
	RIG_NODES = 8,
	RIG_DEPTH = 256,
};

struct rig_node {
	bool is_down;
	bool is_used;
	uint32_t number;
	struct client_link link[GRANT_LINKS_MAX];
	struct ibv_qp *far_qp[GRANT_LINKS_MAX];
	struct ibv_cq *far_cq;
	/* Two-sided and chains: */
	struct pframe_space *space;
	struct pframe_guest *guest;
	struct pframe_chain *chain[PAGE_CHAIN_COUNT];
	uint8_t *memory;
	uint64_t bytes;
	struct ibv_mr *mr;
};

struct rig {
	struct pair pair;
	uint32_t nodes;
	struct client_clock clock;
	bool has_thread; /* that runs the server */
	struct ibv_pd *page_pd;
	struct pframe_server *server;
	struct pframe_pool *pool; /* of all nodes */
	struct rig_node node[RIG_NODES];
};

static uint64_t rig_now_ns(void *ctx)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Who waits lets the node's processor work. */
static void rig_relax(void *ctx)
{
	struct rig *r = ctx;

	if (!r->has_thread)
		(void)pframe_server_step(r->server);
	sched_yield();
}

static struct ibv_qp *rig_qp(struct rig *r, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
					.send_cq = cq,
					.recv_cq = cq,
					.cap = {.max_send_wr = RIG_DEPTH,
						.max_recv_wr = RIG_DEPTH,
						.max_send_sge = 2,
						.max_recv_sge = 1}};
	struct side s = {.qp = ibv_create_qp(r->pair.pd, &attr)};

	assert_non_null(s.qp);
	side_init(&s);
	return s.qp;
}

static void rig_link(struct rig *r, struct rig_node *n, unsigned at,
		     struct ibv_qp *far)
{
	struct client_link *l = &n->link[at];
	struct side s = {.qp = far};

	l->verbs = client_verbs_choose();
	l->context = r->pair.ctx;
	l->pd = r->pair.pd;
	l->cq = at > 1 ? n->link[1].cq
		       : ibv_create_cq(r->pair.ctx, 8 * RIG_DEPTH, NULL, NULL,
				       0);
	l->clock = &r->clock;
	l->qp = rig_qp(r, l->cq);
	n->far_qp[at] = far;
	side_init(&s);
	pair_to(&r->pair, l->qp, far->qp_num, IBV_MTU_4096);
	pair_to(&r->pair, far, l->qp->qp_num, IBV_MTU_4096);
}

static void rig_memory(struct rig *r, struct rig_node *n,
		       const struct page_wish *wish, struct page_grant *out)
{
	uint64_t bytes = align_up(wish->index_count * wish->page_bytes, 4096);

	n->memory = aligned_alloc(4096, bytes);
	n->bytes = bytes;
	memset(n->memory, 0xee, bytes);
	n->mr = ibv_reg_mr(r->pair.pd, n->memory, bytes, PAIR_ACCESS);
	assert_non_null(n->mr);
	out->addr = (uintptr_t)n->memory;
	out->rkey = n->mr->rkey;
}

static int rig_chain(struct rig *r, struct rig_node *n, unsigned i,
		     unsigned without)
{
	int err = pframe_chain_create(n->space, r->page_pd, i, without,
				      &n->chain[i]);

	if (err)
		return err;
	rig_link(r, n, 1 + i, pframe_chain_qp(n->chain[i]));
	return pframe_chain_start(n->chain[i]);
}

static void rig_space(struct rig *r, struct rig_node *n,
		      const struct page_wish *wish, struct page_grant *out)
{
	struct pframe_space_options o = {.pd = r->pair.pd,
					 .entries = wish->index_count,
					 .depth = wish->depth,
					 .is_sparse =
						 wish->mode == PAGE_SPARSE};

	assert_int_equal(pframe_space_create(r->pool, &o, &n->space), 0);
	if (wish->mode == PAGE_TWO_SIDED || wish->mode == PAGE_SPARSE) {
		assert_int_equal(
			pframe_guest_create(r->server, n->space, &n->guest), 0);
		rig_link(r, n, 1, pframe_guest_qp(n->guest));
		assert_int_equal(pframe_guest_arm(n->guest), 0);
		return;
	}
	for (unsigned i = 0; i < PAGE_CHAIN_COUNT; i++)
		assert_int_equal(rig_chain(r, n, i, wish->without), 0);
}

static int rig_open(void *ctx, uint32_t node, const struct page_wish *wish,
		    struct page_grant *out)
{
	struct rig *r = ctx;
	struct rig_node *n = &r->node[node];

	if (n->is_down || n->is_used)
		return -EHOSTDOWN;
	*out = (struct page_grant){.node = node, .without = wish->without};
	n->far_cq = ibv_create_cq(r->pair.ctx, 16, NULL, NULL, 0);
	rig_link(r, n, 0, rig_qp(r, n->far_cq));
	if (wish->mode == PAGE_STATIC)
		rig_memory(r, n, wish, out);
	else
		rig_space(r, n, wish, out);
	for (unsigned i = 0; i < GRANT_LINKS_MAX; i++)
		out->link[i] = n->link[i].qp ? &n->link[i] : NULL;
	n->is_used = true;
	(void)snprintf(out->node_name, sizeof(out->node_name), "m%u", node);
	return 0;
}

static void rig_close(void *ctx, struct page_grant *g)
{
	struct rig *r = ctx;
	struct rig_node *n;

	if (!g)
		return;
	n = &r->node[g->node];
	for (unsigned i = 0; i < GRANT_LINKS_MAX; i++)
		if (n->link[i].qp)
			(void)ibv_destroy_qp(n->link[i].qp);
	(void)ibv_destroy_qp(n->far_qp[0]);
	if (n->guest)
		pframe_guest_destroy(n->guest);
	if (n->space)
		pframe_space_destroy(n->space);
	(void)ibv_destroy_cq(n->link[0].cq);
	if (n->link[1].cq)
		(void)ibv_destroy_cq(n->link[1].cq);
	(void)ibv_destroy_cq(n->far_cq);
	if (n->mr)
		(void)ibv_dereg_mr(n->mr);
	free(n->memory);
	*n = (struct rig_node){.is_down = n->is_down};
}

static int rig_renew(void *ctx, struct page_grant *g, unsigned at)
{
	struct rig *r = ctx;
	struct rig_node *n = &r->node[g->node];

	(void)ibv_destroy_qp(n->link[at].qp);
	return rig_chain(r, n, at - 1, g->without);
}

static int rig_settle(void *ctx, const struct page_grant *g, unsigned at,
		      const uint64_t *index, unsigned count, uint8_t *mapped,
		      struct page_stop *stop)
{
	struct rig *r = ctx;
	struct rig_node *n = &r->node[g->node];

	int why;

	pframe_chain_destroy(n->chain[at - 1]);
	n->chain[at - 1] = NULL;
	for (unsigned i = 0; i < count; i++)
		mapped[i] = pframe_space_is_mapped(n->space, index[i]);
	why = pframe_space_why(n->space, PAGE_CHAIN_UNMAPPED);
	stop->is_full = why == -ENOSPC;
	(void)snprintf(stop->text, sizeof(stop->text), "%s",
		       why ? pframe_why_text(why) : "");
	return 0;
}

static bool rig_is_ended(void *ctx, const struct page_grant *g, unsigned at)
{
	struct rig *r = ctx;
	struct rig_node *n = &r->node[g->node];

	return n->is_down || (at > 0 && n->chain[at - 1] &&
			      pframe_chain_is_broken(n->chain[at - 1]));
}

static uint64_t rig_used_bytes(void *ctx, const struct page_grant *g)
{
	struct rig *r = ctx;

	return pframe_space_used(r->node[g->node].space) *
	       pframe_pool_each_bytes(r->pool);
}

static uint32_t rig_node_count(void *ctx)
{
	return ((struct rig *)ctx)->nodes;
}

static void rig_make(struct rig *r, uint32_t nodes)
{
	memset(r, 0, sizeof(*r));
	r->clock = (struct client_clock){
		.now_ns = rig_now_ns, .relax = rig_relax, .ctx = r};
	pair_open(&r->pair);
	r->pair.pd = ibv_alloc_pd(r->pair.ctx);
	r->page_pd = ibv_alloc_pd(r->pair.ctx);
	r->nodes = nodes;
	assert_int_equal(pframe_server_create(r->pair.ctx, &r->server), 0);
}

static inline void rig_make_pool(struct rig *r, uint64_t pframes,
				 uint32_t bytes)
{
	assert_int_equal(pframe_pool_create(pframes * bytes, bytes, &r->pool),
			 0);
}

static void rig_break(struct rig *r)
{
	pframe_server_destroy(r->server);
	if (r->pool)
		pframe_pool_destroy(r->pool);
	assert_int_equal(ibv_dealloc_pd(r->page_pd), 0);
	assert_int_equal(ibv_dealloc_pd(r->pair.pd), 0);
	pair_close(&r->pair);
}

static inline void rig_kill(struct rig *r, uint32_t node)
{
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};

	r->node[node].is_down = true;
	for (unsigned i = 0; i < GRANT_LINKS_MAX; i++)
		if (r->node[node].far_qp[i])
			assert_int_equal(ibv_modify_qp(r->node[node].far_qp[i],
						       &err, IBV_QP_STATE),
					 0);
}

static struct page_store *rig_store(struct rig *r,
				    const struct page_store_options *o)
{
	struct page_wiring w = {.open = rig_open,
				.close = rig_close,
				.node_count = rig_node_count,
				.used_bytes = rig_used_bytes,
				.renew = rig_renew,
				.settle = rig_settle,
				.is_ended = rig_is_ended,
				.ctx = r};
	struct page_store *s = NULL;

	assert_int_equal(page_store_create("test", o, &w, &s), 0);
	return s;
}

/* Different for every page and version. */
static void rig_fill(uint8_t *buf, uint32_t bytes, uint64_t page,
		     uint64_t version)
{
	uint64_t x = page * 0x9e3779b97f4a7c15ull + version;

	for (uint32_t i = 0; i + 8 <= bytes; i += 8) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		memcpy(buf + i, &x, 8);
	}
}

#endif
