/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ordered index, a B+ tree, as it lies in far memory, little-endian. Two
 * regions: locks, which should be device memory, and
 *
 *	struct tree_head	(512 bytes)
 *	le64			the root, a pointer (in 64 bytes of its own)
 *	clients			struct kit_slot, 64 bytes each
 *	chunk words		le64 []: owner of the chunk; 0: none ever
 *	nodes			struct tree_node, fences and slots
 *
 * A node has a range of keys, from its low fence up to and without its high
 * fence, and a pointer to the node with the next range (a B-link tree), so a
 * reader that used an old copy of an inner node notices and goes on to the
 * right. Leaves (level 0) and inner nodes are the same but for the size of
 * their values; an inner node's are pointers to children, whose low fence is
 * the key. Entries are in no order: a change writes one of them and not the
 * node.
 *
 * Readers take no lock, so they must see when a node changed under them. Every
 * slot, used or not, has the version of the node it was written for, a version
 * of its own, and a sum over both and over what is in it. A client that changes
 * the node's range writes all of the node with the next version. A node that
 * was read is whole when all its slots have the node's version and their sums
 * are right; a single slot is whole when its own sum is right.
 *
 * Only the client that holds the node's lock writes to the node. What a client
 * that dies meanwhile leaves can be repaired from what is there (see
 * tree_node_mend), because a slot's head never crosses 16 bytes, and the body
 * of an entry that stays is not touched when its node is written.
 *
 * A pointer is a node's number and, above, its generation, which changes with
 * each use of the node's memory: an old pointer is never taken for a new one.
 */
#ifndef AQ_TREE_LAYOUT_H
#define AQ_TREE_LAYOUT_H

#include "base/base.h"
#include "base/bytes.h"
#include "base/layout.h"

enum {
	TREE_HEAD_BYTES = 512,
	TREE_ROOT_AT = 512,
	TREE_SLOTS_AT = 576,
	TREE_SLOT_BYTES = 64,
	TREE_NODE_BYTES_MIN = 256,
	TREE_NODE_BYTES_MAX = 16384,
	TREE_NODE_HEAD = 32,
	TREE_ENTRY_HEAD = 16,
	TREE_ENTRIES_MIN = 4, /* in a node */
	TREE_KEY_MAX = 64,
	TREE_VALUE_MAX = 3072,
	TREE_CLIENTS_MAX = 4096,
	TREE_CHUNK_NODES_MAX = 1024,
	TREE_LOCKS_MAX = 1 << 20,
	TREE_LOCK_HEAD = 64,
	TREE_LOCK_EPOCHS = 0xffffff, /* the bits of an epoch in a lock */
	TREE_LEVELS_MAX = 16,
	TREE_ALIGN = 4096,
	TREE_NO_END = 255, /* as the length of a high fence */
};

/* ---- pointers and words ------------------------------------------------- */

static inline uint64_t tree_pointer(uint32_t number, uint32_t generation)
{
	return (uint64_t)generation << 32 | number;
}

static inline uint32_t tree_number(uint64_t pointer)
{
	return (uint32_t)pointer;
}

static inline uint32_t tree_generation(uint64_t pointer)
{
	return (uint32_t)(pointer >> 32);
}

/* The word of a held lock: the holder's slot and epoch, and the holder's count
 * of locks, so that each word is different. */
static inline uint64_t tree_lock_word(uint32_t slot, uint32_t epoch,
				      uint32_t count)
{
	return (slot + 1) | (uint64_t)(epoch & TREE_LOCK_EPOCHS) << 16 |
	       (uint64_t)(count & 0xffffff) << 40;
}

static inline uint32_t tree_lock_slot(uint64_t word)
{
	return (uint32_t)(word & 0xffff) - 1;
}

static inline uint32_t tree_lock_epoch(uint64_t word)
{
	return (uint32_t)(word >> 16) & TREE_LOCK_EPOCHS;
}

/* The word of a chunk whose owner has left it in order. */
#define TREE_CHUNK_LEFT UINT64_MAX

/* ---- in far memory ------------------------------------------------------ */

