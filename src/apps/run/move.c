/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that the program moves (mremap): the kernel moves what is here. What
 * is not here moves in the table or, where the program takes it out of the
 * range, comes: it is local from then on. */
#include <errno.h>

#include "base/clock.h"
#include "base/relax.h"
#include "marks_priv.h"
#include "owner_priv.h"
#include "pager_priv.h"
#include "uffd.h"

#define AGAIN_NS 10000000000ull

/* ---- inside -------------------------------------------------------------- */

static void move_page(struct pager *p, struct space *s, uint64_t from,
		      uint64_t to)
{
	struct run_page *e = &s->pages.page[from];
	bool is_resident;

	run_space_hold(p, s, from,
		       false); /* held again if it still cannot leave */
	is_resident = run_set_has(&s->pages.resident, from);
	if (run_set_has(&s->pages.touched, to))
		run_space_set_untouched(p, s, to);
	s->pages.page[to] = *e;
	*e = (struct run_page){0};
	run_set_del(&s->pages.touched, from);
	run_set_add(&s->pages.touched, to);
	if (is_resident) {
		run_set_del(&s->pages.resident, from);
		run_set_add(&s->pages.resident, to);
	}
	if (s->pages.page[to].state == RUN_STAGED)
		run_writeback_moved(p, s->pages.page[to].buffer_page, to);
}

/* ---- outside ------------------------------------------------------------- */

struct outgoing {
	uint64_t page[RUN_PREFETCH_MAX + 1];
	uint64_t addr[RUN_PREFETCH_MAX + 1];
	unsigned count;
};

/* Another thread's change that was not read yet makes the kernel refuse. */
static int put(struct pager *p, struct space *s, uint64_t addr,
	       const void *bytes)
{
	uint64_t end = clock_mono_ns() + AGAIN_NS;
	int err;

	if (p->tiers.is_on)
		run_tiers_aim_at(p, TIER_TOP);
	while ((err = run_uffd_copy(s->uffd, addr, bytes, 1)) == -EAGAIN &&
	       clock_mono_ns() < end) {
		run_events_note(p, s);
		relax_briefly();
	}
	/* The page would be zeros. */
	if (err == -EAGAIN)
		run_owner_give_up(p, s,
				  "it stands still in the middle of a change "
				  "of its mappings");
	return err;
}

static void put_lost(struct pager *p, struct space *s, uint64_t addr)
{
	count(&p->stats->lost_pages, 1);
	run_pager_complain(p, s);
	(void)!run_uffd_poison(s->uffd, addr);
}

static void bring_far(struct pager *p, struct space *s, struct outgoing *o)
{
	uint32_t slot[RUN_PREFETCH_MAX + 1];
	struct far_load l;

	if (!o->count)
		return;
	for (unsigned i = 0; i < o->count; i++)
		slot[i] = s->pages.page[o->page[i]].slot;
	run_far_load(&p->far, &l, o->count, slot, p->scratch);
	run_far_await(&p->far, &l.first);
	run_far_await(&p->far, &l.others);
	for (unsigned i = 0; i < o->count; i++) {
		if (l.op[i].result)
			put_lost(p, s, o->addr[i]);
		else
			(void)put(p, s, o->addr[i], l.op[i].buf);
		run_space_set_untouched(p, s, o->page[i]);
	}
	count(&p->stats->loads, o->count);
	o->count = 0;
}

static void bring(struct pager *p, struct space *s, uint64_t page,
		  uint64_t addr, struct outgoing *o)
{
	const struct run_page *e = &s->pages.page[page];

	if (e->state == RUN_FAR) {
		o->page[o->count] = page;
		o->addr[o->count++] = addr;
		if (o->count == ARRAY_LEN(o->page))
			bring_far(p, s, o);
		return;
	}
	if (e->state == RUN_STAGED)
		(void)put(p, s, addr, run_writeback_bytes(p, e->buffer_page));
	else if (e->state == RUN_LOST)
		put_lost(p, s, addr);
	run_space_set_untouched(p, s, page);
}

/* ---- both ---------------------------------------------------------------- */

static void move_marks(struct pager *p, struct space *s, uint64_t from,
		       uint64_t to, uint64_t pages)
{
	static const enum run_mark moved[] = {RUN_MARK_VAGUE, RUN_MARK_KEPT,
					      RUN_MARK_WIPED,
					      RUN_MARK_WITHHELD};

	run_marks_clear(p, s, to, pages);
	for (unsigned i = 0; i < ARRAY_LEN(moved); i++)
		run_set_copy_range(&s->pages.set[moved[i]], to, from, pages);
	/* Their number is the same: they go from the old place, to which other
	 * marks may still belong (MREMAP_DONTUNMAP). */
	run_set_del_range(&s->pages.vague, from, pages);
	run_set_del_range(&s->pages.kept, from, pages);
	run_set_del_range(&s->pages.alien, to, pages);
	run_space_show_aliens(s);
}

void run_move(struct pager *p, struct space *s, uint64_t from, uint64_t to,
	      uint64_t bytes)
{
	uint64_t page = (from - s->start) >> RUN_PAGE_SHIFT;
	uint64_t pages = bytes >> RUN_PAGE_SHIFT;
	uint64_t dest = (to - s->start) >> RUN_PAGE_SHIFT;
	bool is_inside =
		dest < RUN_RANGE_PAGES && pages <= RUN_RANGE_PAGES - dest;
	struct outgoing o = {.count = 0};
	uint64_t end = page + pages;

	if (page >= RUN_RANGE_PAGES || pages > RUN_RANGE_PAGES - page)
		return;
	if (is_inside)
		move_marks(p, s, page, dest, pages);
	run_set_for_each (at, &s->pages.touched, page, end) {
		if (is_inside)
			move_page(p, s, at, dest + at - page);
		else
			bring(p, s, at, to + ((at - page) << RUN_PAGE_SHIFT),
			      &o);
	}
	bring_far(p, s, &o);
	if (!is_inside) {
		run_marks_clear(p, s, page, pages);
		run_uffd_unregister(s->uffd, to, bytes);
	}
}
