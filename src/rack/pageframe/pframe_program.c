/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs of the four chains. Each has its requests `slots` times over, so
 * that as many messages can be under way; WAIT, ENABLE and receives count
 * themselves up by steps (aqdv_wqe.h).
 *
 * Page frames are not cleared when they are given back; nobody sees what is
 * left in them nevertheless. The unmapped store writes all of the page from its
 * slot's own buffer before it maps the page frame, also if the message was
 * shorter: what the message does not fill is what an earlier one of the same
 * client left in that buffer, or zeros.
 *
 * Four things differ from ODRP's figure 6, to withstand clients that lie:
 * - Entries are read by an atomic that changes nothing. Atomics are aligned, so
 *   nobody gets an address made of two entries' halves.
 * - A place of the queue, or an entry that is given up, is read and cleared by
 *   one masked compare-and-swap, so a page frame is never in two places.
 * - The unmapped store first makes sure that the entry is empty, because what
 *   it overwrote would belong to nobody: the old value is used as an address
 *   under a key that has nothing but address 0. And it fills the page frame
 * before it maps it. The entry's address is taken from the message once and
 * copied; a slot receives again only when its last request was fetched.
 * - A page frame that is given back waits for loads from it and stores to it
 * that are under way (put_answered).
 */
#include <string.h>

#include "pframe_priv.h"

/* A slot's program while it is written. */
struct writer {
	struct pframe_chain *c;
	uint32_t slot;
	uint32_t at;	      /* blocks */
	uint32_t counted;     /* completions */
	union aqdv_wqe *work; /* of this slot */
	union aqdv_wqe *front;
	union aqdv_wqe *enable; /* once it is written */
	union aqdv_wqe *answered[PAGE_CHAIN_COUNT];
};

static uint64_t at(const void *p)
{
	return (uintptr_t)p;
}

static union aqdv_wqe *next(struct writer *w, uint32_t blocks)
{
	union aqdv_wqe *wqe = &w->work[w->at];

	w->at += blocks;
	return wqe;
}

static union aqdv_wqe *counted(struct writer *w, uint32_t blocks)
{
	w->counted++;
	return next(w, blocks);
}

/* ---- parts -------------------------------------------------------------- */

static uint64_t *word_of(const struct writer *w, enum chain_word word)
{
	return &w->c->slot[w->slot].word[word];
}

/* What the NIC adds to an index in memory; 0: somebody else counts. */
static uint32_t step_of(const struct pframe_chain *c, uint32_t by)
{
	return c->without & (PAGE_WITHOUT_RECYCLE | PAGE_CLIENT_INDICES)
		       ? 0
		       : c->slots * by;
}

static uint32_t swap_blocks(const struct pframe_chain *c)
{
	return c->without & PAGE_WITHOUT_SWAP ? 8 : AQDV_WQE_SWAP_BLOCKS;
}

/* An index that the chain counts up itself: a counter, one atomic, one turn of
 * its bytes into the request. */
static void put_swap(struct writer *w, const void *from, void *to);

static void count_up(struct writer *w, enum chain_word word,
		     struct aqdv_wqe_order *order, uint32_t first, uint32_t by)
{
	const struct pframe_chain *c = w->c;

	*word_of(w, word) = first;
	aqdv_wqe_put_amo(counted(w, 1), AQDV_WQE_FAA, AQDV_WQE_CQE,
			 at(word_of(w, word)), c->memory_mr->rkey, by, 0,
			 at(word_of(w, CHAIN_WORD_INDEX)), c->memory_mr->lkey);
	put_swap(w, word_of(w, CHAIN_WORD_INDEX), &order->base);
}

static void put_wait(struct writer *w)
{
	struct pframe_chain *c = w->c;
	union aqdv_wqe *wqe = next(w, 1);

	aqdv_wqe_put_order(wqe, AQDV_WQE_WAIT, c->trigger, w->slot + 1,
			   step_of(c, 1));
	if (c->without & PAGE_WITHOUT_RECYCLE)
		count_up(w, CHAIN_WORD_WAIT, &wqe->control.order,
			 w->slot + 1 + c->slots, c->slots);
}