/* Written once, before any client can open the index. */
struct tree_head {
	struct layout_header layout;
	le64 chunk_count;
	le32 chunk_nodes;
	le32 node_bytes;
	le32 key_max;
	le32 value_max;
	le32 client_count;
	le32 failure_ms;
	le32 lock_count;
	le32 flags; /* enum tree_flags */
	uint8_t reserved[512 - 64 - 8 - 32 - 8];
	le64 crc; /* of all before it */
};

STATIC_ASSERT(sizeof(struct tree_head) == TREE_HEAD_BYTES, "tree head");
STATIC_ASSERT(offsetof(struct tree_head, crc) == 504, "tree head crc");

enum tree_flags {
	TREE_DEVICE_LOCKS = 1u << 0,
	TREE_SWITCH_LOCKS = 1u << 1, /* a switch replaces their atomics */
};

enum tree_node_state {
	TREE_NODE_FREE, /* also: never used */
	TREE_NODE_LIVE,
	/* Empty for good: its range belongs to the node before it, or will
	 * when that takes it. It does not change any more. */
	TREE_NODE_DEAD,
};

struct tree_node {
	le32 crc;     /* of the rest of the head, and the fences */
	le32 version; /* incremented when the whole node is written */
	le64 self;    /* a pointer to this node */
	le64 sibling; /* with the next range; 0: none */
	uint8_t level;
	uint8_t state; /* enum tree_node_state */
	uint8_t low_len;
	uint8_t high_len; /* TREE_NO_END: no upper end */
	uint8_t reserved[4];
	/* the low fence, the high fence, slots */
};

STATIC_ASSERT(sizeof(struct tree_node) == TREE_NODE_HEAD, "tree node");

struct tree_entry {
	le32 crc; /* of the rest of the head, the key and the value */
	le32 node_version;
	le32 version; /* incremented when the slot is written */
	uint8_t is_used;
	uint8_t key_len;
	uint8_t value_len[2];
	/* key, value */
};

STATIC_ASSERT(sizeof(struct tree_entry) == TREE_ENTRY_HEAD, "tree entry");

/* ---- in host form ------------------------------------------------------- */

struct tree_geometry {
	uint64_t chunk_count;
	uint32_t chunk_nodes;
	uint32_t node_bytes; /* a multiple of 16 */
	uint32_t key_max;
	uint32_t value_max;
	uint32_t client_count;
	uint32_t failure_ms;
	uint32_t lock_count;
	uint32_t flags;
	/* What follows from it; offsets from the region's first byte. */
	uint32_t key_room; /* bytes that a key takes */
	uint32_t slots_at; /* in a node */
	uint32_t leaf_stride, leaf_slots;
	uint32_t inner_stride, inner_slots;
	uint64_t chunk_word_offset;
	uint64_t node_offset;
	uint64_t node_count;
	uint64_t size_bytes;
	uint64_t lock_bytes;
};

extern const struct layout_kind tree_lock_layout;

/* Checks the first eight members and fills in the rest; -EINVAL with words. */
int tree_geometry_derive(struct tree_geometry *g) MUST_CHECK;
void tree_head_put(const struct tree_geometry *g, struct tree_head *h);
/* -EBADMSG, -EPROTONOSUPPORT with words. */
int tree_head_get(const struct tree_head *h, uint64_t avail_bytes,
		  struct tree_geometry *g) MUST_CHECK;

static inline uint64_t tree_slot_at(uint32_t slot)
{
	return TREE_SLOTS_AT + (uint64_t)slot * TREE_SLOT_BYTES;
}

static inline uint64_t tree_node_at(const struct tree_geometry *g,
				    uint64_t pointer)
{
	return g->node_offset + (uint64_t)tree_number(pointer) * g->node_bytes;
}

/* Whether a pointer that came from memory points to a node. */
static inline bool tree_pointer_is_sane(const struct tree_geometry *g,
					uint64_t pointer)
{
	return tree_generation(pointer) && tree_number(pointer) < g->node_count;
}

/* The number of a node's lock, and where it is in the region of locks. */
uint32_t tree_lock_of(const struct tree_geometry *g, uint64_t pointer);

static inline uint64_t tree_lock_at(uint32_t lock)
{
	return TREE_LOCK_HEAD + (uint64_t)lock * 8;
}

#endif
