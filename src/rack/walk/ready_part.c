/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of which ready walks are made. */
#include "ready_priv.h"

void ready_load(struct ready *c, uint8_t d, uint32_t offset, uint32_t bytes)
{
	walk_build_op(c->b, ready_sized(WALK_OP_LDN1, bytes), d, 0, 0,
		      ready_at(c, offset));
}

void ready_copy(struct ready *c, uint32_t pad_at, uint32_t offset,
		uint32_t bytes, uint8_t node_reg, uint8_t pad_reg)
{
	const struct walk_block k = {
		.len_reg = WALK_REG_NONE,
		.node_reg = node_reg,
		.pad_reg = pad_reg,
		.len = bytes,
		.node_at = ready_at(c, offset),
		.pad_at = pad_at,
	};

	if (bytes)
		walk_build_block(c->b, WALK_OP_CPY, &k);
}

void ready_key(struct ready *c)
{
	if (!(c->s->flags & AQ_WALK_KEY_BYTES))
		walk_build_op(c->b, WALK_OP_LDP8, R_KEY, 0, 0, PAD_KEY);
}

void ready_compare(struct ready *c, uint32_t offset)
{
	const struct walk_block k = {
		.d = R_ORDER,
		.len_reg = WALK_REG_NONE,
		.node_reg = WALK_REG_NONE,
		.pad_reg = WALK_REG_NONE,
		.len = c->s->key_bytes,
		.node_at = ready_at(c, offset),
		.pad_at = PAD_KEY,
	};

	if (c->s->flags & AQ_WALK_KEY_BYTES)
		walk_build_block(c->b, WALK_OP_CMP, &k);
	else
		ready_load(c, R_ORDER, offset, c->s->key_bytes);
}

void ready_if_equal(struct ready *c, int label)
{
	if (c->s->flags & AQ_WALK_KEY_BYTES)
		walk_build_jump_imm(c->b, WALK_OP_JEQI, R_ORDER, 0, label);
	else
		walk_build_jump(c->b, WALK_OP_JEQ, R_KEY, R_ORDER, label);
}

void ready_if_less(struct ready *c, int label)
{
	if (c->s->flags & AQ_WALK_KEY_BYTES)
		walk_build_jump_imm(c->b, WALK_OP_JSLTI, R_ORDER, 0, label);
	else
		walk_build_jump(c->b, WALK_OP_JLT, R_KEY, R_ORDER, label);
}

/* Not with GO, which would take a wild pointer for a code. */
void ready_go(struct ready *c)
{
	const int on = walk_build_label(c->b);

	walk_build_jump_imm(c->b, WALK_OP_JNEI, R_NEXT, 0, on);
	walk_build_op(c->b, WALK_OP_RET, 0, 0, 0, 0);
	walk_build_place(c->b, on);
	walk_build_op(c->b, WALK_OP_NEXT, 0, R_NEXT, 0, 0);
}

void ready_found(struct ready *c)
{
	walk_build_const(c->b, R_T, 1);
	walk_build_op(c->b, WALK_OP_STP8, 0, R_T, 0, PAD_FOUND);
	walk_build_op(c->b, WALK_OP_RET, 0, 0, 0, 0);
}

void ready_count(struct ready *c)
{
	ready_load(c, R_COUNT, c->s->count_at, c->s->count_bytes);
}

void ready_if_leaf(struct ready *c, int label)
{
	const uint64_t every = UINT64_MAX >> (64 - 8 * c->s->leaf_bytes);
	const uint64_t mask = c->s->leaf_mask & every;
	const uint64_t value = c->s->leaf_value;

	ready_load(c, R_T, c->s->leaf_at, c->s->leaf_bytes);
	if (mask <= INT32_MAX && mask != every) {
		walk_build_op(c->b, WALK_OP_ANDI, R_T, R_T, 0, (int32_t)mask);
	} else if (mask != every) {
		walk_build_const(c->b, R_NEXT, mask);
		walk_build_op(c->b, WALK_OP_AND, R_T, R_T, R_NEXT, 0);
	}
	if (value <= INT16_MAX) {
		walk_build_jump_imm(c->b, WALK_OP_JEQI, R_T, (int16_t)value,
				    label);
		return;
	}
	walk_build_const(c->b, R_NEXT, value);
	walk_build_jump(c->b, WALK_OP_JEQ, R_T, R_NEXT, label);
}

void ready_descend(struct ready *c)
{
	const struct aq_walk_shape *s = c->s;
	const int down = walk_build_label(c->b);

	for (uint32_t i = 0; i < s->fanout; i++) {
		walk_build_const(c->b, R_OFFSET, (uint64_t)i * s->child_stride);
		walk_build_jump_imm(c->b, WALK_OP_JLEI, R_COUNT, (int16_t)i,
				    down);
		ready_compare(c, s->key_at + i * s->key_stride);
		ready_if_less(c, down);
	}
	walk_build_const(c->b, R_OFFSET, (uint64_t)s->fanout * s->child_stride);
	walk_build_place(c->b, down);
	walk_build_op(c->b, WALK_OP_LDNX8, R_NEXT, R_OFFSET, 0,
		      ready_at(c, s->child_at));
	ready_go(c);
}
