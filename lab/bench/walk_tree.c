/* SPDX-License-Identifier: Apache-2.0 */
/* A B+ tree of twelve streams that grew side by side: all its nodes can be
 * computed, so it is written in the order of memory. */
#include <errno.h>
#include <string.h>

#include "walk_app.h"

enum {
	STREAMS = 12,
	/* What splits leave in a leaf whose keys come in order. */
	LEAF_KEYS = (WALK_TREE_KEYS + 1) / 2,
	CHILDREN = WALK_TREE_KEYS,
	STREAM_SHIFT = 40, /* of a key: its stream, then its time */
	LEAVES_LEAST = 227,
};
/* Leaves take twelve of fifteen nodes; those above them need less than the
 * rest, an eighth of the leaves and a few. */
enum {
	NODES_PER_LEAF_OF_ALL = 15,
};

int walk_tree_size(struct walk_tree *t, uint64_t megabytes)
{
	uint64_t nodes = (megabytes << 20) / WALK_NODE_BYTES, used = 0;
	uint64_t n;

	STATIC_ASSERT(sizeof(struct walk_tree_node) <= WALK_NODE_BYTES,
		      "a node in its place");
	t->leaves_per_stream = nodes / NODES_PER_LEAF_OF_ALL;
	if (t->leaves_per_stream < LEAVES_LEAST)
		return -EINVAL;
	n = t->leaves_per_stream * STREAMS;
	for (t->levels = 0; t->levels < WALK_TREE_LEVELS; t->levels++) {
		t->count[t->levels] = n;
		t->first[t->levels] = used;
		used += n;
		if (n == 1)
			break;
		n = (n + CHILDREN - 1) / CHILDREN;
	}
	t->levels++;
	ASSERT(used <= nodes);
	return 0;
}

/* Where a node is, by its number among those of its level. */
static uint64_t node_at(const struct walk_tree *t, unsigned level, uint64_t n)
{
	uint64_t place = t->first[level] + n;

	if (level == 0)
		place = n % t->leaves_per_stream * STREAMS +
			n / t->leaves_per_stream;
	return WALK_FIRST + place * WALK_NODE_BYTES;
}

static uint64_t first_key(const struct walk_tree *t, uint64_t leaf)
{
	return (leaf / t->leaves_per_stream << STREAM_SHIFT) +
	       leaf % t->leaves_per_stream * LEAF_KEYS;
}

uint64_t walk_tree_root(const struct walk_tree *t)
{
	return node_at(t, t->levels - 1, 0);
}

static void fill_leaf(struct walk_tree *t, uint64_t leaf)
{
	struct walk_tree_node n = {.is_leaf = 1, .count = LEAF_KEYS};

	for (uint64_t i = 0; i < LEAF_KEYS; i++) {
		n.keys[i] = first_key(t, leaf) + i;
		n.values[i] = n.keys[i] & ((1ull << STREAM_SHIFT) - 1);
	}
	if (leaf + 1 < t->count[0])
		n.next = node_at(t, 0, leaf + 1);
	memcpy(t->memory + node_at(t, 0, leaf), &n, sizeof(n));
}

/* `span`: leaves below each of its children. */
static void fill_inner(struct walk_tree *t, unsigned level, uint64_t number,
		       uint64_t span)
{
	uint64_t child = number * CHILDREN;
	uint64_t children = u64_min(CHILDREN, t->count[level - 1] - child);
	struct walk_tree_node n = {.count = (uint32_t)children - 1};

	for (uint64_t i = 0; i < children; i++) {
		n.children[i] = node_at(t, level - 1, child + i);
		if (i)
			n.keys[i - 1] = first_key(t, (child + i) * span);
	}
	memcpy(t->memory + node_at(t, level, number), &n, sizeof(n));
}

void walk_tree_fill(struct walk_tree *t)
{
	uint64_t span = 1;

	for (uint64_t i = 0; i < t->leaves_per_stream; i++)
		for (uint64_t stream = 0; stream < STREAMS; stream++)
			fill_leaf(t, stream * t->leaves_per_stream + i);
	for (unsigned level = 1; level < t->levels; level++) {
		for (uint64_t i = 0; i < t->count[level]; i++)
			fill_inner(t, level, i, span);
		span *= CHILDREN;
	}
}

void walk_tree_draw(const struct walk_tree *t, struct rng *r,
		    struct walk_app_query *q)
{
	static const uint64_t windows[] = {38, 65, 119, 227};
	uint64_t leaves = windows[rng_below(r, ARRAY_LEN(windows))];
	uint64_t begin = rng_below(r, t->leaves_per_stream - leaves + 1);
	uint64_t leaf = rng_below(r, STREAMS) * t->leaves_per_stream + begin;
	uint64_t count = leaves * LEAF_KEYS, first = begin * LEAF_KEYS;

	*q = (struct walk_app_query){
		.start = walk_tree_root(t),
		.count = count,
		.sum = (2 * first + count - 1) * count / 2,
		.pad.reduce = {.low = first_key(t, leaf),
			       .high = first_key(t, leaf) + count - 1},
	};
}
