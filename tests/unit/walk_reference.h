/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a walk's instructions mean, written a second time, slowly and without
 * trust: every access is checked when it is made, and so is that registers were
 * written. Tests and the fuzzer compare the shipped machines with it.
 */
#ifndef WALK_REFERENCE_H
#define WALK_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "walk/op.h"
#include "walk/program.h"

/* A program that the verifier should have refused did something forbidden. */
enum {
	REFERENCE_BROKEN = 99,
};

struct reference {
	const struct walk_image *image;
	uint8_t *node, *pad;
	uint64_t reg[WALK_REGS];
	bool is_set[WALK_REGS];
	bool broken;
	uint32_t cost;
};

static inline uint64_t ref_get(struct reference *m, uint8_t reg)
{
	if (reg >= WALK_REGS || !m->is_set[reg]) {
		m->broken = true;
		return 0;
	}
	return m->reg[reg];
}

static inline void ref_set(struct reference *m, uint8_t reg, uint64_t v)
{
	if (reg >= WALK_REGS) {
		m->broken = true;
		return;
	}
	m->reg[reg] = v;
	m->is_set[reg] = true;
}

/* NULL: outside, or beyond what 64 bits can say. */
static inline uint8_t *ref_at(struct reference *m, bool is_node, uint64_t index,
			      int64_t imm, uint64_t bytes)
{
	const uint64_t room =
		is_node ? m->image->load_bytes : m->image->pad_bytes;

	if (imm < 0 || index > room || (uint64_t)imm > room || bytes > room ||
	    index + (uint64_t)imm + bytes > room) {
		m->broken = true;
		return NULL;
	}
	return (is_node ? m->node : m->pad) + index + imm;
}

static inline uint64_t ref_load(const uint8_t *at, unsigned bytes)
{
	uint64_t v = 0;

	for (unsigned i = bytes; at && i-- > 0;)
		v = v << 8 | at[i];
	return v;
}

static inline void ref_store(uint8_t *at, unsigned bytes, uint64_t v)
{
	for (unsigned i = 0; at && i < bytes; i++)
		at[i] = (uint8_t)(v >> (8 * i));
}

