/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes code smaller: pairs of a load from the node and a store to the pad, by
 * which clang copies short runs of bytes, become CPY; and what computes a
 * register that nobody reads is left out, as are addresses, which have become
 * offsets of loads and stores.
 */
#include <errno.h>
#include <stdlib.h>

#include "code.h"

enum {
	PAIRS_MIN = 3, /* CPY has two slots */
};

/* ---- copies ------------------------------------------------------------- */

static bool is_load(const struct code_insn *i)
{
	return i->kind == CODE_OP && i->op >= WALK_OP_LDN1 &&
	       i->op <= WALK_OP_LDN8;
}

/* A pair that moves `bytes` bytes through one register. */
static bool is_pair(const struct code_insn *i, unsigned *bytes)
{
	*bytes = walk_op_info(i[0].op)->bytes;
	return is_load(&i[0]) && i[1].kind == CODE_OP &&
	       i[1].op >= WALK_OP_STP1 && i[1].op <= WALK_OP_STP8 &&
	       i[1].a == i[0].d && walk_op_info(i[1].op)->bytes == *bytes;
}

/* Pairs from `at` that continue each other, upward or downward. */
static uint32_t count_pairs(const struct code_insn *i, uint32_t left,
			    int64_t *step)
{
	unsigned bytes, next;
	uint32_t n = 1;

	if (left < 2 || !is_pair(i, &bytes))
		return 0;
	*step = bytes;
	for (; 2 * n + 1 < left && is_pair(&i[2 * n], &next); n++) {
		int64_t moved = i[2 * n].value - i[2 * n - 2].value;

		if (n == 1 && moved == -*step)
			*step = -*step;
		if (next != bytes || moved != *step ||
		    i[2 * n + 1].value - i[2 * n - 1].value != *step)
			break;
	}
	return n;
}

/* The loads stay for those who read their registers later. */
static void join_pairs(struct code_insn *i, uint32_t n, int64_t step)
{
	uint32_t low = step > 0 ? 0 : 2 * (n - 1);
	struct code_insn copy = {
		.kind = CODE_BLOCK,
		.op = WALK_OP_CPY,
		.insn = i[0].insn,
		.block = {.len_reg = WALK_REG_NONE,
			  .node_reg = WALK_REG_NONE,
			  .pad_reg = WALK_REG_NONE,
			  .len = n * (uint32_t)(step > 0 ? step : -step),
			  .node_at = (int32_t)i[low].value,
			  .pad_at = (uint32_t)i[low + 1].value},
	};

	for (uint32_t k = 0; k < n; k++)
		i[2 * k + 1].kind = CODE_GONE;
	i[1] = copy;
}

static void join_copies(struct walkc_code *c, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end;) {
		int64_t step = 0;
		uint32_t n = count_pairs(&c->insns[i], end - i, &step);

		if (n >= PAIRS_MIN)
			join_pairs(&c->insns[i], n, step);
		i += n ? 2 * n : 1;
	}
}

/* ---- what nobody uses --------------------------------------------------- */

static uint64_t bit(unsigned reg)
{
	return reg < WALK_REGS ? 1ull << reg : 0;
}

struct effect {
	uint64_t reads, writes;
	bool is_needed; /* whether or not what it writes is read */
};

static struct effect effect_of_block(const struct code_insn *i)
{
	bool has_result = i->op != WALK_OP_CPY;

	return (struct effect){bit(i->block.len_reg) | bit(i->block.node_reg) |
				       bit(i->block.pad_reg),
			       has_result ? bit(i->d) : 0, !has_result};
}

static struct effect effect_of(const struct code_insn *i)
{
	if (i->kind == CODE_BLOCK)
		return effect_of_block(i);
	if (i->kind == CODE_BRANCH)
		return (struct effect){bit(i->a) | (i->is_imm ? 0 : bit(i->b)),
				       0, true};
	switch (walk_op_info(i->op)->form) {
	case WALK_FORM_LOAD:
	case WALK_FORM_CONST:
		return (struct effect){0, bit(i->d), false};
	case WALK_FORM_LOAD_X:
	case WALK_FORM_ALU_IMM:
	case WALK_FORM_UNARY:
		return (struct effect){bit(i->a), bit(i->d), false};
	case WALK_FORM_ALU:
		return (struct effect){bit(i->a) | bit(i->b), bit(i->d), false};
	case WALK_FORM_STORE:
	case WALK_FORM_BOUND:
	case WALK_FORM_END_REG:
		return (struct effect){bit(i->a), 0, true};
	case WALK_FORM_STORE_X:
		return (struct effect){bit(i->a) | bit(i->b), 0, true};
	case WALK_FORM_CAS:
		return (struct effect){bit(i->a) | bit(i->b), bit(i->d), true};
	case WALK_FORM_FAA:
		return (struct effect){bit(i->a), bit(i->d), true};
	default:
		return (struct effect){0, 0, true};
	}
}

/* Backward through a block; returns what it reads of what was before it. */
static uint64_t sweep(struct walkc_code *c, uint32_t first, uint32_t end,
		      uint64_t live)
{
	for (uint32_t i = end; i-- > first;) {
		struct code_insn *insn = &c->insns[i];
		struct effect e;

		if (insn->kind == CODE_GONE)
			continue;
		e = effect_of(insn);
		if (!e.is_needed && !(e.writes & live)) {
			insn->kind = CODE_GONE;
			continue;
		}
		live = (live & ~e.writes) | e.reads;
	}
	return live;
}

int walkc_code_trim(struct walkc_code *c)
{
	const struct walkc_flow *flow = c->flow;
	uint64_t *live = calloc(flow->block_count, sizeof(*live));

	if (!live)
		return error_set(-ENOMEM, "no memory for %s",
				 flow->function->name);
	/* All jumps go forward, so one pass is enough. */
	for (uint32_t i = flow->order_count; i-- > 0;) {
		uint32_t at = flow->order[i];
		const struct walkc_block *b = &flow->blocks[at];
		uint64_t out = 0;

		if (!c->is_reached[at])
			continue;
		if (c->is_decided[at])
			out = live[c->decided_to[at]];
		else
			for (unsigned k = 0; k < b->next_count; k++)
				out |= live[b->next[k]];
		join_copies(c, c->first[at], c->end[at]);
		live[at] = sweep(c, c->first[at], c->end[at], out);
	}
	free(live);
	return 0;
}
