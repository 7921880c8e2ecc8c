/* SPDX-License-Identifier: Apache-2.0 */
/* Translation of arithmetic. The result may be in the register of an operand
 * that is needed no more; then its order of loads and moves counts. */
#include "jit_priv.h"

static const uint8_t alu_digit[] = {
	[WALK_OP_ADD - WALK_OP_ADD] = X86_ADD,
	[WALK_OP_SUB - WALK_OP_ADD] = X86_SUB,
	[WALK_OP_AND - WALK_OP_ADD] = X86_AND,
	[WALK_OP_OR - WALK_OP_ADD] = X86_OR,
	[WALK_OP_XOR - WALK_OP_ADD] = X86_XOR,
};

/* The second operand of an instruction: a register or a constant. */
struct right {
	bool is_imm;
	int32_t imm;
	uint8_t reg;
};

static void load_right(struct jit *j, const struct right *b, unsigned size,
		       unsigned into)
{
	if (!b->is_imm)
		x86_mov(&j->x, into, jit_source(j, b->reg, into));
	else if (size == X86_64)
		x86_mov_const(&j->x, into, (uint64_t)(int64_t)b->imm);
	else
		x86_mov_const(&j->x, into, (uint32_t)b->imm);
}

/* d = a op b by one instruction that changes its first operand. */
static void simple(struct jit *j, unsigned kind, unsigned size, uint8_t a,
		   const struct right *b)
{
	const unsigned ra = jit_source(j, a, RAX);
	const unsigned rd = jit_dest(j, RAX);
	const unsigned digit = alu_digit[kind];
	unsigned rb;

	if (b->is_imm) {
		if (kind == 0 && rd != ra && size == X86_64) {
			x86_rm(&j->x, X86_64, 0x8d, rd, ra, X86_NONE, b->imm);
		} else {
			x86_mov(&j->x, rd, ra);
			x86_alu_imm(&j->x, size, digit, rd, b->imm);
		}
		jit_keep(j, rd);
		return;
	}
	rb = jit_source(j, b->reg, RCX);
	if (rd == rb && rd != ra && digit == X86_SUB) {
		x86_mov(&j->x, RAX, ra);
		x86_alu(&j->x, size, digit, RAX, rb);
		x86_mov(&j->x, rd, RAX);
	} else if (rd == rb) {
		x86_alu(&j->x, size, digit, rd, ra);
	} else {
		x86_mov(&j->x, rd, ra);
		x86_alu(&j->x, size, digit, rd, rb);
	}
	jit_keep(j, rd);
}

static void multiply(struct jit *j, unsigned size, uint8_t a,
		     const struct right *b)
{
	const unsigned ra = jit_source(j, a, RAX);
	const unsigned rd = jit_dest(j, RAX);
	unsigned rb;

	if (b->is_imm) {
		x86_rr(&j->x, size, 0x69, rd, ra);
		x86_imm32(&j->x, b->imm);
		jit_keep(j, rd);
		return;
	}
	rb = jit_source(j, b->reg, RCX);
	if (rd == rb) {
		x86_rr(&j->x, size, 0x0faf, rd, ra);
	} else {
		x86_mov(&j->x, rd, ra);
		x86_rr(&j->x, size, 0x0faf, rd, rb);
	}
	jit_keep(j, rd);
}

static void shift(struct jit *j, unsigned op, unsigned size, uint8_t a,
		  const struct right *b)
{
	const unsigned width = size == X86_64 ? 64 : 32;
	unsigned ra, rd;

	if (!b->is_imm)
		load_right(j, b, size, RCX);
	ra = jit_source(j, a, RAX);
	rd = jit_dest(j, RAX);
	/* A shift by 0 need not clear the high half. */
	if (size == X86_32)
		x86_rr(&j->x, X86_32, 0x8b, rd, ra);
	else
		x86_mov(&j->x, rd, ra);
	if (!b->is_imm)
		x86_rr(&j->x, size, 0xd3, op, rd);
	else if ((unsigned)b->imm & (width - 1))
		x86_shift_imm(&j->x, size, op, rd,
			      (unsigned)b->imm & (width - 1));
	jit_keep(j, rd);
}

