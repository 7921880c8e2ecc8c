/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a register holds: a number, or the address of something in the node, in
 * the pad or on the stack. In the code that is made, an address is its distance
 * from the node's pointer, the pad's beginning or the stack's end; the real one
 * is not known there. Upper bounds follow the verifier's rules and are never
 * lower than its own.
 */
#ifndef AQ_WALKC_ORIGIN_H
#define AQ_WALKC_ORIGIN_H

#include "walk/op.h"
#include "walkc_priv.h"

enum origin_kind {
	ORIGIN_NONE, /* nothing was written to it on some way here */
	ORIGIN_NUMBER,
	ORIGIN_NODE,
	ORIGIN_PAD,
	ORIGIN_STACK,
	ORIGIN_MIXED, /* it depends on the way here */
};

struct walkc_origin {
	enum origin_kind kind;
	bool is_const;
	uint64_t value; /* if it is constant: the number, or the distance */
	uint64_t max;
};

/* Registers of walks: those of bpf, scratch ones, and the stack. */
enum {
	REG_FRAME = BPF_FRAME,
	REG_NODE_INDEX = 11,
	REG_PAD_INDEX = 12,
	REG_VALUE = 13,
	REG_LEFT = 14,
	REG_RIGHT = 15,
	REG_STACK = 16,
	STACK_BYTES = 512, /* of bpf */
	STACK_REGS = WALK_REGS - REG_STACK,
};

struct walkc_state {
	struct walkc_origin reg[WALK_REGS];
};

static inline struct walkc_origin origin_const(enum origin_kind kind,
					       uint64_t value)
{
	return (struct walkc_origin){kind, true, value, value};
}

static inline struct walkc_origin origin_number(uint64_t max)
{
	return (struct walkc_origin){ORIGIN_NUMBER, false, 0, max};
}

static inline bool origin_is_address(const struct walkc_origin *o)
{
	return o->kind == ORIGIN_NODE || o->kind == ORIGIN_PAD ||
	       o->kind == ORIGIN_STACK;
}

/* Whether an instruction can have the constant in itself. */
static inline bool origin_fits(uint64_t value)
{
	return (int64_t)value >= INT32_MIN && (int64_t)value <= INT32_MAX;
}

/* "the node", "the pad", "the stack". */
const char *origin_words(enum origin_kind kind);

/* At the beginning of a walk. */
void walkc_state_init(struct walkc_state *s);
/* What holds on both ways. */
void walkc_state_join(struct walkc_state *s, const struct walkc_state *other);

/*
 * What an operation gives. NULL, or why it cannot be: "does arithmetic on the
 * address of ...".
 */
const char *origin_alu(unsigned op, bool is_32, struct walkc_origin a,
		       struct walkc_origin b, struct walkc_origin *out);

#endif
