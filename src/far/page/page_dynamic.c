/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dynamic modes: room is asked for in pieces, 1 MiB or one page, when the
 * first of their pages is stored, and given back with the last. In between,
 * READs and WRITEs as in the static mode. A piece has a key of its own, which
 * the node makes and ends: that is what these modes cost.
 *
 * The sparse mode is the same with pieces of one page that all lie in memory of
 * this store's own, under one key: on the direct port it is mapped once, and
 * READs and WRITEs are loads and stores from then on.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "client/link.h"
#include "page_call.h"

enum piece_state {
	PIECE_NONE,
	PIECE_ASKED,
	PIECE_HERE,
	PIECE_LEAVING, /* the node was told */
};

struct piece {
	uint8_t state;
	uint32_t call;	  /* the slot of the call under way */
	uint32_t used;	  /* pages */
	uint32_t waiting; /* slot of the first job that needs it, plus one */
	uint32_t leaver;  /* tag of the job that gave it up */
	uint32_t rkey;
	uint64_t addr;
};

struct wait {
	struct page_job job;
	uint32_t next; /* slot, plus one */
};

struct dynamic {
	struct page_caller caller;
	uint64_t per_piece; /* pages */
	uint64_t piece_count;
	struct piece *piece;
	uint8_t *used;	     /* by index: whether the page counts */
	struct wait *wait;   /* by slot */
	uint32_t *free_call; /* slots of the caller */
	uint32_t free_count;
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

	d->per_piece = page_piece_bytes(backend->mode, s->o.page_bytes) /
		       s->o.page_bytes;
	d->piece_count = (count + d->per_piece - 1) / d->per_piece;
	d->piece = calloc(d->piece_count, sizeof(*d->piece));
	d->used = calloc(count, 1);
	d->wait = calloc(s->slot_count, sizeof(*d->wait));
	d->free_call = calloc(s->slot_count, sizeof(*d->free_call));
	if (!d->piece || !d->used || !d->wait || !d->free_call)
		return error_set(-ENOMEM, "no memory for a backend");
	while (d->free_count < s->slot_count) {
		d->free_call[d->free_count] = d->free_count;
		d->free_count++;
	}
	return page_caller_init(&d->caller, backend->grant.link[1],
				sizeof(struct page_request), s->slot_count);
}

/* ---- calls -------------------------------------------------------------- */

/* The answer is written behind the request, in the same slot. */
static struct page_piece *answer_at(struct dynamic *d, uint32_t call)
{
	return (struct page_piece *)((uint8_t *)page_caller_text(&d->caller,
								 call) +
				     sizeof(struct page_request));
}

/* There is a call's slot for each job. */
static int call(struct dynamic *d, uint64_t number, enum page_wire_kind kind)
{
	static const struct page_job none;
	struct piece *p = &d->piece[number];
	struct page_request *r;

	if (!d->free_count)
		return -EAGAIN;
	p->call = d->free_call[--d->free_count];
	p->state = kind == PAGE_WIRE_FREE ? PIECE_LEAVING : PIECE_ASKED;
	r = page_caller_text(&d->caller, p->call);
	*r = (struct page_request){
		.kind = be32_put(kind),
		.tag = be32_put((uint32_t)number),
		.index = be64_put(number),
		.buf = be64_put((uintptr_t)answer_at(d, p->call)),
		.rkey = be32_put(d->caller.mr->rkey),
	};
	return page_caller_send(&d->caller, p->call, &none, 0);
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

	if (!d->used[job->index])
		return 1;
	d->used[job->index] = 0;
	if (--p->used || p->state != PIECE_HERE)
		return 1;
	p->leaver = job->tag;
	return call(d, number, PAGE_WIRE_FREE);
}

static int dynamic_post(struct page_backend *backend,
			const struct page_job *job)
{
	uint32_t slot = job->tag >> JOB_COPY_BITS;
	struct dynamic *d = backend->own;
	uint64_t number = job->index / d->per_piece;
	struct piece *p = &d->piece[number];

	if (job->kind == PAGE_INVALIDATE)
		return give_up(d, job);
	if (job->kind == PAGE_STORE && !d->used[job->index]) {
		d->used[job->index] = 1;
		p->used++;
	}
	if (p->state == PIECE_HERE)
		return post_here(backend, job);
	d->wait[slot] = (struct wait){.job = *job, .next = p->waiting};
	p->waiting = slot + 1;
	return p->state == PIECE_NONE ? call(d, number, PAGE_WIRE_ALLOCATE) : 0;
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

static int take_answer(struct page_backend *backend, uint32_t imm)
{
	uint32_t number = imm & ((1u << PAGE_WIRE_TAG_BITS) - 1);
	int why = page_wire_errno(imm >> PAGE_WIRE_TAG_BITS);
	struct dynamic *d = backend->own;
	const struct page_piece *a;
	struct piece *p;

	if (number >= d->piece_count)
		return -EPROTO;
	p = &d->piece[number];
	if (p->state != PIECE_ASKED && p->state != PIECE_LEAVING)
		return -EPROTO;
	d->free_call[d->free_count++] = p->call;
	if (p->state == PIECE_LEAVING) {
		p->state = PIECE_NONE;
		page_job_end(backend->store, p->leaver, 0);
		return p->waiting ? call(d, number, PAGE_WIRE_ALLOCATE) : 0;
	}
	a = answer_at(d, p->call);
	p->state = why ? PIECE_NONE : PIECE_HERE;
	p->addr = be64_get(a->addr);
	p->rkey = be32_get(a->rkey);
	return wake(backend, p, why);
}

static int dynamic_poll(struct page_backend *backend)
{
	struct dynamic *d = backend->own;
	uint32_t imm[PAGE_CALL_BATCH];
	int i, n = 0, err = page_rdma_poll(backend);

	/* A look in vain drives the NIC: 0.5 us. */
	if (!err && d->free_count < backend->store->slot_count)
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
