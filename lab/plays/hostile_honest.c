/* SPDX-License-Identifier: Apache-2.0 */
/* Those who work in the play "hostile": regions, and what must be in them. */
#include <errno.h>
#include <string.h>

#include "client/verbs_api.h"
#include "hostile_play_priv.h"
#include "sim/fiber.h"

/* A tenth of this is what the slowest operation takes that only lost packets
 * delay. */
#define OP_LIMIT_NS 100000000ull

enum {
	PAUSE_NS = 20000,
	CQ_DEPTH = 512,
	ONE_SIDED = 1, /* wr_id */
};

/* ---- waiting ------------------------------------------------------------ */

static bool is_late(struct hp_client *c, uint64_t since_ns)
{
	struct sim *sim = c->p->run.sim;

	if (sim_now_ns(sim) - since_ns < OP_LIMIT_NS)
		return false;
	play_fail(&c->p->run, "tenant %u waits for its %s for ever", c->index,
		  c->way == HP_BY_CHAINS ? "chains or region" : "node");
	c->stopped = true;
	return true;
}

bool hp_await(struct hp_client *c, bool is_recv, struct ibv_wc *wc)
{
	uint64_t since = sim_now_ns(c->p->run.sim);

	while (!c->stopped && !is_late(c, since)) {
		int n = ibv_poll_cq(c->cq, 1, wc);

		if (n == 0) {
			client_clock_relax(&c->host->clock);
		} else if (n < 0 || wc->status != IBV_WC_SUCCESS) {
			play_fail(&c->p->run,
				  "tenant %u has lost a connection: %s",
				  c->index, ibv_wc_status_str(wc->status));
			c->stopped = true;
		} else if (is_recv ? wc->opcode & IBV_WC_RECV
				   : wc->wr_id == ONE_SIDED) {
			return true;
		}
	}
	return false;
}

/* ---- its region --------------------------------------------------------- */

static struct hp_desk *desk_of(const struct hp_client *c)
{
	return (struct hp_desk *)c->desk->mem;
}

bool hp_conn_do(struct hp_client *c, struct ibv_send_wr *wr, uint32_t bytes)
{
	struct ibv_sge sge = {.addr = (uintptr_t)desk_of(c)->in,
			      .length = bytes,
			      .lkey = c->desk->mr->lkey};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr->wr_id = ONE_SIDED;
	wr->send_flags = IBV_SEND_SIGNALED;
	wr->sg_list = &sge;
	wr->num_sge = 1;
	if (ibv_post_send(c->conn.near_qp, wr, &bad)) {
		play_fail(&c->p->run, "tenant %u cannot post", c->index);
		c->stopped = true;
		return false;
	}
	return hp_await(c, false, &wc);
}

static void write_some(struct hp_client *c, uint32_t at, uint32_t bytes)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {.remote_addr = (uintptr_t)c->tenant.mem + at,
			    .rkey = c->tenant.mr->rkey}};

	for (uint32_t i = 0; i < bytes; i++)
		desk_of(c)->in[i] = c->shadow[at + i] = hp_byte(&c->rand);
	(void)hp_conn_do(c, &wr, bytes);
}

static void read_some(struct hp_client *c, uint32_t at, uint32_t bytes)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_READ,
		.wr.rdma = {.remote_addr = (uintptr_t)c->tenant.mem + at,
			    .rkey = c->tenant.mr->rkey}};

	memset(desk_of(c)->in, 0, bytes);
	if (hp_conn_do(c, &wr, bytes) &&
	    memcmp(desk_of(c)->in, c->shadow + at, bytes) != 0)
		play_fail(&c->p->run, "tenant %u reads what it did not write",
			  c->index);
}

static void change_word(struct hp_client *c)
{
	uint32_t at = HP_DATA_BYTES + 8 * sim_rand_below(&c->rand, HP_WORDS);
	bool adds = sim_rand_below(&c->rand, 2);
	uint64_t old, now, got;
	struct ibv_send_wr wr = {
		.opcode = adds ? IBV_WR_ATOMIC_FETCH_AND_ADD
			       : IBV_WR_ATOMIC_CMP_AND_SWP,
		.wr.atomic = {.remote_addr = (uintptr_t)c->tenant.mem + at,
			      .rkey = c->tenant.mr->rkey}};

	memcpy(&old, c->shadow + at, sizeof(old));
	now = adds ? old + 1 : old;
	for (unsigned i = 0; i < sizeof(now) && !adds; i++)
		now = now << 8 | hp_byte(&c->rand);
	wr.wr.atomic.compare_add = adds ? 1 : old;
	wr.wr.atomic.swap = now;
	memcpy(c->shadow + at, &now, sizeof(now));
	if (!hp_conn_do(c, &wr, sizeof(got)))
		return;
	memcpy(&got, desk_of(c)->in, sizeof(got));
	if (got != old)
		play_fail(&c->p->run, "tenant %u: a word is not what it was",
			  c->index);
}

