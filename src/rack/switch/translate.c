/* SPDX-License-Identifier: Apache-2.0 */
/* From virtual addresses of shared memory to memory nodes. */
#include "translate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int translate_init(struct translate *t)
{
	*t = (struct translate){0};
	t->outliers = calloc(TRANSLATE_OUTLIERS, sizeof(*t->outliers));
	return t->outliers ? 0 : -ENOMEM;
}

void translate_release(struct translate *t)
{
	free(t->outliers);
	t->outliers = NULL;
}

void translate_clear(struct translate *t)
{
	memset(t->node, 0, sizeof(t->node));
	t->outlier_count = 0;
	t->orders = 0;
}

int translate_node(struct translate *t, uint32_t node, uint64_t addr,
		   uint64_t size_bytes)
{
	if (node >= COHERENCE_NODES || !size_bytes ||
	    size_bytes > 1ull << COHERENCE_NODE_SHIFT ||
	    size_bytes % COHERENCE_PAGE_BYTES || addr + size_bytes < addr)
		return -EINVAL;
	if (t->node[node].size_bytes)
		return -EEXIST;
	t->node[node].addr = addr;
	t->node[node].size_bytes = size_bytes;
	return 0;
}

/* ---- outliers ------------------------------------------------------------ */

static int compare(const struct translate_outlier *o, uint64_t va,
		   uint8_t order)
{
	if (o->va != va)
		return o->va < va ? -1 : 1;
	return o->order == order ? 0 : o->order < order ? -1 : 1;
}

/* The first one that is not before it. */
static uint32_t place_of(const struct translate *t, uint64_t va, uint8_t order)
{
	uint32_t low = 0, high = t->outlier_count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (compare(&t->outliers[mid], va, order) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

int translate_outlier(struct translate *t, uint64_t va, uint64_t size_bytes,
		      uint32_t node, uint64_t addr)
{
	uint8_t order = 0;
	uint32_t i;

	if (size_bytes < COHERENCE_PAGE_BYTES ||
	    size_bytes & (size_bytes - 1) ||
	    size_bytes > 1ull << COHERENCE_NODE_SHIFT ||
	    va & (size_bytes - 1) || addr % COHERENCE_PAGE_BYTES ||
	    addr + size_bytes < addr)
		return -EINVAL;
	if (node >= COHERENCE_NODES || !t->node[node].size_bytes)
		return -ENOENT;
	order = (uint8_t)__builtin_ctzll(size_bytes);
	i = place_of(t, va, order);
	if (i < t->outlier_count && !compare(&t->outliers[i], va, order))
		return -EEXIST;
	if (t->outlier_count == TRANSLATE_OUTLIERS)
		return -ENOSPC;
	memmove(&t->outliers[i + 1], &t->outliers[i],
		(t->outlier_count - i) * sizeof(*t->outliers));
	t->outliers[i] =
		(struct translate_outlier){va, addr, order, (uint8_t)node};
	t->outlier_count++;
	t->orders |= 1ull << order;
	return 0;
}

/* One search for each size that there is, the smallest first. */
static const struct translate_outlier *find_outlier(const struct translate *t,
						    uint64_t va)
{
	for (uint64_t orders = t->orders; orders; orders &= orders - 1) {
		uint8_t order = (uint8_t)__builtin_ctzll(orders);
		uint64_t base = va >> order << order;
		uint32_t i = place_of(t, base, order);

		if (i < t->outlier_count &&
		    !compare(&t->outliers[i], base, order))
			return &t->outliers[i];
	}
	return NULL;
}

int translate_find(const struct translate *t, uint64_t va, uint32_t *node,
		   uint64_t *addr)
{
	const struct translate_outlier *o = find_outlier(t, va);
	uint64_t at = va - COHERENCE_BASE;
	uint64_t n = at >> COHERENCE_NODE_SHIFT;

	if (o) {
		*node = o->node;
		*addr = o->addr + (va - o->va);
		return 0;
	}
	at &= (1ull << COHERENCE_NODE_SHIFT) - 1;
	if (va < COHERENCE_BASE || n >= COHERENCE_NODES ||
	    at >= t->node[n].size_bytes)
		return -EFAULT;
	*node = (uint32_t)n;
	*addr = t->node[n].addr + at;
	return 0;
}
