/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workspaces and turns. Walks run in groups of up to half of those that are
 * under way: an iteration of each, then where each of them goes, then all the
 * nodes that are next are prefetched, and come while the other half runs.
 *
 * Tenants stand in a ring. A tenant's turn is at most one iteration of each of
 * its walks, at most BURST of them, and about QUANTUM units of cost, of which
 * what was used too much is taken from its next turn. So who has many walks, or
 * long ones, does not keep the others waiting, and still a turn has enough
 * iterations to hide the memory behind each other.
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
	struct list walks; /* round and round, in this order */
	struct list *next; /* of them, the one that runs next; or `walks` */
	const void *name;
	uint32_t count; /* of walks */
	uint32_t quota; /* iterations left of this turn; 0: a new one begins */
	int32_t credit; /* units of cost; negative: used too much */
	uint64_t asked; /* the engine's turn when it was last refused; 0: no */
};

struct workspace {
	struct list link;      /* in its tenant's walks, or free */
	struct tenant *tenant; /* NULL: free */
	void *handle;
	/* What an iteration needs. */
	const struct walk_program *program;
	walk_run_fn run; /* of the program, as the three below `end` */
	uint8_t *node;	 /* where it is, if it may run */
	uint8_t *pad;
	uint64_t at;
	struct walk_end end;
	uint32_t window; /* bytes of a node */
	int32_t cost;	 /* of the longest path */
	bool stores;
	uint32_t left, given; /* iterations: now, and at first */
	/* What is known of the memory, in that epoch. */
	uint64_t epoch; /* NEVER: nothing, so it may not run */
	uint64_t from;	/* the pointer that leads to its first byte */
	uint64_t last;	/* the last offset where a node may begin */
	uint8_t *bytes;
	uint64_t group; /* the last one that it was in */
};

#define NEVER UINT64_MAX

struct walk_engine {
	struct walk_host host;
	struct list ring;
	struct list free;
	uint64_t turn;
	uint64_t iterations;
	uint32_t busy;
	/* The group that runs. */
	uint64_t group; /* its number */
	uint32_t count;
	uint32_t ran;
	struct workspace *space_of[BURST];
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
		e->tenant[i].next = &e->tenant[i].walks;
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

static ALWAYS_INLINE void prefetch_line(const uint8_t *line, bool write)
{
	if (write)
		PREFETCH_RW(line);
	else
		PREFETCH(line);
}

/* Each line once: a prefetch whose page is in no TLB waits for it, and a second
 * one of the same line waits again. */
static ALWAYS_INLINE void prefetch(const struct workspace *s)
{
	const uint8_t *end =
		s->node + u32_min(s->window, PREFETCH_LINES * CACHE_LINE);
	/* It need not begin a line. */
	const uint8_t *next =
		s->node - (uintptr_t)s->node % CACHE_LINE + CACHE_LINE;

	prefetch_line(s->node, s->stores);
	for (; UNLIKELY(next < end); next += CACHE_LINE)
		prefetch_line(next, s->stores);
}

/* Asks the host. Sets s->node, or has NULL there. */
static enum walk_reach ask(struct walk_engine *e, struct workspace *s)
{
	const uint64_t lo = (uint64_t)(int64_t)s->program->image.load_lo;
	struct walk_span span = {.bytes = NULL};
	enum walk_reach verdict;
	uintptr_t mask;

