/* SPDX-License-Identifier: Apache-2.0 */
/* Faults: where the page is decides how it comes. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/relax.h"
#include "pager_priv.h"
#include "uffd.h"

/* How long a fault waits for room; and once that was in vain (a stopped program
 * lets go of nothing), until something leaves again. */
#define ROOM_NS	 200000000ull
#define STUCK_NS 20000000ull

void run_fault_later(struct pager *p, const struct waiting *w)
{
	/* Events are not read when this is nearly full. */
	ASSERT(p->waiting_count < RUN_WAITING_MAX);
	p->waiting[p->waiting_count++] = *w;
}

void run_fault_retry(struct pager *p)
{
	unsigned n = p->waiting_count;
	struct waiting w[64];

	/* What still cannot be served comes back to the end of the list. */
	while (n > 0) {
		unsigned part = n < ARRAY_LEN(w) ? n : ARRAY_LEN(w);

		memcpy(w, p->waiting, part * sizeof(w[0]));
		memmove(p->waiting, p->waiting + part,
			(p->waiting_count - part) * sizeof(w[0]));
		p->waiting_count -= part;
		n -= part;
		for (unsigned i = 0; i < part; i++)
			run_fault_serve(p, &w[i]);
	}
}

/* ---- one page ----------------------------------------------------------- */

bool run_fault_mapped(struct pager *p, const struct waiting *w, int err)
{
	struct space *s = w->space;

	switch (err) {
	case 0:
		break;
	case -EEXIST:
		/* Somebody else's fault brought it, or it is a forked child's
		 * copy that is still protected. */
		if (w->is_wp)
			(void)!run_uffd_unprotect(s->uffd,
						  run_space_addr(s, w->page),
						  RUN_PAGE_BYTES);
		run_uffd_wake(s->uffd, run_space_addr(s, w->page),
			      RUN_PAGE_BYTES);
		break;
	case -EAGAIN:
		run_fault_later(p, w);
		return false;
	case -ESRCH:
		s->is_dead = true;
		return false;
	default:
		/* The program took the addresses away: it meets that itself. */
		run_uffd_wake(s->uffd, run_space_addr(s, w->page),
			      RUN_PAGE_BYTES);
		return false;
	}
	run_space_set_resident(p, s, w->page);
	return true;
}

void run_fault_lost(struct pager *p, const struct waiting *w)
{
	w->space->pages.page[w->page].state = RUN_LOST;
	count(&p->stats->lost_pages, 1);
	run_pager_complain(p, w->space);
	run_fault_sigbus(p, w);
}

void run_fault_sigbus(struct pager *p, const struct waiting *w)
{
	struct space *s = w->space;

	if (run_uffd_poison(s->uffd, run_space_addr(s, w->page)) == 0)
		return;
	/* A kernel without poison. A process that survives the signal would
	 * fault again for ever. */
	if (s->pid)
		(void)kill(s->pid, SIGBUS);
	run_fault_later(p, w);
}

unsigned run_fault_room(const struct pager *p, unsigned want)
{
	uint64_t most = run_room_limit(p) + p->slack_pages;
	uint64_t load = run_evict_load(p);

	if (load + want <= most)
		return want;
	return load < most ? (unsigned)(most - load) : 1;
}

/* First touches in ascending order get ever more pages at once. */
static void serve_zero(struct pager *p, const struct waiting *w)
{
	struct space *s = w->space;
	unsigned window = 1, n = 1;
	int got;

	if (w->page == s->zero_next)
		window = run_fault_room(
			p, u32_min(2 * s->zero_window, RUN_ZERO_WINDOW_MAX));
	while (n < window && w->page + n < RUN_RANGE_PAGES &&
	       s->pages.page[w->page + n].state == RUN_UNTOUCHED &&
	       !run_evict_covers(s, w->page + n))
		n++;
	got = run_uffd_zero(s->uffd, run_space_addr(s, w->page), n);
	/* The kernel wants all of it in one mapping, and the program's advice
	 * and rights may have cut the range into several. */
	if (got == -ENOENT && n > 1) {
		n = window = 1;
		got = run_uffd_zero(s->uffd, run_space_addr(s, w->page), n);
	}
	if (!run_fault_mapped(p, w, got < 0 ? got : 0))
		return;
	count(&p->stats->zero_fills, 1);
	for (int i = 1; i < got; i++) {
		run_space_set_resident(p, s, w->page + (uint64_t)i);
		count(&p->stats->zero_fills, 1);
	}
	s->zero_window = window;
	s->zero_next = w->page + n;
}

/* ---- any fault ---------------------------------------------------------- */

