/* SPDX-License-Identifier: Apache-2.0 */
/* Pages that must not leave, because the program has locked them or the kernel
 * uses them where it cannot wait. */
#include <errno.h>
#include <stdio.h>

#include "marks_priv.h"
#include "pager_priv.h"

/* ---- kept ---------------------------------------------------------------- */

int run_marks_keep(struct pager *p, struct space *s, uint64_t page,
		   uint64_t pages)
{
	uint64_t more = 0;

	if (pages > p->keep_pages)
		return -ENOMEM;
	for (uint64_t at = page; at < page + pages; at++)
		more += !run_set_has(&s->pages.kept, at);
	if (p->kept + more > p->keep_pages)
		return -ENOMEM;
	run_set_add_range(&s->pages.kept, page, pages);
	s->kept_count += more;
	p->kept += more;
	return 0;
}

void run_marks_unkeep(struct pager *p, struct space *s, uint64_t page,
		      uint64_t pages)
{
	uint64_t end = page + pages;

	run_set_for_each (at, &s->pages.kept, page, end) {
		run_set_del(&s->pages.kept, at);
		s->kept_count--;
		p->kept--;
	}
	if (pages == RUN_RANGE_PAGES)
		s->keeps_all = false;
}

int run_marks_keep_all(struct pager *p, struct space *s, bool later)
{
	uint64_t more = 0;

	run_set_for_each (at, &s->pages.touched, 0, RUN_RANGE_PAGES)
		more += !run_set_has(&s->pages.kept, at);
	if (p->kept + more > p->keep_pages)
		return -ENOMEM;
	run_set_for_each (at, &s->pages.touched, 0, RUN_RANGE_PAGES) {
		if (run_marks_keep(p, s, at, 1) != 0)
			return -ENOMEM;
		run_fault_bring(p, s, at);
	}
	s->keeps_all |= later;
	return 0;
}

/* ---- locked past libc ---------------------------------------------------- */

void run_marks_locked(struct pager *p, const struct space *s, uint64_t mask)
{
	count(&p->stats->locked, (uint64_t)__builtin_popcountll(mask));
	if (p->has_told_locked)
		return;
	p->has_told_locked = true;
	(void)fprintf(stderr,
		      "aquifer: run: process %d has locked memory that is "
		      "far-managed; it stays, beyond --local if need be\n",
		      (int)s->pid);
}

/* ---- the end ------------------------------------------------------------- */

void run_marks_clear(struct pager *p, struct space *s, uint64_t page,
		     uint64_t pages)
{
	run_marks_unkeep(p, s, page, pages);
	run_set_del_range(&s->pages.vague, page, pages);
	run_set_del_range(&s->pages.wiped, page, pages);
	run_set_del_range(&s->pages.withheld, page, pages);
}
