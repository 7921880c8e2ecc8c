/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workspaces and turns. Tenants stand in a ring. A tenant's turn is at most one
 * iteration of each of its walks, at most BURST of them, and about QUANTUM
 * units of cost, of which what was used too much is taken from its next turn.
 * So who has many walks, or long ones, does not keep the others waiting, and
 * still a turn has enough iterations to hide the memory behind each other.
 */
#include "engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clamp.h"
#include "base/error.h"
#include "base/landing.h"
#include "base/list.h"
#include "walk_priv.h"

enum {
	BURST = 16,
	QUANTUM = 1024,
	/* More lines than this are left to the processor's own prefetch. */
	PREFETCH_LINES = 16,
	/* A tenant that was refused counts for its share this many turns. */
	PATIENCE_TURNS = 64,
};

struct tenant {
	struct list ring;  /* of tenants that have walks */
	struct list walks; /* the next one to run first */
	const void *name;
	uint32_t count; /* of walks */
	uint32_t quota; /* iterations left of this turn; 0: a new one begins */
	int32_t credit; /* units of cost; negative: used too much */
	uint64_t asked; /* the engine's turn when it was last refused; 0: no */
};

struct workspace {
	struct list link;      /* in its tenant's walks, or free */
	struct tenant *tenant; /* NULL: free */
	struct walk_job job;
	uint32_t took;
	uint8_t *node;	       /* NULL: where it is, is not known */
	struct walk_span span; /* what is known; `len` 0: nothing */
	uint64_t epoch;	       /* when both were known */
	struct walk_end end;
};

/* A node that is to be prefetched. */
struct fetch {
	const uint8_t *node;
	uint32_t bytes;
	bool write;
};

struct walk_engine {
	struct walk_host host;
	struct list ring;
	struct list free;
	uint64_t turn;
	uint64_t iterations;
	uint32_t busy;
	uint32_t fetches;
	struct fetch fetch[BURST];
	uint32_t tenants; /* entries of `tenant` that were ever used */
	struct tenant tenant[WALK_WORKSPACES];
	struct workspace space[WALK_WORKSPACES];
};

int walk_engine_open(const struct walk_host *host, struct walk_engine **out)
{
	struct walk_engine *e = calloc(1, sizeof(*e));

	if (!e)
		return error_set(-ENOMEM, "no memory for walks");
	e->host = *host;
	e->turn = 1;
	list_init(&e->ring);
	list_init(&e->free);
	for (uint32_t i = 0; i < WALK_WORKSPACES; i++) {
		list_init(&e->space[i].link);
		list_append(&e->free, &e->space[i].link);
		list_init(&e->tenant[i].ring);
		list_init(&e->tenant[i].walks);
	}
	*out = e;
	return 0;
}

void walk_engine_close(struct walk_engine *engine)
{
	free(engine);
}

/* ---- where nodes are --------------------------------------------------------
 */

static uint64_t epoch_now(const struct walk_engine *e)
{
	return e->host.epoch ? *e->host.epoch : e->turn;
}

/* Each line once: a prefetch whose page is in no TLB waits for it, and a second
 * one of the same line waits again. */
static void prefetch(const uint8_t *node, uint32_t bytes, bool write)
{
	const uint8_t *line =
		node - (uintptr_t)node % CACHE_LINE; /* it need not begin one */
	const uint8_t *end = node + u32_min(bytes, PREFETCH_LINES * CACHE_LINE);

	for (; line < end; line += CACHE_LINE) {
		if (write)
			PREFETCH_RW(line);
		else
			PREFETCH(line);
	}
}

static bool is_within(const struct walk_span *span, uint64_t at, uint32_t len)
{
	const uint64_t offset = at - span->from;

	return offset <= span->len && len <= span->len - offset;
}

/* Sets s->node, or leaves NULL there. */
static enum walk_reach find_node(struct walk_engine *e, struct workspace *s)
{
	const struct walk_image *image = &s->job.program->image;
	const uint64_t at = s->job.at + (uint64_t)(int64_t)image->load_lo;
	const uint64_t now = epoch_now(e);
	enum walk_reach verdict = WALK_REACH_HERE;
	uintptr_t mask;

