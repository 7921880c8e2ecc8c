/* SPDX-License-Identifier: Apache-2.0 */
/* What an instruction reads and writes, and how large its result can be. */
#include "op.h"
#include "walk_priv.h"

static uint64_t bit(uint8_t reg)
{
	return reg < WALK_REGS ? (uint64_t)1 << reg : 0;
}

uint64_t walk_insn_reads(const struct walk_insn *insn)
{
	switch (walk_op_info(insn->op)->form) {
	case WALK_FORM_CONST_HIGH:
		return bit(insn->d);
	case WALK_FORM_LOAD_X:
	case WALK_FORM_STORE:
	case WALK_FORM_FAA:
	case WALK_FORM_ALU_IMM:
	case WALK_FORM_UNARY:
	case WALK_FORM_BOUND:
	case WALK_FORM_JUMP_IMM:
	case WALK_FORM_END_REG:
		return bit(insn->a);
	case WALK_FORM_STORE_X:
	case WALK_FORM_CAS:
	case WALK_FORM_ALU:
	case WALK_FORM_JUMP:
		return bit(insn->a) | bit(insn->b);
	case WALK_FORM_BLOCK:
		return bit(insn->a) | bit(insn[1].a) | bit(insn[1].b);
	default:
		return 0;
	}
}

uint64_t walk_insn_writes(const struct walk_insn *insn)
{
	switch (walk_op_info(insn->op)->form) {
	case WALK_FORM_LOAD:
	case WALK_FORM_LOAD_X:
	case WALK_FORM_CONST:
	case WALK_FORM_CONST_HIGH:
	case WALK_FORM_CAS:
	case WALK_FORM_FAA:
	case WALK_FORM_ALU:
	case WALK_FORM_ALU_IMM:
	case WALK_FORM_UNARY:
		return bit(insn->d);
	case WALK_FORM_BLOCK:
		return insn->op == WALK_OP_CPY ? 0 : bit(insn->d);
	default:
		return 0;
	}
}

/* All bits below the top one of v. */
static uint64_t fill_bits(uint64_t v)
{
	return v ? UINT64_MAX >> __builtin_clzll(v) : 0;
}

/* a op b, where both are at most what is given; `is_known`: b is exactly that.
 * UINT64_MAX where the result may wrap. */
static uint64_t alu_bound(uint8_t op, uint64_t a, uint64_t b, bool is_known,
			  unsigned width)
{
	const unsigned shift = (unsigned)(b & (width - 1));
	uint64_t out;

	switch (op) {
	case WALK_OP_ADD:
		return __builtin_add_overflow(a, b, &out) ? UINT64_MAX : out;
	case WALK_OP_MUL:
		return __builtin_mul_overflow(a, b, &out) ? UINT64_MAX : out;
	case WALK_OP_DIV:
		return is_known && b ? a / b : a;
	case WALK_OP_MOD:
		return is_known && b ? u64_min(a, b - 1) : a;
	case WALK_OP_AND:
	case WALK_OP_MIN:
		return u64_min(a, b);
	case WALK_OP_OR:
	case WALK_OP_XOR:
		return fill_bits(a | b);
	case WALK_OP_MAX:
		return u64_max(a, b);
	case WALK_OP_SHL:
		if (!is_known || (a && shift > (unsigned)__builtin_clzll(a)))
			return UINT64_MAX;
		return a << shift;
	case WALK_OP_SHR:
		return is_known ? a >> shift : a;
	case WALK_OP_SAR:
		if (a >> (width - 1))
			return UINT64_MAX;
		return is_known ? a >> shift : a;
	default:
		return UINT64_MAX;
	}
}

static uint64_t alu_any_bound(const struct walk_insn *insn,
			      const uint64_t bound[])
{
	const bool is_imm = walk_op_info(insn->op)->form == WALK_FORM_ALU_IMM;
	const bool is_32 = (insn->op & 0xf0) == (WALK_OP_ADD32 & 0xf0) ||
			   (insn->op & 0xf0) == (WALK_OP_ADDI32 & 0xf0);
	const uint8_t op = (uint8_t)(WALK_OP_ADD + (insn->op & 0x0f));
	uint64_t a = bound[insn->a];
	uint64_t b = is_imm ? (uint64_t)(int64_t)insn->imm : bound[insn->b];

	if (!is_32)
		return alu_bound(op, a, b, is_imm, 64);
	b = is_imm ? (uint32_t)b : u64_min(b, UINT32_MAX);
	return u64_min(alu_bound(op, u64_min(a, UINT32_MAX), b, is_imm, 32),
		       UINT32_MAX);
}

static uint64_t unary_bound(uint8_t op, uint64_t a)
{
	switch (op) {
	case WALK_OP_MOV:
		return a;
	case WALK_OP_MOV32:
		return u64_min(a, UINT32_MAX);
	case WALK_OP_NEG32:
	case WALK_OP_BSW4:
		return UINT32_MAX;
	case WALK_OP_BSW2:
		return UINT16_MAX;
	case WALK_OP_SX1:
		return a <= INT8_MAX ? a : UINT64_MAX;
	case WALK_OP_SX2:
		return a <= INT16_MAX ? a : UINT64_MAX;
	case WALK_OP_SX4:
		return a <= INT32_MAX ? a : UINT64_MAX;
	default:
		return UINT64_MAX;
	}
}

uint64_t walk_bound_after(const struct walk_insn *insn, const uint64_t bound[])
{
	const struct walk_op_info *info = walk_op_info(insn->op);

	switch (info->form) {
	case WALK_FORM_LOAD:
	case WALK_FORM_LOAD_X:
		return UINT64_MAX >> (64 - 8 * info->bytes);
	case WALK_FORM_CONST:
		return (uint64_t)(int64_t)insn->imm;
	case WALK_FORM_CONST_HIGH:
		return (uint64_t)(uint32_t)insn->imm << 32 | UINT32_MAX;
	case WALK_FORM_ALU:
	case WALK_FORM_ALU_IMM:
		return alu_any_bound(insn, bound);
	case WALK_FORM_UNARY:
		return unary_bound(insn->op, bound[insn->a]);
	case WALK_FORM_BLOCK:
		return insn->op == WALK_OP_SUM ? UINT32_MAX : UINT64_MAX;
	default:
		return UINT64_MAX;
	}
}
