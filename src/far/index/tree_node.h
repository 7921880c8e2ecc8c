/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One node of an ordered index, as bytes that came from far memory or will go
 * there: reading, changing and splitting it. Whatever the bytes are, these
 * functions stay inside the node.
 */
#ifndef AQ_TREE_NODE_H
#define AQ_TREE_NODE_H

#include "tree_layout.h"

struct tree_key {
	const uint8_t *bytes;
	uint32_t len;
};

struct tree_item {
	struct tree_key key; /* inside the node */
	const uint8_t *value;
	uint32_t value_len;
	uint32_t slot;
};

enum {
	/* The slots of the largest node with the shortest keys. */
	TREE_SLOTS_MAX = TREE_NODE_BYTES_MAX / 32,
};

/* Compares bytes; a key that is a prefix of the other comes first. */
int tree_key_compare(struct tree_key a, struct tree_key b);

static inline uint32_t tree_stride(const struct tree_geometry *g, uint8_t level)
{
	return level ? g->inner_stride : g->leaf_stride;
}

static inline uint32_t tree_slots(const struct tree_geometry *g, uint8_t level)
{
	return level ? g->inner_slots : g->leaf_slots;
}

/* Bytes from the node's first. */
static inline uint32_t tree_entry_at(const struct tree_geometry *g,
				     uint8_t level, uint32_t slot)
{
	return g->slots_at + slot * tree_stride(g, level);
}

/* ---- looking ------------------------------------------------------------ */

enum tree_verdict {
	TREE_WHOLE,
	TREE_TORN, /* it changed while it was read, or its writer died */
	TREE_OTHER /* the memory has another use: the pointer is old */
};

/* Judges the head and the fences only. A dead node is whole. */
enum tree_verdict tree_node_judge_head(const struct tree_geometry *g,
				       const struct tree_node *n,
				       uint64_t pointer);
/* The same with all slots. */
enum tree_verdict tree_node_judge(const struct tree_geometry *g,
				  const struct tree_node *n, uint64_t pointer);

/* The low fence of a node whose head is whole. */
struct tree_key tree_node_low(const struct tree_node *n);
struct tree_key tree_node_high(const struct tree_geometry *g,
			       const struct tree_node *n);
static inline bool tree_node_has_end(const struct tree_node *n)
{
	return n->high_len != TREE_NO_END;
}
/* 0: the key is in its range; -1: below, 1: above. */
int tree_node_side(const struct tree_geometry *g, const struct tree_node *n,
		   struct tree_key key);

enum tree_slot_verdict {
	TREE_SLOT_EMPTY,
	TREE_SLOT_USED,
	TREE_SLOT_TORN,
};

enum tree_slot_verdict tree_slot_look(const struct tree_geometry *g,
				      const struct tree_node *n, uint32_t slot,
				      struct tree_item *item);
/* USED: certainly found. EMPTY: certainly absent, since no slot is torn. TORN:
 * read the node again. */
enum tree_slot_verdict tree_node_find(const struct tree_geometry *g,
				      const struct tree_node *n,
				      struct tree_key key,
				      struct tree_item *item);
uint64_t tree_item_child(const struct tree_item *item);
/* A free slot of a whole node; -1. */
int tree_node_free_slot(const struct tree_geometry *g,
			const struct tree_node *n);
/* All of a whole node's entries in their order; returns how many. */
uint32_t tree_node_sort(const struct tree_geometry *g,
			const struct tree_node *n,
			struct tree_item out[TREE_SLOTS_MAX]);

/* ---- changing ----------------------------------------------------------- */

struct tree_fences {
	struct tree_key low, high;
	bool has_end;
};

/* An empty node. `n` has g->node_bytes. */
void tree_node_init(const struct tree_geometry *g, struct tree_node *n,
		    uint64_t self, uint8_t level, uint32_t version,
		    const struct tree_fences *f, uint64_t sibling);
void tree_slot_put(const struct tree_geometry *g, struct tree_node *n,
		   uint32_t slot, struct tree_key key, const void *value,
		   uint32_t value_len);
void tree_slot_clear(const struct tree_geometry *g, struct tree_node *n,
		     uint32_t slot);
/* After a change of the head: gives it and all slots the next version; slots
 * keep their entries and places. */
void tree_node_renew(const struct tree_geometry *g, struct tree_node *n);
/* Another end of its range, and another node behind it; needs a renew. `high`
 * may be in another node. */
void tree_node_set_end(const struct tree_geometry *g, struct tree_node *n,
		       struct tree_key high, bool has_end, uint64_t sibling);
/* Changes only the head, for a node whose slots are not read any more. */
void tree_node_set_state(const struct tree_geometry *g, struct tree_node *n,
			 enum tree_node_state state);

/* Where to split a full, whole node for another key: in the middle, or at the
 * end if keys are only ever added there. Copies that key to `mid`. */
void tree_node_middle(const struct tree_geometry *g, const struct tree_node *n,
		      struct tree_key key, uint8_t mid[TREE_KEY_MAX],
		      uint32_t *mid_len);
/* Everything from `mid` on goes to `right`, which is another node's memory with
 * that pointer and version. */
void tree_node_split(const struct tree_geometry *g, struct tree_node *left,
		     struct tree_node *right, uint64_t right_self,
		     uint32_t right_version, struct tree_key mid);

/* Repairs a node whose writer died: its range is what the head says, and
 * entries outside of it, or half written, are removed. -EBADMSG: the head is
 * damaged. *lost counts entries that were half written. */
int tree_node_mend(const struct tree_geometry *g, struct tree_node *n,
		   uint64_t pointer, unsigned *lost) MUST_CHECK;

#endif
