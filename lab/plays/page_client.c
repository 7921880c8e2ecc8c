/* SPDX-License-Identifier: Apache-2.0 */
/* The clients of the play "page". */
#include <errno.h>
#include <string.h>

#include "client/verbs_api.h"
#include "page_play_priv.h"

enum {
	LIAR_PAGES = 3, /* few, so that it comes back to them */
	LIAR_PAUSES = 8,
};

struct pp_slot *pp_slot_of(const struct pp_client *c, uint32_t tag)
{
	return (struct pp_slot *)c->slots->mem + tag;
}

static void fill(uint8_t *page, unsigned client, uint32_t number,
		 uint32_t version)
{
	for (uint32_t i = 0; i < PP_PAGE_BYTES; i++)
		page[i] = (uint8_t)(client * 101 + number * 31 + version * 7 +
				    i * 3 + (i >> 8));
}

bool pp_page_is(const struct pp_client *c, uint32_t number,
		const uint8_t *bytes)
{
	uint8_t want[PP_PAGE_BYTES];

	fill(want, c->index, number, c->version[number]);
	return memcmp(want, bytes, sizeof(want)) == 0;
}

static void be_put(uint8_t *at, uint64_t v, unsigned bytes)
{
	be64 all = be64_put(v);

	memcpy(at, all.b + 8 - bytes, bytes);
}

/* ---- one operation ------------------------------------------------------ */

static uint32_t put_head(const struct pp_client *c, uint32_t tag,
			 enum page_chain chain, uint64_t entry)
{
	uint8_t *head = pp_slot_of(c, tag)->head;
	uint64_t page = c->slots->addr + tag * sizeof(struct pp_slot) +
			offsetof(struct pp_slot, page);

	/* A store says it in its immediate value, the others in their text. */
	pp_slot_of(c, tag)->imm = htobe32((uint32_t)entry);
	if (chain == PAGE_CHAIN_MAPPED || chain == PAGE_CHAIN_UNMAPPED)
		return 0;
	if (chain == PAGE_CHAIN_LOAD) {
		struct page_chain_load load =
			page_chain_load_of(entry, tag, page, c->slots->rkey);

		memcpy(head, &load, sizeof(load));
		return sizeof(load);
	}
	be_put(head, entry, 8);
	be_put(head + 8, tag, 4);
	return sizeof(struct page_chain_call);
}

static void post(struct pp_client *c, uint32_t tag, enum page_chain chain,
		 uint32_t head_bytes, uint32_t page_bytes)
{
	struct pp_slot *slot = pp_slot_of(c, tag);
	struct ibv_sge sge[2] = {
		{.addr = (uintptr_t)slot->head,
		 .length = head_bytes,
		 .lkey = c->slots->mr->lkey},
		{.addr = (uintptr_t)slot->page,
		 .length = page_bytes,
		 .lkey = c->slots->mr->lkey},
	};
	struct ibv_send_wr wr = {
		.wr_id = tag,
		.sg_list = head_bytes ? sge : &sge[1],
		.num_sge = (head_bytes != 0) + (page_bytes != 0),
		.opcode = head_bytes ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM,
		.imm_data = slot->imm,
	};
	struct ibv_recv_wr recv = {.wr_id = tag}, *bad_recv;
	struct ibv_send_wr *bad;

	if (ibv_post_recv(c->pair[chain].near_qp, &recv, &bad_recv) ||
	    ibv_post_send(c->pair[chain].near_qp, &wr, &bad))
		c->stopped = true;
}

static void start(struct pp_client *c, uint32_t tag, uint32_t page)
{
	struct pp_op *op = &c->op[tag];
	struct pp_slot *slot = pp_slot_of(c, tag);
	uint32_t dice = sim_rand_below(&c->rand, 8);
	uint64_t entry = page * 8ull;
	bool stores;

	*op = (struct pp_op){
		.busy = true,
		.page = page,
		.version = c->version[page],
	};
	if (!op->version)
		op->chain = PAGE_CHAIN_UNMAPPED;
	else if (dice < 4)
		op->chain = PAGE_CHAIN_LOAD;
	else
		op->chain =
			dice < 6 ? PAGE_CHAIN_MAPPED : PAGE_CHAIN_INVALIDATE;
	stores = op->chain == PAGE_CHAIN_MAPPED ||
		 op->chain == PAGE_CHAIN_UNMAPPED;
	memset(slot->page, 0xee, sizeof(slot->page));
	if (stores)
		fill(slot->page, c->index, page, ++op->version);
	post(c, tag, op->chain, put_head(c, tag, op->chain, entry),
	     stores ? PP_PAGE_BYTES : 0);
}

