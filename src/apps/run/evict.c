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

/* Pages that are only demoted stay mapped, and so RESIDENT. */
static void post(const struct pager *p, struct space *s,
		 const struct leaving *l)
{
	struct run_channel *c = s->channel;
	struct run_batch *b = &c->batch[s->posted % RUN_BATCHES];
	bool is_demotion = l->kind == BATCH_DEMOTE;

	b->buffer_page = l->buffer * RUN_BATCH_PAGES;
	b->page_count = l->count;
	b->stretch_count = l->stretch_count;
	b->to_node = is_demotion ? p->tiers.node[TIER_SLOW] + 1 : 0;
	b->guarded = l->guarded;
	b->out = (struct run_outcome){.failed = ~0ull};
	for (uint32_t i = 0; i < l->count; i++) {
		struct run_page *e = &s->pages.page[l->page[i]];

		b->page[i] = run_space_addr(s, l->page[i]);
		if (is_demotion)
			e->is_demoted = 1;
		else
			run_page_set_state(e, RUN_LEAVING);
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

static void pick_with_hand(struct space *s, struct leaving *l,
			   struct policy_pick *c, enum policy_want want)
{
	c->want = want;
	l->count = run_policy_pick(&s->policy, &s->pages, s->resident_count, c,
				   l->page);
}

static void pick(struct pager *p, struct space *s, struct leaving *l,
		 struct policy_pick *c)
{
	switch (l->kind) {
	case BATCH_FAR:
		/* What is hot is on top, as far as is known. */
		l->count = 0;
		if (p->tiers.has_slow)
			pick_with_hand(s, l, c, POLICY_SLOW);
		if (!l->count)
			pick_with_hand(s, l, c, POLICY_ANY);
		break;
	case BATCH_PROBE:
		c->want = POLICY_ANY;
		l->count =
			run_policy_pick_held(&s->policy, &s->pages, c, l->page);
		for (uint32_t i = 0; i < l->count; i++)
			run_space_hold(p, s, l->page[i], false);
		break;
	case BATCH_SAMPLE:
	case BATCH_DEMOTE:
		pick_with_hand(s, l, c, c->want);
		break;
	}
}

/* Takes what is picked out, to that buffer. */
static int send_out(struct pager *p, struct space *s, struct leaving *l,
		    int buffer)
{
	int err;

	if (buffer < 0)
		return buffer;
	run_batch_build(s, l, p->start->can_move);
	err = protect(s, l);
	if (err) {
		run_writeback_give_up(p, (uint32_t)buffer);
		return err;
	}
	l->buffer = (uint32_t)buffer;
	post(p, s, l);
	return 0;
}

/* One batch of the space, or a probe of pages that were held; -EAGAIN, -ENOENT:
 * nothing can leave now. */
static int evict_batch(struct pager *p, struct space *s, enum batch_kind kind,
		       struct policy_pick *c)
{
	struct leaving *l = &s->leaving[s->posted % RUN_BATCHES];
	uint64_t budget;
	int err;

	if (!s->channel)
		return -ENOENT;
	if (!can_take(p, s) || !run_writeback_is_ready(p))
		return -EAGAIN;
	err = ask(s);
	if (err)
		return err;
	budget = c->budget = run_room_budget(p);
	l->kind = kind;
	pick(p, s, l, c);
	if (l->count == 0)
		return -ENOENT;
	err = send_out(p, s, l, run_writeback_take(p, s));
	if (!err)
		overflow_sent(&p->overflow, budget - c->budget);
	return err;
}

/* ---- to other nodes ------------------------------------------------------ */

/* What only goes to another node takes no place from what leaves. */
static int begin_aside(struct pager *p, struct space *s, enum batch_kind kind,
		       enum policy_want want, struct leaving **out)
{
	struct leaving *l = &s->leaving[s->posted % RUN_BATCHES];
	struct policy_pick c = {.want = want, .budget = UINT64_MAX};

	if (!s->channel || !can_take(p, s) ||
	    s->posted - s->collected >= RUN_BATCHES - 1 || ask(s) != 0)
		return -EAGAIN;
	l->kind = kind;
	pick(p, s, l, &c);
	*out = l;
	return l->count ? 0 : -ENOENT;
}

int run_evict_sample(struct pager *p, struct space *s, bool of_top)
{
	struct leaving *l;
	int err = begin_aside(p, s, BATCH_SAMPLE,
			      of_top ? POLICY_DEMOTE : POLICY_SAMPLE, &l);

	return err ? err : send_out(p, s, l, run_writeback_take_sample(p, s));
}

static bool demote(struct pager *p)
{
	bool any = false;

	for (struct space *s = p->spaces; s && run_tiers_is_over(p);
	     s = s->next) {
		struct leaving *l;

		if (s->is_rooted ||
		    begin_aside(p, s, BATCH_DEMOTE, POLICY_DEMOTE, &l) != 0)
			continue;
		l->stretch_count = 0;
		l->guarded = l->guarded_stretches = 0;
		p->tiers.demoting += l->count;
		post(p, s, l);
		any = true;
	}
	return any;
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
		/* That it cannot leave now matters only if it has to. */
		if ((o->spared >> i & 1) || l->kind == BATCH_SAMPLE)
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
	uint64_t moved, before = p->resident;

	if (l->kind == BATCH_DEMOTE) {
		run_tiers_demoted(p, s, l, &o);
		return;
	}
	moved = missed(s, l);
	run_writeback_filled(p, s, l, b->hash, o.zero, o.failed | moved);
	put_back(p, s, l, &o, moved);
	sort_removes(p, s, l, &o, o.failed | moved);
	if (l->kind == BATCH_PROBE && p->resident < before)
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
			any |= evict_batch(p, s, BATCH_PROBE, &c) == 0;
	return any;
}

void run_evict_try(struct pager *p)
{
	struct policy_pick c = {0};
	struct space *s;

	if (!run_policy_retry_is_due(p))
		return;
	s = run_policy_next_space(p);
	if (s && evict_batch(p, s, BATCH_FAR, &c) == 0)
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
	any |= demote(p);
	leaving = run_batches_pages(p);
	while (run_policy_is_over(p, leaving) && tries < spaces) {
		struct space *s = run_policy_next_space(p);
		int err = s ? evict_batch(p, s, BATCH_FAR, &c) : 0;

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
