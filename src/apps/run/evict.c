/* SPDX-License-Identifier: Apache-2.0 */
/* Eviction: a clock hand per space picks pages in the order of their addresses,
 * 64 at a time; the space's agent takes them out. */
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pager_priv.h"
#include "uffd.h"

bool run_evict_covers(const struct space *s, uint64_t page)
{
	uint64_t addr = run_space_addr(s, page);

	for (uint32_t b = s->collected; b != s->posted; b++) {
		const struct leaving *l = &s->leaving[b % RUN_BATCHES];

		for (uint32_t i = 0; i < l->stretch_count; i++)
			if (addr - l->stretch[i].start < l->stretch[i].bytes)
				return true;
	}
	return false;
}

bool run_evict_span(const struct space *s, uint64_t page, uint64_t *end)
{
	uint64_t addr = run_space_addr(s, page);
	bool is_covered = false;

	for (uint32_t b = s->collected; b != s->posted; b++) {
		const struct leaving *l = &s->leaving[b % RUN_BATCHES];

		for (uint32_t i = 0; i < l->stretch_count; i++) {
			struct run_stretch r = l->stretch[i];
			uint64_t first = (r.start - s->start) >> RUN_PAGE_SHIFT;

			/* Stretches do not overlap. */
			if (addr - r.start < r.bytes) {
				is_covered = true;
				first += r.bytes >> RUN_PAGE_SHIFT;
			}
			if (first > page)
				*end = u64_min(*end, first);
		}
	}
	return is_covered;
}

/* ---- picking ------------------------------------------------------------ */

/* What may be chosen for a batch, and what was seen on the way. */
struct choice {
	uint64_t budget; /* pages that need a new place */
	uint64_t spared; /* pages that may leave the next time */
};

static bool needs_room(const struct run_page *e)
{
	return !e->slot || e->is_returned;
}

/* A page that was wanted back is spared, the longer the more often it was. */
static bool may_leave(const struct space *s, uint64_t page, struct choice *c)
{
	struct run_page *e = &s->pages.page[page];

	/* Where something else will be mapped, nothing is taken. */
	if (e->state != RUN_RESIDENT || run_set_has(&s->pages.kept, page) ||
	    run_set_has(&s->pages.alien, page) || (needs_room(e) && !c->budget))
		return false;
	if (e->heat == 0) {
		c->budget -= needs_room(e);
		return true;
	}
	e->heat--;
	c->spared++;
	return false;
}

/* Pages without which a stretch may go on. Moves are of neighbours only. */
static uint64_t gap_of(const struct pager *p)
{
	return p->start->can_move ? 1 : RUN_STRETCH_GAP;
}

static bool is_guarded(const struct pager *p, const struct run_page *e)
{
	return !p->start->can_move || e->by_copy;
}

/* Whether nothing between the last page and this one is lost when all of it is
 * dropped: no mapping of somebody else, and nothing that may still be here. */
static bool is_free_between(const struct space *s, uint64_t last, uint64_t page)
{
	return last + 1 == page ||
	       (run_set_next_in(&s->pages.alien, last + 1, page) == page &&
		run_set_next_in(&s->pages.vague, last + 1, page) == page);
}

static void add_page(const struct pager *p, struct leaving *l,
		     const struct space *s, uint64_t page, bool joins)
{
	uint64_t addr = run_space_addr(s, page);
	struct run_stretch *last = &l->stretch[l->stretch_count - 1];
	uint64_t guard = is_guarded(p, &s->pages.page[page]);

	if (joins && l->stretch_count &&
	    (l->guarded_stretches >> (l->stretch_count - 1) & 1) == guard &&
	    addr - last->start - last->bytes < gap_of(p) * RUN_PAGE_BYTES &&
	    is_free_between(s, l->page[l->count - 1], page)) {
		last->bytes = addr + RUN_PAGE_BYTES - last->start;
	} else {
		l->guarded_stretches |= guard << l->stretch_count;
		l->stretch[l->stretch_count++] =
			(struct run_stretch){addr, RUN_PAGE_BYTES};
	}
	l->guarded |= guard << l->count;
	l->page[l->count++] = page;
}

static void leaving_init(struct leaving *l)
{
	l->count = l->stretch_count = 0;
	l->guarded = l->guarded_stretches = 0;
	l->is_probe = false;
}

