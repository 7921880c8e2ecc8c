/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a version-list store, and sums over its nodes. */
#include "vlist_layout.h"

#include <errno.h>
#include <string.h>

#include "base/crc.h"
#include "base/error.h"

static const struct layout_kind vlist_layout = {
	.name = "version-list store",
	.magic = "AQVLIST1",
	.major = 2,
	.minor = 0,
	.header_size = VLIST_HEAD_BYTES,
};

static int check(const struct vlist_geometry *g)
{
	if (!g->bucket_count || g->bucket_count & (g->bucket_count - 1) ||
	    g->bucket_count > 1u << 28)
		return error_set(-EINVAL, "buckets are a power of two");
	if (g->node_bytes % 8 ||
	    g->node_bytes < VLIST_NODE_HEAD + VLIST_NODE_TAIL + 8 ||
	    g->node_bytes > VLIST_NODE_HEAD + VLIST_VALUE_MAX + VLIST_NODE_TAIL)
		return error_set(-EINVAL, "a value has up to %d bytes",
				 VLIST_VALUE_MAX);
	if (!g->chunk_nodes || g->chunk_nodes > VLIST_CHUNK_NODES_MAX)
		return error_set(-EINVAL, "a chunk has 1 to %d nodes",
				 VLIST_CHUNK_NODES_MAX);
	if (!g->chunk_count || g->chunk_count > 1u << 28)
		return error_set(-EINVAL, "a store has 1 to 2^28 chunks");
	if (!g->client_count || g->client_count > VLIST_CLIENTS_MAX)
		return error_set(-EINVAL, "a store has 1 to %d clients",
				 VLIST_CLIENTS_MAX);
	if (!g->failure_ms)
		return error_set(-EINVAL, "the failure time is 1 ms or more");
	return 0;
}

int vlist_geometry_derive(struct vlist_geometry *g)
{
	int err = check(g);

	if (err)
		return err;
	g->value_max = g->node_bytes - VLIST_NODE_HEAD - VLIST_NODE_TAIL;
	g->slot_offset = VLIST_HEAD_BYTES;
	g->chunk_word_offset =
		g->slot_offset + (uint64_t)g->client_count * VLIST_SLOT_BYTES;
	g->bucket_offset = align_up(g->chunk_word_offset + g->chunk_count * 8,
				    VLIST_ALIGN);
	g->node_offset = align_up(g->bucket_offset +
					  g->bucket_count * VLIST_BUCKET_BYTES,
				  VLIST_ALIGN);
	g->node_count = g->chunk_count * g->chunk_nodes;
	g->size_bytes = align_up(g->node_offset + g->node_count * g->node_bytes,
				 VLIST_ALIGN);
	if (g->node_count >> 40 || g->size_bytes > VLIST_SIZE_MAX)
		return error_set(-EINVAL,
				 "a store has up to 128 GiB; make values "
				 "smaller or versions fewer");
	return 0;
}

void vlist_head_put(const struct vlist_geometry *g, struct vlist_head *h)
{
	memset(h, 0, sizeof(*h));
	layout_header_init(&h->layout, &vlist_layout, g->size_bytes, "index");
	h->bucket_count = le64_put(g->bucket_count);
	h->chunk_count = le64_put(g->chunk_count);
	h->chunk_nodes = le32_put(g->chunk_nodes);
	h->node_bytes = le32_put(g->node_bytes);
	h->client_count = le32_put(g->client_count);
	h->failure_ms = le32_put(g->failure_ms);
	h->crc = le64_put(crc64(0, h, offsetof(struct vlist_head, crc)));
}

int vlist_head_get(const struct vlist_head *h, uint64_t avail_bytes,
		   struct vlist_geometry *out)
{
	struct vlist_geometry g = {0};
	struct layout_info info;
	int err = layout_header_check(h, avail_bytes, &vlist_layout, &info);

	if (err)
		return err;
	if (le64_get(h->crc) != crc64(0, h, offsetof(struct vlist_head, crc)))
		return error_set(-EBADMSG, "the store's head is damaged");
	g.bucket_count = le64_get(h->bucket_count);
	g.chunk_count = le64_get(h->chunk_count);
	g.chunk_nodes = le32_get(h->chunk_nodes);
	g.node_bytes = le32_get(h->node_bytes);
	g.client_count = le32_get(h->client_count);
	g.failure_ms = le32_get(h->failure_ms);
	if (vlist_geometry_derive(&g) || g.size_bytes != info.total_size ||
	    g.size_bytes > avail_bytes)
		return error_set(-EBADMSG, "the store's head makes no sense");
	*out = g;
	return 0;
}

uint64_t vlist_bucket_of(const struct vlist_geometry *g, uint64_t key)
{
	uint64_t h = (key ^ key >> 33) * UINT64_C(0xff51afd7ed558ccd);

	h = (h ^ h >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	return (h ^ h >> 33) & (g->bucket_count - 1);
}

uint64_t vlist_node_crc(const struct vlist_node *n, const void *value,
			uint32_t len_bytes)
{
	const uint8_t *from = (const uint8_t *)&n->self;
	uint64_t crc = crc64(0, from,
			     offsetof(struct vlist_node, crc) -
				     offsetof(struct vlist_node, self));

	return len_bytes ? crc64(crc, value, len_bytes) : crc;
}
