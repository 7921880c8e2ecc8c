/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of inner nodes, found by their pointers. They may be old: a node's
 * fences say whether a way by them was right.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tree_priv.h"

int tree_cache_init(struct tree_client *c)
{
	uint32_t nodes = c->config.no_cache	 ? TREE_LEVELS_MAX
			 : c->config.cache_nodes ? c->config.cache_nodes
						 : TREE_CACHE_NODES;
	uint32_t sets = u32_pow2_ceil(
		u32_min(nodes, TREE_CACHE_NODES_MAX) / TREE_CACHE_WAYS + 1);

	c->cache_mask = sets - 1;
	c->cache = calloc((size_t)sets * TREE_CACHE_WAYS, sizeof(*c->cache));
	return c->cache ? 0 : error_set(-ENOMEM, "no memory for a client");
}

static void drop(struct tree_inner **at)
{
	free(*at);
	*at = NULL;
}

void tree_cache_forget_all(struct tree_client *c)
{
	c->root = 0;
	c->knows_level = false;
	if (!c->cache)
		return;
	for (size_t i = 0; i < ((size_t)c->cache_mask + 1) * TREE_CACHE_WAYS;
	     i++)
		drop(&c->cache[i]);
}

void tree_cache_release(struct tree_client *c)
{
	tree_cache_forget_all(c);
	free(c->cache);
	c->cache = NULL;
}

static struct tree_inner **set_of(struct tree_client *c, uint64_t pointer)
{
	uint32_t h = (uint32_t)(tree_number(pointer) *
					UINT64_C(0x9e3779b97f4a7c15) >>
				40);

	return &c->cache[(size_t)(h & c->cache_mask) * TREE_CACHE_WAYS];
}

struct tree_inner *tree_cache_find(struct tree_client *c, uint64_t pointer)
{
	struct tree_inner **set = set_of(c, pointer);

	for (unsigned i = 0; i < TREE_CACHE_WAYS; i++)
		if (set[i] && set[i]->self == pointer)
			return set[i];
	return NULL;
}

void tree_cache_forget(struct tree_client *c, uint64_t pointer)
{
	struct tree_inner **set = set_of(c, pointer);

	if (pointer == c->root || !pointer) {
		c->root = 0;
		c->knows_level = false;
	}
	for (unsigned i = 0; i < TREE_CACHE_WAYS; i++)
		if (set[i] && set[i]->self == pointer)
			drop(&set[i]);
}

/* The lowest goes, because the others serve more keys; of those the one that
 * was read first. */
static struct tree_inner **victim_of(struct tree_inner **set, uint64_t pointer)
{
	struct tree_inner **worst = &set[0];

	for (unsigned i = 0; i < TREE_CACHE_WAYS; i++)
		if (set[i] && set[i]->self == pointer)
			return &set[i];
	for (unsigned i = 0; i < TREE_CACHE_WAYS; i++) {
		if (!set[i])
			return &set[i];
		if (set[i]->node->level < (*worst)->node->level ||
		    (set[i]->node->level == (*worst)->node->level &&
		     set[i]->op < (*worst)->op))
			worst = &set[i];
	}
	return worst;
}

struct tree_inner *tree_cache_put(struct tree_client *c,
				  const struct tree_node *n)
{
	uint64_t self = le64_get(n->self);
	struct tree_inner **at = victim_of(set_of(c, self), self);
	size_t order_at = sizeof(struct tree_inner) + c->g.node_bytes;
	struct tree_inner *in = *at;

	if (!in)
		in = malloc(order_at + c->g.inner_slots * sizeof(uint16_t));
	if (!in)
		return NULL;
	*at = in;
	in->self = self;
	in->op = c->op;
	in->node = (struct tree_node *)(in + 1);
	in->order = (uint16_t *)((uint8_t *)in + order_at);
	memcpy(in->node, n, c->g.node_bytes);
	in->count = tree_node_sort(&c->g, n, c->items);
	for (uint32_t i = 0; i < in->count; i++)
		in->order[i] = (uint16_t)c->items[i].slot;
	return in;
}

/* Whole since it was put in, so no sums are made again. */
struct tree_item tree_inner_item(const struct tree_client *c,
				 const struct tree_inner *in, uint32_t i)
{
	const struct tree_entry *e =
		(const struct tree_entry *)((const uint8_t *)in->node +
					    tree_entry_at(&c->g,
							  in->node->level,
							  in->order[i]));
	const uint8_t *key = (const uint8_t *)(e + 1);

	return (struct tree_item){.key = {key, e->key_len},
				  .value = key + c->g.key_room,
				  .value_len = sizeof(le64),
				  .slot = in->order[i]};
}

int tree_inner_find(const struct tree_client *c, const struct tree_inner *in,
		    struct tree_key key, bool is_before)
{
	uint32_t low = 0, high = in->count;

	/* The first one that is too large. */
	while (low < high) {
		uint32_t mid = (low + high) / 2;
		int order =
			tree_key_compare(tree_inner_item(c, in, mid).key, key);

		if (order > 0 || (order == 0 && is_before))
			high = mid;
		else
			low = mid + 1;
	}
	return (int)low - 1;
}
