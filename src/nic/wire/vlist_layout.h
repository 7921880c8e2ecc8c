/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A version-list store as it lies in far memory: one region, little-endian.
 *
 *	struct vlist_head	(512 bytes)
 *	clients			slots of clients, 64 bytes each
 *	chunk words		le64 []: owner of the chunk; 0: none
 *	index			buckets of struct vlist_entry
 *	nodes			struct vlist_node and value, all of one size
 *
 * Every version of a key is a node; nodes are never changed once others can
 * find them, but for their `next`. A key's entry has a pointer to a version
 * (`head`), from which the newest is found by following `next`. A version is
 * *committed* when it can be reached like that; it then stays reachable until
 * it is old and collected.
 *
 * Words. A pointer names a node and its generation, which changes with each
 * use of the node's memory, so that an old pointer is never mistaken for a new
 * one:
 *
 *	bit 0		1: a pointer to another node (in `next`: the successor)
 *			0: the name of the node it stands in: no successor yet
 *	bits 1-34	offset in the region / 8
 *	bits 35-62	generation, 1 at least
 *	bit 63		never in memory: set by a switch in an answer on its
 *			way, "what this answer is about is committed"
 *
 * The name is what makes it safe to let a switch choose the place of an append:
 * the answer to compare-and-swap is the word before, so it says where the
 * append happened, and that is kept by the server and not by the switch.
 */
#ifndef AQ_VLIST_LAYOUT_H
#define AQ_VLIST_LAYOUT_H

#include "base/base.h"
#include "base/bytes.h"
#include "base/layout.h"

enum {
	VLIST_HEAD_BYTES = 512,
	VLIST_SLOT_BYTES = 64,
	VLIST_ENTRY_BYTES = 16,
	VLIST_BUCKET = 16, /* entries */
	VLIST_BUCKET_BYTES = VLIST_BUCKET * VLIST_ENTRY_BYTES,
	VLIST_NODE_HEAD = 64,
	/* Bytes after the value. A switch may answer a READ of a whole node
	 * with a newer version, but not one without these bytes. */
	VLIST_NODE_TAIL = 8,
	VLIST_VALUE_MAX = 4096 - VLIST_NODE_HEAD - VLIST_NODE_TAIL,
	VLIST_CLIENTS_MAX = 4096,
	VLIST_CHUNK_NODES_MAX = 65536,
	VLIST_ALIGN = 4096,
	VLIST_GENERATION_BITS = 28,
};

#define VLIST_LINK	UINT64_C(1)
#define VLIST_COMMITTED (UINT64_C(1) << 63)
#define VLIST_SIZE_MAX	(UINT64_C(1) << 37)

static inline uint64_t vlist_pointer(uint64_t offset, uint32_t generation)
{
	return VLIST_LINK | offset >> 3 << 1 | (uint64_t)generation << 35;
}

static inline bool vlist_is_pointer(uint64_t word)
{
	return word & VLIST_LINK;
}

static inline uint64_t vlist_offset(uint64_t word)
{
	return (word >> 1 & ((UINT64_C(1) << 34) - 1)) << 3;
}

static inline uint32_t vlist_generation(uint64_t word)
{
	return (uint32_t)(word >> 35) & ((1u << VLIST_GENERATION_BITS) - 1);
}

/* Whether `a` is a later use of the same memory than `b`. */
static inline bool vlist_is_later_use(uint64_t a, uint64_t b)
{
	uint32_t ahead = vlist_generation(a) - vlist_generation(b);

	return ahead << (32 - VLIST_GENERATION_BITS) >> 31 == 0 && a != b;
}

/* What stands in `next` of the node at this pointer while it is the newest. */
static inline uint64_t vlist_end_of(uint64_t pointer)
{
	return pointer & ~(VLIST_LINK | VLIST_COMMITTED);
}

/* ---- in far memory ------------------------------------------------------ */

