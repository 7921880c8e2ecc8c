/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults. The state of the page decides what a fault does:
 *
 *	UNTOUCHED	zeros are mapped; SIGBUS if there is no room anywhere
 *	RESIDENT	its protection ends; zeros, if the program dropped it
 *	LEAVING		the fault waits until the batch has ended
 *	STAGED		the page comes back from its writeback buffer
 *	FAR		the page is loaded
 *	LOST		SIGBUS
 *
 * With a page that had left come those that its thread's trend foresees. What
 * the kernel says of the mapping decides how the fault ends (enum fault_end).
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "broker.h"
#include "pager_priv.h"
#include "room_priv.h"
#include "uffd.h"

/* ---- ends ---------------------------------------------------------------- */

enum fault_end run_fault_answered(const struct space *s, uint64_t page, int err)
{
	if (err == -EAGAIN)
		return FAULT_WAITS;
	if (err >= 0)
		return FAULT_MAPPED;
	/* The program took the addresses away: it meets that itself. */
	run_uffd_wake(s->uffd, run_space_addr(s, page), RUN_PAGE_BYTES);
	return FAULT_OVER;
}

/* The page of the table was mapped, or not. */
static enum fault_end mapped(struct pager *p, const struct fault *f, int err)
{
	struct space *s = f->space;
	uint64_t addr = run_space_addr(s, f->page);
	enum fault_end end;

	if (err == -ESRCH)
		s->is_dead = true;
	if (err == -EEXIST) {
		/* Somebody else's fault brought it, or it is a forked child's
		 * copy that is still protected. */
		if (f->is_wp)
			(void)!run_uffd_unprotect(s->uffd, addr,
						  RUN_PAGE_BYTES);
		run_uffd_wake(s->uffd, addr, RUN_PAGE_BYTES);
		err = 0;
	}
	end = run_fault_answered(s, f->page, err);
	if (end == FAULT_MAPPED)
		run_space_set_resident(p, s, f->page);
	return end;
}

/* SIGBUS, now and at every later access. */
static enum fault_end sigbus(struct pager *p, const struct fault *f)
{
	struct space *s = f->space;

	if (run_uffd_poison(s->uffd, run_space_addr(s, f->page)) == 0)
		return FAULT_OVER;
	/* A kernel without poison. A process that survives the signal would
	 * fault again for ever. */
	if (s->pid)
		run_broker_kill(p->broker, s->pid, SIGBUS);
	return FAULT_WAITS;
}

/* ---- pages that had not left --------------------------------------------- */

static int zero(struct pager *p, struct space *s, uint64_t page, unsigned n)
{
	return p->tiers.is_on
		       ? run_tiers_zero(p, s, page, n)
		       : run_uffd_zero(s->uffd, run_space_addr(s, page), n);
}

/* First touches in ascending order get ever more pages at once. */
static enum fault_end serve_untouched(struct pager *p, const struct fault *f)
{
	struct space *s = f->space;
	unsigned window = 1, n = 1;
	enum fault_end end;
	int got;

	if (p->overflow.is_full)
		run_room_tell(p);
	if (run_room_is_spent(p)) {
		run_room_complain(p, s);
		return sigbus(p, f);
	}
	if (f->page == s->zero_next)
		window = run_policy_room(
			p, u32_min(2 * s->zero_window, RUN_ZERO_WINDOW_MAX));
	while (n < window && f->page + n < RUN_RANGE_PAGES &&
	       s->pages.page[f->page + n].state == RUN_UNTOUCHED &&
	       !run_batch_covers(s, f->page + n))
		n++;
	got = zero(p, s, f->page, n);
	/* The kernel wants all of it in one mapping, and the program's advice
	 * and rights may have cut the range into several. */
	if (got == -ENOENT && n > 1) {
		n = window = 1;
		got = zero(p, s, f->page, n);
	}
	end = mapped(p, f, got);
	if (end != FAULT_MAPPED)
		return end;
	for (int i = 1; i < got; i++)
		run_space_set_resident(p, s, f->page + (uint64_t)i);
	count(&p->stats->zero_fills, got > 0 ? (uint64_t)got : 1);
	s->zero_window = window;
	s->zero_next = f->page + n;
	return end;
}

/* There already (then only protected, or somebody else's fault was quicker),
 * or dropped by the program, which we were told before it was done: then it is
 * zeros. */
static enum fault_end serve_resident(struct pager *p, const struct fault *f)
{
	struct space *s = f->space;
	uint64_t addr = run_space_addr(s, f->page);

	if (f->is_wp)
		return mapped(p, f, -EEXIST);
	if (!p->tiers.is_on)
		return mapped(p, f, run_uffd_zero(s->uffd, addr, 1));
	/* It is counted: it stays on its node. */
	run_tiers_aim_at(p,
			 s->pages.page[f->page].is_slow ? TIER_SLOW : TIER_TOP);
	return mapped(p, f, run_uffd_copy(s->uffd, addr, p->tiers.zeros, 1));
}

