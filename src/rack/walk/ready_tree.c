/* SPDX-License-Identifier: Apache-2.0 */
/* Ready walks from the root of a tree to a key: binary search tree, B-tree, B+
 * tree. */
#include "ready_priv.h"

static void copy_value(struct ready *c)
{
	ready_copy(c, aq_walk_value_at(c->s), c->s->value_at, c->s->value_bytes,
		   WALK_REG_NONE, WALK_REG_NONE);
}

/* To the left or to the right, where both are not equal. */
static void go_to_side(struct ready *c, int left)
{
	ready_if_less(c, left);
	ready_load(c, R_NEXT, c->s->right_at, 8);
	ready_go(c);
	walk_build_place(c->b, left);
	ready_load(c, R_NEXT, c->s->left_at, 8);
	ready_go(c);
}

void ready_bst(struct ready *c)
{
	const int hit = walk_build_label(c->b);
	const int left = walk_build_label(c->b);

	ready_key(c);
	ready_compare(c, c->s->key_at);
	ready_if_equal(c, hit);
	go_to_side(c, left);
	walk_build_place(c->b, hit);
	copy_value(c);
	ready_found(c);
}

/* A node that is not less is kept in the pad until a smaller one is found. */
void ready_bst_lower(struct ready *c)
{
	const uint32_t key_at = aq_walk_value_at(c->s) - aq_walk_key_room(c->s);
	const int keep = walk_build_label(c->b);
	const int less = walk_build_label(c->b);
	const int equal = walk_build_label(c->b);

	ready_key(c);
	ready_compare(c, c->s->key_at);
	ready_if_equal(c, keep);
	ready_if_less(c, keep);
	ready_load(c, R_NEXT, c->s->right_at, 8);
	ready_go(c);
	walk_build_place(c->b, keep);
	ready_copy(c, key_at, c->s->key_at, c->s->key_bytes, WALK_REG_NONE,
		   WALK_REG_NONE);
	copy_value(c);
	walk_build_const(c->b, R_T, 1);
	walk_build_op(c->b, WALK_OP_STP8, 0, R_T, 0, PAD_FOUND);
	ready_if_equal(c, equal);
	walk_build_place(c->b, less);
	ready_load(c, R_NEXT, c->s->left_at, 8);
	ready_go(c);
	walk_build_place(c->b, equal);
	walk_build_op(c->b, WALK_OP_RET, 0, 0, 0, 0);
}

/* The value beside the key of number R_INDEX. */
static void take_value(struct ready *c)
{
	if (c->s->value_bytes)
		walk_build_op(c->b, WALK_OP_MULI, R_OFFSET, R_INDEX, 0,
			      (int32_t)c->s->value_stride);
	ready_copy(c, aq_walk_value_at(c->s), c->s->value_at, c->s->value_bytes,
		   R_OFFSET, WALK_REG_NONE);
	ready_found(c);
}

void ready_btree(struct ready *c)
{
	const struct aq_walk_shape *s = c->s;
	const int down = walk_build_label(c->b);
	const int hit = walk_build_label(c->b);
	const int leaf = walk_build_label(c->b);

	ready_key(c);
	ready_count(c);
	for (uint32_t i = 0; i < s->fanout; i++) {
		walk_build_const(c->b, R_INDEX, i);
		walk_build_jump_imm(c->b, WALK_OP_JLEI, R_COUNT, (int16_t)i,
				    down);
		ready_compare(c, s->key_at + i * s->key_stride);
		ready_if_equal(c, hit);
		ready_if_less(c, down);
	}
	walk_build_const(c->b, R_INDEX, s->fanout);
	walk_build_place(c->b, down);
	ready_if_leaf(c, leaf);
	walk_build_op(c->b, WALK_OP_MULI, R_OFFSET, R_INDEX, 0,
		      (int32_t)s->child_stride);
	walk_build_op(c->b, WALK_OP_LDNX8, R_NEXT, R_OFFSET, 0,
		      ready_at(c, s->child_at));
	ready_go(c);
	walk_build_place(c->b, leaf);
	walk_build_op(c->b, WALK_OP_RET, 0, 0, 0, 0);
	walk_build_place(c->b, hit);
	take_value(c);
}

void ready_bplus(struct ready *c)
{
	const struct aq_walk_shape *s = c->s;
	const int leaf = walk_build_label(c->b);
	const int hit = walk_build_label(c->b);
	const int miss = walk_build_label(c->b);

	ready_key(c);
	ready_count(c);
	ready_if_leaf(c, leaf);
	ready_descend(c);
	walk_build_place(c->b, leaf);
	for (uint32_t i = 0; i < s->fanout; i++) {
		walk_build_const(c->b, R_INDEX, i);
		walk_build_jump_imm(c->b, WALK_OP_JLEI, R_COUNT, (int16_t)i,
				    miss);
		ready_compare(c, s->key_at + i * s->key_stride);
		ready_if_equal(c, hit);
	}
	walk_build_place(c->b, miss);
	walk_build_op(c->b, WALK_OP_RET, 0, 0, 0, 0);
	walk_build_place(c->b, hit);
	take_value(c);
}