static inline uint64_t ref_crc32(const uint8_t *at, uint64_t len)
{
	uint32_t crc = UINT32_MAX;

	for (uint64_t i = 0; i < len; i++) {
		crc ^= at[i];
		for (int k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

static inline void ref_block(struct reference *m, const struct walk_insn *insn)
{
	const struct walk_insn *arg = insn + 1;
	const uint64_t limit = (uint32_t)arg->imm >> 16;
	const uint64_t pad_imm = (uint32_t)arg->imm & 0xffff;
	uint64_t len = insn->a == 0xff ? limit : ref_get(m, insn->a);
	uint64_t ni = arg->a == 0xff ? 0 : ref_get(m, arg->a);
	uint64_t pi = arg->b == 0xff ? 0 : ref_get(m, arg->b);
	uint8_t *node = ref_at(m, true, ni, insn->imm, len), *pad = NULL;
	int64_t order = 0;

	m->cost += (uint32_t)(limit / 32);
	if (len > limit)
		m->broken = true;
	if (insn->op != WALK_OP_SUM)
		pad = ref_at(m, false, pi, (int64_t)pad_imm, len);
	if (m->broken)
		return;
	if (insn->op == WALK_OP_SUM) {
		ref_set(m, insn->d, ref_crc32(node, len));
		return;
	}
	for (uint64_t i = 0; i < len; i++) {
		if (insn->op == WALK_OP_CPY)
			pad[i] = node[i];
		else if (order == 0)
			order = (pad[i] > node[i]) - (pad[i] < node[i]);
	}
	if (insn->op == WALK_OP_CMP)
		ref_set(m, insn->d, (uint64_t)order);
}

static inline uint64_t ref_alu(uint8_t kind, bool is_32, uint64_t a, uint64_t b)
{
	const unsigned width = is_32 ? 32 : 64;
	const unsigned by = (unsigned)b & (width - 1);
	uint64_t v = 0;

	if (is_32) {
		a = a & 0xffffffff;
		b = b & 0xffffffff;
	}
	switch (kind) {
	case 0:
		v = a + b;
		break;
	case 1:
		v = a - b;
		break;
	case 2:
		v = a * b;
		break;
	case 3:
		v = b == 0 ? 0 : a / b;
		break;
	case 4:
		v = b == 0 ? a : a % b;
		break;
	case 5:
		v = a & b;
		break;
	case 6:
		v = a | b;
		break;
	case 7:
		v = a ^ b;
		break;
	case 8:
		v = a << by;
		break;
	case 9:
		v = a >> by;
		break;
	case 10:
		v = a >> by;
		/* The sign comes in from the left. */
		if (a >> (width - 1))
			v |= ~(uint64_t)0 << (width - 1 - by);
		break;
	case 11:
		v = a < b ? a : b;
		break;
	case 12:
		v = a < b ? b : a;
		break;
	default:
		break;
	}
	return is_32 ? v & 0xffffffff : v;
}

static inline uint64_t ref_reverse(uint64_t a, unsigned bytes)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < bytes; i++)
		v |= (a >> (8 * i) & 0xff) << (8 * (bytes - 1 - i));
	return v;
}

static inline uint64_t ref_extend(uint64_t a, unsigned bits)
{
	const uint64_t low = a & (((uint64_t)1 << bits) - 1);

	return low >> (bits - 1) ? low | ~(uint64_t)0 << bits : low;
}

static inline uint64_t ref_unary(uint8_t op, uint64_t a)
{
	switch (op) {
	case WALK_OP_MOV32:
		return a & 0xffffffff;
	case WALK_OP_NEG:
		return ~a + 1;
	case WALK_OP_NEG32:
		return (~a + 1) & 0xffffffff;
	case WALK_OP_SX1:
		return ref_extend(a, 8);
	case WALK_OP_SX2:
		return ref_extend(a, 16);
	case WALK_OP_SX4:
		return ref_extend(a, 32);
	case WALK_OP_BSW2:
		return ref_reverse(a, 2);
	case WALK_OP_BSW4:
		return ref_reverse(a, 4);
	case WALK_OP_BSW8:
		return ref_reverse(a, 8);
	default:
		return a;
	}
}

static inline bool ref_jumps(uint8_t kind, uint64_t a, uint64_t b)
{
	/* Signed order is unsigned order with the top bit turned over. */
	const uint64_t top = (uint64_t)1 << 63, sa = a ^ top, sb = b ^ top;

	switch (kind) {
	case 0:
		return a == b;
	case 1:
		return a != b;
	case 2:
		return a < b;
	case 3:
		return a <= b;
	case 4:
		return sa < sb;
	case 5:
		return sa <= sb;
	case 6:
		return (a & b) != 0;
	case 7:
		return a > b;
	case 8:
		return a >= b;
	case 9:
		return sa > sb;
	default:
		return sa >= sb;
	}
}

/* Atomics: false where the word is not aligned. */
static inline bool ref_atomic(struct reference *m, const struct walk_insn *n)
{
	uint8_t *at = ref_at(m, true, 0, n->imm, 8);
	uint64_t old, a = ref_get(m, n->a);

	if (!at || (uintptr_t)at % 8)
		return false;
	old = ref_load(at, 8);
	if (n->op == WALK_OP_FAAN)
		ref_store(at, 8, old + a);
	else if (old == a)
		ref_store(at, 8, ref_get(m, n->b));
	ref_set(m, n->d, old);
	return true;
}

/* One instruction that does not end the iteration; how far it goes on. 0: it
 * ends with FAULT. */
static inline uint32_t ref_insn(struct reference *m, const struct walk_insn *n)
{
	const struct walk_op_info *info = walk_op_info(n->op);
	const bool is_node = info->window == WALK_NODE;
	const uint64_t imm = (uint64_t)(int64_t)n->imm;

	switch (info->form) {
	case WALK_FORM_LOAD:
		ref_set(m, n->d,
			ref_load(ref_at(m, is_node, 0, n->imm, info->bytes),
				 info->bytes));
		return 1;
	case WALK_FORM_LOAD_X:
		ref_set(m, n->d,
			ref_load(ref_at(m, is_node, ref_get(m, n->a), n->imm,
					info->bytes),
				 info->bytes));
		return 1;
	case WALK_FORM_STORE:
		ref_store(ref_at(m, is_node, 0, n->imm, info->bytes),
			  info->bytes, ref_get(m, n->a));
		return 1;
	case WALK_FORM_STORE_X:
		ref_store(ref_at(m, is_node, ref_get(m, n->a), n->imm,
				 info->bytes),
			  info->bytes, ref_get(m, n->b));
		return 1;
	case WALK_FORM_CONST:
		ref_set(m, n->d, imm);
		return 1;
	case WALK_FORM_CONST_HIGH:
		ref_set(m, n->d, (ref_get(m, n->d) & 0xffffffff) | imm << 32);
		return 1;
	case WALK_FORM_CAS:
	case WALK_FORM_FAA:
		return ref_atomic(m, n) ? 1 : 0;
	case WALK_FORM_BLOCK:
		ref_block(m, n);
		return 2;
	case WALK_FORM_ALU:
		ref_set(m, n->d,
			ref_alu(n->op & 15, n->op >> 4 == 6, ref_get(m, n->a),
				ref_get(m, n->b)));
		return 1;
	case WALK_FORM_ALU_IMM:
		ref_set(m, n->d,
			ref_alu(n->op & 15, n->op >> 4 == 7, ref_get(m, n->a),
				imm));
		return 1;
	case WALK_FORM_UNARY:
		ref_set(m, n->d, ref_unary(n->op, ref_get(m, n->a)));
		return 1;
	case WALK_FORM_BOUND:
		return ref_get(m, n->a) <= (uint32_t)n->imm;
	case WALK_FORM_JUMP:
		return ref_jumps(n->op & 15, ref_get(m, n->a), ref_get(m, n->b))
			       ? (uint32_t)n->imm
			       : 1;
	case WALK_FORM_JUMP_IMM:
		return ref_jumps(n->op & 15, ref_get(m, n->a),
				 (uint64_t)(int64_t)(int16_t)n->imm)
			       ? (uint32_t)n->imm >> 16
			       : 1;
	case WALK_FORM_JUMP_ALWAYS:
		return (uint32_t)n->imm;
	default:
		m->broken = true;
		return 0;
	}
}

static inline struct walk_end ref_go(uint64_t to)
{
	if (to == 0)
		return (struct walk_end){0, WALK_STEP_DONE};
	if (to & (uint64_t)1 << 63)
		return (struct walk_end){to & 0xff, WALK_STEP_FAIL};
	return (struct walk_end){to, WALK_STEP_NEXT};
}

/* One iteration; *cost, which may be NULL, is what it cost. */
static inline struct walk_end reference_run(const struct walk_image *image,
					    uint8_t *node, uint8_t *pad,
					    uint32_t *cost)
{
	struct reference m = {.image = image, .node = node, .pad = pad};
	struct walk_end end = {0, WALK_STEP_FAULT};

	for (uint32_t at = 0; !m.broken;) {
		const struct walk_insn *n = &image->insns[at];
		uint32_t on = 0;

		m.cost++;
		if (n->op == WALK_OP_NEXT)
			end = (struct walk_end){ref_get(&m, n->a),
						WALK_STEP_NEXT};
		else if (n->op == WALK_OP_GO)
			end = ref_go(ref_get(&m, n->a));
		else if (n->op == WALK_OP_RET)
			end.step = WALK_STEP_DONE;
		else if (n->op == WALK_OP_FAIL)
			end = (struct walk_end){(uint8_t)n->imm,
						WALK_STEP_FAIL};
		else
			on = ref_insn(&m, n);
		if (on == 0)
			break;
		at += on;
		if (at >= image->count)
			m.broken = true;
	}
	if (m.broken)
		end = (struct walk_end){0, REFERENCE_BROKEN};
	if (cost)
		*cost = m.cost;
	return end;
}

#endif