static void put_enable(struct writer *w)
{
	struct pframe_chain *c = w->c;
	uint32_t index = (w->slot + 1) * CHAIN_FRONT_BLOCKS;

	if (c->without & PAGE_WITHOUT_RECYCLE) {
		/* Before they are fetched, so with this turn's numbers. */
		union aqdv_wqe *wqe =
			&w->work[w->at + 2 * (1 + swap_blocks(c))];
		count_up(w, CHAIN_WORD_RECEIVE, &w->front[1].control.order,
			 c->slots + w->slot + 1, c->slots);
		count_up(w, CHAIN_WORD_ENABLE, &wqe->control.order, index,
			 c->slots * CHAIN_FRONT_BLOCKS);
	}
	w->enable = next(w, 1);
	aqdv_wqe_put_order(w->enable, AQDV_WQE_SEND_ENABLE, c->front_qp->qp_num,
			   index, step_of(c, CHAIN_FRONT_BLOCKS));
}

/* What an atomic left in host order, as an address in a request. */
static void put_swap(struct writer *w, const void *from, void *to)
{
	const struct pframe_chain *c = w->c;

	if (!(c->without & PAGE_WITHOUT_SWAP)) {
		aqdv_wqe_put_swap(counted(w, AQDV_WQE_SWAP_BLOCKS),
				  AQDV_WQE_CQE, at(from), c->memory_mr->rkey,
				  at(to), c->memory_mr->lkey);
		return;
	}
	for (unsigned i = 0; i < 8; i++)
		aqdv_wqe_put_rdma(counted(w, 1), AQDV_WQE_READ, AQDV_WQE_CQE,
				  at(from) + i, c->memory_mr->rkey,
				  at(to) + 7 - i, c->memory_mr->lkey, 1);
}

/* The entry, unchanged, into `to`. */
static union aqdv_wqe *put_lookup(struct writer *w, void *to)
{
	const struct pframe_chain *c = w->c;
	union aqdv_wqe *wqe = counted(w, 1);

	aqdv_wqe_put_amo(wqe, AQDV_WQE_FAA, AQDV_WQE_CQE, 0, c->table_mr->rkey,
			 0, 0, at(to), c->memory_mr->lkey);
	return wqe;
}

/* Takes the next place at one end of the queue. */
static void put_take_place(struct writer *w, const void *word)
{
	const struct pframe_chain *c = w->c;

	aqdv_wqe_put_amo(counted(w, 1), AQDV_WQE_MASKED_FAA, AQDV_WQE_CQE,
			 at(word), c->queue_mr->rkey, PFRAME_PLACE_BYTES,
			 c->space->pool->places_bytes / 2,
			 at(&c->slot[w->slot].place), c->memory_mr->lkey);
}

/* Reads a word into `to` and leaves 0 there. */
static union aqdv_wqe *put_clear(struct writer *w, uint32_t rkey, void *to)
{
	union aqdv_wqe *wqe = counted(w, 2);
	struct aqdv_wqe_cas_mask *mask = (void *)&wqe->data[3];

	aqdv_wqe_put_amo(wqe, AQDV_WQE_MASKED_CAS, AQDV_WQE_CQE, 0, rkey, 0, 0,
			 0, 0);
	aqdv_wqe_put_ctrl(&wqe->ctrl, AQDV_WQE_MASKED_CAS, 5, AQDV_WQE_CQE);
	mask->swap_mask = UINT64_MAX;
	mask->compare_mask = 0;
	aqdv_wqe_put_data(&wqe[1].data[0], at(to), 8, w->c->memory_mr->lkey);
	return wqe;
}

static union aqdv_wqe *put_rdma(struct writer *w, enum aqdv_wqe_opcode opcode,
				uint64_t remote, const struct ibv_mr *far,
				const void *local, uint32_t bytes)
{
	union aqdv_wqe *wqe = counted(w, 1);

	aqdv_wqe_put_rdma(wqe, opcode, AQDV_WQE_CQE, remote, far->rkey,
			  at(local), w->c->memory_mr->lkey, bytes);
	return wqe;
}

static uint8_t *page_of(const struct writer *w)
{
	return w->c->pages + (size_t)w->slot * w->c->space->pool->pframe_bytes;
}

/* ---- what the client gets, and sends ------------------------------------ */

static void put_front(struct writer *w)
{
	struct pframe_chain *c = w->c;

	/* Counted when the client has it: see put_answered. */
	if (c->kind == PAGE_CHAIN_LOAD)
		aqdv_wqe_put_rdma(&w->front[0], AQDV_WQE_WRITE_IMM,
				  AQDV_WQE_CQE, 0, 0, 0, c->pframes_mr->lkey,
				  c->space->pool->pframe_bytes);
	else
		aqdv_wqe_put_ctrl(&w->front[0].ctrl, AQDV_WQE_SEND_IMM, 1,
				  c->kind == PAGE_CHAIN_MAPPED ? AQDV_WQE_CQE
							       : 0);
	aqdv_wqe_put_order(&w->front[1], AQDV_WQE_RECV_ENABLE,
			   c->front_qp->qp_num, c->slots + w->slot + 1,
			   step_of(c, 1));
}

