/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts of well-known structures in far memory, given as offsets, for the
 * ready walks: traversals that need no compiler.
 *
 * Pointers are 8 bytes, little-endian: the offset of a node in its region; 0
 * leads nowhere. Offsets below are bytes from there, 0 to 4095. Integers are
 * little-endian.
 *
 * Keys are unsigned integers of 1, 2, 4 or 8 bytes, or, with AQ_WALK_KEY_BYTES,
 * strings of 1 to 256 bytes that are compared byte by byte. A walk that finds
 * something copies value_bytes from the node to its pad.
 */
#ifndef AQUIFER_WALK_SHAPE_H
#define AQUIFER_WALK_SHAPE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum aq_walk_kind {
	/* A list: key, value, next. */
	AQ_WALK_LIST_FIND = 1,
	/* A chain of a hash table. The walk starts at a slot of the array of
	 * buckets, see aq_walk_start(). */
	AQ_WALK_HASH_FIND = 2,
	/* A binary search tree of any kind: key, value, left, right. */
	AQ_WALK_BST_FIND = 3,
	/* The smallest key that is not less. */
	AQ_WALK_BST_LOWER = 4,
	/* A B-tree: every node has keys, values and children. */
	AQ_WALK_BTREE_FIND = 5,
	/* A B+ tree: inner nodes have keys and children, leaves keys and values
	 * and the next leaf. Child i has the keys below key i that are not
	 * below key i - 1. */
	AQ_WALK_BPLUS_FIND = 6,
	/* The pairs from `low` to `high`, in order, until the pad is full. */
	AQ_WALK_BPLUS_SCAN = 7,
	/* Count, sum, minimum and maximum of the values from `low` to `high`.
	 */
	AQ_WALK_BPLUS_REDUCE = 8,
	/* A skip list: nodes have up to `levels` next pointers, the lowest
	 * first; those above a node's own are read, not used. The walk starts
	 * at the head, whose key is not looked at. */
	AQ_WALK_SKIP_FIND = 9,
	/* A radix tree: a node has 16 or 256 children; 4 or 8 bits of the key,
	 * the first byte's high bits first, choose one. The node at the end of
	 * the key has the value. */
	AQ_WALK_RADIX_FIND = 10,
};

enum aq_walk_shape_flag {
	AQ_WALK_KEY_BYTES = 1, /* keys are strings; not for scan and reduce */
	AQ_WALK_VALUE_SIGNED = 2, /* reduce: values are signed */
};

struct aq_walk_shape {
	uint32_t kind;	/* enum aq_walk_kind */
	uint32_t flags; /* enum aq_walk_shape_flag */
	/* Of the only key and value of a node, or of the first of an array
	 * whose members are `stride` apart. A radix tree has no key in its
	 * nodes. */
	uint32_t key_at, key_bytes, key_stride;
	uint32_t value_at, value_bytes, value_stride; /* 0 bytes: no value */
	/* List, hash: the next node. B+ tree: the next leaf. Skip list: the
	 * first of the pointers, 8 bytes apart. */
	uint32_t next_at;
	uint32_t left_at, right_at; /* binary search tree */
	/* B-trees: how many keys there are, an integer of 1, 2, 4 or 8 bytes,
	 * and how many there can be (1 to 256); the first child. Radix tree:
	 * `fanout` is 16 or 256. */
	uint32_t count_at, count_bytes, fanout;
	uint32_t child_at, child_stride;
	/* B-trees: a node is a leaf if the integer at leaf_at, masked, is
	 * leaf_value. Radix tree: the same says that a node has a value;
	 * leaf_bytes 0: every node has. */
	uint32_t leaf_at, leaf_bytes;
	uint64_t leaf_mask, leaf_value;
	uint32_t levels;     /* skip list: 1 to 32 */
	uint32_t scan_pairs; /* scan: how many fit into the pad, 1 to 256 */
};

/*
 * The pads. Members that are not named as input must be 0 (or not sent) when a
 * walk begins. The value follows the key, at aq_walk_value_at().
 */
struct aq_walk_find {
	uint64_t found;	   /* 1: value is set; lower bound: key, too */
	uint64_t state[2]; /* the walk's own */
	uint8_t key[]; /* input: an integer of 8 bytes, or the string, padded
			* to a multiple of 8; then the value */
};

struct aq_walk_scan {
	uint64_t found; /* how many pairs follow */
	uint64_t more;	/* 1: the pad was full; go on behind the last key */
	uint64_t low, high;
	uint8_t pairs[]; /* each: key of 8 bytes, value padded to 8 */
};

struct aq_walk_reduce {
	uint64_t count; /* of keys from low to high */
	uint64_t low, high;
	uint64_t sum;	   /* modulo 2^64 */
	uint64_t min, max; /* 0 where count is 0 */
};

static inline uint32_t aq_walk_key_room(const struct aq_walk_shape *s)
{
	return s->flags & AQ_WALK_KEY_BYTES || s->kind == AQ_WALK_RADIX_FIND
		       ? (s->key_bytes + 7) & ~7u
		       : 8;
}

/* The offset of the value in the pad of a find; the lower bound has the key
 * that it found before it, at aq_walk_value_at() - aq_walk_key_room(). */
static inline uint32_t aq_walk_value_at(const struct aq_walk_shape *s)
{
	return (uint32_t)sizeof(struct aq_walk_find) +
	       aq_walk_key_room(s) * (s->kind == AQ_WALK_BST_LOWER ? 2 : 1);
}

/*
 * The pointer to start at: a node's, or, for AQ_WALK_HASH_FIND, that of a slot
 * of the array of buckets. The slot is taken for a node's next pointer, so the
 * bytes of a node around it are read (not used) and must be in the region.
 */
static inline uint64_t aq_walk_start(const struct aq_walk_shape *s,
				     uint64_t pointer)
{
	return s->kind == AQ_WALK_HASH_FIND ? pointer - s->next_at : pointer;
}

#ifdef __cplusplus
}
#endif

#endif
