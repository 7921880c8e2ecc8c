/* SPDX-License-Identifier: Apache-2.0 */
/* What the NIC calls to have walks executed. Its lock is held in all of it but
 * opening and closing, and is what guards the engine. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "walks_priv.h"
#include "wire/gather_wire.h"

/* ---- programs, from the NIC's side --------------------------------------- */

/* A program that is found has one user more. */
static struct mem_program *use(struct mem_walks *w, const struct ibv_pd *pd,
			       uint64_t hash)
{
	const struct list *head = &w->bucket[hash % MEM_WALK_BUCKETS], *at;
	struct mem_program *found = NULL;

	lock_take(&w->lock);
	for (at = head->next; at != head && !found; at = at->next) {
		struct mem_program *p =
			container_of(at, struct mem_program, link);

		if (p->hash == hash && p->pd == pd)
			found = p;
	}
	if (found)
		found->users++;
	else
		w->unknown++;
	lock_drop(&w->lock);
	return found;
}

static void unuse(struct mem_walks *w, struct mem_program *p, bool is_run,
		  uint32_t iterations)
{
	lock_take(&w->lock);
	p->users--;
	p->runs += is_run;
	p->iterations += iterations;
	if (p->ended && p->users == 0)
		list_append(&w->dead, &p->link);
	lock_drop(&w->lock);
}

/* ---- the walker ---------------------------------------------------------- */

static void count(struct mem_walks *w, const struct mem_program *p, int sign)
{
	w->running += (uint32_t)sign;
	w->cost += (uint64_t)((int64_t)p->program->facts.longest * sign);
}

static int start(void *ctx, struct aqdv_walk *walk)
{
	struct mem_walks *w = ctx;
	const struct walk_image *image;
	struct mem_program *p;
	int err;

	if (walk->program == GATHER_WIRE_PROGRAM)
		return walk_gathers_start(w->gathers, walk, walk->pad,
					  walk->send_bytes, walk->pad_room,
					  &walk->answer_bytes);
	p = use(w, walk->qp->pd, walk->program);
	if (!p)
		return -ENOENT;
	image = walk_program_image(p->program);
	if (image->pad_bytes > walk->pad_room) {
		unuse(w, p, false, 0);
		return -EMSGSIZE;
	}
	walk->answer_bytes = u32_min(walk->answer_bytes, image->pad_bytes);
	walk->job = p;
	err = walk_engine_start(
		w->engine,
		&(struct walk_job){
			.program = p->program,
			.handle = walk,
			.tenant = walk->qp->pd,
			.at = walk->at,
			.left = u32_min(walk->iterations, w->config.iterations),
			.pad = walk->pad,
			/* The NIC has cleared the rest of the answer. */
			.given_bytes = u32_min(
				u32_max(walk->send_bytes, walk->answer_bytes),
				image->pad_bytes),
		});
	if (err) {
		walk->job = NULL;
		unuse(w, p, false, 0);
	} else {
		count(w, p, 1);
	}
	return err;
}

/* Frames wait for a turn to end: of long programs it has fewer iterations. Half
 * of it is for gathers, more if nobody else wants it. */
static bool turn(void *ctx, uint32_t iterations)
{
	struct mem_walks *w = ctx;

	if (walk_gathers_busy(w->gathers)) {
		bool is_alone = walk_engine_busy(w->engine) == 0;

		iterations -= walk_gathers_turn(
			w->gathers,
			is_alone ? iterations : u32_max(iterations / 2, 1));
		if (is_alone)
			return walk_gathers_busy(w->gathers) > 0;
	}
	if (w->cost)
		iterations =
			u32_min(iterations,
				(uint32_t)u64_max((uint64_t)MEM_WALK_TURN_COST *
							  w->running / w->cost,
						  MEM_WALK_TURN_LEAST));
	return walk_engine_turn(w->engine, iterations) ||
	       walk_gathers_busy(w->gathers);
}

static void forget(void *ctx, struct aqdv_walk *walk)
{
	struct mem_walks *w = ctx;

	if (walk_gathers_forget(w->gathers, walk))
		return;
	(void)walk_engine_forget(w->engine, walk); /* it is gone either way */
	count(w, walk->job, -1);
	unuse(w, walk->job, false, 0);
	walk->job = NULL;
}