/* Written once, before any client can open the store. */
struct vlist_head {
	struct layout_header layout;
	le64 bucket_count; /* a power of two */
	le64 chunk_count;
	le32 chunk_nodes;
	le32 node_bytes;
	le32 client_count;
	le32 failure_ms;
	uint8_t reserved[512 - 64 - 16 - 16 - 8];
	le64 crc; /* of all before it */
};

STATIC_ASSERT(sizeof(struct vlist_head) == VLIST_HEAD_BYTES, "vlist head");
STATIC_ASSERT(offsetof(struct vlist_head, crc) == 504, "vlist head crc");

/* A key that was once there keeps its entry. */
struct vlist_entry {
	le64 key1; /* key + 1; 0: free, and so are all behind it */
	le64 head; /* pointer; 0: no version yet */
};

STATIC_ASSERT(sizeof(struct vlist_entry) == VLIST_ENTRY_BYTES, "vlist entry");

enum vlist_node_flags {
	VLIST_NODE_DELETED = 1u << 0, /* the key is absent from here on */
};

enum vlist_node_state {
	VLIST_NODE_USED = 0,
	/* Its owner has given it up: neither it nor any version after it was or
	 * will be committed. */
	VLIST_NODE_ABANDONED = 1,
};

struct vlist_node {
	le64 next; /* a word, as above */
	le64 self; /* a pointer to this node */
	le64 key;
	le32 len_bytes; /* of the value */
	le32 flags;
	le32 owner; /* slot */
	le32 owner_epoch;
	le64 crc;   /* of `self` up to here, and of the value */
	le64 state; /* enum vlist_node_state */
	le64 reserved;
	/* value, padding, VLIST_NODE_TAIL */
};

STATIC_ASSERT(sizeof(struct vlist_node) == VLIST_NODE_HEAD, "vlist node");
STATIC_ASSERT(offsetof(struct vlist_node, next) == 0, "vlist node next");
STATIC_ASSERT(offsetof(struct vlist_node, crc) == 40, "vlist node crc");
STATIC_ASSERT(offsetof(struct vlist_node, state) == 48, "vlist node state");

/* ---- in host form ------------------------------------------------------- */

struct vlist_geometry {
	uint64_t bucket_count;
	uint64_t chunk_count;
	uint32_t chunk_nodes;
	uint32_t node_bytes; /* a multiple of 8 */
	uint32_t client_count;
	uint32_t failure_ms;
	/* What follows from it; offsets from the region's first byte. */
	uint32_t value_max;
	uint64_t slot_offset;
	uint64_t chunk_word_offset;
	uint64_t bucket_offset;
	uint64_t node_offset;
	uint64_t node_count;
	uint64_t size_bytes;
};

/* Checks the first six members and fills in the rest; -EINVAL with words. */
int vlist_geometry_derive(struct vlist_geometry *g) MUST_CHECK;
void vlist_head_put(const struct vlist_geometry *g, struct vlist_head *h);
/* -EBADMSG, -EPROTONOSUPPORT with words. */
int vlist_head_get(const struct vlist_head *h, uint64_t avail_bytes,
		   struct vlist_geometry *g) MUST_CHECK;

static inline uint64_t vlist_node_at(const struct vlist_geometry *g,
				     uint64_t index)
{
	return g->node_offset + index * g->node_bytes;
}

/* Whether a pointer that came from memory points to a node. */
static inline bool vlist_pointer_is_sane(const struct vlist_geometry *g,
					 uint64_t word)
{
	uint64_t at = vlist_offset(word);

	return vlist_is_pointer(word) && vlist_generation(word) &&
	       at >= g->node_offset &&
	       at - g->node_offset < g->node_count * g->node_bytes &&
	       (at - g->node_offset) % g->node_bytes == 0;
}

/* The first bucket in which a key may be. */
uint64_t vlist_bucket_of(const struct vlist_geometry *g, uint64_t key);
/* The CRC of a node's fixed part and the value of n->len_bytes after it. */
uint64_t vlist_node_crc(const struct vlist_node *n, const void *value,
			uint32_t len_bytes);

#endif
