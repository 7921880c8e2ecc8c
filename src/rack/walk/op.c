/* SPDX-License-Identifier: Apache-2.0 */
/* The table of instructions, and the fields of those that are packed. */
#include "op.h"

#include "image.h"

static const struct walk_op_info ops[256] = {
#define OP_ROW(id, text, num, form_, window_, bytes_) \
	[num] = {                                     \
		.name = text,                         \
		.form = WALK_FORM_##form_,            \
		.window = WALK_##window_,             \
		.bytes = bytes_,                      \
	},
	WALK_OPS(OP_ROW)
#undef OP_ROW
};

const struct walk_op_info *walk_op_info(uint8_t op)
{
	return &ops[op];
}

struct walk_block walk_block_get(const struct walk_insn *first)
{
	uint32_t packed = (uint32_t)first[1].imm;

	return (struct walk_block){
		.d = first->d,
		.len_reg = first->a,
		.node_reg = first[1].a,
		.pad_reg = first[1].b,
		.len = packed >> 16,
		.node_at = first->imm,
		.pad_at = packed & 0xffff,
	};
}

void walk_block_put(struct walk_insn *first, uint8_t op,
		    const struct walk_block *block)
{
	first[0] = (struct walk_insn){
		.op = op,
		.d = block->d,
		.a = block->len_reg,
		.imm = block->node_at,
	};
	first[1] = (struct walk_insn){
		.op = WALK_OP_ARG,
		.a = block->node_reg,
		.b = block->pad_reg,
		.imm = (int32_t)(block->len << 16 | (block->pad_at & 0xffff)),
	};
}

uint32_t walk_jump_distance(const struct walk_insn *insn)
{
	switch (ops[insn->op].form) {
	case WALK_FORM_JUMP:
	case WALK_FORM_JUMP_ALWAYS:
		return (uint32_t)insn->imm;
	case WALK_FORM_JUMP_IMM:
		return (uint32_t)insn->imm >> 16;
	default:
		return 0;
	}
}

int16_t walk_jump_const(const struct walk_insn *insn)
{
	return (int16_t)(uint16_t)insn->imm;
}
