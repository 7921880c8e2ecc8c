/* SPDX-License-Identifier: Apache-2.0 */
/* Translation of block instructions and atomics. */
#include "jit_priv.h"

enum {
	INLINE_BYTES = 64, /* longer copies are a call */
};

/* An address [base + index + disp]. */
struct place {
	unsigned base, index;
	int32_t disp;
};

static struct place place_of(struct jit *j, unsigned window, uint8_t reg,
			     int32_t disp, unsigned spare)
{
	return (struct place){
		.base = window,
		.index = reg == WALK_REG_NONE ? X86_NONE
					      : jit_index(j, reg, spare),
		.disp = disp,
	};
}

static void copy_inline(struct jit *j, const struct walk_block *k)
{
	static const struct {
		uint32_t bytes;
		unsigned size, load, store;
	} steps[] = {
		{16, X86_32, 0x0f10, 0x0f11}, /* movups, XMM0 */
		{8, X86_64, 0x8b, 0x89},      {4, X86_32, 0x8b, 0x89},
		{2, X86_16, 0x8b, 0x89},      {1, X86_BYTE, 0x8a, 0x88},
	};
	struct place from = place_of(j, JIT_NODE, k->node_reg, k->node_at, RAX);
	struct place to =
		place_of(j, JIT_PAD, k->pad_reg, (int32_t)k->pad_at, RDX);
	uint32_t left = k->len;

	for (uint32_t s = 0; s < ARRAY_LEN(steps); s++) {
		/* XMM0 has the number of RAX. */
		const unsigned temp = s == 0 ? 0 : RCX;

		for (; left >= steps[s].bytes; left -= steps[s].bytes) {
			x86_rm(&j->x, steps[s].size, steps[s].load, temp,
			       from.base, from.index, from.disp);
			x86_rm(&j->x, steps[s].size, steps[s].store, temp,
			       to.base, to.index, to.disp);
			from.disp += (int32_t)steps[s].bytes;
			to.disp += (int32_t)steps[s].bytes;
		}
	}
}

/* Registers that a call may change and somebody needs behind it. */
static uint32_t kept_over_call(const struct jit *j)
{
	uint64_t busy = j->plan.busy[j->at] & j->plan.busy[j->at + 1];
	uint32_t regs = 1u << JIT_NODE | 1u << JIT_PAD;

	for (; busy; busy &= busy - 1) {
		const uint8_t place = j->place[__builtin_ctzll(busy)];

		if (place < JIT_STACK)
			regs |= 1u << place & JIT_CALLER_REGS;
	}
	return regs;
}

/* function(node, pad, len); the result is in RAX. */
static void call(struct jit *j, const struct walk_block *k, bool has_pad,
		 uint64_t function)
{
	const uint32_t kept = kept_over_call(j);
	const bool is_odd = __builtin_popcount(kept) % 2;
	struct x86 *x = &j->x;
	struct place p;

	j->has_calls = true;
	p = place_of(j, JIT_NODE, k->node_reg, k->node_at, RAX);
	x86_rm(x, X86_64, 0x8d, RAX, p.base, p.index, p.disp);
	if (has_pad) {
		p = place_of(j, JIT_PAD, k->pad_reg, (int32_t)k->pad_at, RCX);
		x86_rm(x, X86_64, 0x8d, RCX, p.base, p.index, p.disp);
	} else {
		x86_mov(x, RCX, JIT_PAD);
	}
	if (k->len_reg == WALK_REG_NONE)
		x86_mov_const(x, RDX, k->len);
	else
		x86_mov(x, RDX, jit_index(j, k->len_reg, RDX));
	for (unsigned r = 0; r < 16; r++) {
		if (kept & 1u << r)
			x86_push(x, r);
	}
	if (is_odd)
		x86_alu_imm(x, X86_64, X86_SUB, RSP, 8);
	x86_mov(x, RDI, RAX);
	x86_mov(x, RSI, RCX);
	x86_mov_const(x, RAX, function);
	x86_rr(x, X86_32, 0xff, 2, RAX);
	if (is_odd)
		x86_alu_imm(x, X86_64, X86_ADD, RSP, 8);
	for (unsigned r = 16; r-- > 0;) {
		if (kept & 1u << r)
			x86_pop(x, r);
	}
}

