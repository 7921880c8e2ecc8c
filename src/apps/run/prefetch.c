/* SPDX-License-Identifier: Apache-2.0 */
/* Prefetching: which pages come with one that is wanted back. Nothing but the
 * trend of its thread is changed by that. */
#include "pager_priv.h"

static void add_page(const struct space *s, uint64_t page, struct fetch *c)
{
	uint8_t state = s->pages.page[page].state;

	if (state == RUN_FAR)
		c->far[c->far_count++] = page;
	else if (state == RUN_STAGED)
		c->staged[c->staged_count++] = page;
}

/* Far pages, but for the wanted one, ascend, so that neighbours can be put with
 * one call. */
void run_prefetch_choose(const struct pager *p, const struct fault *f,
			 struct fetch *c)
{
	struct space *s = f->space;
	struct trend *t = run_trend_of(&s->trends, f->tid, f->page);
	int64_t stride = 0;
	uint32_t want =
		run_trend_fault(t, f->page, p->options.prefetch_max, &stride);
	unsigned most = run_policy_room(p, RUN_PREFETCH_MAX + 1);
	unsigned first;
	uint32_t i;

	c->far_count = c->staged_count = 0;
	add_page(s, f->page, c);
	first = c->far_count;
	for (i = 1; i <= want && c->far_count + c->staged_count < most; i++) {
		uint64_t page = f->page + (uint64_t)stride * i;

		if (page == 0 || page >= RUN_RANGE_PAGES ||
		    s->pages.page[page].state == RUN_UNTOUCHED)
			break;
		if (!run_batch_covers(s, page))
			add_page(s, page, c);
	}
	if (want)
		run_trend_fetched(t, f->page, i - 1);
	for (unsigned a = first, z = c->far_count; stride < 0 && a + 1 < z;) {
		uint64_t page = c->far[a];

		c->far[a++] = c->far[--z];
		c->far[z] = page;
	}
}
