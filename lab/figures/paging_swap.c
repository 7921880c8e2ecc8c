/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slots of a swap area, as Linux gives them out for a device that does not
 * rotate (mm/swapfile.c): one after the other from a cluster of 256 that was
 * wholly free, and then from the one that has been free for longest; only when
 * there is none, whatever slot is free. A cluster is as large as the pieces of
 * 1 MB that memory nodes give out.
 *
 * Linux collects 64 freed slots per core before it tells anybody. All memory is
 * so much smaller here that they would be a large part of it: so it is told at
 * once.
 */
#include "paging_swap.h"

#include <errno.h>
#include <stdlib.h>

enum {
	CLUSTER = 256,
	NOBODY = UINT32_MAX,
};

struct paging_swap {
	uint32_t slots, used;
	uint32_t clusters;
	uint32_t current, next; /* cluster and slot; NOBODY: none */
	bool *is_used;		/* by slot */
	uint32_t *count;	/* used slots, by cluster */
	uint32_t *free;		/* a ring of wholly free clusters */
	uint32_t free_head, free_count;
};

static uint32_t end_of(const struct paging_swap *s, uint32_t cluster)
{
	return u32_min((cluster + 1) * CLUSTER, s->slots);
}

static void put_free(struct paging_swap *s, uint32_t cluster)
{
	s->free[(s->free_head + s->free_count++) % s->clusters] = cluster;
}

int paging_swap_open(uint32_t slots, struct paging_swap **out)
{
	struct paging_swap *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->slots = slots;
	s->clusters = (slots + CLUSTER - 1) / CLUSTER;
	s->current = NOBODY;
	s->is_used = calloc(slots, sizeof(*s->is_used));
	s->count = calloc(s->clusters, sizeof(*s->count));
	s->free = calloc(s->clusters, sizeof(*s->free));
	if (!s->is_used || !s->count || !s->free) {
		paging_swap_close(s);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < s->clusters; i++)
		put_free(s, i);
	*out = s;
	return 0;
}

void paging_swap_close(struct paging_swap *s)
{
	if (!s)
		return;
	free(s->is_used);
	free(s->count);
	free(s->free);
	free(s);
}

/* The next free slot from `from` on, before `end`. */
static uint32_t scan(const struct paging_swap *s, uint32_t from, uint32_t end)
{
	while (from < end && s->is_used[from])
		from++;
	return from < end ? from : NOBODY;
}

static uint32_t find(struct paging_swap *s)
{
	uint32_t slot = NOBODY;

	if (s->current != NOBODY)
		slot = scan(s, s->next, end_of(s, s->current));
	if (slot == NOBODY && s->free_count) {
		s->current = s->free[s->free_head];
		s->free_head = (s->free_head + 1) % s->clusters;
		s->free_count--;
		slot = s->current * CLUSTER;
	}
	if (slot == NOBODY) {
		s->current = NOBODY;
		slot = scan(s, 0, s->slots);
	}
	return slot;
}

uint32_t paging_swap_take(struct paging_swap *s)
{
	uint32_t slot = find(s);

	if (slot == NOBODY)
		return PAGING_SWAP_NONE;
	s->next = slot + 1;
	s->is_used[slot] = true;
	s->count[slot / CLUSTER]++;
	s->used++;
	return slot;
}

void paging_swap_give(struct paging_swap *s, uint32_t slot)
{
	uint32_t cluster = slot / CLUSTER;

	s->is_used[slot] = false;
	s->used--;
	if (--s->count[cluster] == 0 && cluster != s->current)
		put_free(s, cluster);
}

bool paging_swap_is_full(const struct paging_swap *s)
{
	return s->used > s->slots / 2;
}
