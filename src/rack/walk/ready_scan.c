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

static uint32_t pair_bytes(const struct aq_walk_shape *s)
{
	return 8 + ((s->value_bytes + 7) & ~7u);
}

static void put_pair(struct ready *c, uint32_t i, uint32_t at)
{
	const struct aq_walk_shape *s = c->s;

	walk_build_op(c->b, WALK_OP_STPX8, 0, R_OFFSET, R_ORDER, (int32_t)at);
	ready_copy(c, at + 8, s->value_at + i * s->value_stride, s->value_bytes,
		   WALK_REG_NONE, R_OFFSET);
}

static void take_whole_pair(struct ready *c, uint32_t i)
{
	put_pair(c, i, PAD_SCAN_PAIRS + i * pair_bytes(c->s));
}

/* R_OFFSET is where the next pair goes, R_FOUND times the bytes of one. */
static void take_pair(struct ready *c, uint32_t i, int full)
{
	const struct aq_walk_shape *s = c->s;
	const uint32_t pair = pair_bytes(s);

	walk_build_jump_imm(c->b, WALK_OP_JEQI, R_OFFSET,
			    (int16_t)(s->scan_pairs * pair), full);
	walk_build_op(c->b, WALK_OP_BND, 0, R_OFFSET, 0,
		      (int32_t)((s->scan_pairs - 1) * pair));
	put_pair(c, i, PAD_SCAN_PAIRS);
	walk_build_op(c->b, WALK_OP_ADDI, R_OFFSET, R_OFFSET, 0, (int32_t)pair);
}

void ready_scan(struct ready *c)
{
	const struct aq_walk_shape *s = c->s;
	const bool has_room = s->scan_pairs >= s->fanout;
	const struct ready_range range = {
		.take = take_pair,
		.take_whole = has_room ? take_whole_pair : NULL,
		.room = (s->scan_pairs - s->fanout) * pair_bytes(s),
		.next = walk_build_label(c->b),
		.end = walk_build_label(c->b),
		.full = walk_build_label(c->b),
	};

	find_first_leaf(c, PAD_SCAN_LOW, PAD_SCAN_HIGH);
	walk_build_op(c->b, WALK_OP_LDP8, R_FOUND, 0, 0, PAD_FOUND);
	walk_build_op(c->b, WALK_OP_MULI, R_OFFSET, R_FOUND, 0,
		      (int32_t)pair_bytes(s));
	ready_range(c, &range);
	walk_build_op(c->b, WALK_OP_STP8, 0, R_FOUND, 0, PAD_FOUND);
	ready_load(c, R_NEXT, s->next_at, 8);
	ready_go(c);
	walk_build_place(c->b, range.full);
	walk_build_const(c->b, R_T, 1);
	walk_build_op(c->b, WALK_OP_STP8, 0, R_T, 0, PAD_SCAN_MORE);
	walk_build_place(c->b, range.end);
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

static void reduce_value(struct ready *c, uint32_t i, int full)
{
	const struct aq_walk_shape *s = c->s;
	static const uint8_t extend[] = {WALK_OP_SX1, WALK_OP_SX2, WALK_OP_SX4};
	int least, most;

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
	const struct ready_range range = {
		.take = reduce_value,
		.next = walk_build_label(c->b),
		.end = walk_build_label(c->b),
		.full = -1,
	};

	find_first_leaf(c, PAD_REDUCE_LOW, PAD_REDUCE_HIGH);
	start_reduce(c);
	ready_range(c, &range);
	keep_reduced(c);
	ready_load(c, R_NEXT, c->s->next_at, 8);
	ready_go(c);
	walk_build_place(c->b, range.end);
	keep_reduced(c);
	walk_build_op(c->b, WALK_OP_RET, 0, 0, 0, 0);
}
