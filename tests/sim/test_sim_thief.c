/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that wants to see what the next owner of its page writes: it loads
 * the page without a receive for the answer, so that the node must send it
 * again, gives the page back, and posts the receive when somebody else has
 * stored to the page frame. The node must not give the page frame away before.
 * The same with a store, which wants to write to the page frame when it has its
 * next owner.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <infiniband/verbs.h>

#include "client/verbs_api.h"
#include "pageframe/pframe_chain.h"
#include "rig/stage.h"
#include "sim/sim.h"
#include "wire/page_wire.h"

enum {
	BYTES = 4096,
	DEPTH = 4,
	THIEFS = 0xaa,
	OWNERS = 0xbb,
};

struct client {
	struct rig_host *host;
	struct ibv_cq *cq;
	struct ibv_pd *node_pd;
	struct pframe_space *space;
	struct pframe_chain *chain[PAGE_CHAIN_COUNT];
	struct rig_pair pair[PAGE_CHAIN_COUNT];
	struct rig_region *memory; /* a message, and a page */
};

struct world {
	struct rig_stage *stage;
	struct rig_host *node;
	struct pframe_pool *pool; /* one page frame */
	struct client thief, owner;
};

static void run_us(struct world *w, uint64_t us)
{
	struct sim *sim = rig_stage_sim(w->stage);

	(void)sim_run_until(sim, sim_now_ps(sim) + us * SIM_US);
}

static void client_open(struct world *w, struct client *c)
{
	struct rig_pair_options o = {
		.send_depth = 64, .recv_depth = 8, .max_sge = 2};
	struct pframe_space_options so = {.entries = 1, .depth = DEPTH};

	assert_int_equal(rig_host_add(w->stage, "client", &c->host), 0);
	assert_int_equal(
		rig_region_create(c->host, 2 * BYTES, false, &c->memory), 0);
	o.cq = c->cq = rig_cq_create(c->host, 256);
	so.pd = c->node_pd = ibv_alloc_pd(w->node->context);
	assert_int_equal(pframe_space_create(w->pool, &so, &c->space), 0);
	for (unsigned k = 0; k < PAGE_CHAIN_COUNT; k++) {
		assert_int_equal(pframe_chain_create(c->space, c->node_pd, k, 0,
						     &c->chain[k]),
				 0);
		o.far_qp = pframe_chain_qp(c->chain[k]);
		assert_int_equal(
			rig_pair_open(c->host, w->node, &o, &c->pair[k]), 0);
		assert_int_equal(pframe_chain_start(c->chain[k]), 0);
	}
}

static void client_close(struct client *c)
{
	pframe_space_destroy(c->space);
	for (unsigned k = 0; k < PAGE_CHAIN_COUNT; k++)
		rig_pair_close(&c->pair[k]);
	(void)ibv_destroy_cq(c->cq);
	(void)ibv_dealloc_pd(c->node_pd);
}

static uint8_t *page_of(const struct client *c)
{
	return c->memory->mem + BYTES;
}

static void receive(struct client *c, enum page_chain chain)
{
	struct ibv_recv_wr wr = {.wr_id = chain}, *bad;

	assert_int_equal(ibv_post_recv(c->pair[chain].near_qp, &wr, &bad), 0);
}

/* The one page of the table. Stores send the page, others their words. */
static void call(struct client *c, enum page_chain chain)
{
	bool stores =
		chain == PAGE_CHAIN_MAPPED || chain == PAGE_CHAIN_UNMAPPED;
	struct page_chain_load *load = (void *)c->memory->mem;
	struct ibv_sge sge = {
		.addr = (uintptr_t)(stores ? page_of(c) : c->memory->mem),
		.lkey = c->memory->mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.sg_list = &sge,
		      .num_sge = 1,
		      .opcode = stores ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND};

	*load = page_chain_load_of(0, 0, c->memory->addr + BYTES,
				   c->memory->rkey);
	sge.length = stores ? BYTES
		     : chain == PAGE_CHAIN_LOAD
			     ? sizeof(*load)
			     : sizeof(struct page_chain_call);
	assert_int_equal(ibv_post_send(c->pair[chain].near_qp, &wr, &bad), 0);
}

/* Whether an answer of that chain has come. */
static bool is_answered(struct client *c, enum page_chain chain)
{
	struct ibv_wc wc[8];
	bool found = false;
	int n = ibv_poll_cq(c->cq, 8, wc);

	for (int i = 0; i < n; i++)
		found |= wc[i].status == IBV_WC_SUCCESS &&
			 wc[i].opcode & IBV_WC_RECV && wc[i].wr_id == chain;
	return found;
}

static void store(struct world *w, struct client *c, int byte)
{
	memset(page_of(c), byte, BYTES);
	receive(c, PAGE_CHAIN_UNMAPPED);
	call(c, PAGE_CHAIN_UNMAPPED);
	run_us(w, 100);
}

static void world_open(struct world *w)
{
	struct rig_stage_config cfg = {.seed = 1};

	cfg.link.latency_ps = 500 * SIM_NS;
	cfg.link.bits_per_s = 100000000000ull;
	assert_int_equal(rig_stage_create(&cfg, &w->stage), 0);
	assert_int_equal(pframe_pool_create(BYTES, BYTES, &w->pool), 0);
	assert_int_equal(rig_host_add(w->stage, "node", &w->node), 0);
	client_open(w, &w->thief);
	client_open(w, &w->owner);
	store(w, &w->thief, THIEFS);
	assert_true(is_answered(&w->thief, PAGE_CHAIN_UNMAPPED));
}

static void world_close(struct world *w)
{
	(void)pframe_pool_mend(w->pool);
	client_close(&w->thief);
	client_close(&w->owner);
	(void)pframe_pool_mend(w->pool);
	assert_int_equal(pframe_pool_free(w->pool), 1);
	rig_stage_destroy(w->stage);
	pframe_pool_destroy(w->pool);
}

/* A call for whose answer there is no receive, then the page is given back: it
 * waits, and so does everybody else. */
static void hold_back(struct world *w, enum page_chain chain)
{
	call(&w->thief, chain);
	run_us(w, 50);
	receive(&w->thief, PAGE_CHAIN_INVALIDATE);
	call(&w->thief, PAGE_CHAIN_INVALIDATE);
	run_us(w, 100);
	assert_false(is_answered(&w->thief, PAGE_CHAIN_INVALIDATE));
	assert_int_equal(pframe_pool_free(w->pool), 0);
	store(w, &w->owner, OWNERS);
	receive(&w->thief, chain);
	run_us(w, 20000);
}

static void test_thief(void **state)
{
	struct world w = {0};

	world_open(&w);
	memset(page_of(&w.thief), 0, BYTES);
	hold_back(&w, PAGE_CHAIN_LOAD);
	/* What it stored itself, to the last byte; then the page goes. */
	for (unsigned i = 0; i < BYTES; i++)
		assert_int_equal(page_of(&w.thief)[i], THIEFS);
	assert_true(is_answered(&w.thief, PAGE_CHAIN_INVALIDATE));
	world_close(&w);
}

static void a_pframe_waits_for_stores_that_may_still_write(void **state)
{
	struct world w = {0};

	world_open(&w);
	hold_back(&w, PAGE_CHAIN_MAPPED);
	assert_true(is_answered(&w.thief, PAGE_CHAIN_INVALIDATE));
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_thief),
		cmocka_unit_test(
			a_pframe_waits_for_stores_that_may_still_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