/* The order of eight, four, two or one bytes, without a call. */
static void compare_inline(struct jit *j, const struct walk_block *k)
{
	const unsigned size = k->len == 8 ? X86_64 : X86_32;
	const unsigned load = k->len == 1   ? 0x0fb6
			      : k->len == 2 ? 0x0fb7
					    : 0x8b;
	struct x86 *x = &j->x;
	struct place p;

	p = place_of(j, JIT_PAD, k->pad_reg, (int32_t)k->pad_at, RAX);
	x86_rm(x, size, load, RAX, p.base, p.index, p.disp);
	p = place_of(j, JIT_NODE, k->node_reg, k->node_at, RCX);
	x86_rm(x, size, load, RCX, p.base, p.index, p.disp);
	for (unsigned r = RAX; r <= RCX; r++) {
		if (k->len == 1)
			continue;
		if (k->len == 2) {
			x86_shift_imm(x, X86_16, X86_ROL, r, 8);
			continue;
		}
		x86_rex(x, size, 0, 0, r);
		x86_byte(x, 0x0f);
		x86_byte(x, 0xc8 | r);
	}
	/* 1 if greater, -1 if less */
	x86_alu(x, size, X86_CMP, RAX, RCX);
	x86_rr(x, X86_BYTE, 0x0f97, 0, RDX);
	x86_alu(x, X86_64, X86_SBB, RAX, RAX);
	x86_rr(x, X86_32, 0x0fb6, RDX, RDX);
	x86_alu(x, X86_64, X86_OR, RAX, RDX);
}

void jit_block(struct jit *j, const struct walk_insn *insn)
{
	const struct walk_block k = walk_block_get(insn);
	const bool is_fixed = k.len_reg == WALK_REG_NONE;

	if (insn->op == WALK_OP_CPY && is_fixed && k.len <= INLINE_BYTES) {
		copy_inline(j, &k);
		return;
	}
	if (insn->op == WALK_OP_CPY) {
		call(j, &k, true, (uintptr_t)walk_do_cpy);
		return;
	}
	if (j->dest == JIT_NOWHERE)
		return;
	if (insn->op == WALK_OP_SUM)
		call(j, &k, false, (uintptr_t)walk_do_sum);
	else if (is_fixed && k.len <= 8 && __builtin_popcount(k.len) == 1)
		compare_inline(j, &k);
	else
		call(j, &k, true, (uintptr_t)walk_do_cmp);
	x86_mov(&j->x, jit_dest(j, RAX), RAX);
	jit_keep(j, RAX);
}

void jit_atomic(struct jit *j, const struct walk_insn *insn)
{
	struct x86 *x = &j->x;

	x86_rm(x, X86_64, 0x8d, RDX, JIT_NODE, X86_NONE, insn->imm);
	x86_rr(x, X86_BYTE, 0xf6, 0, RDX);
	x86_byte(x, 7);
	jit_to(j, x86_jcc(x, X86_NE), JIT_AT_FAULT);
	x86_mov(x, RAX, jit_source(j, insn->a, RAX));
	/* WALK-1: locked, towards any port that changes the word. */
	if (insn->op == WALK_OP_CASN) {
		const unsigned rb = jit_source(j, insn->b, RCX);

		x86_byte(x, 0xf0);
		x86_rm(x, X86_64, 0x0fb1, rb, RDX, X86_NONE, 0);
	} else {
		x86_byte(x, 0xf0);
		x86_rm(x, X86_64, 0x0fc1, RAX, RDX, X86_NONE, 0);
	}
	x86_mov(x, jit_dest(j, RAX), RAX);
	jit_keep(j, RAX);
}
