/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of x86-64 instructions; only those that jit_x86.c needs. */
#ifndef AQ_WALK_X86_EMIT_H
#define AQ_WALK_X86_EMIT_H

#include <string.h>

#include "base/base.h"

enum x86_reg {
	RAX,
	RCX,
	RDX,
	RBX,
	RSP,
	RBP,
	RSI,
	RDI,
	R8,
	R9,
	R10,
	R11,
	R12,
	R13,
	R14,
	R15,
	X86_NONE = 0xff,
};

/* The digit of an instruction that has an immediate or one operand. */
enum x86_alu {
	X86_ADD = 0,
	X86_OR = 1,
	X86_SBB = 3,
	X86_AND = 4,
	X86_SUB = 5,
	X86_XOR = 6,
	X86_CMP = 7,
};

enum x86_shift {
	X86_ROL = 0,
	X86_SHL = 4,
	X86_SHR = 5,
	X86_SAR = 7,
};

enum x86_cond {
	X86_B = 2,
	X86_AE = 3,
	X86_E = 4,
	X86_NE = 5,
	X86_BE = 6,
	X86_A = 7,
	X86_S = 8,
	X86_L = 12,
	X86_GE = 13,
	X86_LE = 14,
	X86_G = 15,
};

struct x86 {
	uint8_t *bytes;
	uint32_t len, room;
};

static inline void x86_byte(struct x86 *x, unsigned v)
{
	ASSERT(x->len < x->room);
	x->bytes[x->len++] = (uint8_t)v;
}

static inline void x86_imm32(struct x86 *x, int64_t v)
{
	const int32_t v32 = (int32_t)v;

	ASSERT(x->len + 4 <= x->room);
	memcpy(x->bytes + x->len, &v32, 4);
	x->len += 4;
}

static inline void x86_opcode(struct x86 *x, unsigned op)
{
	if (op > 0xff)
		x86_byte(x, op >> 8);
	x86_byte(x, op);
}

enum x86_size {
	X86_32 = 0,
	X86_64 = 8,    /* REX.W */
	X86_BYTE = 64, /* any register has a low byte, with a REX */
	X86_16 = 128,
};

static inline void x86_rex(struct x86 *x, unsigned size, unsigned reg,
			   unsigned index, unsigned base)
{
	const unsigned rex = 0x40 | (size & X86_64) | (reg >> 3 & 1) << 2 |
			     (index >> 3 & 1) << 1 | (base >> 3 & 1);

	if (size & X86_16)
		x86_byte(x, 0x66);
	if (rex != 0x40 || size & X86_BYTE)
		x86_byte(x, rex);
}

/* op reg, rm with two registers; `reg` may be a digit. */
static inline void x86_rr(struct x86 *x, unsigned size, unsigned op,
			  unsigned reg, unsigned rm)
{
	x86_rex(x, size, reg, 0, rm);
	x86_opcode(x, op);
	x86_byte(x, 0xc0 | (reg & 7) << 3 | (rm & 7));
}

/* The same with memory: [base + index + disp]. */
static inline void x86_rm(struct x86 *x, unsigned size, unsigned op,
			  unsigned reg, unsigned base, unsigned index,
			  int32_t disp)
{
	const bool is_short = disp >= -128 && disp < 128;
	const bool has_sib = index != X86_NONE || (base & 7) == RSP;
	const unsigned mod = disp == 0 && (base & 7) != RBP ? 0
			     : is_short			    ? 0x40
							    : 0x80;

	x86_rex(x, size, reg, index == X86_NONE ? 0 : index, base);
	x86_opcode(x, op);
	x86_byte(x, mod | (reg & 7) << 3 | (has_sib ? 4 : base & 7));
	if (has_sib)
		x86_byte(x,
			 (index == X86_NONE ? 4 : index & 7) << 3 | (base & 7));
	if (mod == 0x40)
		x86_byte(x, (uint8_t)disp);
	else if (mod == 0x80)
		x86_imm32(x, disp);
}

static inline void x86_mov(struct x86 *x, unsigned d, unsigned a)
{
	if (d != a)
		x86_rr(x, X86_64, 0x8b, d, a);
}

/* Any 64 bits, in as few bytes as possible. */
static inline void x86_mov_const(struct x86 *x, unsigned d, uint64_t v)
{
	if (v == 0) {
		x86_rr(x, X86_32, 0x33, d, d);
	} else if (v <= UINT32_MAX) {
		x86_rex(x, X86_32, 0, 0, d);
		x86_byte(x, 0xb8 | (d & 7));
		x86_imm32(x, (int64_t)v);
	} else if ((uint64_t)(int64_t)(int32_t)v == v) {
		x86_rr(x, X86_64, 0xc7, 0, d);
		x86_imm32(x, (int64_t)v);
	} else {
		x86_rex(x, X86_64, 0, 0, d);
		x86_byte(x, 0xb8 | (d & 7));
		x86_imm32(x, (int64_t)v);
		x86_imm32(x, (int64_t)(v >> 32));
	}
}

/* d op= imm; op is an enum x86_alu. */
static inline void x86_alu_imm(struct x86 *x, unsigned size, unsigned op,
			       unsigned d, int32_t imm)
{
	if (imm >= -128 && imm < 128) {
		x86_rr(x, size, 0x83, op, d);
		x86_byte(x, (uint8_t)imm);
	} else {
		x86_rr(x, size, 0x81, op, d);
		x86_imm32(x, imm);
	}
}

/* d op= a; op is an enum x86_alu. */
static inline void x86_alu(struct x86 *x, unsigned size, unsigned op,
			   unsigned d, unsigned a)
{
	x86_rr(x, size, op << 3 | 3, d, a);
}

static inline void x86_shift_imm(struct x86 *x, unsigned size, unsigned op,
				 unsigned d, unsigned by)
{
	x86_rr(x, size, 0xc1, op, d);
	x86_byte(x, by);
}

static inline void x86_push(struct x86 *x, unsigned reg)
{
	x86_rex(x, X86_32, 0, 0, reg);
	x86_byte(x, 0x50 | (reg & 7));
}

static inline void x86_pop(struct x86 *x, unsigned reg)
{
	x86_rex(x, X86_32, 0, 0, reg);
	x86_byte(x, 0x58 | (reg & 7));
}

/* A jump whose distance is written later; returns where. */
static inline uint32_t x86_jcc(struct x86 *x, unsigned cond)
{
	x86_byte(x, 0x0f);
	x86_byte(x, 0x80 | cond);
	x86_imm32(x, 0);
	return x->len - 4;
}

static inline uint32_t x86_jmp(struct x86 *x)
{
	x86_byte(x, 0xe9);
	x86_imm32(x, 0);
	return x->len - 4;
}

static inline void x86_land(struct x86 *x, uint32_t hole, uint32_t target)
{
	const int32_t distance = (int32_t)(target - (hole + 4));

	memcpy(x->bytes + hole, &distance, 4);
}

#endif