/* Fills the batch from the hand on, at most twice around. */
static void pick(const struct pager *p, struct space *s, struct leaving *l,
		 struct choice *c)
{
	uint64_t seen = 0;
	uint64_t at = run_set_next(&s->pages.resident, s->hand.at);
	bool joins = false;

	leaving_init(l);
	while (l->count < RUN_BATCH_PAGES && seen++ < 2 * s->resident_count) {
		if (at >= RUN_RANGE_PAGES) {
			/* A batch does not go around: its pages ascend. */
			if (l->count)
				break;
			at = run_set_next(&s->pages.resident, 0);
			if (at >= RUN_RANGE_PAGES)
				break;
		}
		if (may_leave(s, at, c)) {
			add_page(p, l, s, at, joins);
			joins = true;
		} else {
			joins = false;
		}
		at = run_set_next(&s->pages.resident, at + 1);
	}
	s->hand.at = at >= RUN_RANGE_PAGES ? 0 : at;
}

/* Pages that could not leave the last time, from where that was left off. */
static void pick_held(struct pager *p, struct space *s, struct leaving *l,
		      struct choice *c)
{
	uint64_t at = run_set_next(&s->pages.held, s->held_next);

	leaving_init(l);
	l->is_probe = true;
	if (at >= RUN_RANGE_PAGES)
		at = run_set_next(&s->pages.held, 0);
	for (; l->count < RUN_BATCH_PAGES && at < RUN_RANGE_PAGES;
	     at = run_set_next(&s->pages.held, at + 1)) {
		bool needs = needs_room(&s->pages.page[at]);

		if (run_set_has(&s->pages.alien, at) ||
		    run_set_has(&s->pages.kept, at) || (needs && !c->budget))
			continue;
		c->budget -= needs;
		/* Held pages are neither leaving nor gone. */
		run_space_let_go(p, s, at);
		add_page(p, l, s, at, true);
	}
	s->held_next = at;
}

/* ---- batches ------------------------------------------------------------ */

static void unprotect(struct space *s, const struct leaving *l, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		/* A failure means that the process forks or is gone: then its
		 * next write faults and is sorted out there. */
		if (l->guarded_stretches >> i & 1)
			(void)!run_uffd_unprotect(s->uffd, l->stretch[i].start,
						  l->stretch[i].bytes);
}

static int protect(struct space *s, const struct leaving *l)
{
	for (uint32_t i = 0; i < l->stretch_count; i++) {
		int err = 0;

		if (l->guarded_stretches >> i & 1)
			err = run_uffd_protect(s->uffd, l->stretch[i].start,
					       l->stretch[i].bytes);
		if (err == -ESRCH)
			s->is_dead = true;
		if (err) {
			unprotect(s, l, i);
			return err;
		}
	}
	return 0;
}

static void post(struct space *s, const struct leaving *l)
{
	struct run_channel *c = s->channel;
	struct run_batch *b = &c->batch[s->posted % RUN_BATCHES];

	b->buffer_page = l->buffer * RUN_BATCH_PAGES;
	b->page_count = l->count;
	b->stretch_count = l->stretch_count;
	b->guarded = l->guarded;
	b->failed = ~0ull;
	b->refused = b->spared = b->dropped = b->locked = 0;
	b->is_single = 0;
	for (uint32_t i = 0; i < l->count; i++) {
		b->page[i] = run_space_addr(s, l->page[i]);
		s->pages.page[l->page[i]].state = RUN_LEAVING;
	}
	memcpy(b->stretch, l->stretch,
	       l->stretch_count * sizeof(b->stretch[0]));
	s->posted++;
	/* P1; sequentially consistent because of agent_sleep. */
	(void)atomic_fetch_add_explicit(&c->posted, 1, memory_order_seq_cst);
	if (atomic_load_explicit(&c->is_asleep, memory_order_seq_cst))
		(void)syscall(SYS_futex, &c->posted, FUTEX_WAKE, 1, NULL, NULL,
			      0);
}

/* Where the kernel moves pages, an agent that cannot (a filter of its program
 * forbids it) takes none: copying alone does not see what is pinned. */
static bool can_take(const struct pager *p, const struct space *s)
{
	enum run_way want = p->start->can_move ? RUN_WAY_MOVE : RUN_WAY_COPY;

	/* What was told and not done yet is about the table as it is. */
	return s->channel && !s->is_dead && !s->events.count &&
	       s->posted - s->collected < RUN_BATCHES &&
	       /* Pairs with W1. */
	       atomic_load_explicit(&s->channel->way, memory_order_acquire) ==
		       want;
}

