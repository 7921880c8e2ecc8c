/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that flood the node's chains with nonsense: places that are not in
 * their table, misaligned or not mapped, messages of any length, as fast as
 * their connections take them. A chain that ends over it is made anew, as a
 * memory node does for who connects again. They must reach nothing but their
 * own table and pages, and others must keep their speed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/verbs_api.h"
#include "paging_priv.h"

enum {
	BURST = 8, /* messages between two looks */
	POLL_BATCH = 32,
	ENTRY_BYTES = 8,
	HEAD_BYTES = 24,
};

/* Near an entry of its own table more often than anywhere. */
static uint64_t some_place(struct paging_worker *w)
{
	uint64_t end = w->p->pages * ENTRY_BYTES;

	switch (sim_rand_below(&w->rand, 16)) {
	case 0:
		return rng_u64(&w->rand);
	case 1:
		return end + sim_rand_below(&w->rand, 64); /* others' tables */
	case 2:
		return sim_rand_below(&w->rand, (uint32_t)end); /* misaligned */
	case 3:
		return 0 - (uint64_t)sim_rand_below(&w->rand, 64);
	default:
		return sim_rand_below(&w->rand, (uint32_t)w->p->pages) *
		       ENTRY_BYTES;
	}
}

/* Mostly short: long ones would fill the node's link before they keep its
 * chains busy, and who may fill a link is not for chains to say. */
static uint32_t some_length(struct paging_worker *w, unsigned chain)
{
	if (sim_rand_below(&w->rand, 32) == 0)
		return sim_rand_below(&w->rand, PAGE_BYTES + 1);
	return chain == PAGE_CHAIN_LOAD ? HEAD_BYTES : HEAD_BYTES / 2;
}

static bool send_nonsense(struct paging_worker *w, unsigned chain)
{
	struct paging_backend *l = &w->backend;
	uint64_t place = some_place(w);
	be64 head = be64_put(place);
	struct ibv_sge sge = {.addr = (uintptr_t)w->buf,
			      .length = some_length(w, chain),
			      .lkey = w->flood_mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND_WITH_IMM,
				       .send_flags = IBV_SEND_SIGNALED,
				       .imm_data = htobe32((uint32_t)place)};

	rng_fill(&w->rand, w->buf, HEAD_BYTES);
	memcpy(w->buf, &head, sizeof(head));
	if (ibv_post_send(l->pair[1 + chain].near_qp, &wr, &bad))
		return false;
	w->p->res->nonsense++;
	return true;
}

static void receive(struct paging_worker *w, unsigned chain)
{
	struct ibv_recv_wr recv = {0}, *bad;

	(void)ibv_post_recv(w->backend.link[1 + chain].qp, &recv, &bad);
}

/* Answers mean nothing to it, but its queue pairs need receives. */
static void look(struct paging_worker *w)
{
	struct ibv_wc wc[POLL_BATCH];
	int n = ibv_poll_cq(w->backend.cq[1], POLL_BATCH, wc);

	for (int i = 0; i < n; i++)
		for (unsigned k = 0; k < PAGE_CHAIN_COUNT; k++)
			if (wc[i].status == IBV_WC_SUCCESS &&
			    wc[i].opcode & IBV_WC_RECV &&
			    wc[i].qp_num == w->backend.link[1 + k].qp->qp_num)
				receive(w, k);
}

/* Connecting again takes a request to the node's process and some round trips,
 * about a millisecond; here it is ten times as fast. */
#define RENEW_PS (100 * SIM_US)

static void mend(struct paging_worker *w)
{
	if (sim_now_ps(w->p->sim) < w->renew_ps)
		return;
	w->renew_ps = sim_now_ps(w->p->sim) + RENEW_PS;
	for (unsigned k = 0; k < PAGE_CHAIN_COUNT; k++) {
		if (!pframe_chain_is_broken(w->backend.chain[k]))
			continue;
		w->p->res->broken++;
		if (paging_backend_renew(&w->backend, k)) {
			w->p->err = -EIO;
			return;
		}
		for (uint32_t i = 0; i < w->depth; i++)
			receive(w, k);
		(void)pframe_pool_mend(w->p->pool);
	}
}

void paging_flood_main(void *arg)
{
	struct paging_worker *w = arg;
	struct paging *p = w->p;

	p->preparing--;
	while (p->preparing && !p->err)
		sim_fiber_sleep_ps(p->sim, SIM_US);
	while (!p->is_stopping && !p->err) {
		for (unsigned i = 0; i < BURST; i++)
			(void)send_nonsense(
				w, sim_rand_below(&w->rand, PAGE_CHAIN_COUNT));
		look(w);
		mend(w);
		client_clock_relax(&w->host->clock);
	}
	p->running--;
}

/* ---- the accounts -------------------------------------------------------- */

struct account {
	struct paging *p;
	uint64_t count;
	uint64_t first; /* page frames stand one behind the other */
	uint8_t *seen;
};

static void find_first(struct account *a, uint64_t pframe)
{
	while (pframe_pool_has(a->p->pool, pframe - PAGE_BYTES))
		pframe -= PAGE_BYTES;
	a->first = pframe;
}

static void mark(struct account *a, uint64_t pframe)
{
	uint64_t at;

	if (!a->first)
		find_first(a, pframe);
	at = (pframe - a->first) / PAGE_BYTES;
	if (at >= a->count || a->seen[at]++)
		a->p->res->failed++;
}

/* Every page frame is in exactly one table, or in the queue, which this
 * empties. */
void paging_flood_check(struct paging *p)
{
	struct account a = {.p = p, .count = pframe_pool_count(p->pool)};
	uint64_t pframe;

	a.seen = calloc(a.count, 1);
	if (!a.seen) {
		p->err = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < p->worker_count; i++)
		for (uint64_t k = 0; k < p->pages; k++) {
			pframe = pframe_space_find(p->worker[i].backend.space,
						   k);
			if (pframe)
				mark(&a, pframe);
		}
	while ((pframe = pframe_pool_pop(p->pool)) != 0)
		mark(&a, pframe);
	for (uint64_t i = 0; i < a.count; i++)
		p->res->failed += !a.seen[i];
	free(a.seen);
}
