/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients of an ordered index read from far memory: a head is refused or
 * has sizes that add up; whatever the bytes of a node are, looking into it
 * stays inside, and what is whole can be split and mended into whole nodes.
 *
 * The first four bytes choose the geometry, and whether checksums are put
 * right, so that what lies behind them is reached.
 */
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "fuzz.h"
#include "index/tree_node.h"

enum {
	CHOICE_BYTES = 4,
	SUM_HEAD = 1,
	SUM_ENTRIES = 2,
	SAME_VERSION = 4,
};

static const uint64_t self = (uint64_t)7 << 32 | 3;

static struct tree_geometry geometry(const uint8_t *choice)
{
	struct tree_geometry g = {.chunk_count = 4,
				  .chunk_nodes = 4,
				  .node_bytes = 256 + 16u * choice[0],
				  .key_max = 1 + choice[1] % TREE_KEY_MAX,
				  .value_max = choice[2] % 128,
				  .client_count = 4,
				  .failure_ms = 5,
				  .lock_count = 3};

	if (tree_geometry_derive(&g)) {
		g.node_bytes = 2048;
		ASSERT(tree_geometry_derive(&g) == 0);
	}
	return g;
}

static void check_head(const uint8_t *data, size_t size)
{
	struct tree_head h = {0};
	struct tree_geometry g, sane = geometry((const uint8_t[4]){0});
	size_t at = sizeof(h.layout);

	tree_head_put(&sane, &h);
	if (size > sizeof(h) - at)
		size = sizeof(h) - at;
	memcpy((uint8_t *)&h + at, data, size);
	h.crc = le64_put(crc64(0, &h, offsetof(struct tree_head, crc)));
	if (tree_head_get(&h, UINT64_MAX, &g))
		return;
	ASSERT(g.slots_at + g.leaf_slots * g.leaf_stride <= g.node_bytes);
	ASSERT(g.slots_at + g.inner_slots * g.inner_stride <= g.node_bytes);
	ASSERT(g.leaf_slots <= TREE_SLOTS_MAX &&
	       g.inner_slots <= TREE_SLOTS_MAX);
	ASSERT(tree_node_at(&g, g.node_count - 1) + g.node_bytes <=
	       g.size_bytes);
}

/* ---- checksums ----------------------------------------------------------- */

static struct tree_entry *entry_of(const struct tree_geometry *g,
				   struct tree_node *n, uint32_t i)
{
	return (struct tree_entry *)((uint8_t *)n +
				     tree_entry_at(g, n->level, i));
}

static void sum_entry(const struct tree_geometry *g, const struct tree_node *n,
		      struct tree_entry *e)
{
	uint32_t len = e->value_len[0] | (uint32_t)e->value_len[1] << 8;
	const uint8_t *key = (const uint8_t *)(e + 1);
	uint64_t name = le64_get(n->self);
	uint32_t crc = crc32_raw((uint32_t) ~(name ^ name >> 32),
				 &e->node_version, TREE_ENTRY_HEAD - 4);

	if (e->key_len > g->key_max || len > (n->level ? 8 : g->value_max))
		return;
	if (e->is_used) {
		crc = crc32_raw(crc, key, e->key_len);
		crc = crc32_raw(crc, key + g->key_room, len);
	}
	e->crc = le32_put(crc);
}

static void put_right(const struct tree_geometry *g, struct tree_node *n,
		      uint8_t choice)
{
	if (choice & SUM_HEAD) {
		n->self = le64_put(self);
		n->crc = le32_put(
			crc32_raw(UINT32_MAX, &n->version, g->slots_at - 4));
	}
	if (n->level >= TREE_LEVELS_MAX)
		return;
	for (uint32_t i = 0; i < tree_slots(g, n->level); i++) {
		struct tree_entry *e = entry_of(g, n, i);

		if (choice & SAME_VERSION)
			e->node_version = n->version;
		if (choice & SUM_ENTRIES)
			sum_entry(g, n, e);
	}
}