static void region_turn(struct hp_client *c)
{
	uint32_t bytes = sim_rand_range(&c->rand, 1, 64);
	uint32_t at = sim_rand_below(&c->rand, HP_DATA_BYTES - bytes + 1);

	switch (sim_rand_below(&c->rand, 4)) {
	case 0:
		change_word(c);
		break;
	case 1:
		write_some(c, at, bytes);
		break;
	case 2:
		/* The edges, where the neighbours are. */
		read_some(c, at % 2 ? 0 : HP_DATA_BYTES - bytes, bytes);
		break;
	default:
		read_some(c, at, bytes);
	}
}

/* ---- life --------------------------------------------------------------- */

static int open_pages(struct hp_client *c)
{
	struct pframe_space_options o = {.entries = HP_PAGES,
					 .depth = HP_DEPTH,
					 .pd = c->tenant.pd,
					 .is_pieces = c->way == HP_BY_PIECES};
	int err;

	if (c->way == HP_BY_CHAINS) {
		o.pd = c->chain_pd = ibv_alloc_pd(c->p->node->context);
		if (!c->chain_pd)
			return -ENOMEM;
	}
	err = pframe_space_create(c->p->pool, &o, &c->space);
	if (err)
		return err;
	if (c->way == HP_BY_CHAINS)
		return hp_chains_open(c->p, c->host, c->cq, c->space,
				      c->chain_pd, c->chain, c->page);
	return hp_guest_open(c->p, c->host, c->cq, c->space, &c->guest,
			     &c->page[0]);
}

int hp_client_open(struct hp_client *c)
{
	int err = rig_host_add(c->p->run.stage, "tenant", &c->host);

	sim_rand_init(&c->rand, c->p->run.opt->seed, 100 + c->index);
	if (!err)
		err = rig_region_create(c->host, sizeof(struct hp_desk), false,
					&c->desk);
	if (err)
		return err;
	c->cq = rig_cq_create(c->host, CQ_DEPTH);
	if (!c->cq)
		return -ENOMEM;
	for (unsigned i = 0; i < HP_REGION_BYTES; i++)
		c->tenant.mem[i] = c->shadow[i] = hp_byte(&c->rand);
	err = hp_conn_open(c->p, c->host, c->cq, c->tenant.pd, &c->conn);
	return err ? err : open_pages(c);
}

void hp_client_main(void *arg)
{
	struct hp_client *c = arg;
	struct sim *sim = c->p->run.sim;

	for (unsigned i = 0; i < HP_OPS && !c->stopped; i++) {
		if (sim_rand_below(&c->rand, 2))
			hp_page_turn(c);
		else
			region_turn(c);
		c->p->n->ops++;
		sim_fiber_sleep_ns(sim, sim_rand_below(&c->rand, PAUSE_NS));
	}
	c->done = true;
}

void hp_client_check(const struct hp_client *c)
{
	if (c->stopped)
		return;
	if (memcmp(c->tenant.mem, c->shadow, HP_REGION_BYTES) != 0)
		play_fail(&c->p->run, "tenant %u: its region was changed",
			  c->index);
	for (unsigned i = 0; i < HP_PAGES; i++) {
		uint64_t pframe = pframe_space_find(c->space, i);

		if (!pframe != !c->is_stored[i])
			play_fail(&c->p->run, "tenant %u: page %u is %s",
				  c->index, i, pframe ? "still there" : "gone");
		else if (pframe && memcmp((const void *)(uintptr_t)pframe,
					  c->stored[i], HP_PAGE_BYTES) != 0)
			play_fail(&c->p->run, "tenant %u: page %u was changed",
				  c->index, i);
	}
}

void hp_client_close(struct hp_client *c)
{
	if (c->guest)
		pframe_guest_destroy(c->guest);
	hp_chains_close(c->chain, c->page);
	if (c->space)
		pframe_space_destroy(c->space);
	rig_pair_close(&c->conn);
	if (c->cq)
		(void)ibv_destroy_cq(c->cq);
	if (c->chain_pd)
		(void)ibv_dealloc_pd(c->chain_pd);
}