	verdict = e->host.reach(e->host.ctx, s->handle, s->at + lo, s->window,
				s->stores, &span);
	/* Also a processor that guesses HERE has no other address. */
	mask = 0 - (uintptr_t)(verdict == WALK_REACH_HERE);
	mask = (uintptr_t)clamp_hide(mask);
	s->node = (uint8_t *)(((uintptr_t)span.bytes +
			       clamp_offset(s->at + lo - span.from, s->window,
					    span.len)) &
			      mask);
	s->bytes = span.bytes;
	s->from = span.from - lo;
	s->last = span.len - s->window;
	s->epoch = s->node ? epoch_now(e) : NEVER;
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
	s->handle = job->handle;
	s->program = job->program;
	s->run = job->program->run;
	s->window = job->program->image.load_bytes;
	s->stores = job->program->image.flags & WALK_STORES;
	s->cost = (int32_t)job->program->facts.longest;
	s->pad = job->pad;
	s->at = job->at;
	s->left = s->given = job->left;
	s->group = 0;
	/* Without a pad there need not be a pointer. */
	if (pad_bytes > job->given_bytes)
		memset(job->pad + job->given_bytes, 0,
		       pad_bytes - job->given_bytes);
	if (t->count++ == 0)
		list_append(&engine->ring, &t->ring);
	t->asked = 0;
	/* The others have their turns before it. */
	list_append(t->next, &s->link);
	engine->busy++;
	/* What is wrong with the pointer is told by the first turn. */
	(void)ask(engine, s);
	if (s->node)
		prefetch(s);
	if (!s->left)
		s->epoch = NEVER;
	return 0;
}

static void leave(struct walk_engine *e, struct workspace *s)
{
	struct tenant *t = s->tenant;

	if (t->next == &s->link)
		t->next = s->link.next;
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
	void *handle = s->handle;
	const uint32_t left = s->left, took = s->given - s->left;

	leave(e, s);
	e->host.done(e->host.ctx, handle, status, at, left, took);
}

bool walk_engine_forget(struct walk_engine *engine, const void *handle)
{
	for (uint32_t i = 0; i < WALK_WORKSPACES; i++) {
		struct workspace *s = &engine->space[i];

		if (s->tenant && s->handle == handle) {
			leave(engine, s);
			return true;
		}
	}
	return false;
}

/* ---- running ----------------------------------------------------------------
 */

/* An iteration of each. The memory may be gone although nobody said so: then
 * this is left, and e->ran is where. */
static size_t run_group(void *engine, const void *unused, uintptr_t none)
{
	struct walk_engine *e = engine;
	const uint32_t count = e->count;

	for (uint32_t i = e->ran; i < count; i++) {
		struct workspace *s = e->space_of[i];

		e->ran = i;
		landing_move(s->node, s->window);
		s->end = s->run(s->program, s->node, s->pad);
	}
	e->ran = count;
	return 1;
}

/* An iteration led to the end, or out of what is known. False: it has ended. */
static COLD bool look_around(struct walk_engine *e, struct workspace *s)
{
	enum walk_reach verdict;

	switch ((enum walk_step)s->end.step) {
	case WALK_STEP_DONE:
		finish(e, s, WALK_DONE, s->at);
		return false;
	case WALK_STEP_FAIL:
		finish(e, s, WALK_FAIL, s->end.next);
		return false;
	case WALK_STEP_FAULT:
		finish(e, s, WALK_FAULT, s->at);
		return false;
	case WALK_STEP_NEXT:
		break;
	}
	s->at = s->end.next;
	if (s->left == 0) {
		finish(e, s, WALK_MORE, s->at);
		return false;
	}
	verdict = ask(e, s);
	if (s->node)
		return true;
	finish(e, s, status_of(verdict), s->at);
	return false;
}

/* An iteration was made; where does it lead? False: to the end. Whether the
 * address still counts is for check_group. */
static inline bool go_on(struct walk_engine *e, struct workspace *s)
{
	const uint64_t offset = s->end.next - s->from;

	s->left--;
	if (UNLIKELY(s->end.step != WALK_STEP_NEXT || offset > s->last ||
		     s->left == 0))
		return look_around(e, s);
	s->at = s->end.next;
	s->node = s->bytes + walk_clamp(offset, s->last);
	return true;
}

/*
 * A prefetch cannot retire before its page is known, and an iteration is so
 * long that the processor looks ahead to few others: pages would be looked up
 * one after the other. So nodes are prefetched in a row, where all of them are
 * looked up at once: 41 ns an iteration instead of 112, with 16 walks on pages
 * of 4 KiB. For the same reason the other steps are made in rows, too.
 *
 * The loop must stand in a function that does something else, too: gcc takes
 * one that only prefetches for one without effect, and drops its calls.
 */
static void visit_group(struct walk_engine *e)
{
	const uint32_t count = e->count;
	uint32_t left = 0;

	for (e->ran = 0; e->ran < count;) {
		struct workspace *s = e->space_of[e->ran];

		if (LIKELY(landing_call(e, NULL, 0, run_group,
					(uintptr_t)s->node,
					(uintptr_t)s->node + s->window)))
			continue;
		s = e->space_of[e->ran++];
		s->end = (struct walk_end){.step = WALK_STEP_FAULT};
	}
	e->iterations += count;
	for (uint32_t i = 0; i < count; i++) {
		struct workspace *s = e->space_of[i];

		if (LIKELY(go_on(e, s)))
			e->space_of[left++] = s;
	}
	for (uint32_t i = 0; i < left; i++)
		prefetch(e->space_of[i]);
}

/* Its address is not valid any more, or it never had one, or no iteration is
 * allowed. False: it has ended. */
static COLD bool look_again(struct walk_engine *e, struct workspace *s)
{
	enum walk_reach verdict;

	if (s->left == 0) {
		finish(e, s, WALK_MORE, s->at);
		return false;
	}
	verdict = ask(e, s);
	if (s->node)
		return true;
	finish(e, s, status_of(verdict), s->at);
	return false;
}

/* Leaves those in the group that may run. */
static inline void check_group(struct walk_engine *e)
{
	const uint32_t count = e->count;
	uint64_t now = epoch_now(e);
	uint32_t left = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct workspace *s = e->space_of[i];
		bool may_run = s->epoch == now;

		if (UNLIKELY(!may_run)) {
			may_run = look_again(e, s);
			now = epoch_now(e);
		}
		e->space_of[left] = s;
		left += may_run;
	}
	e->count = left;
}

