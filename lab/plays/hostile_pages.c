/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of those who work in the play "hostile", by each way to them. */
#include <string.h>

#include "client/verbs_api.h"
#include "hostile_play_priv.h"

static struct hp_desk *desk_of(const struct hp_client *c)
{
	return (struct hp_desk *)c->desk->mem;
}

static void fill(struct hp_client *c, unsigned page)
{
	for (unsigned i = 0; i < HP_PAGE_BYTES; i++)
		c->stored[page][i] = hp_byte(&c->rand);
}

static void compare(struct hp_client *c, unsigned page)
{
	if (memcmp(desk_of(c)->in, c->stored[page], HP_PAGE_BYTES) != 0)
		play_fail(&c->p->run,
			  "tenant %u: page %u is not what it stored", c->index,
			  page);
}

/* A message with its receive, and the answer. */
static bool call(struct hp_client *c, unsigned pair, struct ibv_send_wr *wr,
		 const void *from, uint32_t bytes, struct ibv_wc *wc)
{
	struct ibv_sge sge = {.addr = (uintptr_t)from,
			      .length = bytes,
			      .lkey = c->desk->mr->lkey};
	struct ibv_recv_wr recv = {0}, *bad_recv;
	struct ibv_send_wr *bad;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	wr->send_flags = IBV_SEND_SIGNALED;
	if (ibv_post_recv(c->page[pair].near_qp, &recv, &bad_recv) ||
	    ibv_post_send(c->page[pair].near_qp, wr, &bad)) {
		play_fail(&c->p->run, "tenant %u cannot post", c->index);
		c->stopped = true;
		return false;
	}
	c->p->n->pages++;
	return hp_await(c, true, wc);
}

/* ---- by messages to the node's processor -------------------------------- */

static bool ask(struct hp_client *c, enum page_wire_kind kind, unsigned page,
		size_t answer_at, uint32_t more_bytes)
{
	struct hp_desk *d = desk_of(c);
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	uint32_t tag = sim_rand_below(&c->rand, 1u << PAGE_WIRE_TAG_BITS);
	struct ibv_wc wc;

	d->head = (struct page_request){
		.kind = be32_put(kind),
		.tag = be32_put(tag),
		.index = be64_put(page),
		.buf = be64_put(c->desk->addr + answer_at),
		.rkey = be32_put(c->desk->rkey),
	};
	if (!call(c, 0, &wr, d, (uint32_t)sizeof(d->head) + more_bytes, &wc))
		return false;
	if (be32toh(wc.imm_data) == page_wire_imm(tag, PAGE_WIRE_OK))
		return true;
	play_fail(&c->p->run, "tenant %u: page %u, request %u ends with %u",
		  c->index, page, kind,
		  be32toh(wc.imm_data) >> PAGE_WIRE_TAG_BITS);
	c->stopped = true;
	return false;
}

static void by_server(struct hp_client *c, unsigned page, uint32_t dice)
{
	if (!c->is_stored[page] || dice == 0) {
		fill(c, page);
		memcpy(desk_of(c)->page, c->stored[page], HP_PAGE_BYTES);
		if (ask(c, PAGE_WIRE_STORE, page, 0, HP_PAGE_BYTES))
			c->is_stored[page] = true;
	} else if (dice == 1) {
		if (ask(c, PAGE_WIRE_INVALIDATE, page, 0, 0))
			c->is_stored[page] = false;
	} else if (ask(c, PAGE_WIRE_LOAD, page, offsetof(struct hp_desk, in),
		       0)) {
		compare(c, page);
	}
}

/* ---- by pieces with keys of their own ----------------------------------- */

static void by_pieces(struct hp_client *c, unsigned page, uint32_t dice)
{
	struct ibv_send_wr wr = {.opcode = dice == 0 ? IBV_WR_RDMA_WRITE
						     : IBV_WR_RDMA_READ,
				 .wr.rdma = {.remote_addr = c->piece[page].addr,
					     .rkey = c->piece[page].rkey}};

	if (!c->is_stored[page]) {
		if (!ask(c, PAGE_WIRE_ALLOCATE, page,
			 offsetof(struct hp_desk, piece), 0))
			return;
		c->is_stored[page] = true;
		c->piece[page].addr = be64_get(desk_of(c)->piece.addr);
		c->piece[page].rkey = be32_get(desk_of(c)->piece.rkey);
		memset(c->stored[page], 0, HP_PAGE_BYTES);
	} else if (dice == 1) {
		if (ask(c, PAGE_WIRE_FREE, page, 0, 0))
			c->is_stored[page] = false;
	} else if (dice == 0) {
		fill(c, page);
		memcpy(desk_of(c)->in, c->stored[page], HP_PAGE_BYTES);
		(void)hp_conn_do(c, &wr, HP_PAGE_BYTES);
	} else if (hp_conn_do(c, &wr, HP_PAGE_BYTES)) {
		compare(c, page);
	}
}

/* ---- by chains ---------------------------------------------------------- */

static bool run(struct hp_client *c, enum page_chain chain, unsigned page)
{
	bool stores =
		chain == PAGE_CHAIN_MAPPED || chain == PAGE_CHAIN_UNMAPPED;
	uint64_t entry = (uint64_t)page * PAGE_CHAIN_ENTRY_BYTES;
	struct hp_desk *d = desk_of(c);
	struct page_chain_load load = page_chain_load_of(
		entry, page, c->desk->addr + offsetof(struct hp_desk, in),
		c->desk->rkey);
	struct page_chain_call give = {.entry = be64_put(entry),
				       .imm = be32_put(page)};
	struct ibv_send_wr wr = {.opcode = stores ? IBV_WR_SEND_WITH_IMM
						  : IBV_WR_SEND,
				 .imm_data = htobe32((uint32_t)entry)};
	struct ibv_wc wc;

	if (stores) {
		memcpy(d->page, c->stored[page], HP_PAGE_BYTES);
		return call(c, chain, &wr, d->page, HP_PAGE_BYTES, &wc);
	}
	if (chain == PAGE_CHAIN_LOAD) {
		memcpy(&d->head, &load, sizeof(load));
		return call(c, chain, &wr, &d->head, sizeof(load), &wc);
	}
	memcpy(&d->head, &give, sizeof(give));
	return call(c, chain, &wr, &d->head, sizeof(give), &wc);
}

static void by_chains(struct hp_client *c, unsigned page, uint32_t dice)
{
	if (!c->is_stored[page] || dice == 0) {
		fill(c, page);
		if (run(c,
			c->is_stored[page] ? PAGE_CHAIN_MAPPED
					   : PAGE_CHAIN_UNMAPPED,
			page))
			c->is_stored[page] = true;
	} else if (dice == 1) {
		if (run(c, PAGE_CHAIN_INVALIDATE, page))
			c->is_stored[page] = false;
	} else if (run(c, PAGE_CHAIN_LOAD, page)) {
		compare(c, page);
	}
}

void hp_page_turn(struct hp_client *c)
{
	unsigned page = sim_rand_below(&c->rand, HP_PAGES);
	uint32_t dice = sim_rand_below(&c->rand, 4);

	switch (c->way) {
	case HP_BY_SERVER:
		by_server(c, page, dice);
		break;
	case HP_BY_PIECES:
		by_pieces(c, page, dice);
		break;
	case HP_BY_CHAINS:
		by_chains(c, page, dice);
		break;
	}
}
