/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of slow pages: taken out to buffers that are not stored, so that a
 * page which is wanted soon is seen, and promoted. */
#include <errno.h>

#include "base/clock.h"
#include "pager_priv.h"
#include "uffd.h"

enum {
	TICK_NS = 10000000,
	/* Buffers that are given back at a time: faults wait that long. */
	GIVE_BACK_MAX = 4,
};

/* ---- wanted -------------------------------------------------------------- */

static struct wb_buffer *buffer_of(const struct pager *p, uint32_t buffer_page)
{
	return &p->writeback.buffer[buffer_page / RUN_BATCH_PAGES];
}

void run_sample_came(struct pager *p)
{
	enum tier_verdict v = p->tiers.verdict;
	_Atomic uint64_t *const counter[TIER_VERDICTS] = {
		[TIER_HOT] = &p->stats->promoted,
		[TIER_COLD] = &p->stats->cold,
		[TIER_LIMITED] = &p->stats->limited,
		[TIER_GUARDED] = &p->stats->guarded,
	};

	if (v < TIER_VERDICTS)
		count(counter[v], 1);
}

/* More than a little above its limit, the top node takes none: what should
 * leave it does not. */
static struct tier_top look_at_top(const struct pager *p)
{
	const struct tier_fill *top = &p->tiers.fill[TIER_TOP];

	return (struct tier_top){
		.has_room = tier_fill_has_room(top),
		.is_guarded =
			tier_guard_is_closed(&p->tiers.guard) ||
			top->pages > top->limit_pages + p->policy.slack_pages,
	};
}

static enum tier_verdict judge(struct pager *p, const struct wb_buffer *b)
{
	uint64_t now = clock_mono_ns();

	return tier_promote_judge(&p->tiers.promote, now, now - b->filled_ns, 1,
				  look_at_top(p));
}

bool run_sample_aim(struct pager *p, struct run_page *e, bool is_wanted)
{
	bool is_sample = run_writeback_is_sample(p, e->buffer_page);

	/* What was on top stays there: it is in use. */
	if (is_sample && is_wanted && e->is_slow) {
		p->tiers.verdict = judge(p, buffer_of(p, e->buffer_page));
		e->is_slow = p->tiers.verdict != TIER_HOT;
	} else {
		p->tiers.verdict = TIER_VERDICTS;
	}
	run_tiers_aim_at(p, e->is_slow ? TIER_SLOW : TIER_TOP);
	return is_sample;
}

/* ---- not wanted ---------------------------------------------------------- */

/* Nobody wants it, and others want its place. */
static void demote_cold(struct pager *p, struct run_page *e)
{
	const struct tiers *t = &p->tiers;

	if (e->is_slow || tier_fill_has_room(&t->fill[TIER_TOP]) ||
	    tier_demote(TIER_TOP, &t->fill[TIER_SLOW]) != TIER_SLOW)
		return;
	e->is_slow = 1;
	count(&p->stats->demoted, 1);
}

/* True: the page is not the buffer's any more. */
static bool give_back(struct pager *p, uint32_t buffer_page, struct space *s,
		      uint64_t page)
{
	int err;

	/* A batch under way drops all that is in its stretches; and a child
	 * whose fork was read would lack what comes now. */
	if (s->is_dead || s->events.count || run_batch_covers(s, page))
		return false;
	demote_cold(p, &s->pages.page[page]);
	(void)run_sample_aim(p, &s->pages.page[page], false);
	err = run_uffd_copy(s->uffd, run_space_addr(s, page),
			    run_writeback_bytes(p, buffer_page), 1);
	if (err == -ENOENT) {
		/* The program took the addresses away. */
		run_space_discard(p, s, page, 1);
		return true;
	}
	if (err < 0 && err != -EEXIST)
		return false;
	run_writeback_forget(p, buffer_page);
	run_space_set_resident(p, s, page);
	return true;
}

static bool is_idle(const struct wb_buffer *b)
{
	return (b->state == WB_HELD || b->state == WB_CLEAN) &&
	       !b->is_returning;
}

/* True: it was time to. */
static bool give_back_old(struct pager *p, uint32_t buffer, uint64_t now)
{
	struct wb_buffer *b = &p->writeback.buffer[buffer];

	if (!is_idle(b))
		return false;
	if (b->live &&
	    now - b->filled_ns < tier_promote_threshold_ns(&p->tiers.promote))
		return false;
	for (unsigned i = 0; i < RUN_BATCH_PAGES && b->live; i++) {
		const struct wb_page *w = &b->page[i];

		if (w->space && give_back(p, buffer * RUN_BATCH_PAGES + i,
					  w->space, w->page))
			count(&p->stats->cold, 1);
	}
	if (!b->live)
		b->state = WB_FREE;
	return true;
}

static void give_back_some(struct pager *p, uint64_t now)
{
	const struct writeback *w = &p->writeback;
	unsigned n = 0;

	for (uint32_t i = w->count; i < w->total && n < GIVE_BACK_MAX; i++)
		n += give_back_old(p, i, now);
}

/* ---- taking -------------------------------------------------------------- */

static void watch_top(struct pager *p, uint64_t now)
{
	struct tiers *t = &p->tiers;
	uint64_t bytes;

	if (!t->guard.peak_bytes_s)
		return;
	if (bandwidth_read(&t->bandwidth, &bytes) != 0) {
		tier_guard_miss(&t->guard, now);
		return;
	}
	tier_guard_count(&t->guard, now, bytes);
	show(&p->stats->guard, RUN_GUARD_ON);
}

/* One batch of each space at a time, so that pages go on leaving. While the top
 * node has room, nothing has to leave it. */
static void take_some(struct pager *p)
{
	struct tiers *t = &p->tiers;
	struct space *first = t->next ? t->next : p->spaces, *s = first;
	struct tier_fill top = t->fill[TIER_TOP];

	top.pages += RUN_BATCH_PAGES;
	while (s) {
		struct space *next = s->next ? s->next : p->spaces;
		bool of_top = t->tests_top && !tier_fill_has_room(&top);

		if (run_evict_sample(p, s, of_top) == -ENOBUFS)
			break; /* the next time it begins here */
		t->tests_top = !of_top;
		s = next == first ? NULL : next;
		t->next = s;
	}
}

void run_sample_tick(struct pager *p)
{
	struct tiers *t = &p->tiers;
	uint64_t now;

	if (!t->promotes)
		return;
	now = clock_mono_ns();
	if (now < t->tick_ns)
		return;
	t->tick_ns = now + TICK_NS;
	lock_take(&p->lock);
	watch_top(p, now);
	give_back_some(p, now);
	/* What would not be promoted anyway need not be found. */
	if (!look_at_top(p).is_guarded && !run_policy_must_wait(p, false))
		take_some(p);
	run_tiers_show(p);
	lock_drop(&p->lock);
}

void run_sample_space_gone(struct pager *p, const struct space *s)
{
	if (p->tiers.next == s)
		p->tiers.next = NULL;
}
