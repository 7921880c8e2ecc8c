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
	t->node_end = 0;
	t->outlier_count = 0;
	t->orders = 0;
}

static bool meets(const struct translate *t, uint32_t node, uint64_t va,
		  uint64_t size_bytes)
{
	return t->node[node].size_bytes &&
	       va < t->node[node].va + t->node[node].size_bytes &&
	       t->node[node].va < va + size_bytes;
}

int translate_node(struct translate *t, uint32_t node, uint64_t va,
		   uint64_t addr, uint64_t size_bytes)
{
	if (node >= COHERENCE_NODES || !size_bytes ||
	    size_bytes > 1ull << COHERENCE_NODE_SHIFT ||
	    size_bytes % COHERENCE_PAGE_BYTES || addr + size_bytes < addr ||
	    va % COHERENCE_PAGE_BYTES || va < COHERENCE_BASE ||
	    va > coherence_arena(COHERENCE_NODES) - size_bytes)
		return -EINVAL;
	for (uint32_t i = 0; i < t->node_end; i++)
		if (meets(t, i, va, size_bytes))
			return -EEXIST;
	if (node < t->node_end && t->node[node].size_bytes)
		return -EEXIST;
	t->node[node].va = va;
	t->node[node].addr = addr;
	t->node[node].size_bytes = size_bytes;
	t->node_end = u32_max(t->node_end, node + 1);
	return 0;
}

void translate_forget(struct translate *t, uint32_t node)
{
	t->node[node].size_bytes = 0;
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

void translate_remove(struct translate *t, uint64_t va, uint64_t size_bytes)
{
	uint8_t order = (uint8_t)__builtin_ctzll(size_bytes);
	uint32_t i = place_of(t, va, order);

	if (i == t->outlier_count || compare(&t->outliers[i], va, order))
		return;
	t->outlier_count--;
	memmove(&t->outliers[i], &t->outliers[i + 1],
		(t->outlier_count - i) * sizeof(*t->outliers));
	t->orders = 0;
	for (i = 0; i < t->outlier_count; i++)
		t->orders |= 1ull << t->outliers[i].order;
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

	if (o) {
		*node = o->node;
		*addr = o->addr + (va - o->va);
		return 0;
	}
	for (uint32_t i = 0; i < t->node_end; i++) {
		uint64_t at = va - t->node[i].va;

		if (at >= t->node[i].size_bytes)
			continue;
		*node = i;
		*addr = t->node[i].addr + at;
		return 0;
	}
	return -EFAULT;
}