static enum fault_end serve_leaving(struct pager *p, const struct fault *f)
{
	return FAULT_WAITS;
}

static enum fault_end serve_lost(struct pager *p, const struct fault *f)
{
	run_page_set_state(&f->space->pages.page[f->page], RUN_LOST);
	count(&p->stats->lost_pages, 1);
	run_pager_complain(p, f->space);
	return sigbus(p, f);
}

/* ---- pages that come back ------------------------------------------------ */

static int put(const struct space *s, uint64_t page, const void *bytes)
{
	return run_uffd_copy(s->uffd, run_space_addr(s, page), bytes, 1);
}

/* To the node that it left, but for a page of a sample that is wanted. */
static enum fault_end put_staged(struct pager *p, const struct fault *f,
				 bool is_wanted)
{
	struct space *s = f->space;
	struct run_page *e = &s->pages.page[f->page];
	uint32_t buffer_page = e->buffer_page;
	bool is_sample = p->tiers.is_on && run_sample_aim(p, e, is_wanted);
	enum fault_end end = mapped(
		p, f, put(s, f->page, run_writeback_bytes(p, buffer_page)));

	if (end != FAULT_MAPPED)
		return end;
	/* What the buffer has is nobody's. */
	run_writeback_forget(p, buffer_page);
	/* A sample that stays slow has not been spared from anything. */
	if (!is_sample || !e->is_slow)
		run_policy_came_back(e);
	if (is_sample)
		run_sample_came(p);
	else
		count(&p->stats->second, 1);
	return end;
}

/* n pages that lie one after the other, there as here; returns how many have
 * been dealt with. What cannot be put is fetched again when it is wanted. */
static unsigned put_run(struct pager *p, struct space *s, uint64_t page,
			const void *bytes, unsigned n)
{
	uint64_t addr = run_space_addr(s, page);
	int got;

	if (p->tiers.is_on)
		n = run_tiers_aim(p, s, page, n);
	got = run_uffd_copy(s->uffd, addr, bytes, n);

	/* The program's advice and rights may have cut the range. */
	if (got == -ENOENT && n > 1)
		got = run_uffd_copy(s->uffd, addr, bytes, 1);
	if (got < 0 && got != -EEXIST)
		return 1;
	n = got < 0 ? 1 : (unsigned)got;
	for (unsigned i = 0; i < n; i++)
		run_space_set_resident(p, s, page + i);
	count(&p->stats->prefetched, n);
	return n;
}

static void put_ahead(struct pager *p, struct space *s, const uint64_t pages[],
		      const struct page_op op[], unsigned n)
{
	unsigned i = 0;

	while (i < n) {
		unsigned run = 0;

		while (i + run < n && !op[i + run].result &&
		       pages[i + run] == pages[i] + run)
			run++;
		i += run ? put_run(p, s, pages[i], op[i].buf, run) : 1;
	}
}

/* The wanted page's thread runs while the others come. */
static enum fault_end bring_far(struct pager *p, const struct fault *f,
				const struct fetch *c, bool is_wanted)
{
	enum fault_end end = FAULT_OVER;
	uint32_t slot[RUN_PREFETCH_MAX + 1];
	struct far_load l;

	for (unsigned i = 0; i < c->far_count; i++)
		slot[i] = f->space->pages.page[c->far[i]].slot;
	run_far_load(&p->far, &l, c->far_count, slot, p->scratch);
	run_far_await(&p->far, &l.first);
	if (is_wanted && p->tiers.is_on)
		(void)run_tiers_aim(p, f->space, f->page, 1);
	if (is_wanted && l.op[0].result)
		end = serve_lost(p, f);
	else if (is_wanted)
		end = mapped(p, f, put(f->space, f->page, l.op[0].buf));
	if (is_wanted && end == FAULT_MAPPED)
		count(&p->stats->loads, 1);
	run_far_await(&p->far, &l.others);
	put_ahead(p, f->space, c->far + is_wanted, l.op + is_wanted,
		  c->far_count - is_wanted);
	return end;
}

/* What is in buffers and only foreseen stays there if it cannot be put. */
static void bring_staged(struct pager *p, struct space *s, const uint64_t *page,
			 unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct fault ahead = {.space = s, .page = page[i]};

		(void)put_staged(p, &ahead, false);
	}
}

static enum fault_end serve_staged(struct pager *p, const struct fault *f)
{
	struct space *s = f->space;
	bool is_sample =
		run_writeback_is_sample(p, s->pages.page[f->page].buffer_page);
	struct fetch c;
	enum fault_end end;

