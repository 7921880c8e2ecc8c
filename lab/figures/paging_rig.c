/* SPDX-License-Identifier: Apache-2.0 */
/* The wiring of page stores to the simulated node: what a memory node does for
 * a client over HTTP is done here at once. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/verbs_api.h"
#include "paging_priv.h"

/* ---- links -------------------------------------------------------------- */

/* Link `at`; far: its other end, or NULL: one is made. */
static int open_link(struct paging_backend *l, unsigned at, uint32_t depth,
		     struct ibv_qp *far)
{
	struct rig_host *h = l->w->host;
	bool is_call = at > 0;
	uint32_t sends = is_call ? PAGE_CALL_SENDS(depth) : depth;
	struct rig_pair_options o = {
		.cq = l->cq[is_call],
		.far_qp = far,
		.send_depth = sends,
		.recv_depth = depth,
		.max_sge = 2,
	};
	int err;

	if (!o.cq) {
		o.cq = rig_cq_create(h, PAGE_CHAIN_COUNT * (depth + sends));
		l->cq[is_call] = o.cq;
	}
	if (!o.cq)
		return -ENOMEM;
	err = rig_pair_open(h, l->w->p->node, &o, &l->pair[at]);
	l->link[at] = (struct client_link){
		.verbs = client_verbs_choose(),
		.context = h->context,
		.pd = h->pd,
		.cq = o.cq,
		.qp = l->pair[at].near_qp,
		.clock = &h->clock,
	};
	return err;
}

/* ---- what the modes ask for ---------------------------------------------- */

static int open_static(struct paging_backend *l, const struct page_wish *wish,
		       struct page_grant *g)
{
	int err = rig_region_create(l->w->p->node,
				    wish->index_count * wish->page_bytes, false,
				    &l->region);

	if (err)
		return err;
	g->addr = l->region->addr;
	g->rkey = l->region->rkey;
	return 0;
}

static int open_space(struct paging_backend *l, const struct page_wish *wish,
		      struct ibv_pd *pd)
{
	struct paging *p = l->w->p;
	uint32_t bytes = pframe_pool_each_bytes(p->pool);
	struct pframe_space_options o = {
		.pd = pd,
		.entries = (wish->index_count * wish->page_bytes + bytes - 1) /
			   bytes,
		.depth = wish->depth,
		.is_pieces = wish->mode == PAGE_DYNAMIC_1M ||
			     wish->mode == PAGE_DYNAMIC_4K,
	};

	return pframe_space_create(p->pool, &o, &l->space);
}

static int open_served(struct paging_backend *l, const struct page_wish *wish,
		       struct page_grant *g)
{
	struct paging_core *core = paging_core_of(l->w);
	int err = open_space(l, wish, l->w->p->node->pd);

	if (!err)
		err = pframe_guest_create(core->server, l->space, &l->guest);
	if (!err)
		err = open_link(l, 1, wish->depth, pframe_guest_qp(l->guest));
	if (err)
		return err;
	paging_core_take(core, pframe_guest_qp(l->guest));
	g->link[1] = &l->link[1];
	return pframe_guest_arm(l->guest);
}

static int open_chain(struct paging_backend *l, unsigned kind)
{
	int err = pframe_chain_create(l->space, l->chain_pd, kind,
				      l->w->p->cfg.without, &l->chain[kind]);

	if (!err)
		err = open_link(l, 1 + kind, l->depth,
				pframe_chain_qp(l->chain[kind]));
	return err ? err : pframe_chain_start(l->chain[kind]);
}

int paging_backend_renew(struct paging_backend *l, unsigned kind)
{
	rig_pair_close(&l->pair[1 + kind]);
	pframe_chain_destroy(l->chain[kind]);
	l->chain[kind] = NULL;
	return open_chain(l, kind);
}

static int open_chains(struct paging_backend *l, const struct page_wish *wish,
		       struct page_grant *g)
{
	int err;

	l->chain_pd = ibv_alloc_pd(l->w->p->node->context);
	if (!l->chain_pd)
		return -ENOMEM;
	err = open_space(l, wish, l->chain_pd);
	for (unsigned i = 0; i < PAGE_CHAIN_COUNT && !err; i++) {
		err = open_chain(l, i);
		g->link[1 + i] = &l->link[1 + i];
	}
	return err;
}

/* ---- the wiring ---------------------------------------------------------- */

static void close_backend(void *ctx, struct page_grant *g)
{
	struct paging_backend *l = ctx;

	if (!g)
		return;
	/* Ends of chains and guests are theirs; clients' ends go first. */
	for (unsigned i = GRANT_LINKS_MAX; i-- > 0;)
		if (l->pair[i].near_qp)
			rig_pair_close(&l->pair[i]);
	if (l->guest)
		pframe_guest_destroy(l->guest);
	if (l->space)
		pframe_space_destroy(l->space);
	if (l->chain_pd)
		(void)ibv_dealloc_pd(l->chain_pd);
	for (unsigned i = 0; i < 2; i++)
		if (l->cq[i])
			(void)ibv_destroy_cq(l->cq[i]);
	*l = (struct paging_backend){.w = l->w};
}

static int open_backend(void *ctx, uint32_t node, const struct page_wish *wish,
			struct page_grant *out)
{
	struct paging_backend *l = ctx;
	struct page_grant g = {.depth = wish->depth};
	int err;

	l->depth = wish->depth;
	err = open_link(l, 0, wish->depth, NULL);

	snprintf(g.node_name, sizeof(g.node_name), "node");
	g.link[0] = &l->link[0];
	if (!err && wish->mode == PAGE_STATIC)
		err = open_static(l, wish, &g);
	else if (!err && wish->mode == PAGE_CHAIN)
		err = open_chains(l, wish, &g);
	else if (!err)
		err = open_served(l, wish, &g);
	if (err)
		close_backend(ctx, &g);
	else
		*out = g;
	return err;
}

static uint32_t node_count(void *ctx)
{
	return 1;
}

static uint64_t used_bytes(void *ctx, const struct page_grant *g)
{
	struct paging_backend *l = ctx;

	return pframe_space_used(l->space) *
	       pframe_pool_each_bytes(l->w->p->pool);
}

/* There are page frames for everybody, so no chain ever ends early. */
static int renew(void *ctx, struct page_grant *g, unsigned at)
{
	return -EHOSTDOWN;
}

static int settle(void *ctx, const struct page_grant *g, unsigned at,
		  const uint64_t *index, unsigned count, uint8_t *mapped,
		  struct page_stop *stop)
{
	return -EHOSTDOWN;
}

int paging_store_open(struct paging_worker *w)
{
	struct page_wiring wiring = {
		.open = open_backend,
		.close = close_backend,
		.node_count = node_count,
		.used_bytes = used_bytes,
		.renew = renew,
		.settle = settle,
		.ctx = &w->backend,
	};
	struct page_store_options o = {
		.pages = w->p->swap_pages,
		.mode = w->p->cfg.mode,
		.depth = w->depth,
		.chain_without = w->p->cfg.without,
	};
	int err;

	w->backend.w = w;
	err = page_store_create("paging", &o, &wiring, &w->store);
	if (err)
		return err;
	return page_register(w->store, w->buf, (size_t)w->depth * PAGE_BYTES);
}

void paging_store_close(struct paging_worker *w)
{
	page_store_close(w->store);
	w->store = NULL;
}
