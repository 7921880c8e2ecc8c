/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a store that allocates asks its node for: a piece, or a run of them. A
 * node that is busy takes milliseconds to answer, so where pages are stored one
 * behind the other the room for the next ones is asked for before it is needed.
 */
#include <errno.h>

#include "page_piece.h"

int page_piece_call(struct dynamic *d, uint64_t number,
		    enum page_wire_kind kind, uint32_t run)
{
	static const struct page_job none;
	struct piece *p = &d->piece[number];
	struct page_request *r;

	if (!d->free_count)
		return -EAGAIN;
	p->call = d->free_call[--d->free_count];
	for (uint32_t i = 0; i < run; i++) {
		p[i].state =
			kind == PAGE_WIRE_FREE ? PIECE_LEAVING : PIECE_ASKED;
		p[i].run = 0;
	}
	p->run = run;
	r = page_caller_text(&d->caller, p->call);
	*r = (struct page_request){
		.kind = be32_put(kind),
		.tag = be32_put((uint32_t)number),
		.index = be64_put(number),
		.buf = be64_put((uintptr_t)page_piece_answer(d, p->call)),
		.rkey = be32_put(d->caller.mr->rkey),
		.length = be32_put(run),
	};
	return page_caller_send(&d->caller, p->call, &none, 0);
}

/* ---- room ahead --------------------------------------------------------- */

/* How many pieces to ask for from this one on. A page that is stored behind
 * one that is here is probably not the last. */
static uint32_t run_at(struct dynamic *d, uint64_t number)
{
	struct ahead *a = &d->ahead;
	uint32_t run = 1;

	if (!number || d->piece[number - 1].state == PIECE_NONE) {
		a->run = a->run / 2 ? a->run / 2 : 1;
		return 1;
	}
	if (a->unused >= 2 * a->run_max)
		return 1;
	a->run = u32_min(2 * a->run, a->run_max);
	while (run < a->run && number + run < d->piece_count &&
	       d->piece[number + run].state == PIECE_NONE)
		run++;
	return run;
}

int page_piece_ask(struct dynamic *d, uint64_t number)
{
	struct ahead *a = &d->ahead;
	uint32_t run = run_at(d, number);

	if (run > 1) {
		a->mark = number + run / 2;
		a->next = number + run;
	}
	return page_piece_call(d, number, PAGE_WIRE_ALLOCATE, run);
}

/* The next call about this piece is one that no job needs. */
static bool take_spare(struct dynamic *d, uint64_t number)
{
	if (d->ahead.calls == PAGE_CALLS_AHEAD)
		return false;
	d->ahead.calls++;
	d->piece[number].is_ahead = true;
	return true;
}

int page_ahead_ask(struct dynamic *d)
{
	uint64_t next = d->ahead.next;

	if (d->ahead.run_max == 1 || next >= d->piece_count ||
	    d->piece[next].state != PIECE_NONE ||
	    d->ahead.unused >= 2 * d->ahead.run_max || !take_spare(d, next))
		return 0;
	return page_piece_ask(d, next);
}

uint64_t page_ahead_find(struct dynamic *d)
{
	struct ahead *a = &d->ahead;

	for (uint64_t i = 0; a->unused && i < d->piece_count; i++) {
		const struct piece *p = &d->piece[a->hint];

		if (p->state == PIECE_HERE && !p->used)
			return a->hint;
		a->hint = (a->hint ? a->hint : d->piece_count) - 1;
	}
	return d->piece_count;
}

int page_ahead_give(struct dynamic *d, uint64_t number, uint32_t after)
{
	struct piece *p = &d->piece[number];

	d->ahead.unused--;
	p->leaver = NO_LEAVER;
	p->after = after;
	return page_piece_call(d, number, PAGE_WIRE_FREE, 1);
}

int page_ahead_shrink(struct dynamic *d)
{
	uint64_t number = page_ahead_find(d);

	if (number == d->piece_count || !take_spare(d, number))
		return 0;
	return page_ahead_give(d, number, 0);
}