/* Where an index of the client goes. */
static void put_index(struct writer *w, struct aqdv_wqe_data *data,
		      union aqdv_wqe *order)
{
	aqdv_wqe_put_data(data, at(&order->control.order.index), 4,
			  w->c->memory_mr->lkey);
}

/* The parts of a message with indices: no immediate value, which a ConnectX
 * does not put into memory, but the entry and all else in the text. */
static void put_turn_receive(struct writer *w, union aqdv_wqe *entry)
{
	struct pframe_chain *c = w->c;
	struct aqdv_wqe_data *d = &c->recv[w->slot * c->recv_segs];
	uint32_t key = c->memory_mr->lkey, n = 0;
	uint32_t ahead = (w->slot + c->slots) & (c->ring - 1);

	aqdv_wqe_put_data(&d[n++], at(&entry->rdma.raddr.addr), 8, key);
	aqdv_wqe_put_data(&d[n++], at(&w->front->ctrl.imm),
			  c->kind == PAGE_CHAIN_LOAD ? 16 : 4, key);
	put_index(w, &d[n++], w->enable);
	put_index(w, &d[n++], &w->front[1]);
	put_index(w, &d[n++], &c->work[(size_t)ahead * c->blocks]);
	if (c->kind == PAGE_CHAIN_INVALIDATE) {
		put_index(w, &d[n++], w->answered[PAGE_CHAIN_LOAD]);
		if (w->answered[PAGE_CHAIN_MAPPED])
			put_index(w, &d[n++], w->answered[PAGE_CHAIN_MAPPED]);
		else
			aqdv_wqe_put_data(&d[n++],
					  at(word_of(w, CHAIN_WORD_SINK)), 4,
					  key);
	}
	if (c->pages)
		aqdv_wqe_put_data(&d[n++], at(page_of(w)),
				  c->space->pool->pframe_bytes, key);
	while (n < c->recv_segs)
		aqdv_wqe_put_end(&d[n++]);
}

/*
 * Where the parts of a message go: the entry's place in the table to `entry`. A
 * page fills a packet, so a store has its place in the immediate value, and
 * gets that back. The table's key begins at address 0, so that the lower half
 * of an address is enough; the upper one stays 0.
 */
static void put_receive(struct writer *w, union aqdv_wqe *entry)
{
	struct pframe_chain *c = w->c;
	struct aqdv_wqe_data *d = &c->recv[w->slot * c->recv_segs];
	uint32_t key = c->memory_mr->lkey, n = 0;

	if (c->without & PAGE_CLIENT_INDICES) {
		put_turn_receive(w, entry);
		return;
	}
	if (c->pages) {
		/* In host order where it is to be added to. */
		aqdv_wqe_put_imm(&d[n++],
				 c->without & PAGE_WITHOUT_ADDRESS
					 ? at(word_of(w, CHAIN_WORD_ADDRESS))
					 : at(&entry->rdma.raddr.addr) + 4,
				 key);
		aqdv_wqe_put_imm(&d[n++], at(&w->front->ctrl.imm), key);
		aqdv_wqe_put_data(&d[n++], at(page_of(w)),
				  c->space->pool->pframe_bytes, key);
	} else {
		/* A load has its buffer and key right behind the value. */
		uint32_t more = c->kind == PAGE_CHAIN_LOAD ? 12 : 0;

		aqdv_wqe_put_data(&d[n++], at(&entry->rdma.raddr.addr), 8, key);
		aqdv_wqe_put_data(&d[n++], at(&w->front->ctrl.imm), 4 + more,
				  key);
	}
	while (n < c->recv_segs)
		aqdv_wqe_put_end(&d[n++]);
}

/*
 * Waits until the client has acknowledged the answers to all calls of the other
 * chain that it has sent so far. A page that is lost on its way is read from
 * memory again, and a store to a mapped page that has looked its page frame up
 * may not have written to it yet; so whoever holds back acknowledgements holds
 * back its own page frames, and never sees or changes what their next owner
 * puts there. A client that
 * sends the indices says itself how many calls there were: then all of that
 * holds for one that tells the truth.
 */
