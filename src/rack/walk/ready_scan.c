/* SPDX-License-Identifier: Apache-2.0 */
/* Ready walks over the leaves of a B+ tree: scan and reduce. */
#include "ready_priv.h"

/* From the root to the leaf of the lowest key; then the leaves' label. */
static void find_first_leaf(struct ready *c, int32_t low_at, int32_t high_at)
{
	const int leaf = walk_build_label(c->b);

	walk_build_op(c->b, WALK_OP_LDP8, R_KEY, 0, 0, low_at);
	ready_count(c);
	ready_if_leaf(c, leaf);
	ready_descend(c);
	walk_build_place(c->b, leaf);
	walk_build_op(c->b, WALK_OP_LDP8, R_HIGH, 0, 0, high_at);
}

/* Key i of a leaf: there is none (to `next`), it is too small (to `skip`), too
 * large (to `end`). */
static void take_key(struct ready *c, uint32_t i, int next, int skip, int end)
{
	walk_build_jump_imm(c->b, WALK_OP_JLEI, R_COUNT, (int16_t)i, next);
	ready_load(c, R_ORDER, c->s->key_at + i * c->s->key_stride,
		   c->s->key_bytes);
	walk_build_jump(c->b, WALK_OP_JLT, R_ORDER, R_KEY, skip);
	walk_build_jump(c->b, WALK_OP_JLT, R_HIGH, R_ORDER, end);
}

void ready_scan(struct ready *c)
{
	const struct aq_walk_shape *s = c->s;
	const uint32_t pair = 8 + ((s->value_bytes + 7) & ~7u);
	const int next = walk_build_label(c->b);
	const int end = walk_build_label(c->b);
	const int full = walk_build_label(c->b);

	find_first_leaf(c, PAD_SCAN_LOW, PAD_SCAN_HIGH);
	walk_build_op(c->b, WALK_OP_LDP8, R_FOUND, 0, 0, PAD_FOUND);
	for (uint32_t i = 0; i < s->fanout; i++) {
		const int skip = walk_build_label(c->b);

		take_key(c, i, next, skip, end);
		walk_build_jump_imm(c->b, WALK_OP_JEQI, R_FOUND,
				    (int16_t)s->scan_pairs, full);
		walk_build_op(c->b, WALK_OP_BND, 0, R_FOUND, 0,
			      (int32_t)s->scan_pairs - 1);
		walk_build_op(c->b, WALK_OP_MULI, R_OFFSET, R_FOUND, 0,
			      (int32_t)pair);
		walk_build_op(c->b, WALK_OP_STPX8, 0, R_OFFSET, R_ORDER,
			      PAD_SCAN_PAIRS);
		ready_copy(c, PAD_SCAN_PAIRS + 8,
			   s->value_at + i * s->value_stride, s->value_bytes,
			   WALK_REG_NONE, R_OFFSET);
		walk_build_op(c->b, WALK_OP_ADDI, R_FOUND, R_FOUND, 0, 1);
		walk_build_place(c->b, skip);
	}
	walk_build_place(c->b, next);
	walk_build_op(c->b, WALK_OP_STP8, 0, R_FOUND, 0, PAD_FOUND);
	ready_load(c, R_NEXT, s->next_at, 8);
	ready_go(c);
	walk_build_place(c->b, full);
	walk_build_const(c->b, R_T, 1);
	walk_build_op(c->b, WALK_OP_STP8, 0, R_T, 0, PAD_SCAN_MORE);
	walk_build_place(c->b, end);
	walk_build_op(c->b, WALK_OP_STP8, 0, R_FOUND, 0, PAD_FOUND);
	walk_build_op(c->b, WALK_OP_RET, 0, 0, 0, 0);
}

