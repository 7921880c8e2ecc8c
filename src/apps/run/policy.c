/* SPDX-License-Identifier: Apache-2.0 */
/* Which page leaves, when, and how many do. */
#include "policy.h"

#include "base/clock.h"
#include "pager_priv.h"

enum {
	HEAT_MAX = 3,	   /* two bits of a page, as `returns` */
	SLACK_PAGES = 256, /* above the limit, before faults wait ... */
	SLACK_PART = 16,   /* ... or this part of the local pages */
	BUFFER_PART = 16,  /* of the local pages, one part is buffers */
	BUFFERS_MIN = 3,
	BUFFERS_MAX = 1024, /* 256 MiB */
	PROBE_MS = 100,
	TIER_LOOKS = 16384, /* pages; some 100 us */
};

/* ---- how much ------------------------------------------------------------ */

uint32_t run_policy_init(struct policy *y, uint64_t local_pages)
{
	uint64_t n = local_pages / BUFFER_PART / RUN_BATCH_PAGES;

	n = u64_max(BUFFERS_MIN, u64_min(n, BUFFERS_MAX));
	/* Whatever may be over the limit for a moment is within the bytes. */
	y->slack_pages = u64_min(SLACK_PAGES, local_pages / SLACK_PART);
	y->limit_pages = local_pages - n * RUN_BATCH_PAGES - y->slack_pages;
	return (uint32_t)n;
}

uint64_t run_policy_load(const struct pager *p)
{
	return p->resident - p->held;
}

static uint64_t limit(const struct pager *p)
{
	return p->policy.limit_pages + p->overflow.extra;
}

bool run_policy_is_over(const struct pager *p, uint64_t leaving)
{
	return run_policy_load(p) > limit(p) + leaving;
}

bool run_policy_must_wait(const struct pager *p, bool does_wait)
{
	uint64_t slack = p->policy.slack_pages;

	return does_wait ? run_policy_load(p) > limit(p) + slack / 2
			 : run_policy_load(p) >= limit(p) + slack;
}

unsigned run_policy_room(const struct pager *p, unsigned want)
{
	uint64_t most = limit(p) + p->policy.slack_pages;
	uint64_t load = run_policy_load(p);

	if (load + want <= most)
		return want;
	return load < most ? (unsigned)(most - load) : 1;
}

/* ---- which space, and when ----------------------------------------------- */

struct space *run_policy_next_space(struct pager *p)
{
	struct space *s = p->policy.next ? p->policy.next : p->spaces;

	p->policy.next = s ? s->next : NULL;
	return s;
}

bool run_policy_probe_is_due(struct pager *p)
{
	uint64_t now;

	if (!p->held || p->resident <= p->policy.limit_pages)
		return false;
	now = clock_mono_ns();
	if (now < p->policy.probe_ns)
		return false;
	p->policy.probe_ns = now + PROBE_MS * 1000000ull;
	return true;
}

void run_policy_probe_helped(struct pager *p)
{
	p->policy.probe_ns = 0;
}

bool run_policy_retry_is_due(const struct pager *p)
{
	return p->overflow.is_full &&
	       run_policy_load(p) > p->policy.limit_pages &&
	       clock_mono_ns() >= p->overflow.retry_ns;
}

void run_policy_space_gone(struct pager *p, const struct space *s)
{
	if (p->policy.next == s)
		p->policy.next = NULL;
}

/* ---- which pages --------------------------------------------------------- */

static unsigned heat(const struct run_page *e)
{
	return e->policy & 3u;
}

static unsigned returns(const struct run_page *e)
{
	return e->policy >> 2;
}

static void set(struct run_page *e, unsigned heat, unsigned returns)
{
	e->policy = (heat | returns << 2) & 15u;
}

void run_policy_space_init(struct policy_space *y)
{
	*y = (struct policy_space){0};
	rng_init(&y->rng, 0);
}

static bool is_wanted(const struct run_page *e, enum policy_want want)
{
	if (want == POLICY_ANY)
		return true;
	return want == POLICY_DEMOTE ? !e->is_slow && !e->is_demoted
				     : e->is_slow;
}

/* Where something else will be mapped, nothing is taken. */
static bool can_leave(const struct run_pages *pages, uint64_t page,
		      struct policy_pick *c)
{
	const struct run_page *e = &pages->page[page];

	return e->state == RUN_RESIDENT && is_wanted(e, c->want) &&
	       !run_set_has(&pages->kept, page) &&
	       !run_set_has(&pages->alien, page) &&
	       (!run_page_needs_slot(e) || c->budget);
}

static bool is_spared(struct run_page *e, struct policy_pick *c)
{
	if (heat(e) == 0 || c->want == POLICY_SAMPLE)
		return false;
	set(e, heat(e) - 1, returns(e));
	c->spared++;
	return true;
}

static uint64_t *hand_of(struct policy_space *y, enum policy_want want)
{
	return want < POLICY_DEMOTE ? &y->hand
				    : &y->tier_hand[want - POLICY_DEMOTE];
}

uint32_t run_policy_pick(struct policy_space *y, const struct run_pages *pages,
			 uint64_t resident_count, struct policy_pick *c,
			 uint64_t page[RUN_BATCH_PAGES])
{
	const struct run_set *set = &pages->resident;
	uint64_t *hand = hand_of(y, c->want);
	uint64_t at = run_set_next(set, *hand), seen = 0;
	uint64_t most = 2 * resident_count;
	uint32_t n = 0;

	/* What is only better elsewhere may be found the next time. */
	if (c->want >= POLICY_DEMOTE)
		most = u64_min(most, TIER_LOOKS);
	while (n < RUN_BATCH_PAGES && seen++ < most) {
		if (at >= set->pages) {
			/* A batch does not go around: its pages ascend. */
			if (n)
				break;
			at = run_set_next(set, 0);
			if (at >= set->pages)
				break;
		}
		if (can_leave(pages, at, c) &&
		    !is_spared(&pages->page[at], c)) {
			c->budget -= run_page_needs_slot(&pages->page[at]);
			page[n++] = at;
		}
		at = run_set_next(set, at + 1);
	}
	*hand = at >= set->pages ? 0 : at;
	return n;
}

uint32_t run_policy_pick_held(struct policy_space *y,
			      const struct run_pages *pages,
			      struct policy_pick *c,
			      uint64_t page[RUN_BATCH_PAGES])
{
	const struct run_set *set = &pages->held;
	uint64_t at = run_set_next(set, y->held_next);
	uint32_t n = 0;

	if (at >= set->pages)
		at = run_set_next(set, 0);
	for (; n < RUN_BATCH_PAGES && at < set->pages;
	     at = run_set_next(set, at + 1)) {
		if (!can_leave(pages, at, c))
			continue;
		c->budget -= run_page_needs_slot(&pages->page[at]);
		page[n++] = at;
	}
	y->held_next = at;
	return n;
}

void run_policy_left(struct run_page *e)
{
	set(e, 0, returns(e));
}

void run_policy_stayed(struct run_page *e, bool to_be_guarded)
{
	set(e, to_be_guarded ? 0 : 1, returns(e));
}

void run_policy_came_back(struct run_page *e)
{
	unsigned n = u32_min(returns(e) + 1, HEAT_MAX);

	set(e, n, n);
}

void run_policy_is_far(struct run_page *e)
{
	set(e, heat(e), 0);
}

void run_policy_followed(struct policy_space *y, uint64_t page, uint64_t reach,
			 uint64_t most)
{
	if (y->hand > page && y->hand - page <= reach)
		y->hand += rng_between(&y->rng, 1, most);
}