	run_prefetch_choose(p, f, &c);
	end = put_staged(p, f, true);
	/* What left with it or after it lies within that. */
	if (end == FAULT_MAPPED && !is_sample)
		run_policy_followed(&s->policy, f->page,
				    2ull * p->writeback.count * RUN_BATCH_PAGES,
				    s->resident_count);
	if (c.far_count)
		(void)bring_far(p, f, &c, false);
	bring_staged(p, s, c.staged + 1, c.staged_count - 1);
	return end;
}

static enum fault_end serve_far(struct pager *p, const struct fault *f)
{
	struct fetch c;
	enum fault_end end;

	run_prefetch_choose(p, f, &c);
	end = bring_far(p, f, &c, true);
	bring_staged(p, f->space, c.staged, c.staged_count);
	return end;
}

/* ---- any fault ----------------------------------------------------------- */

/* Where no far memory is: what grew when the program moved memory out of the
 * range. What was moved has come there already (move.c). */
static enum fault_end serve_outside(const struct fault *f)
{
	uint64_t addr = run_space_addr(f->space, f->page);

	return run_fault_answered(f->space, f->page,
				  run_uffd_zero(f->space->uffd, addr, 1));
}

static bool is_bell(const struct fault *f)
{
	return f->page == 0 || (!f->space->channel && f->page < RUN_BELL_PAGES);
}

/*
 * The agent copies a page that is not there: the program gave it up just then.
 * Its batch ends only when it goes on, so it waits for nothing. The page
 * goes on leaving, as zeros, and like all that leave it may not be written.
 */
static enum fault_end serve_agent(const struct fault *f)
{
	static const uint8_t zeros[RUN_PAGE_BYTES];
	struct space *s = f->space;
	int err = run_uffd_copy_protected(s->uffd, run_space_addr(s, f->page),
					  zeros);

	/* Or it was moved, with its bytes: then it has not left. */
	if (err > 0 && s->events.count)
		s->pages.page[f->page].is_missed = 1;
	return run_fault_answered(s, f->page, err);
}

bool run_fault_is_agents(const struct fault *f)
{
	const struct run_channel *c = f->space->channel;

	return c && f->page < RUN_RANGE_PAGES &&
	       atomic_load_explicit(&c->agent_tid, memory_order_relaxed) ==
		       f->tid;
}

static enum fault_end serve_page(struct pager *p, const struct fault *f)
{
	static enum fault_end (*const serve[RUN_STATES])(
		struct pager *, const struct fault *) = {
		[RUN_UNTOUCHED] = serve_untouched,
		[RUN_RESIDENT] = serve_resident,
		[RUN_LEAVING] = serve_leaving,
		[RUN_STAGED] = serve_staged,
		[RUN_FAR] = serve_far,
		[RUN_LOST] = serve_lost,
	};

	return serve[f->space->pages.page[f->page].state](p, f);
}

static enum fault_end serve(struct pager *p, const struct fault *f)
{
	struct space *s = f->space;

	if (s->is_dead)
		return FAULT_OVER;
	if (run_fault_is_agents(f))
		return serve_agent(f);
	if (s->events.count)
		return FAULT_WAITS;
	if (f->page >= RUN_RANGE_PAGES)
		return serve_outside(f);
	if (is_bell(f))
		return run_call_answer(p, f);
	run_reclaim_wait(p);
	/* Meanwhile note was taken of what is told. */
	if (s->events.count || run_batch_covers(s, f->page))
		return FAULT_WAITS;
	return serve_page(p, f);
}

void run_fault_bring(struct pager *p, struct space *s, uint64_t page)
{
	struct fault f = {.space = s, .page = page};
	enum run_state state = s->pages.page[page].state;

	if ((state == RUN_FAR || state == RUN_STAGED) &&
	    serve_page(p, &f) == FAULT_WAITS)
		run_fault_later(p, &f);
}

void run_fault_serve(struct pager *p, const struct fault *f)
{
	if (serve(p, f) == FAULT_WAITS)
		run_fault_later(p, f);
}

void run_fault_later(struct pager *p, const struct fault *f)
{
	/* Events are not read when this is nearly full. */
	ASSERT(p->waiting_count < RUN_WAITING_MAX);
	p->waiting[p->waiting_count++] = *f;
}

void run_fault_retry(struct pager *p)
{
	unsigned n = p->waiting_count;
	struct fault f[64];

	/* What still cannot be served comes back to the end of the list. */
	while (n > 0) {
		unsigned part = n < ARRAY_LEN(f) ? n : ARRAY_LEN(f);

		memcpy(f, p->waiting, part * sizeof(f[0]));
		memmove(p->waiting, p->waiting + part,
			(p->waiting_count - part) * sizeof(f[0]));
		p->waiting_count -= part;
		n -= part;
		for (unsigned i = 0; i < part; i++)
			run_fault_serve(p, &f[i]);
	}
}
