/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: pages that leave a space together, and the stretches of addresses
 * that the agent may drop for them. */
#include "pager_priv.h"

enum {
	STRETCH_GAP = 64, /* pages between two that leave together */
};

bool run_batch_covers(const struct space *s, uint64_t page)
{
	uint64_t end = RUN_RANGE_PAGES;

	return run_batch_span(s, page, &end);
}

bool run_batch_span(const struct space *s, uint64_t page, uint64_t *end)
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

uint64_t run_batches_pages(const struct pager *p)
{
	uint64_t n = 0;

	for (const struct space *s = p->spaces; s; s = s->next)
		for (uint32_t b = s->collected; b != s->posted; b++) {
			const struct leaving *l = &s->leaving[b % RUN_BATCHES];

			if (l->kind == BATCH_FAR || l->kind == BATCH_PROBE)
				n += l->count;
		}
	return n;
}

/*
 * Whether nothing between the last page and this one is lost when all of it is
 * dropped: no mapping of somebody else, nothing that may still be here, and no
 * page that is here and stays.
 */
static bool is_free_between(const struct space *s, uint64_t last, uint64_t page)
{
	static const enum run_mark taken[] = {RUN_MARK_ALIEN, RUN_MARK_VAGUE,
					      RUN_MARK_RESIDENT, RUN_MARK_HELD};

	for (unsigned i = 0; i < ARRAY_LEN(taken); i++)
		if (run_set_next_in(&s->pages.set[taken[i]], last + 1, page) !=
		    page)
			return false;
	return true;
}

/* What is moved goes with its neighbours only. */
static bool joins(const struct space *s, const struct leaving *l, uint32_t i,
		  bool can_move)
{
	uint64_t gap = l->page[i] - l->page[i - 1] - 1;

	return (l->guarded >> i & 1) == (l->guarded >> (i - 1) & 1) &&
	       gap < (can_move ? 1 : STRETCH_GAP) &&
	       is_free_between(s, l->page[i - 1], l->page[i]);
}

void run_batch_build(const struct space *s, struct leaving *l, bool can_move)
{
	l->stretch_count = 0;
	l->guarded = l->guarded_stretches = 0;
	for (uint32_t i = 0; i < l->count; i++) {
		uint64_t addr = run_space_addr(s, l->page[i]);
		uint64_t guard = !can_move || s->pages.page[l->page[i]].by_copy;

		l->guarded |= guard << i;
		if (i && joins(s, l, i, can_move)) {
			struct run_stretch *last =
				&l->stretch[l->stretch_count - 1];

			last->bytes = addr + RUN_PAGE_BYTES - last->start;
			continue;
		}
		l->guarded_stretches |= guard << l->stretch_count;
		l->stretch[l->stretch_count++] =
			(struct run_stretch){addr, RUN_PAGE_BYTES};
	}
}