static void begin_turn(struct tenant *t)
{
	t->quota = u32_min(t->count, BURST);
	t->credit = t->credit > 0 ? QUANTUM : t->credit + QUANTUM;
}

static void end_turn(struct walk_engine *e, struct tenant *t)
{
	t->quota = 0;
	list_remove(&t->ring);
	list_append(&e->ring, &t->ring);
}

/* As many of a tenant's walks as its turn has, up to max. False: the next one
 * is in this group already. */
static inline bool gather_from(struct walk_engine *e, struct tenant *t,
			       uint32_t max)
{
	const uint64_t group = e->group;
	struct list *l = t->next;
	uint32_t count = e->count;
	bool is_new = true;

	if (t->quota == 0)
		begin_turn(t);
	do {
		struct workspace *s;

		if (l == &t->walks)
			l = l->next;
		s = container_of(l, struct workspace, link);
		is_new = s->group != group;
		if (UNLIKELY(!is_new))
			break;
		s->group = group;
		e->space_of[count++] = s;
		l = l->next;
		t->credit -= s->cost;
	} while (--t->quota && t->credit > 0 && count < max);
	t->next = l;
	e->count = count;
	if (t->quota == 0 || t->credit <= 0)
		end_turn(e, t);
	return is_new;
}

/* Half of the walks, so that the others run while their memory comes. */
static inline uint32_t gather(struct walk_engine *e, uint32_t max)
{
	max = u32_min(max, u32_min(BURST, (e->busy + 1) / 2));
	e->group++;
	e->count = 0;
	while (e->count < max &&
	       gather_from(e, container_of(e->ring.next, struct tenant, ring),
			   max))
		;
	return e->count;
}

bool walk_engine_turn(struct walk_engine *engine, uint32_t iterations_max)
{
	uint32_t n;

	engine->turn++;
	for (; iterations_max && engine->busy; iterations_max -= n) {
		n = gather(engine, iterations_max);
		check_group(engine);
		visit_group(engine);
	}
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

		if (s->tenant && s->program == program)
			return true;
	}
	return false;
}

uint64_t walk_engine_iterations(const struct walk_engine *engine)
{
	return engine->iterations;
}
