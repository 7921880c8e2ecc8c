/* SPDX-License-Identifier: Apache-2.0 */
/* B+ trees of which all nodes can be computed, so they are written in the order
 * of memory: one of twelve streams that grew side by side, and one whose keys
 * came in any order. */
#include <errno.h>
#include <string.h>

#include "walk_app.h"

enum {
	PAGE_BYTES = 4096, /* no node is on two */
	STREAM_SHIFT = 40, /* of a key: its stream, then its time */
	LEAVES_LEAST = 227,
	ROW_WORDS = WALK_ROW_BYTES / 8,
};

/* Of as many nodes as `part`, every stream has `leaves`; those above them need
 * less than the rest. */
const struct walk_tree_kind walk_tree_streams = {
	.node_bytes = WALK_NODE_BYTES,
	.streams = 12,
	/* What splits leave in a leaf whose keys come in order. */
	.leaf_keys = (WALK_TREE_KEYS + 1) / 2,
	.children = WALK_TREE_KEYS,
	.part = 15,
	.leaves = 1,
};
const struct walk_tree_kind walk_tree_rows = {
	.node_bytes = 320, /* whole lines of the cache for 264 bytes */
	.streams = 1,
	.leaf_keys = 1,
	/* ln 2 of ten, as splits leave it where keys come in any order. */
	.children = 7,
	.part = 6,
	.leaves = 5,
	.is_scattered = true,
};

int walk_tree_size(struct walk_tree *t, const struct walk_tree_kind *kind,
		   uint64_t megabytes)
{
	uint64_t nodes = (megabytes << 20) / PAGE_BYTES *
			 (PAGE_BYTES / kind->node_bytes);
	uint64_t used = 0, n;

	ASSERT(sizeof(struct walk_tree_node) <= kind->node_bytes);
	ASSERT(kind->leaf_keys > 1 ||
	       sizeof(struct walk_row) <= kind->node_bytes);
	t->kind = kind;
	t->leaves_per_stream = nodes / kind->part * kind->leaves;
	if (t->leaves_per_stream < LEAVES_LEAST)
		return -EINVAL;
	n = t->leaves_per_stream * kind->streams;
	for (t->levels = 0; t->levels < WALK_TREE_LEVELS; t->levels++) {
		t->count[t->levels] = n;
		t->first[t->levels] = used;
		used += n;
		if (n == 1)
			break;
		n = (n + kind->children - 1) / kind->children;
	}
	t->levels++;
	ASSERT(used <= nodes);
	return 0;
}

/* The least power of two that has all leaves. What a bijection of so many puts
 * beyond them, it is asked about again. */
static uint64_t scatter_range(const struct walk_tree *t)
{
	return 1ull << (64 - __builtin_clzll(t->count[0] - 1));
}

static uint64_t place_of(const struct walk_tree *t, uint64_t leaf)
{
	if (!t->kind->is_scattered)
		return leaf % t->leaves_per_stream * t->kind->streams +
		       leaf / t->leaves_per_stream;
	do
		leaf = walk_scatter(scatter_range(t), leaf);
	while (leaf >= t->count[0]);
	return leaf;
}

static uint64_t leaf_in(const struct walk_tree *t, uint64_t place)
{
	if (!t->kind->is_scattered)
		return place % t->kind->streams * t->leaves_per_stream +
		       place / t->kind->streams;
	do
		place = walk_gather(scatter_range(t), place);
	while (place >= t->count[0]);
	return place;
}

/* Where a node is, by its number among those of its level. */
static uint64_t node_at(const struct walk_tree *t, unsigned level, uint64_t n)
{
	uint64_t place = t->first[level] + (level ? n : place_of(t, n));
	uint64_t per_page = PAGE_BYTES / t->kind->node_bytes;

	return WALK_FIRST + place / per_page * PAGE_BYTES +
	       place % per_page * t->kind->node_bytes;
}

static uint64_t first_key(const struct walk_tree *t, uint64_t leaf)
{
	return (leaf / t->leaves_per_stream << STREAM_SHIFT) +
	       leaf % t->leaves_per_stream * t->kind->leaf_keys;
}

