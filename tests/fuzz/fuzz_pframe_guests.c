/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two connections to one tenant's pages and one to another's, over one pool of
 * page frames: loads, stores, allocations and frees in any order, answers for
 * which there is no receive, connections and spaces that come and go, keys that
 * are used long after they were given back. Every byte says whose it is. The
 * second tenant is honest and knows what it has stored; the first may do
 * anything. Whoever sees a byte of the other, or changes one, ends the run.
 */
#include "../unit/guest_rig.h"

#include "fuzz.h"
#include "fuzz_count.h"

enum {
	LIAR,
	HONEST,
	PFRAMES = 5, /* fewer than both may have */
	KEYS = 8,
	STEPS_MAX = 200,
};

#define FORGET_NS 11000000000ull

struct fuzz {
	const uint8_t *at;
	size_t left;
	struct rig *rig;
	bool has_pieces[RIG_TENANTS];
	uint8_t value[RIG_PAGES]; /* of the honest one's pages, plus one */
	struct page_piece own[RIG_PAGES];
	struct page_piece key[KEYS]; /* that the liar ever had */
	uint32_t key_count;
};

static uint8_t next_u8(struct fuzz *f)
{
	if (!f->left)
		return 0;
	f->left--;
	return *f->at++;
}

/* ---- what must be so ----------------------------------------------------- */

/* Each page frame of a table holds what is its owner's, and is in no other
 * one. */
static void check_pframes(const struct fuzz *f)
{
	uint64_t seen = 0;

	for (unsigned t = 0; t < RIG_TENANTS; t++) {
		const struct pframe_space *s = f->rig->tenant[t].space;

		for (uint64_t i = 0; s && i < RIG_PAGES; i++) {
			uint64_t pframe = pframe_space_find(s, i), bit;
			uint8_t want[RIG_BYTES];

			if (!pframe)
				continue;
			bit = 1ull
			      << (pframe - (uintptr_t)f->rig->pool->pframes) /
					 RIG_BYTES;
			ASSERT(!(seen & bit));
			seen |= bit;
			ASSERT(rig_is_own((const void *)(uintptr_t)pframe, t));
			if (t != HONEST || !f->value[i])
				continue;
			rig_fill(want, t, f->value[i] - 1);
			ASSERT(memcmp((const void *)(uintptr_t)pframe, want,
				      RIG_BYTES) == 0);
		}
	}
}

static void check_answers(const struct fuzz *f)
{
	for (unsigned i = 0; i < RIG_CONNS; i++) {
		const struct rig_conn *c = &f->rig->tenant[LIAR].conn[i];

		/* Pieces are named by addresses, which are no bytes of
		 * pages. */
		if (!c->buf || (f->has_pieces[LIAR] && i != RIG_PLAIN))
			continue;
		for (unsigned k = 0; k < RIG_TURNS; k++)
			ASSERT(rig_is_own(c->buf + k * RIG_STRIDE + RIG_ANSWER,
					  LIAR));
	}
}

/* ---- the honest tenant -------------------------------------------------- */

static void honest_store(struct fuzz *f, uint64_t i, uint8_t value)
{
	struct rig_conn *c = &f->rig->tenant[HONEST].conn[0];
	const struct page_piece *p = (const void *)rig_answer(c);
	uint8_t page[RIG_BYTES];
	int end;

	rig_fill(page, HONEST, value);
	if (!f->has_pieces[HONEST]) {
		end = rig_call(f->rig, HONEST, 0, PAGE_WIRE_STORE, i, page);
		ASSERT(end == PAGE_WIRE_OK || end == PAGE_WIRE_NO_SPACE);
	} else {
		end = rig_call(f->rig, HONEST, 0, PAGE_WIRE_ALLOCATE, i, NULL);
		ASSERT(end == PAGE_WIRE_OK || end == PAGE_WIRE_NO_SPACE);
		if (end == PAGE_WIRE_OK) {
			f->own[i] = *p;
			end = rig_use(f->rig, HONEST, IBV_WR_RDMA_WRITE, page,
				      be64_get(p->addr), be32_get(p->rkey));
			ASSERT(end == 0);
		}
	}
	if (end == 0)
		f->value[i] = (value & 0xf) + 1;
}

static void honest_load(struct fuzz *f, uint64_t i)
{
	struct rig_conn *c = &f->rig->tenant[HONEST].conn[0];
	const uint8_t *got = rig_answer(c);
	uint8_t want[RIG_BYTES], page[RIG_BYTES];
	int end;

	if (f->has_pieces[HONEST]) {
		if (!f->value[i])
			return;
		end = rig_use(f->rig, HONEST, IBV_WR_RDMA_READ, page,
			      be64_get(f->own[i].addr),
			      be32_get(f->own[i].rkey));
		got = page;
	} else {
		end = rig_call(f->rig, HONEST, 0, PAGE_WIRE_LOAD, i, NULL);
	}
	ASSERT(end == (f->value[i] ? PAGE_WIRE_OK : PAGE_WIRE_NO_DATA));
	if (!f->value[i])
		return;
	rig_fill(want, HONEST, f->value[i] - 1);
	ASSERT(memcmp(got, want, RIG_BYTES) == 0);
}