/* Of a process that has ended no agent answers; and one that is just being
 * copied by fork had better keep its pages. */
static int ask(struct space *s)
{
	int err = run_uffd_ask(s->uffd, s->start);

	if (err == -ESRCH)
		s->is_dead = true;
	return err == -ESRCH || err == -EAGAIN ? err : 0;
}

/* One batch of the space, or a probe of pages that were held; -EAGAIN, -ENOENT:
 * nothing can leave now. */
static int evict_batch(struct pager *p, struct space *s, bool is_probe,
		       struct choice *c)
{
	struct leaving *l = &s->leaving[s->posted % RUN_BATCHES];
	uint64_t budget;
	int buffer, err;

	if (!s->channel)
		return -ENOENT;
	if (!can_take(p, s) || !run_writeback_is_ready(p))
		return -EAGAIN;
	err = ask(s);
	if (err)
		return err;
	budget = c->budget = run_room_budget(p);
	if (is_probe)
		pick_held(p, s, l, c);
	else
		pick(p, s, l, c);
	if (l->count == 0)
		return -ENOENT;
	buffer = run_writeback_take(p, s);
	if (buffer < 0)
		return buffer;
	err = protect(s, l);
	if (err) {
		p->writeback.buffer[buffer].state = WB_FREE;
		return err;
	}
	l->buffer = (uint32_t)buffer;
	run_room_sent(p, budget - c->budget);
	post(s, l);
	return 0;
}

/* Pages that the program moved before they were copied: they have not left. */
static uint64_t missed(struct space *s, const struct leaving *l)
{
	uint64_t which = 0;

	for (uint32_t i = 0; i < l->count; i++) {
		struct run_page *e = &s->pages.page[l->page[i]];

		which |= (uint64_t)e->is_missed << i;
		e->is_missed = 0;
	}
	return which;
}

/* What became of a batch, read once: it is the program's memory. */
struct outcome {
	uint64_t failed;  /* is still there */
	uint64_t refused; /* only because it was not guarded */
	uint64_t spared;  /* only because the program changes its mappings */
	uint64_t locked;
	uint64_t moved; /* by the program, before it was copied */
};

/* Of pages that moved, the agent was given zeros at the old place. These stay
 * protected: the table will know nothing of them until they are written to. */
static void put_back(struct pager *p, struct space *s, const struct leaving *l,
		     const struct outcome *o)
{
	for (uint32_t i = 0; i < l->count; i++) {
		struct run_page *e = &s->pages.page[l->page[i]];

		if (!((o->failed | o->moved) >> i & 1))
			continue;
		e->state = RUN_RESIDENT;
		e->heat = 1;
		if (o->moved >> i & 1)
			continue;
		(void)!run_uffd_unprotect(
			s->uffd, run_space_addr(s, l->page[i]), RUN_PAGE_BYTES);
		if (o->spared >> i & 1)
			continue;
		if ((o->refused >> i & 1) && !e->by_copy) {
			e->by_copy = 1; /* the next time it is guarded */
			e->heat = 0;
			continue;
		}
		run_space_hold(p, s, l->page[i]);
		count(&p->stats->pinned, 1);
	}
	if (o->failed & o->locked)
		run_marks_locked(p, s, o->failed & o->locked);
}

static void give_up_page(struct pager *p, struct space *s, uint64_t page)
{
	run_space_set_gone(p, s, page, RUN_UNTOUCHED);
	count(&p->stats->discarded, 1);
}

/*
 * Which pages of the batch the program gave up meanwhile. Of each page that the
 * agent dropped by advice the kernel told us once; what it told more often is
 * the program's. A page that stayed is zeros when it is asked for.
 */
