/* SPDX-License-Identifier: Apache-2.0 */
/* What the ready walks have in common: the window, registers, small pieces. */
#ifndef AQ_WALK_READY_PRIV_H
#define AQ_WALK_READY_PRIV_H

#include <aquifer/walk_shape.h>

#include "build.h"

/* Offsets of the pads. */
enum {
	PAD_FOUND = 0,
	PAD_STATE = 8,
	PAD_STATE2 = 16,
	PAD_KEY = 24, /* of a find */
	PAD_SCAN_MORE = 8,
	PAD_SCAN_LOW = 16,
	PAD_SCAN_HIGH = 24,
	PAD_SCAN_PAIRS = 32,
	PAD_REDUCE_LOW = 8,
	PAD_REDUCE_HIGH = 16,
	PAD_REDUCE_SUM = 24,
	PAD_REDUCE_MIN = 32,
	PAD_REDUCE_MAX = 40,
	PAD_REDUCE_BYTES = 48,
};

/* What registers are used for. */
enum {
	R_KEY,	  /* the key that is looked for */
	R_ORDER,  /* the node's key; of strings: order of both */
	R_T,	  /* for a moment */
	R_NEXT,	  /* where to go */
	R_COUNT,  /* keys in the node */
	R_INDEX,  /* of a key */
	R_OFFSET, /* index times stride */
	R_LEVEL,
	R_HIGH,
	R_FOUND,
	R_SUM,
	R_MIN,
	R_MAX,
};

enum {
	READY_FANOUT_MAX = 256,
};

struct ready {
	const struct aq_walk_shape *s;
	struct walk_build *b;
	uint32_t lo; /* of the window */
};

/* Offsets of a node as the window has them. */
static inline int32_t ready_at(const struct ready *c, uint32_t offset)
{
	return (int32_t)(offset - c->lo);
}

/* One of four instructions, by size: 1, 2, 4 or 8. */
static inline uint8_t ready_sized(uint8_t op1, uint32_t bytes)
{
	return (uint8_t)(op1 + __builtin_ctz(bytes));
}

/* d = the integer at `offset` of the node. */
void ready_load(struct ready *c, uint8_t d, uint32_t offset, uint32_t bytes);
/* Puts integers and short strings from the node into the pad; reg: a register
 * that is added to the offset, or WALK_REG_NONE. */
void ready_copy(struct ready *c, uint32_t pad_at, uint32_t offset,
		uint32_t bytes, uint8_t node_reg, uint8_t pad_reg);
/* Loads the key that is looked for; before any ready_compare. */
void ready_key(struct ready *c);
/* Compares it with the node's key at `offset`; then the jumps. */
void ready_compare(struct ready *c, uint32_t offset);
void ready_if_equal(struct ready *c, int label);
void ready_if_less(struct ready *c, int label); /* ours is less */
/* Goes to R_NEXT; 0 ends the walk. */
void ready_go(struct ready *c);
void ready_found(struct ready *c); /* sets found and ends */
/* Loads how many keys there are, and jumps if the node is a leaf. */
void ready_count(struct ready *c);
void ready_if_leaf(struct ready *c, int label);
/* Goes to the child that has R_KEY, in a B+ tree. */
void ready_descend(struct ready *c);

/* What is done with the keys of a leaf that are not below R_KEY and not above
 * R_HIGH. `take` gets them in R_ORDER; it leaves R_FOUND alone, which counts
 * them and is right at the labels, and goes to `full` to stop before key i. */
struct ready_range {
	void (*take)(struct ready *c, uint32_t i, int full);
	/* Of a leaf that has no key below R_KEY, while there is room for all
	 * keys of one: R_OFFSET is at most `room`, which `take_whole` may count
	 * on. NULL: that is nothing special. */
	void (*take_whole)(struct ready *c, uint32_t i);
	uint32_t room;
	int next; /* placed here: the leaf had no key above R_HIGH */
	int end;  /* it had one */
	int full; /* or -1: `take` never goes there */
};
void ready_range(struct ready *c, const struct ready_range *range);

/* The walks themselves. */
void ready_list(struct ready *c);
void ready_hash(struct ready *c);
void ready_skip(struct ready *c);
void ready_radix(struct ready *c);
void ready_bst(struct ready *c);
void ready_bst_lower(struct ready *c);
void ready_btree(struct ready *c);
void ready_bplus(struct ready *c);
void ready_scan(struct ready *c);
void ready_reduce(struct ready *c);

#endif