static void honest_drop(struct fuzz *f, uint64_t i)
{
	int end = rig_call(f->rig, HONEST, 0, PAGE_WIRE_INVALIDATE, i, NULL);

	ASSERT(end == (f->value[i] ? PAGE_WIRE_OK : PAGE_WIRE_NO_DATA));
	f->value[i] = 0;
}

/* ---- the other one ------------------------------------------------------ */

static struct rig_conn *some_guest(struct fuzz *f, unsigned at)
{
	struct rig_conn *c = &f->rig->tenant[LIAR].conn[at];

	if (c->is_broken)
		rig_close(f->rig, LIAR, at);
	if (!c->near && rig_open(f->rig, LIAR, at))
		return NULL;
	return c;
}

static void lie(struct fuzz *f, uint8_t what, unsigned at, uint64_t index)
{
	static const enum page_wire_kind kinds[] = {
		PAGE_WIRE_LOAD, PAGE_WIRE_STORE, PAGE_WIRE_INVALIDATE,
		PAGE_WIRE_ALLOCATE, PAGE_WIRE_FREE};
	enum page_wire_kind kind = kinds[what % ARRAY_LEN(kinds)];
	struct rig_conn *c = some_guest(f, at);
	uint8_t page[RIG_BYTES];
	const struct page_piece *p;
	uint32_t answers;

	if (!c)
		return;
	p = (const void *)rig_answer(c);
	answers = c->answers;
	rig_fill(page, LIAR, what);
	if (what & 0x80)
		rig_receive(c);
	rig_ask(c, kind, index, kind == PAGE_WIRE_STORE ? page : NULL);
	if (what & 0x40)
		return; /* and goes on at once */
	rig_run(f->rig);
	if (kind == PAGE_WIRE_ALLOCATE && c->answers != answers &&
	    c->last >> PAGE_WIRE_TAG_BITS == PAGE_WIRE_OK)
		f->key[f->key_count++ % KEYS] = *p;
}

static void use_key(struct fuzz *f, uint8_t what)
{
	const struct page_piece *k = &f->key[what % KEYS];
	uint8_t page[RIG_BYTES];

	if (!be32_get(k->rkey) || !some_guest(f, RIG_PLAIN))
		return;
	rig_fill(page, LIAR, what);
	/* Both tenants have the same NIC: it must not refuse the honest one for
	 * the other's guesses, which it forgets after a while. */
	if (rig_use(f->rig, LIAR,
		    what & 0x80 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, page,
		    be64_get(k->addr), be32_get(k->rkey)))
		rig_clock_ns += FORGET_NS;
	ASSERT(rig_is_own(page, LIAR));
}

static void move(struct fuzz *f, uint8_t op, uint8_t what)
{
	uint64_t index = op >> 5 & (RIG_PAGES - 1);
	unsigned at = op >> 4 & 1;
	int err;

	switch (op & 0xf) {
	case 0:
	case 1:
		honest_store(f, index, what);
		break;
	case 2:
		honest_load(f, index);
		break;
	case 3:
		honest_drop(f, index);
		break;
	case 4:
		rig_receive(&f->rig->tenant[LIAR].conn[at]);
		rig_run(f->rig);
		break;
	case 5:
		use_key(f, what);
		break;
	case 6:
		rig_close(f->rig, LIAR, what % RIG_CONNS);
		break;
	case 7:
		if (what & 3)
			break;
		rig_end_space(f->rig, LIAR);
		err = rig_space(f->rig, LIAR, f->has_pieces[LIAR]);
		ASSERT(!err);
		break;
	default:
		/* A message about a page that is not there, now and then. */
		lie(f, what, at, (op & 0xf) == 8 ? what : index);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
	static struct rig rig;
	struct fuzz f = {.at = data, .left = len_bytes, .rig = &rig};
	uint8_t first = next_u8(&f);
	int err;

	/* All of it anew: an input that depends on those before it shows
	 * nothing when it is run again. */
	rig = (struct rig){0};
	rig_start(&rig, PFRAMES);

	for (unsigned i = 0; i < RIG_TENANTS; i++) {
		f.has_pieces[i] = first >> i & 1;
		err = rig_space(f.rig, i, f.has_pieces[i]);
		ASSERT(!err);
	}
	err = rig_open(f.rig, HONEST, 0) + rig_open(f.rig, HONEST, RIG_PLAIN);
	ASSERT(!err);
	for (unsigned i = 0; f.left && i < STEPS_MAX; i++) {
		uint8_t op = next_u8(&f);

		fuzz_operations++;
		move(&f, op, next_u8(&f));
		check_pframes(&f);
		check_answers(&f);
	}
	rig_end_space(f.rig, LIAR);
	rig_end_space(f.rig, HONEST);
	/* Nothing is lost, whatever happened. */
	ASSERT(pframe_pool_free(f.rig->pool) == PFRAMES);
	rig_stop(&rig);
	return 0;
}
