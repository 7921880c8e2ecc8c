/* SPDX-License-Identifier: Apache-2.0 */
/* What the cache says, done to memory and connections, in its order. */
#include "base/clock.h"
#include "base/log.h"
#include "shd_priv.h"

void shd_fail(struct shd *s, const char *why)
{
	if (s->is_over)
		return;
	log_err("shared",
		"%s: programs of this machine that use shared memory get "
		"SIGBUS",
		why);
	s->is_over = true;
	for (struct list *l = s->segments.next; l != &s->segments; l = l->next)
		shd_mem_cut(&container_of(l, struct shd_segment, node)->mem);
}

/* The part of a range that a segment has; false: none. */
static bool part_of(const struct shd_segment *g, const struct coh_range *r,
		    uint32_t *page, uint32_t *count)
{
	uint64_t end = g->page + g->mem.page_count;
	uint64_t from = u64_max(g->page, r->page);
	uint64_t to = u64_min(end, r->page + r->count);

	if (from >= to)
		return false;
	*page = (uint32_t)(from - g->page);
	*count = (uint32_t)(to - from);
	return true;
}

static void protect(struct shd *s, const struct coh_range *r)
{
	uint32_t page, count;

	for (struct list *l = s->segments.next; l != &s->segments;
	     l = l->next) {
		struct shd_segment *g =
			container_of(l, struct shd_segment, node);

		if (part_of(g, r, &page, &count) &&
		    shd_mem_protect(&g->mem, page, count))
			shd_fail(s, "a page cannot be protected");
	}
}

static void unmap_part(struct shd *s, struct shd_segment *g, uint32_t page,
		       uint32_t count)
{
	uint32_t now_us = shd_us(clock_mono_ns());
	uint64_t at = g->page - s->cache.first_page;

	for (uint32_t i = page; i < page + count; i++)
		if (shd_mem_has(&g->mem, i))
			shd_hold_taken(&s->holds[at + i], now_us);
	s->page_count -= g->mem.here_count;
	if (shd_mem_punch(&g->mem, page, count))
		shd_fail(s, "a page cannot be taken away");
	s->page_count += g->mem.here_count;
}

static void unmap(struct shd *s, const struct coh_range *r)
{
	uint32_t page, count;

	for (struct list *l = s->segments.next; l != &s->segments;
	     l = l->next) {
		struct shd_segment *g =
			container_of(l, struct shd_segment, node);

		if (part_of(g, r, &page, &count))
			unmap_part(s, g, page, count);
	}
	shd_futex_left(s, r);
}

static void map(struct shd *s, uint64_t page, enum coh_right right,
		const void *bytes)
{
	struct shd_segment *g = shd_segment_of(s, page);

	ASSERT(g);
	shd_hold_came(&s->holds[page - s->cache.first_page],
		      shd_us(clock_mono_ns()));
	shd_count(s, SHD_C_pages);
	shd_fault_mapped(s, g, page, right, bytes);
	shd_futex_came(s, page);
}

static void give(struct shd *s, uint64_t page)
{
	struct shd_segment *g = shd_segment_of(s, page);
	uint32_t slot = 0;
	void *room = shd_nic_give_room(&s->nic, &slot);

	ASSERT(g && room);
	if (shd_mem_read(&g->mem, (uint32_t)(page - g->page), room)) {
		shd_fail(s, "a program has cut the file of its memory");
		return;
	}
	g->gives++;
	shd_count(s, SHD_C_gives);
	shd_nic_give(&s->nic, slot, page);
}

static void get(struct shd *s, const struct coh_get *get)
{
	struct shd_segment *g = shd_segment_of(s, get->page);

	s->lane_lost[get->lane] = false;
	s->touched[(get->page - s->cache.first_page) / COH_REGION_PAGES_MAX] =
		true;
	shd_count(s,
		  get->right == COH_WRITE ? SHD_C_gets_write : SHD_C_gets_read);
	if (g)
		g->gets++;
	shd_nic_get(&s->nic, get);
}

static void show_all(struct shd *s, bool is_hidden)
{
	int err = 0;

	for (struct list *l = s->segments.next; !err && l != &s->segments;
	     l = l->next) {
		struct shd_mem *m =
			&container_of(l, struct shd_segment, node)->mem;

		err = is_hidden ? shd_mem_hide(m) : shd_mem_unhide(m);
	}
	if (err)
		shd_fail(s, is_hidden ? "pages cannot be hidden"
				      : "pages cannot be shown again");
}

static void say_fin(struct shd *s, const struct coh_fin *fin)
{
	struct coh_record r = {.kind = COHERENCE_FIN, .fin = *fin};

	shd_nic_say(&s->nic, &r, SHD_DONE_FIN, 0);
}

static void say_evict(struct shd *s, const struct coh_cache_action *a)
{
	struct coh_record r = {.kind = COHERENCE_EVICT, .range = a->range};

	shd_count(s, SHD_C_leaves);
	shd_nic_say(&s->nic, &r, SHD_DONE_EVICT, a->index);
}

static void say_clean(struct shd *s, uint32_t term)
{
	struct coh_record r = {.kind = COHERENCE_CLEAN, .term = term};

	shd_nic_say(&s->nic, &r, SHD_DONE_CLEAN, 0);
}

static void act(struct shd *s, const struct coh_cache_action *a, int lane)
{
	switch (a->kind) {
	case COH_CACHE_MAP:
		ASSERT(lane >= 0);
		map(s, a->range.page, a->right,
		    shd_nic_landing(&s->nic, (uint32_t)lane));
		break;
	case COH_CACHE_PROTECT:
		protect(s, &a->range);
		break;
	case COH_CACHE_UNMAP:
		unmap(s, &a->range);
		break;
	case COH_CACHE_GET:
		get(s, &a->get);
		break;
	case COH_CACHE_GIVE:
		give(s, a->range.page);
		break;
	case COH_CACHE_FIN:
		say_fin(s, &a->fin);
		break;
	case COH_CACHE_EVICT:
		say_evict(s, a);
		break;
	case COH_CACHE_CLEAN:
		say_clean(s, a->term);
		break;
	case COH_CACHE_HIDE:
	case COH_CACHE_UNHIDE:
		show_all(s, a->kind == COH_CACHE_HIDE);
		break;
	case COH_CACHE_FAIL:
		shd_fault_lost(s, &a->range);
		shd_futex_lost(s, &a->range);
		break;
	}
}

void shd_act(struct shd *s, int lane)
{
	/* What is over is cut: there is nothing to be done to it. */
	for (uint32_t i = 0; i < s->out.count && !s->is_over; i++)
		act(s, &s->out.action[i], lane);
	s->out.count = 0;
}
