/* SPDX-License-Identifier: Apache-2.0 */
/* Segments that programs of this machine use. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "shd_priv.h"

struct shd_segment *shd_segment_of(struct shd *s, uint64_t page)
{
	for (struct list *l = s->segments.next; l != &s->segments;
	     l = l->next) {
		struct shd_segment *g =
			container_of(l, struct shd_segment, node);

		if (page - g->page < g->mem.page_count)
			return g;
	}
	return NULL;
}

static int make(struct shd *s, uint64_t page, uint32_t count, uint64_t id,
		struct shd_segment **out)
{
	struct shd_segment *g = calloc(1, sizeof(*g));
	int err = g ? shd_mem_init(&g->mem, count, s->own_uffd) : -ENOMEM;

	if (err) {
		free(g);
		return err;
	}
	g->page = page;
	g->id = id;
	err = shd_keeper_add(s->keeper, g->mem.fd);
	/* Those who come now wait until the others can go on. */
	if (!err && s->cache.suspended)
		err = shd_mem_hide(&g->mem);
	if (err) {
		shd_keeper_remove(s->keeper, g->mem.fd);
		shd_mem_release(&g->mem);
		free(g);
		return err;
	}
	list_append(&s->segments, &g->node);
	*out = g;
	return 0;
}

int shd_segment_get(struct shd *s, uint64_t va, uint64_t size_bytes,
		    uint64_t id, struct shd_segment **out)
{
	uint64_t page = va >> COHERENCE_PAGE_SHIFT;
	uint64_t count = size_bytes >> COHERENCE_PAGE_SHIFT;
	struct coh_range wish = {page, (uint32_t)count};
	int err;

	if (va % COHERENCE_PAGE_BYTES || size_bytes % COHERENCE_PAGE_BYTES ||
	    !count || count > s->cache.page_count ||
	    page < s->cache.first_page ||
	    page - s->cache.first_page > s->cache.page_count - count)
		return error_set(-EINVAL, "no segment is there");
	for (struct list *l = s->segments.next; l != &s->segments;
	     l = l->next) {
		struct shd_segment *g =
			container_of(l, struct shd_segment, node);
		struct coh_range has = {g->page, g->mem.page_count};

		if (!coh_range_meets(&has, &wish))
			continue;
		if (g->id != id || g->page != page || has.count != wish.count)
			return error_set(-EBUSY,
					 "the memory of a deleted segment is "
					 "still in use");
		g->users++;
		*out = g;
		return 0;
	}
	err = make(s, page, wish.count, id, out);
	if (!err)
		(*out)->users = 1;
	return err;
}

void shd_segment_put(struct shd *s, struct shd_segment *g)
{
	(void)s;
	g->users--; /* evict.c takes its pages, and then itself */
}

void shd_segment_destroy(struct shd *s, struct shd_segment *g)
{
	if (s->hand == &g->node)
		s->hand = NULL;
	list_remove(&g->node);
	s->page_count -= g->mem.here_count;
	shd_mem_cut(&g->mem);
	shd_keeper_remove(s->keeper, g->mem.fd);
	shd_mem_release(&g->mem);
	free(g);
}