/* What counts as the least and the greatest value before there is one. */
static void start_reduce(struct ready *c)
{
	const bool is_signed = c->s->flags & AQ_WALK_VALUE_SIGNED;
	const int go_on = walk_build_label(c->b);

	walk_build_op(c->b, WALK_OP_LDP8, R_FOUND, 0, 0, PAD_FOUND);
	if (c->s->value_bytes == 0) {
		walk_build_place(c->b, go_on);
		return;
	}
	walk_build_op(c->b, WALK_OP_LDP8, R_SUM, 0, 0, PAD_REDUCE_SUM);
	walk_build_op(c->b, WALK_OP_LDP8, R_MIN, 0, 0, PAD_REDUCE_MIN);
	walk_build_op(c->b, WALK_OP_LDP8, R_MAX, 0, 0, PAD_REDUCE_MAX);
	walk_build_jump_imm(c->b, WALK_OP_JNEI, R_FOUND, 0, go_on);
	walk_build_const(c->b, R_MIN, is_signed ? INT64_MAX : UINT64_MAX);
	walk_build_const(c->b, R_MAX, is_signed ? (uint64_t)INT64_MIN : 0);
	walk_build_place(c->b, go_on);
}

static void reduce_value(struct ready *c, uint32_t i)
{
	const struct aq_walk_shape *s = c->s;
	static const uint8_t extend[] = {WALK_OP_SX1, WALK_OP_SX2, WALK_OP_SX4};
	int least, most;

	walk_build_op(c->b, WALK_OP_ADDI, R_FOUND, R_FOUND, 0, 1);
	if (s->value_bytes == 0)
		return;
	ready_load(c, R_T, s->value_at + i * s->value_stride, s->value_bytes);
	if (!(s->flags & AQ_WALK_VALUE_SIGNED)) {
		walk_build_op(c->b, WALK_OP_ADD, R_SUM, R_SUM, R_T, 0);
		walk_build_op(c->b, WALK_OP_MIN, R_MIN, R_MIN, R_T, 0);
		walk_build_op(c->b, WALK_OP_MAX, R_MAX, R_MAX, R_T, 0);
		return;
	}
	if (s->value_bytes < 8)
		walk_build_op(c->b, extend[__builtin_ctz(s->value_bytes)], R_T,
			      R_T, 0, 0);
	walk_build_op(c->b, WALK_OP_ADD, R_SUM, R_SUM, R_T, 0);
	least = walk_build_label(c->b);
	walk_build_jump(c->b, WALK_OP_JSLE, R_MIN, R_T, least);
	walk_build_op(c->b, WALK_OP_MOV, R_MIN, R_T, 0, 0);
	walk_build_place(c->b, least);
	most = walk_build_label(c->b);
	walk_build_jump(c->b, WALK_OP_JSLE, R_T, R_MAX, most);
	walk_build_op(c->b, WALK_OP_MOV, R_MAX, R_T, 0, 0);
	walk_build_place(c->b, most);
}

/* Minimum and maximum stay 0 while there is no key. */
static void keep_reduced(struct ready *c)
{
	const int none = walk_build_label(c->b);

	walk_build_jump_imm(c->b, WALK_OP_JEQI, R_FOUND, 0, none);
	walk_build_op(c->b, WALK_OP_STP8, 0, R_FOUND, 0, PAD_FOUND);
	if (c->s->value_bytes) {
		walk_build_op(c->b, WALK_OP_STP8, 0, R_SUM, 0, PAD_REDUCE_SUM);
		walk_build_op(c->b, WALK_OP_STP8, 0, R_MIN, 0, PAD_REDUCE_MIN);
		walk_build_op(c->b, WALK_OP_STP8, 0, R_MAX, 0, PAD_REDUCE_MAX);
	}
	walk_build_place(c->b, none);
}

void ready_reduce(struct ready *c)
{
	const struct aq_walk_shape *s = c->s;
	const int next = walk_build_label(c->b);
	const int end = walk_build_label(c->b);

	find_first_leaf(c, PAD_REDUCE_LOW, PAD_REDUCE_HIGH);
	start_reduce(c);
	for (uint32_t i = 0; i < s->fanout; i++) {
		const int skip = walk_build_label(c->b);

		take_key(c, i, next, skip, end);
		reduce_value(c, i);
		walk_build_place(c->b, skip);
	}
	walk_build_place(c->b, next);
	keep_reduced(c);
	ready_load(c, R_NEXT, s->next_at, 8);
	ready_go(c);
	walk_build_place(c->b, end);
	keep_reduced(c);
	walk_build_op(c->b, WALK_OP_RET, 0, 0, 0, 0);
}