static void wait_for_room(struct pager *p, uint64_t end)
{
	while (run_evict_load(p) > run_room_limit(p) + p->slack_pages / 2) {
		/* Agents wait for us, too. */
		run_events_meanwhile(p);
		/* Not only waiting: its core may be taken by others. */
		if (run_reclaim_turn(p) || run_writeback_return(p))
			continue;
		if (!run_evict_leaving(p) && !run_writeback_is_storing(p))
			return; /* nothing can leave: over the limit, then */
		if (run_pager_now_ns() > end) {
			p->is_stuck = true;
			return;
		}
		run_reclaim_kick(p);
		lock_drop(&p->lock);
		relax_briefly();
		lock_take(&p->lock);
	}
}

/* Faults come faster than pages leave: gives reclaim thread and agents time. */
static void make_room(struct pager *p)
{
	uint64_t start, now;

	if (run_evict_load(p) < run_room_limit(p) + p->slack_pages)
		return;
	start = run_pager_now_ns();
	wait_for_room(p, start + (p->is_stuck ? STUCK_NS : ROOM_NS));
	now = run_pager_now_ns();
	if (run_threads_waited(&p->threads, now, now - start))
		run_reclaim_place(p);
}

/* Where no far memory is: what grew when the program moved memory out of the
 * range. What was moved has come there already (move.c). */
static void serve_outside(struct pager *p, const struct waiting *w)
{
	uint64_t addr = run_space_addr(w->space, w->page);
	int got = run_uffd_zero(w->space->uffd, addr, 1);

	if (got == -EAGAIN)
		run_fault_later(p, w);
	else if (got < 0)
		run_uffd_wake(w->space->uffd, addr, RUN_PAGE_BYTES);
}

static bool is_bell(const struct waiting *w)
{
	return w->page == 0 || (!w->space->channel && w->page < RUN_BELL_PAGES);
}

/* There already (then only protected, or somebody else's fault was quicker),
 * or dropped by the program, which we were told before it was done: then it is
 * zeros. */
static void serve_resident(struct pager *p, const struct waiting *w)
{
	int got = -EEXIST;

	if (!w->is_wp)
		got = run_uffd_zero(w->space->uffd,
				    run_space_addr(w->space, w->page), 1);
	(void)run_fault_mapped(p, w, got < 0 ? got : 0);
}

/*
 * The agent copies a page that is not there: the program gave it up just then.
 * Its batch ends only when it goes on, so it waits for nothing. The page
 * goes on leaving, as zeros, and like all that leave it may not be written.
 */
static void serve_agent(struct pager *p, const struct waiting *w)
{
	static const uint8_t zeros[RUN_PAGE_BYTES];
	struct space *s = w->space;
	int err = run_uffd_copy_protected(s->uffd, run_space_addr(s, w->page),
					  zeros);

	if (err == -EAGAIN)
		run_fault_later(p, w);
	else if (err)
		run_uffd_wake(s->uffd, run_space_addr(s, w->page),
			      RUN_PAGE_BYTES);
	/* Or it was moved, with its bytes: then it has not left. */
	if (!err && s->events.count)
		s->pages.page[w->page].is_missed = 1;
}

bool run_fault_is_agents(const struct waiting *w)
{
	const struct run_channel *c = w->space->channel;

	return c && w->page < RUN_RANGE_PAGES &&
	       atomic_load_explicit(&c->agent_tid, memory_order_relaxed) ==
		       w->tid;
}

void run_fault_serve(struct pager *p, const struct waiting *w)
{
	struct space *s = w->space;

	if (s->is_dead)
		return;
	if (run_fault_is_agents(w)) {
		serve_agent(p, w);
		return;
	}
	if (s->events.count) {
		run_fault_later(p, w);
		return;
	}
	if (w->page >= RUN_RANGE_PAGES) {
		serve_outside(p, w);
		return;
	}
	if (is_bell(w)) {
		run_call_answer(p, w);
		return;
	}
	make_room(p);
	/* Making room takes note of what is told meanwhile. */
	if (s->events.count || run_evict_covers(s, w->page)) {
		run_fault_later(p, w);
		return;
	}
	switch ((enum run_state)s->pages.page[w->page].state) {
	case RUN_UNTOUCHED:
		if (p->overflow.is_full)
			run_room_tell(p);
		if (run_room_is_spent(p)) {
			run_room_fail(p, w);
			return;
		}
		/* Also for a write that waited until its page had left, all
		 * zeros: nothing is there to unprotect. */
		serve_zero(p, w);
		return;
	case RUN_RESIDENT:
		serve_resident(p, w);
		return;
	case RUN_STAGED:
	case RUN_FAR:
		run_stream_serve(p, w);
		return;
	case RUN_LOST:
		run_fault_lost(p, w);
		return;
	case RUN_LEAVING:
		break;
	}
	run_fault_later(p, w); /* LEAVING pages are covered: not reached */
}