/* ---- what the engine asks ------------------------------------------------ */

/* Often: hence no table between what are the same words. */
static enum walk_reach reach(void *ctx, void *handle, uint64_t at,
			     uint32_t len_bytes, bool write,
			     struct walk_span *span)
{
	return (enum walk_reach)aqdv_walk_span(handle, at, len_bytes, write,
					       (struct aqdv_walk_span *)span);
}

STATIC_ASSERT(offsetof(struct walk_span, from) ==
			      offsetof(struct aqdv_walk_span, from) &&
		      offsetof(struct walk_span, len) ==
			      offsetof(struct aqdv_walk_span, len) &&
		      offsetof(struct walk_span, bytes) ==
			      offsetof(struct aqdv_walk_span, host),
	      "the engine and the NIC say the same");

STATIC_ASSERT((int)WALK_REACH_HERE == (int)AQDV_WALK_HERE &&
		      (int)WALK_REACH_ELSEWHERE ==
			      (int)AQDV_WALK_IS_ELSEWHERE &&
		      (int)WALK_REACH_FAULT == (int)AQDV_WALK_IS_FAULT &&
		      (int)WALK_REACH_NO_RIGHT == (int)AQDV_WALK_IS_NO_RIGHT,
	      "the engine and the NIC say the same");
STATIC_ASSERT((int)WALK_DONE == (int)AQDV_WALK_DONE &&
		      (int)WALK_MORE == (int)AQDV_WALK_MORE &&
		      (int)WALK_ELSEWHERE == (int)AQDV_WALK_ELSEWHERE &&
		      (int)WALK_FAULT == (int)AQDV_WALK_FAULT &&
		      (int)WALK_FAIL == (int)AQDV_WALK_FAIL &&
		      (int)WALK_NO_RIGHT == (int)AQDV_WALK_NO_RIGHT,
	      "the engine and the NIC say the same");

static void done(void *ctx, void *handle, enum walk_status status, uint64_t at,
		 uint32_t left, uint32_t took)
{
	struct aqdv_walk *walk = handle;
	struct mem_walks *w = ctx;

	count(w, walk->job, -1);
	unuse(w, walk->job, true, took);
	walk->job = NULL;
	aqdv_walk_done(walk, (enum aqdv_walk_status)status, at, left, took);
}

static void gathered(void *ctx, void *handle, enum walk_status status,
		     uint64_t at, uint32_t left, uint32_t took)
{
	aqdv_walk_done(handle, (enum aqdv_walk_status)status, at, left, took);
}

/* ---- life ---------------------------------------------------------------- */

int walks_open(struct mem_node *node)
{
	struct mem_walks *w;
	int err;

	if (!(node->nic_caps & AQDV_CAP_WALK))
		return 0;
	w = calloc(1, sizeof(*w));
	if (!w)
		return error_set(-ENOMEM, "no memory for walks");
	lock_init(&w->lock);
	list_init(&w->dead);
	for (unsigned i = 0; i < MEM_WALK_BUCKETS; i++)
		list_init(&w->bucket[i]);
	w->config = node->walk_config;
	err = walk_engine_open(
		&(struct walk_host){.ctx = w,
				    .reach = reach,
				    .done = done,
				    .epoch = aqdv_walk_epoch(node->context)},
		&w->engine);
	if (!err)
		err = walk_gathers_open(
			&(struct walk_host){.reach = reach, .done = gathered},
			&w->gathers);
	if (!err)
		err = aqdv_set_walker(node->context,
				      &(struct aqdv_walker){.ctx = w,
							    .start = start,
							    .turn = turn,
							    .forget = forget});
	if (err) {
		if (w->engine)
			walk_engine_close(w->engine);
		walk_gathers_close(w->gathers);
		free(w);
		return error_set(err, "walks cannot be executed: %s",
				 strerror(-err));
	}
	node->walks = w;
	return 0;
}

void walks_close(struct mem_node *node)
{
	struct mem_walks *w = node->walks;
	int err;

	if (!w)
		return;
	ASSERT(w->count == 0);
	err = aqdv_set_walker(node->context, NULL);
	ASSERT(err == 0); /* no connection is left */
	walk_engine_close(w->engine);
	walk_gathers_close(w->gathers);
	walks_reap(node);
	node->walks = NULL;
	free(w);
}
