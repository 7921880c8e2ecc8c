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

#define FINISH_NS 1000000000ull

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

/* ---- picking ------------------------------------------------------------ */

struct choice {
	uint64_t budget; /* pages that need a new place */
	uint64_t spared; /* pages that may leave the next time */
};

/* A page that was wanted back is spared, the longer the more often it was; one
 * that could not leave, once. */
static bool may_leave(struct run_page *e, struct choice *c)
{
	bool needs_room = !e->slot || e->is_kept;

	if (e->state != RUN_RESIDENT || (needs_room && !c->budget))
		return false;
	if (e->heat == 0) {
		c->budget -= needs_room;
		return true;
	}
	e->heat--;
	c->spared++;
	return false;
}

static void add_page(struct leaving *l, const struct space *s, uint64_t page,
		     bool joins)
{
	uint64_t addr = run_space_addr(s, page);
	struct run_stretch *last = &l->stretch[l->stretch_count - 1];

	if (joins && l->stretch_count &&
	    addr - last->start - last->bytes <
		    (uint64_t)RUN_STRETCH_GAP * RUN_PAGE_BYTES) {
		last->bytes = addr + RUN_PAGE_BYTES - last->start;
	} else {
		l->stretch[l->stretch_count++] =
			(struct run_stretch){addr, RUN_PAGE_BYTES};
	}
	l->page[l->count++] = page;
}

/* Fills the batch from the hand on, at most twice around. */
static void pick(struct space *s, struct leaving *l, struct choice *c)
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
		if (may_leave(&s->pages.page[at], c)) {
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
static int evict_batch(struct pager *p, struct space *s, struct choice *c)
{
	struct leaving *l = &s->leaving[s->posted % RUN_BATCHES];
	uint64_t budget;
	int tray, err;

	if (!s->channel)
		return -ENOENT;
	if (s->is_dead || s->posted - s->collected == RUN_BATCHES ||
	    !run_trays_are_ready(p))
		return -EAGAIN;
	budget = c->budget = run_room_budget(p);
	pick(s, l, c);
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
	run_room_sent(p, budget - c->budget);
	post(s, l);
	return 0;
}

static void put_back(struct space *s, const struct leaving *l, uint64_t failed)
{
	for (uint32_t i = 0; i < l->count; i++) {
		struct run_page *e = &s->pages.page[l->page[i]];

		if (!(failed >> i & 1))
			continue;
		e->state = RUN_RESIDENT;
		e->heat = 1;
		(void)!run_uffd_unprotect(
			s->uffd, run_space_addr(s, l->page[i]), RUN_PAGE_BYTES);
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
		uint64_t failed = b->failed;

		/* Off the list first: served faults must not wait for it. */
		s->collected++;
		run_tray_filled(p, s, l, b, failed);
		put_back(s, l, failed);
		any = true;
	}
	if (any)
		p->is_stuck = false;
	return any;
}

bool run_evict_finish(struct pager *p, struct space *s)
{
	uint64_t end = run_pager_now_ns() + FINISH_NS;

	while (run_space_is_leaving(s)) {
		if (!run_evict_collect(p, s)) {
			if (s->is_dead || run_pager_now_ns() > end)
				return false;
			(void)sched_yield();
		}
	}
	return true;
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

void run_evict_try(struct pager *p)
{
	struct choice c = {0};
	struct space *s;

	if (!p->overflow.is_full || p->resident <= p->limit_pages ||
	    run_pager_now_ns() < p->overflow.retry_ns)
		return;
	s = next_space(p);
	if (s && evict_batch(p, s, &c) == 0)
		run_porter_kick(p);
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
	leaving = run_evict_leaving(p);
	while (p->resident > run_room_limit(p) + leaving && tries < spaces) {
		struct space *s = next_space(p);
		int err = s ? evict_batch(p, s, &c) : 0;

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