static void put_answered(struct writer *w, enum page_chain kind)
{
	const struct pframe_chain *other = w->c->space->chain[kind];
	union aqdv_wqe *wqe;

	if (!other)
		return;
	wqe = next(w, 1);
	aqdv_wqe_put_order(wqe, AQDV_WQE_WAIT, other->front_number, 0, 0);
	w->answered[kind] = wqe;
	if (!(w->c->without & PAGE_CLIENT_INDICES))
		wqe->control.order.base = htobe32(other->trigger);
}

/* ---- the four ----------------------------------------------------------- */

static void write_load(struct writer *w)
{
	union aqdv_wqe *entry;

	put_wait(w);
	entry = put_lookup(w, &w->front->rdma.data[0].addr);
	put_enable(w);
	put_receive(w, entry);
}

static void write_mapped(struct writer *w)
{
	union aqdv_wqe *entry, *page;

	put_wait(w);
	page = &w->work[w->at + 1];
	entry = put_lookup(w, &page->rdma.raddr.addr);
	put_rdma(w, AQDV_WQE_WRITE, 0, w->c->pframes_mr, page_of(w),
		 w->c->space->pool->pframe_bytes);
	put_enable(w);
	put_receive(w, entry);
}

/* The client has sent a distance, in host order; the table's beginning is added
 * to it, and what comes out turned into the request that looks it up. */
static void put_address(struct writer *w, union aqdv_wqe *entry)
{
	const struct pframe_chain *c = w->c;
	uint64_t *sum = word_of(w, CHAIN_WORD_ADDRESS);

	aqdv_wqe_put_amo(counted(w, 1), AQDV_WQE_FAA, AQDV_WQE_CQE, at(sum),
			 c->memory_mr->rkey, CHAIN_TABLE_BASE, 0,
			 at(word_of(w, CHAIN_WORD_SINK)), c->memory_mr->lkey);
	put_swap(w, sum, &entry->rdma.raddr.addr);
}

/* Reads words of the slot into the opcodes of requests. */
static void put_opcodes(struct writer *w, union aqdv_wqe *wqe,
			enum aqdv_wqe_opcode opcode, enum chain_word from,
			union aqdv_wqe *const to[], unsigned count)
{
	const struct pframe_chain *c = w->c;

	aqdv_wqe_put_rdma(wqe, AQDV_WQE_READ, AQDV_WQE_CQE,
			  at(word_of(w, from)), c->memory_mr->rkey, 0, 0, 0);
	aqdv_wqe_put_ctrl(&wqe->ctrl, opcode, 2 + count, AQDV_WQE_CQE);
	for (unsigned i = 0; i < count; i++)
		aqdv_wqe_put_data(&wqe->data[2 + i],
				  at(&to[i]->ctrl.opmod_idx_opcode), 4,
				  c->memory_mr->lkey);
}

/*
 * Finds out by itself whether the entry has a page frame. It is looked up into
 * the request that writes the page; a part of it that is 0 only where there is
 * none is compared with the opcode of a NOP, which is 0: if they are equal the
 * NOP becomes a READ, which makes what they are of two more, those that take a
 * page frame from the queue.
 */
static union aqdv_wqe *put_decision(struct writer *w, union aqdv_wqe *take,
				    union aqdv_wqe *clear, union aqdv_wqe *page)
{
	struct pframe_chain *c = w->c;
	union aqdv_wqe *reset = counted(w, 2), *entry, *cas, *patch;
	struct aqdv_wqe_cas_mask *mask;

	c->lookup = w->counted;
	entry = put_lookup(w, &page->rdma.raddr.addr);
	cas = &w->work[w->at + 1];
	patch = &cas[2];
	put_rdma(w, AQDV_WQE_WRITE, at(&cas->amo.atomic.compare) + 4,
		 c->memory_mr, (uint8_t *)&page->rdma.raddr.addr + 2, 4);
	mask = (void *)&counted(w, 2)->data[3];
	/* The opcode is the last of the first four bytes, in host order. */
	aqdv_wqe_put_amo(cas, AQDV_WQE_MASKED_CAS, AQDV_WQE_CQE,
			 at(&patch->ctrl), c->memory_mr->rkey,
			 (uint64_t)AQDV_WQE_READ << 24, 0, 0, 0);
	aqdv_wqe_put_ctrl(&cas->ctrl, AQDV_WQE_MASKED_CAS, 5, AQDV_WQE_CQE);
	mask->swap_mask = htobe64(0xffull << 24);
	mask->compare_mask = htobe64(UINT32_MAX);
	aqdv_wqe_put_data(&cas[1].data[0], at(word_of(w, CHAIN_WORD_SINK)), 8,
			  c->memory_mr->lkey);
	put_opcodes(w, counted(w, 1), AQDV_WQE_NOP, CHAIN_WORD_OPCODES,
		    (union aqdv_wqe *[]){take, clear}, 2);
	put_opcodes(w, reset, AQDV_WQE_READ, CHAIN_WORD_ZERO,
		    (union aqdv_wqe *[]){patch, take, clear}, 3);
	*word_of(w, CHAIN_WORD_OPCODES) = (uint64_t)htobe32(AQDV_WQE_MASKED_CAS)
						  << 32 |
					  htobe32(AQDV_WQE_MASKED_FAA);
	return entry;
}

