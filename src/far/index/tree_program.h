/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks through an ordered index: programs that a memory node executes, made
 * for the geometry of one index, and what is in their pads.
 *
 * All of them begin at TREE_ROOT_AT, go down from the root by the key in the
 * pad, and to the right where a node was split. They only follow nodes that are
 * alive and are what the pointer says; else they give up.
 *
 * TREE_WALK_FIND brings the leaf of the key, which the client judges as after a
 * READ. The others add up what is in the leaves from there on, and judge them
 * at the node: a leaf counts if its range joins that of the leaf before it and
 * all its slots have the version of the leaf. Sums are not checked, because
 * nothing is torn there: clients write through keys that cannot be mapped, so
 * every packet of a WRITE is there or not when an iteration runs, an entry
 * whose value is a number fits into one packet, and a node that needs several
 * has two versions in between.
 */
#ifndef AQ_INDEX_TREE_PROGRAM_H
#define AQ_INDEX_TREE_PROGRAM_H

#include "tree_layout.h"
#include "walk/build.h"

enum tree_walk {
	TREE_WALK_FIND,
	TREE_WALK_COUNT, /* keys */
	TREE_WALK_SUM,	 /* and their values, which are numbers */
	TREE_WALKS
};

/* A value that is a number: signed, of 64 bits, little-endian. */
enum {
	TREE_NUMBER_BYTES = 8,
};

/* Why a walk gave up. */
enum tree_walk_fail {
	TREE_FAIL_LOST = 1, /* a node is not the one that it was to be */
	TREE_FAIL_MIXED,    /* a leaf of two versions */
	TREE_FAIL_VALUE,    /* one that is no number */
};

/* A pad, before a walk and after it. `key` is what to look for; of walks that
 * add up, all that is below it was added already. */
struct tree_pad {
	le64 at; /* the pointer that was followed; 0: at the root's */
	uint8_t key_len;
	uint8_t to_len;
	uint8_t has_to;	 /* there is an end */
	uint8_t is_done; /* and the walk has come to it */
	uint8_t reserved[4];
	le64 count;
	le64 sum, sum_high; /* 128 bits */
	le64 min, max;	    /* with TREE_NUMBER_SIGN inverted */
	uint8_t key[TREE_KEY_MAX];
	uint8_t best[TREE_KEY_MAX]; /* of an inner node, meanwhile */
	/* TREE_WALK_FIND: the leaf; else the end of the range */
};

STATIC_ASSERT(sizeof(struct tree_pad) == 56 + 2 * TREE_KEY_MAX, "pad");

#define TREE_NUMBER_SIGN (UINT64_C(1) << 63)

/* Of the whole pad. */
static inline uint32_t tree_pad_bytes(const struct tree_geometry *g,
				      enum tree_walk walk)
{
	return (uint32_t)sizeof(struct tree_pad) +
	       (walk == TREE_WALK_FIND ? g->node_bytes : TREE_KEY_MAX);
}

/*
 * The image lives as long as *build; destroy that. -EOPNOTSUPP with words: not
 * with nodes of that size. Whether it is too long is up to the memory node.
 */
int tree_program_make(const struct tree_geometry *g, enum tree_walk walk,
		      struct walk_build **build,
		      struct walk_image *image) MUST_CHECK;

#endif