/* RAX / RCX; x / 0 is 0, x % 0 is x. */
static void divide(struct jit *j, bool is_mod, unsigned size, uint8_t a,
		   const struct right *b)
{
	uint32_t zero, end;

	load_right(j, b, size, RCX);
	/* Also in 32 bits, where a move clears the high half. */
	x86_rr(&j->x, size, 0x8b, RAX, jit_source(j, a, RAX));
	x86_mov_const(&j->x, RDX, 0);
	x86_rr(&j->x, size, 0x85, RCX, RCX);
	zero = x86_jcc(&j->x, X86_E);
	x86_rr(&j->x, size, 0xf7, 6, RCX);
	end = x86_jmp(&j->x);
	x86_land(&j->x, zero, j->x.len);
	if (is_mod)
		x86_mov(&j->x, RDX, RAX);
	else
		x86_mov_const(&j->x, RAX, 0);
	x86_land(&j->x, end, j->x.len);
	x86_mov(&j->x, jit_dest(j, RAX), is_mod ? RDX : RAX);
	jit_keep(j, jit_dest(j, RAX));
}

/* Without a branch, because a bound may rest on it. */
static void least_or_most(struct jit *j, bool is_min, unsigned size, uint8_t a,
			  const struct right *b)
{
	unsigned rd;

	load_right(j, b, size, RCX);
	x86_rr(&j->x, size, 0x8b, RAX, jit_source(j, a, RAX));
	if (size == X86_32 && !b->is_imm)
		x86_rr(&j->x, X86_32, 0x8b, RCX, RCX);
	x86_alu(&j->x, size, X86_CMP, RAX, RCX);
	x86_rr(&j->x, size, is_min ? 0x0f47 : 0x0f42, RAX, RCX);
	rd = jit_dest(j, RAX);
	x86_mov(&j->x, rd, RAX);
	jit_keep(j, rd);
}

void jit_alu(struct jit *j, const struct walk_insn *insn)
{
	const unsigned high = insn->op & 0xf0;
	const unsigned kind = insn->op & 0x0f;
	const unsigned size = high == 0x60 || high == 0x70 ? X86_32 : X86_64;
	const struct right b = {
		.is_imm = high == 0x50 || high == 0x70,
		.imm = insn->imm,
		.reg = insn->b,
	};

	switch (WALK_OP_ADD + kind) {
	case WALK_OP_MUL:
		multiply(j, size, insn->a, &b);
		break;
	case WALK_OP_DIV:
	case WALK_OP_MOD:
		divide(j, WALK_OP_ADD + kind == WALK_OP_MOD, size, insn->a, &b);
		break;
	case WALK_OP_SHL:
		shift(j, X86_SHL, size, insn->a, &b);
		break;
	case WALK_OP_SHR:
		shift(j, X86_SHR, size, insn->a, &b);
		break;
	case WALK_OP_SAR:
		shift(j, X86_SAR, size, insn->a, &b);
		break;
	case WALK_OP_MIN:
	case WALK_OP_MAX:
		least_or_most(j, WALK_OP_ADD + kind == WALK_OP_MIN, size,
			      insn->a, &b);
		break;
	default:
		simple(j, kind, size, insn->a, &b);
		break;
	}
}

void jit_unary(struct jit *j, const struct walk_insn *insn)
{
	const unsigned ra = jit_source(j, insn->a, RAX);
	const unsigned rd = jit_dest(j, RAX);
	struct x86 *x = &j->x;

	switch (insn->op) {
	case WALK_OP_MOV32:
	case WALK_OP_NEG32:
	case WALK_OP_BSW4:
		x86_rr(x, X86_32, 0x8b, rd, ra);
		break;
	case WALK_OP_SX1:
		x86_rr(x, X86_64, 0x0fbe, rd, ra);
		break;
	case WALK_OP_SX2:
		x86_rr(x, X86_64, 0x0fbf, rd, ra);
		break;
	case WALK_OP_SX4:
		x86_rr(x, X86_64, 0x63, rd, ra);
		break;
	case WALK_OP_BSW2:
		x86_rr(x, X86_32, 0x0fb7, rd, ra);
		x86_shift_imm(x, X86_16, X86_ROL, rd, 8);
		break;
	default:
		x86_mov(x, rd, ra);
		break;
	}
	if (insn->op == WALK_OP_NEG || insn->op == WALK_OP_NEG32)
		x86_rr(x, insn->op == WALK_OP_NEG ? X86_64 : X86_32, 0xf7, 3,
		       rd);
	if (insn->op == WALK_OP_BSW4 || insn->op == WALK_OP_BSW8) {
		x86_rex(x, insn->op == WALK_OP_BSW8 ? X86_64 : X86_32, 0, 0,
			rd);
		x86_byte(x, 0x0f);
		x86_byte(x, 0xc8 | (rd & 7));
	}
	jit_keep(j, rd);
}
