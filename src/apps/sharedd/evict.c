/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded cache: the pages that came first go first, unless they came again;
 * and segments that nobody uses any more. */
#include "shd_priv.h"

enum {
	REGION_PAGES = 4, /* with which the switch begins */
};

/* Nothing of the range is left: the switch needs no entry for us, and would
 * count it as lost if we died. False: not now. */
static bool leave(struct shd *s, uint64_t page, uint32_t count)
{
	struct coh_range r = {page, count};

	if (s->is_over || coh_cache_leave(&s->cache, &r, &s->out))
		return false;
	shd_act(s, -1);
	return true;
}

static void evict(struct shd *s, uint64_t page)
{
	if (coh_cache_evict(&s->cache, page, &s->out))
		return; /* something else is done with it */
	shd_count(s, SHD_C_evictions);
	shd_act(s, -1);
	(void)leave(s, page & ~(uint64_t)(REGION_PAGES - 1), REGION_PAGES);
}

/* The next page of the hand that is here and did not come since the hand was
 * there; false: none in a whole round. */
static bool next_page(struct shd *s, uint64_t *page)
{
	uint64_t steps = 2 * s->cache.page_count + 2;

	while (steps-- && !list_is_empty(&s->segments)) {
		struct shd_segment *g;
		struct shd_hold *h;

		if (!s->hand || s->hand == &s->segments)
			s->hand = s->segments.next;
		g = container_of(s->hand, struct shd_segment, node);
		if (s->hand_page >= g->mem.page_count) {
			s->hand = s->hand->next;
			s->hand_page = 0;
			continue;
		}
		*page = g->page + s->hand_page;
		if (!shd_mem_has(&g->mem, s->hand_page++))
			continue;
		h = &s->holds[*page - s->cache.first_page];
		if (!h->is_young)
			return true;
		h->is_young = false;
	}
	return false;
}

static bool is_asked_for(const struct shd *s, const struct shd_segment *g)
{
	for (unsigned i = 0; i < COHERENCE_LANES; i++)
		if (s->lanes[i].right != COH_NONE &&
		    s->lanes[i].page - g->page < g->mem.page_count)
			return true;
	return false;
}

/* Leaves all of an empty segment, of which regions may be of any size; true:
 * that is done. */
static bool is_left(struct shd *s, const struct shd_segment *g)
{
	uint64_t at = g->page - s->cache.first_page;
	bool is_done = true;

	for (uint64_t i = at / COH_REGION_PAGES_MAX;
	     i * COH_REGION_PAGES_MAX < at + g->mem.page_count; i++) {
		if (s->touched[i] &&
		    leave(s, s->cache.first_page + i * COH_REGION_PAGES_MAX,
			  COH_REGION_PAGES_MAX))
			s->touched[i] = false;
		is_done &= !s->touched[i];
	}
	for (unsigned i = 0; i < SHD_LEAVES; i++)
		is_done &= !s->leaves[i].range.count;
	return is_done;
}

/* Gives up some pages of a segment; true: it has none, and none will come. */
static bool is_empty(struct shd *s, struct shd_segment *g)
{
	unsigned left = SHD_EVICTS;

	for (uint32_t i = 0; g->mem.here_count && i < g->mem.page_count && left;
	     i++)
		if (shd_mem_has(&g->mem, i)) {
			evict(s, g->page + i);
			left--;
		}
	return !s->is_over && !g->mem.here_count && !is_asked_for(s, g) &&
	       is_left(s, g);
}

void shd_evict(struct shd *s)
{
	struct list *next;
	uint64_t page;
	bool is_drained = s->is_draining;

	s->is_drained = false;
	if (s->cache.link != COH_CACHE_MEMBER || s->is_over)
		return;
	for (struct list *l = s->segments.next; l != &s->segments; l = next) {
		struct shd_segment *g =
			container_of(l, struct shd_segment, node);

		next = l->next;
		if (g->users && !s->is_draining)
			continue;
		if (!is_empty(s, g))
			is_drained = false;
		else if (!g->users)
			shd_segment_destroy(s, g);
	}
	s->is_drained = is_drained;
	for (unsigned i = 0; i < SHD_EVICTS && s->page_count > s->page_max &&
			     s->cache.giving < COH_CACHE_GIVES_MAX &&
			     !s->is_over && next_page(s, &page);
	     i++)
		evict(s, page);
}