	if (UNLIKELY(s->epoch != now ||
		     !is_within(&s->span, at, image->load_bytes))) {
		s->span = (struct walk_span){.bytes = NULL};
		s->epoch = now;
		verdict = e->host.reach(e->host.ctx, s->job.handle, at,
					image->load_bytes,
					image->flags & WALK_STORES, &s->span);
	}
	/* Also a processor that guesses HERE has no other address. */
	mask = 0 - (uintptr_t)(verdict == WALK_REACH_HERE);
	mask = (uintptr_t)clamp_hide(mask);
	s->node = (uint8_t *)(((uintptr_t)s->span.bytes +
			       clamp_offset(at - s->span.from,
					    image->load_bytes, s->span.len)) &
			      mask);
	return verdict;
}

/*
 * A prefetch cannot retire before its page is known, and an iteration is so
 * long that the processor looks ahead to one other at most: pages would be
 * looked up one after the other. So nodes are collected, and prefetched in a
 * row, where all of them are looked up at once: 41 ns an iteration instead of
 * 112, with 16 walks on pages of 4 KiB. Half of the walks, so that the others
 * run while this memory comes: 23 ns instead of 29, on huge pages.
 *
 * The loop must stand in a function that does something else, too: gcc takes
 * one that only prefetches for one without effect, and drops its calls.
 */
static void fetch_all(struct walk_engine *e)
{
	for (uint32_t i = 0; i < e->fetches; i++)
		prefetch(e->fetch[i].node, e->fetch[i].bytes,
			 e->fetch[i].write);
	e->fetches = 0;
}

/* The same for a node that is used later. */
static enum walk_reach locate(struct walk_engine *e, struct workspace *s)
{
	const struct walk_image *image = &s->job.program->image;
	enum walk_reach verdict = find_node(e, s);

	if (s->node)
		e->fetch[e->fetches++] = (struct fetch){
			s->node, image->load_bytes, image->flags & WALK_STORES};
	if (e->fetches == BURST || 2 * e->fetches >= e->busy)
		fetch_all(e);
	return verdict;
}

static enum walk_status status_of(enum walk_reach verdict)
{
	if (verdict == WALK_REACH_ELSEWHERE)
		return WALK_ELSEWHERE;
	return verdict == WALK_REACH_NO_RIGHT ? WALK_NO_RIGHT : WALK_FAULT;
}

/* ---- coming and going -------------------------------------------------------
 */

static bool is_present(const struct walk_engine *e, const struct tenant *t)
{
	return t->count || (t->asked && e->turn - t->asked < PATIENCE_TURNS);
}

/* The tenant of this name, or an entry that nobody needs; NULL: there is none.
 * *others: how many other tenants there are. */
static struct tenant *find_tenant(struct walk_engine *e, const void *name,
				  uint32_t *others)
{
	struct tenant *found = NULL, *spare = NULL;

	*others = 0;
	for (uint32_t i = 0; i < e->tenants; i++) {
		struct tenant *t = &e->tenant[i];

		if (!is_present(e, t))
			spare = t;
		else if (t->name == name)
			found = t;
		else
			(*others)++;
	}
	if (found)
		return found;
	if (!spare && e->tenants < WALK_WORKSPACES)
		spare = &e->tenant[e->tenants++];
	if (spare) {
		spare->name = name;
		spare->quota = 0;
		spare->credit = 0;
		spare->asked = 0;
	}
	return spare;
}

int walk_engine_start(struct walk_engine *engine, const struct walk_job *job)
{
	const uint32_t pad_bytes = job->program->image.pad_bytes;
	struct workspace *s;
	struct tenant *t;
	uint32_t others;

	if (job->given_bytes > pad_bytes)
		return -EMSGSIZE;
	t = find_tenant(engine, job->tenant, &others);
	if (!t)
		return -EAGAIN;
	if (list_is_empty(&engine->free) ||
	    t->count >= WALK_WORKSPACES / (others + 1)) {
		t->asked = engine->turn;
		return -EAGAIN;
	}
	s = container_of(engine->free.next, struct workspace, link);
	list_remove(&s->link);
	s->tenant = t;
	s->job = *job;
	s->took = 0;
	s->span = (struct walk_span){.bytes = NULL};
	/* Without a pad there need not be a pointer. */
	if (pad_bytes > job->given_bytes)
		memset(job->pad + job->given_bytes, 0,
		       pad_bytes - job->given_bytes);
	if (t->count++ == 0)
		list_append(&engine->ring, &t->ring);
	t->asked = 0;
	list_append(&t->walks, &s->link);
	engine->busy++;
	/* What is wrong with the pointer is told by the first turn. */
	(void)locate(engine, s);
	fetch_all(engine);
	return 0;
}