static void finish(struct pp_client *c, uint32_t tag)
{
	struct page_play_counts *n = c->p->n;
	struct pp_op *op = tag < PP_DEPTH ? &c->op[tag] : NULL;
	uint8_t want[PP_PAGE_BYTES];

	if (!op || !op->busy) {
		play_fail(&c->p->run, "an answer to nothing: tag %u", tag);
		return;
	}
	op->busy = false;
	if (op->chain == PAGE_CHAIN_LOAD) {
		fill(want, c->index, op->page, op->version);
		if (memcmp(want, pp_slot_of(c, tag)->page, sizeof(want)) != 0)
			play_fail(&c->p->run,
				  "client %u: page %u is not what was "
				  "stored",
				  c->index, op->page);
		n->loads++;
	} else if (op->chain == PAGE_CHAIN_INVALIDATE) {
		c->version[op->page] = 0;
		n->invalidates++;
	} else {
		c->version[op->page] = op->version;
		n->stores++;
	}
}

/* ---- the client that works ---------------------------------------------- */

/* Answers to loads have the tag, those to stores the entry: of each page only
 * one operation is under way. */
static uint32_t tag_of(const struct pp_client *c, const struct ibv_wc *wc)
{
	uint32_t imm = be32toh(wc->imm_data), tag = 0;

	if (wc->qp_num != c->pair[PAGE_CHAIN_MAPPED].near_qp->qp_num &&
	    wc->qp_num != c->pair[PAGE_CHAIN_UNMAPPED].near_qp->qp_num)
		return imm;
	while (tag < PP_DEPTH &&
	       !(c->op[tag].busy && c->op[tag].page * 8 == imm))
		tag++;
	return tag;
}

static void poll(struct pp_client *c)
{
	struct ibv_wc wc[PP_DEPTH];
	int n = ibv_poll_cq(c->cq, PP_DEPTH, wc);

	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			c->stopped = true;
		else if (wc[i].opcode & IBV_WC_RECV)
			finish(c, tag_of(c, &wc[i]));
	}
	if (n == 0)
		client_clock_relax(&c->host->clock);
}

static bool is_under_way(const struct pp_client *c, uint32_t page)
{
	for (uint32_t i = 0; i < PP_DEPTH; i++)
		if (c->op[i].busy && c->op[i].page == page)
			return true;
	return false;
}

static bool is_idle(const struct pp_client *c)
{
	for (uint32_t i = 0; i < PP_DEPTH; i++)
		if (c->op[i].busy)
			return false;
	return true;
}

/* One more, if there is room for it and for its page. */
static bool try_start(struct pp_client *c)
{
	uint32_t page = sim_rand_below(&c->rand, PP_PAGES);

	if (is_under_way(c, page))
		return false;
	for (uint32_t tag = 0; tag < PP_DEPTH; tag++)
		if (!c->op[tag].busy) {
			start(c, tag, page);
			return true;
		}
	return false;
}

void pp_client_main(void *arg)
{
	struct pp_client *c = arg;
	unsigned started = 0;

	while (!c->stopped && (started < PP_OPS || !is_idle(c))) {
		if (started < PP_OPS && try_start(c))
			started++;
		else
			poll(c);
	}
	c->done = true;
}

/* ---- the client that lies ------------------------------------------------ */

/* Near an entry of its own table more often than anywhere. */
static uint64_t some_entry(struct pp_client *c)
{
	switch (sim_rand_below(&c->rand, 24)) {
	case 0:
		return rng_u64(&c->rand);
	case 1:
		return sim_rand_below(&c->rand, PP_PAGES * 8);
	case 2:
		return PP_PAGES * 8 - 8 + sim_rand_below(&c->rand, 32);
	case 3:
		return 0ull - sim_rand_below(&c->rand, 16);
	default:
		return sim_rand_below(&c->rand, LIAR_PAGES) * 8;
	}
}

/* Whatever it says, it neither waits for answers nor checks them. */
void pp_liar_main(void *arg)
{
	struct pp_client *c = arg;

	for (unsigned i = 0; i < PP_NONSENSE; i++) {
		enum page_chain chain =
			sim_rand_below(&c->rand, PAGE_CHAIN_COUNT);
		uint32_t tag = sim_rand_below(&c->rand, PP_DEPTH);
		uint32_t head = put_head(c, tag, chain, some_entry(c));
		uint32_t pauses = sim_rand_below(&c->rand, LIAR_PAUSES);
		struct ibv_wc wc[PP_DEPTH];

		rng_fill(&c->rand, pp_slot_of(c, tag)->page, PP_PAGE_BYTES);
		if (sim_rand_below(&c->rand, 24) == 0)
			rng_fill(&c->rand, pp_slot_of(c, tag)->head, head);
		post(c, tag, chain, head,
		     sim_rand_below(&c->rand, 4)
			     ? PP_PAGE_BYTES
			     : sim_rand_below(&c->rand, PP_PAGE_BYTES));
		c->p->n->nonsense++;
		while (pauses--) {
			(void)ibv_poll_cq(c->cq, PP_DEPTH, wc);
			client_clock_relax(&c->host->clock);
		}
	}
	c->done = true;
}
