/* SPDX-License-Identifier: Apache-2.0 */
/* Eviction: what the policy has picked goes to the space's agent as a batch,
 * which takes it out, and what became of it is noted. */
#include <errno.h>
#include <string.h>

#include "marks_priv.h"
#include "owner_priv.h"
#include "pager_priv.h"
#include "room_priv.h"
#include "uffd.h"

/* ---- posting ------------------------------------------------------------- */

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
	b->out = (struct run_outcome){.failed = ~0ull};
	for (uint32_t i = 0; i < l->count; i++) {
		b->page[i] = run_space_addr(s, l->page[i]);
		run_page_set_state(&s->pages.page[l->page[i]], RUN_LEAVING);
	}
	memcpy(b->stretch, l->stretch,
	       l->stretch_count * sizeof(b->stretch[0]));
	s->posted++;
	/* RUN-P1, RUN-P2 */
	(void)atomic_fetch_add_explicit(&c->posted, 1, memory_order_seq_cst);
	run_owner_wake(c);
}

/* Where the kernel moves pages, an agent that cannot (a filter of its program
 * forbids it) takes none: copying alone does not see what is pinned. */
static bool can_take(const struct pager *p, const struct space *s)
{
	enum run_way want = p->start->can_move ? RUN_WAY_MOVE : RUN_WAY_COPY;

	/* What was told and not done yet is about the table as it is. */
	return s->channel && !s->is_dead && !s->events.count &&
	       s->posted - s->collected < RUN_BATCHES &&
	       /* RUN-W1 */
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

static void pick(struct pager *p, struct space *s, struct leaving *l,
		 struct policy_pick *c)
{
	l->count = l->is_probe ? run_policy_pick_held(&s->policy, &s->pages, c,
						      l->page)
			       : run_policy_pick(&s->policy, &s->pages,
						 s->resident_count, c, l->page);
	for (uint32_t i = 0; i < l->count && l->is_probe; i++)
		run_space_hold(p, s, l->page[i], false);
	run_batch_build(s, l, p->start->can_move);
}

/* One batch of the space, or a probe of pages that were held; -EAGAIN, -ENOENT:
 * nothing can leave now. */
static int evict_batch(struct pager *p, struct space *s, bool is_probe,
		       struct policy_pick *c)
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
	l->is_probe = is_probe;
	pick(p, s, l, c);
	if (l->count == 0)
		return -ENOENT;
	buffer = run_writeback_take(p, s);
	if (buffer < 0)
		return buffer;
	err = protect(s, l);
	if (err) {
		run_writeback_give_up(p, (uint32_t)buffer);
		return err;
	}
	l->buffer = (uint32_t)buffer;
	overflow_sent(&p->overflow, budget - c->budget);
	post(s, l);
	return 0;
}

/* ---- collecting ---------------------------------------------------------- */

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

/* Of pages that moved, the agent was given zeros at the old place. These stay
 * protected: the table will know nothing of them until they are written to. */
static void put_back(struct pager *p, struct space *s, const struct leaving *l,
		     const struct run_outcome *o, uint64_t moved)
{
	for (uint32_t i = 0; i < l->count; i++) {
		struct run_page *e = &s->pages.page[l->page[i]];

		if (!((o->failed | moved) >> i & 1))
			continue;
		run_page_set_state(e, RUN_RESIDENT);
		run_policy_stayed(e, false);
		if (moved >> i & 1)
			continue;
		(void)!run_uffd_unprotect(
			s->uffd, run_space_addr(s, l->page[i]), RUN_PAGE_BYTES);
		if (o->spared >> i & 1)
			continue;
		if ((o->refused >> i & 1) && !e->by_copy) {
			e->by_copy = 1; /* the next time it is guarded */
			run_policy_stayed(e, true);
			continue;
		}
		run_space_hold(p, s, l->page[i], true);
		count(&p->stats->pinned, 1);
	}
	if (o->failed & o->locked)
		run_marks_locked(p, s, o->failed & o->locked);
}

static void give_up_page(struct pager *p, struct space *s, uint64_t page)
{
	run_space_set_untouched(p, s, page);
	count(&p->stats->discarded, 1);
}

/*
 * Which pages of the batch the program gave up meanwhile. Of each page that the
 * agent dropped by advice the kernel told us once; what it told more often is
 * the program's. A page that stayed is zeros when it is asked for.
 */
static void sort_removes(struct pager *p, struct space *s,
			 const struct leaving *l, const struct run_outcome *o,
			 uint64_t failed)
{
	unsigned between = o->is_single ? 0 : 1;

	for (uint32_t i = 0; i < l->count; i++) {
		struct run_page *e = &s->pages.page[l->page[i]];
		unsigned removes = e->removes;

		e->removes = 0;
		if (!(failed >> i & 1) && removes > (o->dropped >> i & 1))
			give_up_page(p, s, l->page[i]);
	}
	for (uint32_t i = 0; i < l->stretch_count; i++) {
		uint64_t first =
			(l->stretch[i].start - s->start) >> RUN_PAGE_SHIFT;
		uint64_t end = first + (l->stretch[i].bytes >> RUN_PAGE_SHIFT);

		run_set_for_each (at, &s->pages.touched, first, end) {
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
	/* Read once: it is the program's memory. */
	struct run_outcome o = b->out;
	uint64_t moved = missed(s, l), before = p->resident;

	run_writeback_filled(p, s, l, b->hash, o.zero, o.failed | moved);
	put_back(p, s, l, &o, moved);
	sort_removes(p, s, l, &o, o.failed | moved);
	if (l->is_probe && p->resident < before)
		run_policy_probe_helped(p);
}

bool run_evict_collect(struct pager *p, struct space *s)
{
	bool any = false;

	if (!run_space_is_leaving(s))
		return false;
	/* RUN-D1 */
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

/* ---- steps --------------------------------------------------------------- */

static bool probe(struct pager *p)
{
	struct policy_pick c = {0};
	bool any = false;

	if (!run_policy_probe_is_due(p))
		return false;
	for (struct space *s = p->spaces; s; s = s->next)
		if (s->held_count)
			any |= evict_batch(p, s, true, &c) == 0;
	return any;
}

void run_evict_try(struct pager *p)
{
	struct policy_pick c = {0};
	struct space *s;

	if (!run_policy_retry_is_due(p))
		return;
	s = run_policy_next_space(p);
	if (s && evict_batch(p, s, false, &c) == 0)
		run_reclaim_kick(p);
}

bool run_evict_step(struct pager *p)
{
	uint64_t leaving;
	unsigned tries = 0, nothing = 0, spaces = 0;
	struct policy_pick c = {0};
	bool any = false;

	for (struct space *s = p->spaces; s; s = s->next) {
		any |= run_evict_collect(p, s);
		spaces++;
	}
	any |= probe(p);
	leaving = run_batches_pages(p);
	while (run_policy_is_over(p, leaving) && tries < spaces) {
		struct space *s = run_policy_next_space(p);
		int err = s ? evict_batch(p, s, false, &c) : 0;

		nothing += err == -ENOENT;
		tries++;
		if (s && !err) {
			leaving = run_batches_pages(p);
			tries = nothing = 0;
			any = true;
		}
	}
	/* What can leave at all is less than a batch. */
	if (p->overflow.is_full && nothing && nothing == tries &&
	    c.spared + leaving < RUN_BATCH_PAGES)
		overflow_raise(&p->overflow, p->policy.limit_pages,
			       run_policy_load(p));
	return any;
}