static void leave(struct walk_engine *e, struct workspace *s)
{
	struct tenant *t = s->tenant;

	list_remove(&s->link);
	list_append(&e->free, &s->link);
	s->tenant = NULL;
	e->busy--;
	if (--t->count == 0) {
		list_remove(&t->ring);
		t->quota = 0;
		t->credit = 0;
	}
}

/* The host may start a walk in `done`, perhaps in this workspace. */
static void finish(struct walk_engine *e, struct workspace *s,
		   enum walk_status status, uint64_t at)
{
	const struct walk_job job = s->job;
	const uint32_t took = s->took;

	leave(e, s);
	e->host.done(e->host.ctx, job.handle, status, at, job.left, took);
}

bool walk_engine_forget(struct walk_engine *engine, const void *handle)
{
	for (uint32_t i = 0; i < WALK_WORKSPACES; i++) {
		struct workspace *s = &engine->space[i];

		if (s->tenant && s->job.handle == handle) {
			leave(engine, s);
			return true;
		}
	}
	return false;
}

/* ---- running ----------------------------------------------------------------
 */

static size_t run(void *space, const void *unused, uintptr_t none)
{
	struct workspace *s = space;

	s->end = s->job.program->run(s->job.program, s->node, s->job.pad);
	return 1;
}

/* An iteration was made; where does it lead? */
static void go_on(struct walk_engine *e, struct workspace *s)
{
	enum walk_reach verdict;

	s->took++;
	s->job.left--;
	e->iterations++;
	switch ((enum walk_step)s->end.step) {
	case WALK_STEP_DONE:
		finish(e, s, WALK_DONE, s->job.at);
		return;
	case WALK_STEP_FAIL:
		finish(e, s, WALK_FAIL, s->end.next);
		return;
	case WALK_STEP_FAULT:
		finish(e, s, WALK_FAULT, s->job.at);
		return;
	case WALK_STEP_NEXT:
		break;
	}
	s->job.at = s->end.next;
	if (s->job.left == 0) {
		finish(e, s, WALK_MORE, s->job.at);
		return;
	}
	verdict = locate(e, s);
	if (!s->node)
		finish(e, s, status_of(verdict), s->job.at);
}

static void visit(struct walk_engine *e, struct workspace *s)
{
	const uint32_t bytes = s->job.program->image.load_bytes;

	if (s->job.left == 0) {
		finish(e, s, WALK_MORE, s->job.at);
		return;
	}
	if (!s->node || s->epoch != epoch_now(e)) {
		enum walk_reach verdict = find_node(e, s);

		if (!s->node) {
			finish(e, s, status_of(verdict), s->job.at);
			return;
		}
	}
	/* The memory may be gone although nobody said so. */
	if (!landing_call(s, NULL, 0, run, (uintptr_t)s->node,
			  (uintptr_t)s->node + bytes))
		s->end = (struct walk_end){.step = WALK_STEP_FAULT};
	go_on(e, s);
}

bool walk_engine_turn(struct walk_engine *engine, uint32_t iterations_max)
{
	engine->turn++;
	for (uint32_t n = 0; n < iterations_max; n++) {
		struct workspace *s;
		struct tenant *t;

		if (list_is_empty(&engine->ring))
			break;
		t = container_of(engine->ring.next, struct tenant, ring);
		s = container_of(t->walks.next, struct workspace, link);
		if (t->quota == 0) {
			t->quota = u32_min(t->count, BURST);
			t->credit =
				t->credit > 0 ? QUANTUM : t->credit + QUANTUM;
		}
		t->credit -= (int32_t)s->job.program->facts.longest;
		list_remove(&s->link);
		list_append(&t->walks, &s->link);
		if (--t->quota == 0 || t->credit <= 0) {
			t->quota = 0;
			list_remove(&t->ring);
			list_append(&engine->ring, &t->ring);
		}
		visit(engine, s);
	}
	fetch_all(engine);
	return engine->busy > 0;
}

uint32_t walk_engine_busy(const struct walk_engine *engine)
{
	return engine->busy;
}

bool walk_engine_uses(const struct walk_engine *engine,
		      const struct walk_program *program)
{
	for (uint32_t i = 0; i < WALK_WORKSPACES; i++) {
		const struct workspace *s = &engine->space[i];

		if (s->tenant && s->job.program == program)
			return true;
	}
	return false;
}

uint64_t walk_engine_iterations(const struct walk_engine *engine)
{
	return engine->iterations;
}
