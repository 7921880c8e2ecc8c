/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dynamic modes: room is asked for in pieces, 1 MiB or one page, when the
 * first of their pages is stored, and given back with the last. In between,
 * READs and WRITEs as in the static mode. A piece has a key of its own, which
 * the node makes and ends: that is what these modes cost.
 *
 * The sparse mode is the same with pieces of one page that all lie in memory of
 * this store's own, under one key: on the direct port it is mapped once, and
 * READs and WRITEs are loads and stores from then on. There only room needs the
 * node's processor, and where that is busy each question takes milliseconds. So
 * who stores page after page asks for the room of many with one call, and for
 * the next ones before the last are used. Who does not asks for what it needs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "client/link.h"
#include "page_piece.h"

enum {
	/* A run takes at most this much of a store: 1 MiB of 64 MiB. */
	AHEAD_RUN_MAX = PAGE_WIRE_RUN_MAX,
	AHEAD_RUN_SHARE = 64,
};

static void dynamic_release(struct page_backend *backend)
{
	struct dynamic *d = backend->own;

	if (d->caller.link)
		page_caller_release(&d->caller);
	free(d->piece);
	free(d->used);
	free(d->wait);
	free(d->free_call);
}

static int dynamic_start(struct page_backend *backend)
{
	struct dynamic *d = backend->own;
	const struct page_store *s = backend->store;
	uint64_t count = s->per_node * s->o.copies;
	bool is_sparse = backend->mode == PAGE_SPARSE;
	uint32_t calls = s->slot_count + (is_sparse ? PAGE_CALLS_AHEAD : 0);

	d->per_piece = page_piece_bytes(backend->mode, s->o.page_bytes) /
		       s->o.page_bytes;
	d->piece_count = (count + d->per_piece - 1) / d->per_piece;
	d->piece = calloc(d->piece_count, sizeof(*d->piece));
	d->used = calloc(count, 1);
	d->wait = calloc(s->slot_count, sizeof(*d->wait));
	d->free_call = calloc(calls, sizeof(*d->free_call));
	if (!d->piece || !d->used || !d->wait || !d->free_call)
		return error_set(-ENOMEM, "no memory for a backend");
	while (d->free_count < calls) {
		d->free_call[d->free_count] = d->free_count;
		d->free_count++;
	}
	d->ahead.run = d->ahead.run_max = 1;
	if (is_sparse)
		d->ahead.run_max = (uint32_t)u64_min(
			AHEAD_RUN_MAX,
			u64_max(d->piece_count / AHEAD_RUN_SHARE, 1));
	return page_caller_init(&d->caller, backend->grant.link[1],
				sizeof(struct page_request), calls);
}

/* ---- jobs --------------------------------------------------------------- */

static int post_here(struct page_backend *backend, const struct page_job *job)
{
	uint32_t bytes = backend->store->o.page_bytes;
	struct dynamic *d = backend->own;
	const struct piece *p = &d->piece[job->index / d->per_piece];

	return page_rdma_post(backend->grant.link[0], job,
			      p->addr + job->index % d->per_piece * bytes,
			      p->rkey, bytes);
}

/* Who gives the last page of a piece up waits until the node has it back. */
static int give_up(struct dynamic *d, const struct page_job *job)
{
	uint64_t number = job->index / d->per_piece;
	struct piece *p = &d->piece[number];
	int err;

	if (!d->used[job->index])
		return 1;
	d->used[job->index] = 0;
	if (--p->used || p->state != PIECE_HERE)
		return 1;
	p->leaver = job->tag;
	err = page_piece_call(d, number, PAGE_WIRE_FREE, 1);
	return err ? err : page_ahead_shrink(d);
}

/* A page is stored for the first time. */
static int use(struct dynamic *d, uint64_t index)
{
	uint64_t number = index / d->per_piece;
	struct piece *p = &d->piece[number];

	d->used[index] = 1;
	if (p->used++ || p->state != PIECE_HERE)
		return 0;
	d->ahead.unused--;
	return number == d->ahead.mark ? page_ahead_ask(d) : 0;
}

static int dynamic_post(struct page_backend *backend,
			const struct page_job *job)
{
	uint32_t slot = job->tag >> JOB_COPY_BITS;
	struct dynamic *d = backend->own;
	uint64_t number = job->index / d->per_piece;
	struct piece *p = &d->piece[number];
	int err = 0;

	if (job->kind == PAGE_INVALIDATE)
		return give_up(d, job);
	if (job->kind == PAGE_STORE && !d->used[job->index])
		err = use(d, job->index);
	if (err)
		return err;
	if (p->state == PIECE_HERE)
		return post_here(backend, job);
	d->wait[slot] = (struct wait){.job = *job, .next = p->waiting};
	p->waiting = slot + 1;
	return p->state == PIECE_NONE ? page_piece_ask(d, number) : 0;
}

