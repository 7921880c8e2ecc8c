/* SPDX-License-Identifier: Apache-2.0 */
/* Ready walks that follow one pointer per node: list, hash chain, skip list,
 * radix tree. */
#include "ready_priv.h"

static void copy_value(struct ready *c)
{
	ready_copy(c, aq_walk_value_at(c->s), c->s->value_at, c->s->value_bytes,
		   WALK_REG_NONE, WALK_REG_NONE);
}

void ready_list(struct ready *c)
{
	const int hit = walk_build_label(c->b);

	ready_key(c);
	ready_compare(c, c->s->key_at);
	ready_if_equal(c, hit);
	ready_load(c, R_NEXT, c->s->next_at, 8);
	ready_go(c);
	walk_build_place(c->b, hit);
	copy_value(c);
	ready_found(c);
}

/* The first "node" is a slot of the array of buckets: only its next pointer
 * counts. */
void ready_hash(struct ready *c)
{
	const int chain = walk_build_label(c->b);

	walk_build_op(c->b, WALK_OP_LDP8, R_T, 0, 0, PAD_STATE);
	walk_build_jump_imm(c->b, WALK_OP_JNEI, R_T, 0, chain);
	walk_build_const(c->b, R_T, 1);
	walk_build_op(c->b, WALK_OP_STP8, 0, R_T, 0, PAD_STATE);
	ready_load(c, R_NEXT, c->s->next_at, 8);
	ready_go(c);
	walk_build_place(c->b, chain);
	ready_list(c);
}

/*
 * The pad has the pointers of the last node before the key, the level + 1 at
 * which the walk left it (0: it has not begun), and where it went. A node whose
 * key is greater is left for the next lower pointer, so no node is read twice.
 */
void ready_skip(struct ready *c)
{
	const struct aq_walk_shape *s = c->s;
	const uint32_t saved =
		aq_walk_value_at(s) + ((s->value_bytes + 7) & ~7u);
	const int take = walk_build_label(c->b);
	const int hit = walk_build_label(c->b);
	const int too_far = walk_build_label(c->b);
	const int descend = walk_build_label(c->b);
	const int first = walk_build_label(c->b);

	walk_build_op(c->b, WALK_OP_LDP8, R_LEVEL, 0, 0, PAD_STATE);
	walk_build_jump_imm(c->b, WALK_OP_JEQI, R_LEVEL, 0, first);
	ready_key(c);
	ready_compare(c, s->key_at);
	ready_if_equal(c, hit);
	ready_if_less(c, too_far);
	walk_build_jump_always(c->b, take);
	walk_build_place(c->b, hit);
	copy_value(c);
	ready_found(c);
	walk_build_place(c->b, too_far);
	walk_build_op(c->b, WALK_OP_LDP8, R_T, 0, 0, PAD_STATE2);
	walk_build_jump_always(c->b, descend);
	walk_build_place(c->b, first);
	walk_build_const(c->b, R_LEVEL, s->levels);
	walk_build_place(c->b, take);
	ready_copy(c, saved, s->next_at, 8 * s->levels, WALK_REG_NONE,
		   WALK_REG_NONE);
	walk_build_const(c->b, R_T, 0);
	walk_build_place(c->b, descend);
	for (uint32_t j = s->levels; j-- > 0;) {
		const int lower = walk_build_label(c->b);

		walk_build_jump_imm(c->b, WALK_OP_JLEI, R_LEVEL, (int16_t)j,
				    lower);
		walk_build_op(c->b, WALK_OP_LDP8, R_NEXT, 0, 0,
			      (int32_t)(saved + 8 * j));
		walk_build_jump_imm(c->b, WALK_OP_JEQI, R_NEXT, 0, lower);
		walk_build_jump(c->b, WALK_OP_JEQ, R_NEXT, R_T, lower);
		walk_build_const(c->b, R_LEVEL, j + 1);
		walk_build_op(c->b, WALK_OP_STP8, 0, R_LEVEL, 0, PAD_STATE);
		walk_build_op(c->b, WALK_OP_STP8, 0, R_NEXT, 0, PAD_STATE2);
		walk_build_op(c->b, WALK_OP_NEXT, 0, R_NEXT, 0, 0);
		walk_build_place(c->b, lower);
	}
	walk_build_op(c->b, WALK_OP_RET, 0, 0, 0, 0);
}

/* R_INDEX = the part of the key that R_LEVEL parts stand before. */
static void radix_part(struct ready *c)
{
	const int low = walk_build_label(c->b);

	if (c->s->fanout == 256) {
		walk_build_op(c->b, WALK_OP_LDPX1, R_INDEX, R_LEVEL, 0,
			      PAD_KEY);
		walk_build_place(c->b, low);
		return;
	}
	walk_build_op(c->b, WALK_OP_SHRI, R_INDEX, R_LEVEL, 0, 1);
	walk_build_op(c->b, WALK_OP_LDPX1, R_INDEX, R_INDEX, 0, PAD_KEY);
	walk_build_jump_imm(c->b, WALK_OP_JSETI, R_LEVEL, 1, low);
	walk_build_op(c->b, WALK_OP_SHRI, R_INDEX, R_INDEX, 0, 4);
	walk_build_place(c->b, low);
	walk_build_op(c->b, WALK_OP_ANDI, R_INDEX, R_INDEX, 0, 15);
}

void ready_radix(struct ready *c)
{
	const struct aq_walk_shape *s = c->s;
	const uint32_t parts = s->key_bytes * (s->fanout == 16 ? 2 : 1);
	const int end = walk_build_label(c->b);
	const int hit = walk_build_label(c->b);

	walk_build_op(c->b, WALK_OP_LDP8, R_LEVEL, 0, 0, PAD_STATE);
	walk_build_jump_imm(c->b, WALK_OP_JEQI, R_LEVEL, (int16_t)parts, end);
	walk_build_op(c->b, WALK_OP_BND, 0, R_LEVEL, 0, (int32_t)parts - 1);
	radix_part(c);
	walk_build_op(c->b, WALK_OP_MULI, R_OFFSET, R_INDEX, 0,
		      (int32_t)s->child_stride);
	walk_build_op(c->b, WALK_OP_LDNX8, R_NEXT, R_OFFSET, 0,
		      ready_at(c, s->child_at));
	walk_build_op(c->b, WALK_OP_ADDI, R_LEVEL, R_LEVEL, 0, 1);
	walk_build_op(c->b, WALK_OP_STP8, 0, R_LEVEL, 0, PAD_STATE);
	ready_go(c);
	walk_build_place(c->b, end);
	if (s->leaf_bytes) {
		ready_if_leaf(c, hit);
		walk_build_op(c->b, WALK_OP_RET, 0, 0, 0, 0);
	}
	walk_build_place(c->b, hit);
	copy_value(c);
	ready_found(c);
}