/* The entry must have no page frame. */
static union aqdv_wqe *put_guard(struct writer *w)
{
	struct pframe_chain *c = w->c;
	union aqdv_wqe *guard = &w->work[w->at + 1], *entry;

	c->lookup = w->counted;
	entry = put_lookup(w, &guard->rdma.raddr.addr);
	put_rdma(w, AQDV_WQE_READ, 0, c->zero_mr, word_of(w, CHAIN_WORD_SINK),
		 8);
	return entry;
}

/* Blocks from here on to the one that copies the entry's address. */
static uint32_t blocks_before_copy(const struct pframe_chain *c)
{
	uint32_t n = c->without & PAGE_WITHOUT_DECISION ? 7 : 2;

	return c->without & PAGE_WITHOUT_ADDRESS ? n + 1 + swap_blocks(c) : n;
}

static void write_unmapped(struct writer *w)
{
	struct pframe_chain *c = w->c;
	bool decides = c->without & PAGE_WITHOUT_DECISION;
	union aqdv_wqe *entry, *take, *clear, *page, *map;

	put_wait(w);
	take = &w->work[w->at + blocks_before_copy(c) + 1];
	clear = &take[1 + swap_blocks(c)];
	page = &clear[2];
	map = &page[1];
	/* The decision resets two requests before it looks the entry up. */
	if (c->without & PAGE_WITHOUT_ADDRESS)
		put_address(w, &w->work[w->at + 1 + swap_blocks(c) +
					(decides ? 2 : 0)]);
	entry = decides ? put_decision(w, take, clear, page) : put_guard(w);
	put_rdma(w, AQDV_WQE_WRITE, at(&map->rdma.raddr.addr), c->memory_mr,
		 &entry->amo.raddr.addr, 8);
	c->take = w->counted;
	c->take_block = w->at;
	put_take_place(w, &c->space->pool->queue->head);
	put_swap(w, &c->slot[w->slot].place, &clear->amo.raddr.addr);
	c->taken = w->counted;
	put_clear(w, c->queue_mr->rkey, &page->rdma.raddr.addr);
	c->pframe_block = (uint32_t)(page - w->work);
	put_rdma(w, AQDV_WQE_WRITE, 0, c->pframes_mr, page_of(w),
		 c->space->pool->pframe_bytes);
	put_rdma(w, AQDV_WQE_WRITE, 0, c->table_mr, &page->rdma.raddr.addr, 8);
	c->settled = w->counted;
	put_enable(w);
	put_receive(w, entry);
}

/* For stores to mapped pages, where there is a chain for them. */
static uint32_t waits_more(const struct pframe_chain *c)
{
	return c->kind == PAGE_CHAIN_INVALIDATE &&
	       c->space->chain[PAGE_CHAIN_MAPPED];
}

static void write_invalidate(struct writer *w)
{
	struct pframe_chain *c = w->c;
	union aqdv_wqe *entry, *probe, *put;

	put_wait(w);
	probe = &w->work[w->at + 2];
	put = &w->work[w->at + 5 + waits_more(c) + swap_blocks(c)];
	entry = put_clear(w, c->table_mr->rkey, &probe->rdma.raddr.addr);
	c->pframe_block = (uint32_t)(probe - w->work);
	/* Nothing to give back: ends here. */
	put_rdma(w, AQDV_WQE_READ, 0, c->pframes_mr,
		 word_of(w, CHAIN_WORD_SINK), 8);
	c->settled = w->counted;
	/* Nobody looks it up any more; who did before has sent its message. */
	put_answered(w, PAGE_CHAIN_LOAD);
	put_answered(w, PAGE_CHAIN_MAPPED);
	c->take = w->counted;
	put_take_place(w, &c->space->pool->queue->tail);
	put_swap(w, &c->slot[w->slot].place, &put->rdma.raddr.addr);
	c->taken = w->counted;
	put_rdma(w, AQDV_WQE_WRITE, 0, c->queue_mr, &probe->rdma.raddr.addr, 8);
	put_enable(w);
	put_receive(w, entry);
}