/* What waited for the piece goes on, or fails. */
static int wake(struct page_backend *backend, struct piece *p, int why)
{
	struct dynamic *d = backend->own;
	uint32_t at = p->waiting;
	int err = 0;

	p->waiting = 0;
	while (at && !err) {
		struct wait w = d->wait[at - 1];

		at = w.next;
		if (!why) {
			err = post_here(backend, &w.job);
			continue;
		}
		if (w.job.kind == PAGE_STORE && d->used[w.job.index]) {
			d->used[w.job.index] = 0;
			p->used--;
		}
		page_job_end(backend->store, w.job.tag, why);
	}
	return err;
}

/* ---- answers ------------------------------------------------------------ */

static int take_leave(struct page_backend *backend, uint64_t number)
{
	struct dynamic *d = backend->own;
	struct piece *p = &d->piece[number];
	uint32_t after = p->after;
	int err = 0;

	p->state = PIECE_NONE;
	p->after = 0;
	if (p->leaver != NO_LEAVER)
		page_job_end(backend->store, p->leaver, 0);
	if (after)
		err = page_piece_call(d, after - 1, PAGE_WIRE_ALLOCATE, 1);
	return err || !p->waiting
		       ? err
		       : page_piece_call(d, number, PAGE_WIRE_ALLOCATE, 1);
}

/* There is room for the first `count` pieces of a run. The others are asked for
 * again by whoever waits for them. */
static int take_run(struct page_backend *backend, uint64_t number, uint32_t run,
		    uint32_t count)
{
	struct dynamic *d = backend->own;
	const struct page_piece *a =
		page_piece_answer(d, d->piece[number].call);
	uint64_t bytes = d->per_piece * backend->store->o.page_bytes;
	uint64_t addr = be64_get(a->addr);
	uint32_t rkey = be32_get(a->rkey);
	int err = 0;

	for (uint32_t i = 0; i < run && !err; i++) {
		struct piece *p = &d->piece[number + i];

		if (i >= count) {
			p->state = PIECE_NONE;
			if (p->waiting)
				err = page_piece_call(d, number + i,
						      PAGE_WIRE_ALLOCATE, 1);
			continue;
		}
		p->state = PIECE_HERE;
		p->addr = addr + i * bytes;
		p->rkey = rkey;
		if (!p->used) {
			d->ahead.unused++;
			d->ahead.hint = number + i;
		}
		err = wake(backend, p, 0);
	}
	return err;
}

/* There is no room. What was asked for ahead is given back for what is needed
 * now. */
static int take_refusal(struct page_backend *backend, uint64_t number,
			uint32_t run, int why)
{
	struct dynamic *d = backend->own;
	struct piece *p = &d->piece[number];
	uint32_t waiting = p->waiting;
	uint64_t unused;
	int err;

	p->waiting = 0;
	err = take_run(backend, number, run, 0);
	p->waiting = waiting;
	if (err || !waiting)
		return err;
	unused = page_ahead_find(d);
	if (unused == d->piece_count || (why != -ENOSPC && why != -EDQUOT))
		return wake(backend, p, why);
	p->state = PIECE_ASKED;
	return page_ahead_give(d, unused, (uint32_t)number + 1);
}

static int take_answer(struct page_backend *backend, uint32_t imm)
{
	uint32_t number = imm & ((1u << PAGE_WIRE_TAG_BITS) - 1);
	int why = page_wire_errno(imm >> PAGE_WIRE_TAG_BITS);
	struct dynamic *d = backend->own;
	uint32_t count, run;
	struct piece *p;

	if (number >= d->piece_count)
		return -EPROTO;
	p = &d->piece[number];
	run = p->run;
	if (!run) /* nothing was asked of it */
		return -EPROTO;
	p->run = 0;
	d->free_call[d->free_count++] = p->call;
	d->ahead.calls -= p->is_ahead;
	p->is_ahead = false;
	if (p->state == PIECE_LEAVING)
		return take_leave(backend, number);
	count = why ? 0
		    : be32_get(((struct page_piece *)page_piece_answer(d,
								       p->call))
				       ->count);
	/* The node is full, so it is no longer asked for more than is needed.
	 */
	if (count < run)
		d->ahead.run = d->ahead.run_max = 1;
	return why ? take_refusal(backend, number, run, why)
		   : take_run(backend, number, run, count ? count : 1);
}

static int dynamic_poll(struct page_backend *backend)
{
	struct dynamic *d = backend->own;
	uint32_t imm[PAGE_CALL_BATCH];
	int i, n = 0, err = page_rdma_poll(backend);

	/* A look in vain drives the NIC: 0.5 us. */
	if (!err && d->free_count < d->caller.slots)
		n = page_caller_poll(&d->caller, 1, imm);
	for (i = 0; i < n && !err; i++)
		err = take_answer(backend, imm[i]);
	return err || n < 0 || d->caller.is_broken ? -EHOSTDOWN : 0;
}

const struct page_backend_ops page_backend_dynamic = {
	.own_bytes = sizeof(struct dynamic),
	.start = dynamic_start,
	.release = dynamic_release,
	.post = dynamic_post,
	.poll = dynamic_poll,
	.allocated_bytes = page_backend_asked_bytes,
};