uint64_t walk_tree_root(const struct walk_tree *t)
{
	return node_at(t, t->levels - 1, 0);
}

static void fill_values(const struct walk_tree *t, uint64_t leaf, uint64_t next,
			uint8_t *to)
{
	struct walk_tree_node n = {
		.is_leaf = 1, .count = t->kind->leaf_keys, .next = next};

	for (uint64_t i = 0; i < n.count; i++) {
		n.keys[i] = first_key(t, leaf) + i;
		n.values[i] = n.keys[i] & ((1ull << STREAM_SHIFT) - 1);
	}
	memcpy(to, &n, sizeof(n));
}

/* No two words of all rows are equal. */
static void fill_row(const struct walk_tree *t, uint64_t leaf, uint64_t next,
		     uint8_t *to)
{
	struct walk_row n = {.is_leaf = 1,
			     .count = 1,
			     .key = first_key(t, leaf),
			     .next = next};

	for (uint64_t i = 0; i < ROW_WORDS; i++) {
		uint64_t word = n.key * ROW_WORDS + i;

		memcpy(n.value + i * sizeof(word), &word, sizeof(word));
	}
	memcpy(to, &n, sizeof(n));
}

static void fill_leaf(struct walk_tree *t, uint64_t leaf)
{
	uint8_t *to = t->memory + node_at(t, 0, leaf);
	uint64_t next = leaf + 1 < t->count[0] ? node_at(t, 0, leaf + 1) : 0;

	if (t->kind->leaf_keys == 1)
		fill_row(t, leaf, next, to);
	else
		fill_values(t, leaf, next, to);
}

/* `span`: leaves below each of its children. */
static void fill_inner(struct walk_tree *t, unsigned level, uint64_t number,
		       uint64_t span)
{
	uint64_t child = number * t->kind->children;
	uint64_t children =
		u64_min(t->kind->children, t->count[level - 1] - child);
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

	for (uint64_t place = 0; place < t->count[0]; place++)
		fill_leaf(t, leaf_in(t, place));
	for (unsigned level = 1; level < t->levels; level++) {
		for (uint64_t i = 0; i < t->count[level]; i++)
			fill_inner(t, level, i, span);
		span *= t->kind->children;
	}
}

void walk_tree_window(const struct walk_tree *t, struct rng *r,
		      struct walk_app_query *q)
{
	static const uint64_t windows[] = {38, 65, 119, 227};
	uint64_t leaves = windows[rng_below(r, ARRAY_LEN(windows))];
	uint64_t begin = rng_below(r, t->leaves_per_stream - leaves + 1);
	uint64_t leaf =
		rng_below(r, t->kind->streams) * t->leaves_per_stream + begin;
	uint64_t count = leaves * t->kind->leaf_keys;
	uint64_t first = begin * t->kind->leaf_keys;

	q->start = walk_tree_root(t);
	q->count = count;
	q->sum = (2 * first + count - 1) * count / 2;
	q->pad.reduce =
		(struct aq_walk_reduce){.low = first_key(t, leaf),
					.high = first_key(t, leaf) + count - 1};
}

void walk_tree_scan(const struct walk_tree *t, uint64_t first,
		    struct walk_app_query *q)
{
	uint64_t words = (uint64_t)WALK_SCAN_ROWS * ROW_WORDS;

	q->start = walk_tree_root(t);
	q->count = WALK_SCAN_ROWS;
	q->sum = (2 * first * ROW_WORDS + words - 1) * words / 2;
	q->pad.scan = (struct walk_scan_pad){
		.low = first, .high = first + WALK_SCAN_ROWS - 1};
}

bool walk_tree_scanned(const struct walk_app_query *q)
{
	const struct walk_scan_pad *p = &q->pad.scan;
	uint64_t words[ROW_WORDS], sum = 0;

	if (p->found != q->count || p->more)
		return false;
	for (uint64_t i = 0; i < p->found; i++) {
		if (p->pairs[i].key != p->low + i)
			return false;
		memcpy(words, p->pairs[i].value, sizeof(words));
		for (unsigned k = 0; k < ROW_WORDS; k++)
			sum += words[k];
	}
	return sum == q->sum;
}