static void sort_removes(struct pager *p, struct space *s,
			 const struct leaving *l, const struct run_batch *b,
			 uint64_t failed)
{
	uint64_t dropped = b->dropped;
	unsigned between = b->is_single ? 0 : 1;

	for (uint32_t i = 0; i < l->count; i++) {
		struct run_page *e = &s->pages.page[l->page[i]];
		unsigned removes = e->removes;

		e->removes = 0;
		if (!(failed >> i & 1) && removes > (dropped >> i & 1))
			give_up_page(p, s, l->page[i]);
	}
	for (uint32_t i = 0; i < l->stretch_count; i++) {
		uint64_t at =
			(l->stretch[i].start - s->start) >> RUN_PAGE_SHIFT;
		uint64_t end = at + (l->stretch[i].bytes >> RUN_PAGE_SHIFT);

		for (at = run_set_next_in(&s->pages.touched, at, end); at < end;
		     at = run_set_next_in(&s->pages.touched, at + 1, end)) {
			unsigned removes = s->pages.page[at].removes;

			s->pages.page[at].removes = 0;
			if (removes > between)
				give_up_page(p, s, at);
		}
	}
}

static void take_result(struct pager *p, struct space *s, struct leaving *l,
			const struct run_batch *b)
{
	struct outcome o = {.failed = b->failed,
			    .refused = b->refused,
			    .spared = b->spared,
			    .locked = b->locked,
			    .moved = missed(s, l)};
	uint64_t before = p->resident;

	run_writeback_filled(p, s, l, b, o.failed | o.moved);
	put_back(p, s, l, &o);
	sort_removes(p, s, l, b, o.failed | o.moved);
	/* Who lets go of one page mostly lets go of many. */
	if (l->is_probe && p->resident < before)
		p->probe_ns = 0;
}

bool run_evict_collect(struct pager *p, struct space *s)
{
	bool any = false;

	if (!run_space_is_leaving(s))
		return false;
	/* Pairs with D1. */
	while (run_space_is_leaving(s) &&
	       atomic_load_explicit(&s->channel->done, memory_order_acquire) !=
		       s->collected) {
		uint32_t at = s->collected % RUN_BATCHES;

		/* Off the list first: served faults must not wait for it. */
		s->collected++;
		take_result(p, s, &s->leaving[at], &s->channel->batch[at]);
		any = true;
	}
	if (any)
		p->is_stuck = false;
	return any;
}

uint64_t run_evict_leaving(const struct pager *p)
{
	uint64_t n = 0;

	for (const struct space *s = p->spaces; s; s = s->next)
		for (uint32_t b = s->collected; b != s->posted; b++)
			n += s->leaving[b % RUN_BATCHES].count;
	return n;
}

/* The spaces take turns, a batch each. */
static struct space *next_space(struct pager *p)
{
	struct space *s = p->evict_next ? p->evict_next : p->spaces;

	p->evict_next = s ? s->next : NULL;
	return s;
}

/* Whether pages that were held are still: only where there are too many here,
 * and a few at a time. */
static bool probe(struct pager *p)
{
	uint64_t now;
	struct choice c = {0};
	bool any = false;

	if (!p->held || p->resident <= p->limit_pages)
		return false;
	now = run_pager_now_ns();
	if (now < p->probe_ns)
		return false;
	p->probe_ns = now + RUN_PROBE_MS * 1000000ull;
	for (struct space *s = p->spaces; s; s = s->next)
		if (s->held_count)
			any |= evict_batch(p, s, true, &c) == 0;
	return any;
}

void run_evict_try(struct pager *p)
{
	struct choice c = {0};
	struct space *s;

	if (!p->overflow.is_full || run_evict_load(p) <= p->limit_pages ||
	    run_pager_now_ns() < p->overflow.retry_ns)
		return;
	s = next_space(p);
	if (s && evict_batch(p, s, false, &c) == 0)
		run_reclaim_kick(p);
}

bool run_evict_step(struct pager *p)
{
	uint64_t leaving;
	unsigned tries = 0, nothing = 0, spaces = 0;
	struct choice c = {0};
	bool any = false;

	for (struct space *s = p->spaces; s; s = s->next) {
		any |= run_evict_collect(p, s);
		spaces++;
	}
	any |= probe(p);
	leaving = run_evict_leaving(p);
	while (run_evict_load(p) > run_room_limit(p) + leaving &&
	       tries < spaces) {
		struct space *s = next_space(p);
		int err = s ? evict_batch(p, s, false, &c) : 0;

		nothing += err == -ENOENT;
		tries++;
		if (s && !err) {
			leaving = run_evict_leaving(p);
			tries = nothing = 0;
			any = true;
		}
	}
	/* What can leave at all is less than a batch. */
	if (p->overflow.is_full && nothing && nothing == tries &&
	    c.spared + leaving < RUN_BATCH_PAGES)
		run_room_none(p);
	return any;
}