static void write_slot(struct writer *w)
{
	put_front(w);
	switch (w->c->kind) {
	case PAGE_CHAIN_LOAD:
		write_load(w);
		break;
	case PAGE_CHAIN_MAPPED:
		write_mapped(w);
		break;
	case PAGE_CHAIN_UNMAPPED:
		write_unmapped(w);
		break;
	case PAGE_CHAIN_INVALIDATE:
	case PAGE_CHAIN_COUNT:
		write_invalidate(w);
		break;
	}
}

void chain_program_size(struct pframe_chain *c)
{
	uint32_t swap = swap_blocks(c), steps;

	/* Checked against what is written. */
	static const struct {
		uint32_t blocks, counted;
	} plain[PAGE_CHAIN_COUNT] = {
		[PAGE_CHAIN_LOAD] = {3, 1},
		[PAGE_CHAIN_MAPPED] = {4, 2},
		[PAGE_CHAIN_UNMAPPED] = {10, 7},
		[PAGE_CHAIN_INVALIDATE] = {8, 4},
	};

	steps = swap == AQDV_WQE_SWAP_BLOCKS ? 1 : swap;
	c->blocks = plain[c->kind].blocks + waits_more(c);
	c->counted = plain[c->kind].counted;
	if (c->kind == PAGE_CHAIN_UNMAPPED ||
	    c->kind == PAGE_CHAIN_INVALIDATE) {
		c->blocks += swap;
		c->counted += steps;
	}
	if (c->without & PAGE_WITHOUT_RECYCLE) {
		c->blocks += 3 * (1 + swap);
		c->counted += 3 * (1 + steps);
	}
	if (c->kind != PAGE_CHAIN_UNMAPPED)
		return;
	if (c->without & PAGE_WITHOUT_ADDRESS) {
		c->blocks += 1 + swap;
		c->counted += 1 + steps;
	}
	if (c->without & PAGE_WITHOUT_DECISION) {
		c->blocks += 5;
		c->counted += 3;
	}
}

static struct writer writer_at(struct pframe_chain *c, uint32_t slot)
{
	return (struct writer){
		.c = c,
		.slot = slot,
		.work = &c->work[(size_t)slot * c->blocks],
		.front = &c->front[(size_t)slot * CHAIN_FRONT_BLOCKS],
	};
}

void chain_program_write(struct pframe_chain *c)
{
	for (uint32_t i = 0; i < c->ring; i++) {
		struct writer w = writer_at(c, i);

		write_slot(&w);
		ASSERT(w.at == c->blocks && w.counted == c->counted);
	}
}

/* Only a chain that decides by itself takes a page frame now and then. */
static bool has_taken(const struct pframe_chain *c, const union aqdv_wqe *slot)
{
	const struct aqdv_wqe_ctrl *ctrl = &slot[c->take_block].ctrl;

	return !(c->without & PAGE_WITHOUT_DECISION) ||
	       ctrl->opmod_idx_opcode != htobe32(AQDV_WQE_NOP);
}

void chain_program_left(const struct pframe_chain *c, uint32_t slot,
			uint32_t steps, uint64_t *pframe, uint64_t *place)
{
	const union aqdv_wqe *work = &c->work[(size_t)slot * c->blocks];
	const union aqdv_wqe *wqe = &work[c->pframe_block];
	uint64_t held = be64toh(wqe->rdma.raddr.addr);
	uint64_t taken = atomic_load_explicit(&c->slot[slot].place,
					      memory_order_relaxed);

	*pframe = *place = 0;
	if (c->kind == PAGE_CHAIN_UNMAPPED && steps < c->settled &&
	    has_taken(c, work)) {
		if (steps > c->take)
			*place = taken;
		if (steps > c->taken) {
			*pframe = held;
			/* Cleared, so it is no hole, unless it was empty. */
			*place = held ? 0 : taken;
		}
	} else if (c->kind == PAGE_CHAIN_INVALIDATE && steps) {
		*pframe = held;
		if (steps > c->take)
			*place = taken;
	}
}
