/* SPDX-License-Identifier: Apache-2.0 */
/* The head of an ordered index: what it says, and what follows from it. */
#include "tree_layout.h"

#include <errno.h>
#include <string.h>

#include "base/crc.h"
#include "base/error.h"

static const struct layout_kind tree_layout = {
	.name = "ordered index",
	.magic = "AQTREE01",
	.major = 2,
	.minor = 0,
	.header_size = TREE_HEAD_BYTES,
};

const struct layout_kind tree_lock_layout = {
	.name = "locks of an ordered index",
	.magic = "AQTRLOCK",
	.major = 1,
	.minor = 0,
	.header_size = TREE_LOCK_HEAD,
};

static int check_sizes(const struct tree_geometry *g)
{
	if (!g->key_max || g->key_max > TREE_KEY_MAX)
		return error_set(-EINVAL, "keys have 1 to %d bytes",
				 TREE_KEY_MAX);
	if (g->value_max > TREE_VALUE_MAX)
		return error_set(-EINVAL, "values have up to %d bytes",
				 TREE_VALUE_MAX);
	if (g->node_bytes < TREE_NODE_BYTES_MIN ||
	    g->node_bytes > TREE_NODE_BYTES_MAX || g->node_bytes % 16)
		return error_set(-EINVAL,
				 "a node has %d to %d bytes, a multiple of 16",
				 TREE_NODE_BYTES_MIN, TREE_NODE_BYTES_MAX);
	return 0;
}

static int check_counts(const struct tree_geometry *g)
{
	if (!g->chunk_nodes || g->chunk_nodes > TREE_CHUNK_NODES_MAX ||
	    !g->chunk_count || g->chunk_count > 1u << 28)
		return error_set(-EINVAL,
				 "an index has 1 to 2^28 chunks of 1 to %d "
				 "nodes",
				 TREE_CHUNK_NODES_MAX);
	if (!g->client_count || g->client_count > TREE_CLIENTS_MAX)
		return error_set(-EINVAL, "an index has 1 to %d clients",
				 TREE_CLIENTS_MAX);
	if (!g->lock_count || g->lock_count > TREE_LOCKS_MAX)
		return error_set(-EINVAL, "an index has 1 to %d locks",
				 TREE_LOCKS_MAX);
	if (!g->failure_ms)
		return error_set(-EINVAL, "the failure time is 1 ms or more");
	return 0;
}

static uint32_t stride_of(const struct tree_geometry *g, uint32_t value_max)
{
	return (uint32_t)align_up(
		TREE_ENTRY_HEAD + g->key_room + align_up(value_max, 8), 16);
}

int tree_geometry_derive(struct tree_geometry *g)
{
	int err = check_sizes(g);

	if (!err)
		err = check_counts(g);
	if (err)
		return err;
	g->key_room = (uint32_t)align_up(g->key_max, 8);
	g->slots_at = (uint32_t)align_up(TREE_NODE_HEAD + 2 * g->key_room, 16);
	g->leaf_stride = stride_of(g, g->value_max);
	g->inner_stride = stride_of(g, sizeof(le64));
	g->leaf_slots = (g->node_bytes - g->slots_at) / g->leaf_stride;
	g->inner_slots = (g->node_bytes - g->slots_at) / g->inner_stride;
	if (g->node_bytes <= g->slots_at || g->leaf_slots < TREE_ENTRIES_MIN ||
	    g->inner_slots < TREE_ENTRIES_MIN)
		return error_set(-EINVAL,
				 "a node of %u bytes has no room for %d "
				 "entries; make it larger, or keys and values "
				 "shorter",
				 g->node_bytes, TREE_ENTRIES_MIN);
	g->chunk_word_offset = align_up(tree_slot_at(g->client_count), 64);
	g->node_offset =
		align_up(g->chunk_word_offset + g->chunk_count * 8, TREE_ALIGN);
	g->node_count = g->chunk_count * g->chunk_nodes;
	if (g->node_count >> 32)
		return error_set(-EINVAL, "an index has up to 2^32 nodes");
	g->size_bytes = align_up(g->node_offset + g->node_count * g->node_bytes,
				 TREE_ALIGN);
	g->lock_bytes = align_up(tree_lock_at(g->lock_count), 64);
	return 0;
}

void tree_head_put(const struct tree_geometry *g, struct tree_head *h)
{
	memset(h, 0, sizeof(*h));
	layout_header_init(&h->layout, &tree_layout, g->size_bytes, "index");
	h->chunk_count = le64_put(g->chunk_count);
	h->chunk_nodes = le32_put(g->chunk_nodes);
	h->node_bytes = le32_put(g->node_bytes);
	h->key_max = le32_put(g->key_max);
	h->value_max = le32_put(g->value_max);
	h->client_count = le32_put(g->client_count);
	h->failure_ms = le32_put(g->failure_ms);
	h->lock_count = le32_put(g->lock_count);
	h->flags = le32_put(g->flags);
	h->crc = le64_put(crc64(0, h, offsetof(struct tree_head, crc)));
}

int tree_head_get(const struct tree_head *h, uint64_t avail_bytes,
		  struct tree_geometry *out)
{
	struct tree_geometry g = {0};
	struct layout_info info;
	int err = layout_header_check(h, avail_bytes, &tree_layout, &info);

	if (err)
		return err;
	if (le64_get(h->crc) != crc64(0, h, offsetof(struct tree_head, crc)))
		return error_set(-EBADMSG, "the index's head is damaged");
	g.chunk_count = le64_get(h->chunk_count);
	g.chunk_nodes = le32_get(h->chunk_nodes);
	g.node_bytes = le32_get(h->node_bytes);
	g.key_max = le32_get(h->key_max);
	g.value_max = le32_get(h->value_max);
	g.client_count = le32_get(h->client_count);
	g.failure_ms = le32_get(h->failure_ms);
	g.lock_count = le32_get(h->lock_count);
	g.flags = le32_get(h->flags);
	if (tree_geometry_derive(&g) || g.size_bytes != info.total_size ||
	    g.size_bytes > avail_bytes)
		return error_set(-EBADMSG, "the index's head makes no sense");
	*out = g;
	return 0;
}

uint32_t tree_lock_of(const struct tree_geometry *g, uint64_t pointer)
{
	uint64_t h = tree_number(pointer) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)((h >> 32) % g->lock_count);
}