/* ---- nodes --------------------------------------------------------------- */

static void check_item(const struct tree_geometry *g, const struct tree_node *n,
		       const struct tree_item *item)
{
	const uint8_t *end = (const uint8_t *)n + g->node_bytes;

	ASSERT(item->slot < tree_slots(g, n->level));
	ASSERT(item->key.bytes > (const uint8_t *)n &&
	       item->key.bytes + item->key.len <= end);
	ASSERT(item->value + item->value_len <= end);
	(void)tree_item_child(item);
}

static uint32_t check_entries(const struct tree_geometry *g,
			      const struct tree_node *n)
{
	static struct tree_item items[TREE_SLOTS_MAX];
	uint32_t count = tree_node_sort(g, n, items);
	struct tree_item found;

	ASSERT(count <= tree_slots(g, n->level));
	for (uint32_t i = 0; i < count; i++) {
		check_item(g, n, &items[i]);
		ASSERT(!i ||
		       tree_key_compare(items[i - 1].key, items[i].key) <= 0);
		ASSERT(tree_node_find(g, n, items[i].key, &found) ==
		       TREE_SLOT_USED);
	}
	return count;
}

static void check_split(const struct tree_geometry *g,
			const struct tree_node *n, struct tree_node *left,
			struct tree_node *right)
{
	struct tree_key key = tree_node_low(n), mid;
	uint8_t bytes[TREE_KEY_MAX];
	uint32_t count = check_entries(g, n);

	if (tree_node_free_slot(g, n) >= 0)
		return;
	tree_node_middle(g, n, key, bytes, &mid.len);
	mid.bytes = bytes;
	memcpy(left, n, g->node_bytes);
	tree_node_split(g, left, right, self + 1, 9, mid);
	ASSERT(tree_node_judge(g, left, self) == TREE_WHOLE);
	ASSERT(tree_node_judge(g, right, self + 1) == TREE_WHOLE);
	ASSERT(check_entries(g, left) + check_entries(g, right) == count);
}

/* What readers and writers do with a node of any bytes. */
static void check_node(const struct tree_geometry *g, struct tree_node *n,
		       struct tree_node *left, struct tree_node *right)
{
	enum tree_verdict verdict = tree_node_judge(g, n, self);
	struct tree_item item;
	unsigned lost = 0;

	if (tree_node_judge_head(g, n, self) == TREE_WHOLE) {
		(void)tree_node_side(g, n, tree_node_high(g, n));
		for (uint32_t i = 0; i < tree_slots(g, n->level); i++)
			if (tree_slot_look(g, n, i, &item) == TREE_SLOT_USED)
				check_item(g, n, &item);
		if (tree_node_find(g, n, tree_node_low(n), &item) ==
		    TREE_SLOT_USED)
			check_item(g, n, &item);
	}
	if (verdict == TREE_WHOLE && n->state == TREE_NODE_LIVE)
		check_split(g, n, left, right);
	if (tree_node_mend(g, n, self, &lost))
		return;
	ASSERT(tree_node_judge(g, n, self) == TREE_WHOLE);
	for (uint32_t i = 0; i < tree_slots(g, n->level); i++)
		if (tree_slot_look(g, n, i, &item) == TREE_SLOT_USED)
			ASSERT(tree_node_side(g, n, item.key) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tree_node *n, *left, *right;
	struct tree_geometry g;

	check_head(data, size);
	if (size < CHOICE_BYTES)
		return 0;
	g = geometry(data);
	/* Exactly as long, so that ASan guards their ends. */
	n = calloc(1, g.node_bytes);
	left = malloc(g.node_bytes);
	right = malloc(g.node_bytes);
	if (n && left && right) {
		size_t len = size - CHOICE_BYTES;

		memcpy(n, data + CHOICE_BYTES,
		       len < g.node_bytes ? len : g.node_bytes);
		put_right(&g, n, data[3]);
		check_node(&g, n, left, right);
	}
	free(n);
	free(left);
	free(right);
	return 0;
}
