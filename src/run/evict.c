/* SPDX-License-Identifier: Apache-2.0 */
/* Eviction: a clock hand per space picks pages in the order of their addresses,
 * 64 at a time; the space's agent copies and drops them. */
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
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

/* A page that was wanted back is spared, the longer the more often it was; one
 * that could not leave, once. */
static bool may_leave(const struct space *s, uint64_t page)
{
	struct run_page *e = &s->pages.page[page];

	/* Where something else will be mapped, nothing is dropped. */
	if (e->state != RUN_RESIDENT || run_set_has(&s->pages.kept, page) ||
	    run_set_has(&s->pages.stuck, page) ||
	    run_set_has(&s->pages.alien, page))
		return false;
	if (e->heat == 0)
		return true;
	e->heat--;
	return false;
}

/* Whether nothing between the last page and this one is lost when all of it is
 * dropped: no mapping of somebody else, and nothing that may still be here. */
static bool is_free_between(const struct space *s, uint64_t last, uint64_t page)
{
	return last + 1 == page ||
	       (run_set_next_in(&s->pages.alien, last + 1, page) == page &&
		run_set_next_in(&s->pages.vague, last + 1, page) == page);
}

static void add_page(struct leaving *l, const struct space *s, uint64_t page,
		     bool joins)
{
	uint64_t addr = run_space_addr(s, page);
	struct run_stretch *last = &l->stretch[l->stretch_count - 1];

	if (joins && l->stretch_count &&
	    addr - last->start - last->bytes <
		    (uint64_t)RUN_STRETCH_GAP * RUN_PAGE_BYTES &&
	    is_free_between(s, l->page[l->count - 1], page)) {
		last->bytes = addr + RUN_PAGE_BYTES - last->start;
	} else {
		l->stretch[l->stretch_count++] =
			(struct run_stretch){addr, RUN_PAGE_BYTES};
	}
	l->page[l->count++] = page;
}

/* Fills the batch from the hand on, at most twice around. */
static void pick(struct space *s, struct leaving *l)
{
	uint64_t seen = 0;
	uint64_t at = run_set_next(&s->pages.resident, s->hand.at);
	bool joins = false;

	l->count = l->stretch_count = 0;
	while (l->count < RUN_BATCH_PAGES && seen++ < 2 * s->resident_count) {
		if (at >= RUN_RANGE_PAGES) {
			/* A batch does not go around: its pages ascend. */
			if (l->count)
				break;
			at = run_set_next(&s->pages.resident, 0);
			if (at >= RUN_RANGE_PAGES)
				break;
		}
		if (may_leave(s, at)) {
			add_page(l, s, at, joins);
			joins = true;
		} else {
			joins = false;
		}
		at = run_set_next(&s->pages.resident, at + 1);
	}
	s->hand.at = at >= RUN_RANGE_PAGES ? 0 : at;
}

/* ---- batches ------------------------------------------------------------ */

static void unprotect(struct space *s, const struct leaving *l, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		/* A failure means that the process forks or is gone: then its
		 * next write faults and is sorted out there. */
		(void)!run_uffd_unprotect(s->uffd, l->stretch[i].start,
					  l->stretch[i].bytes);
}

static int protect(struct space *s, const struct leaving *l)
{
	for (uint32_t i = 0; i < l->stretch_count; i++) {
		int err = run_uffd_protect(s->uffd, l->stretch[i].start,
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

	b->tray_page = l->tray * RUN_BATCH_PAGES;
	b->page_count = l->count;
	b->stretch_count = l->stretch_count;
	b->failed = ~0ull;
	b->dropped = b->locked = 0;
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

/* One batch of the space; -EAGAIN, -ENOENT: nothing can leave now. */
static int evict_batch(struct pager *p, struct space *s)
{
	struct leaving *l = &s->leaving[s->posted % RUN_BATCHES];
	int tray, err;

	/* What was told and not done yet is about the table as it is. */
	if (!s->channel || s->is_dead || s->events.count ||
	    s->posted - s->collected == RUN_BATCHES)
		return -EAGAIN;
	if (s->resident_count <= s->stuck_count)
		return -ENOENT;
	pick(s, l);
	if (l->count == 0)
		return -ENOENT;
	tray = run_trays_take(p, s);
	if (tray < 0)
		return tray;
	err = protect(s, l);
	if (err) {
		p->trays.tray[tray].state = TRAY_FREE;
		return err;
	}
	l->tray = (uint32_t)tray;
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

/* Of pages that moved, the agent was given zeros at the old place. These stay
 * protected: the table will know nothing of them until they are written to. */
static void put_back(struct space *s, const struct leaving *l, uint64_t failed,
		     uint64_t moved)
{
	for (uint32_t i = 0; i < l->count; i++) {
		struct run_page *e = &s->pages.page[l->page[i]];

		if (!((failed | moved) >> i & 1))
			continue;
		e->state = RUN_RESIDENT;
		e->heat = 1;
		if (!(moved >> i & 1))
			(void)!run_uffd_unprotect(s->uffd,
						  run_space_addr(s, l->page[i]),
						  RUN_PAGE_BYTES);
	}
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

bool run_evict_collect(struct pager *p, struct space *s)
{
	bool any = false;

	if (!run_space_is_leaving(s))
		return false;
	/* Pairs with D1. */
	while (run_space_is_leaving(s) &&
	       atomic_load_explicit(&s->channel->done, memory_order_acquire) !=
		       s->collected) {
		struct leaving *l = &s->leaving[s->collected % RUN_BATCHES];
		const struct run_batch *b =
			&s->channel->batch[s->collected % RUN_BATCHES];
		/* Read once: it is the program's memory. */
		uint64_t failed = b->failed, locked = b->locked, moved;

		/* Off the list first: served faults must not wait for it. */
		s->collected++;
		moved = missed(s, l);
		run_tray_filled(p, s, l, b, failed | moved);
		put_back(s, l, failed, moved);
		sort_removes(p, s, l, b, failed | moved);
		if (failed & locked)
			run_marks_stick(p, s, l->page, l->count,
					failed & locked);
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

bool run_evict_step(struct pager *p)
{
	uint64_t leaving;
	unsigned tries = 0, spaces = 0;
	bool any = false;

	for (struct space *s = p->spaces; s; s = s->next) {
		any |= run_evict_collect(p, s);
		spaces++;
	}
	leaving = run_evict_leaving(p);
	while (p->resident > p->limit_pages + leaving && tries < spaces) {
		struct space *s = next_space(p);

		if (s && evict_batch(p, s) == 0) {
			leaving = run_evict_leaving(p);
			tries = 0;
			any = true;
		} else {
			tries++;
		}
	}
	return any;
}
