/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translation to x86-64: one function per walk, one piece of code per
 * instruction, in order. It trusts the verifier as the interpreter does. An
 * index that a BND has passed is set to 0 without a branch should it be too
 * large: every other bound is a fact of the data, which holds also on a way
 * that the processor only guesses.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "jit_priv.h"

#if defined(__x86_64__)

void jit_to(struct jit *j, uint32_t hole, uint32_t insn)
{
	ASSERT(j->holes < ARRAY_LEN(j->hole));
	j->hole[j->holes++] = (struct jit_hole){hole, insn};
}

/* ---- begin and end
 * ----------------------------------------------------------- */

/* struct walk_end (*)(program in RDI, node in RSI, pad in RDX) */
static void prologue(struct jit *j)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};

	for (size_t i = 0; i < sizeof(endbr64); i++)
		x86_byte(&j->x, endbr64[i]);
	for (unsigned r = 0; r < 16; r++) {
		if (j->saved & 1u << r)
			x86_push(&j->x, r);
	}
	if (j->frame_bytes)
		x86_alu_imm(&j->x, X86_64, X86_SUB, RSP,
			    (int32_t)j->frame_bytes);
	x86_mov(&j->x, JIT_PAD, RDX);
}

/* RAX and RDX are the two halves of struct walk_end. */
static void leave(struct jit *j, enum walk_step step)
{
	x86_mov_const(&j->x, RDX, step);
	if (j->frame_bytes)
		x86_alu_imm(&j->x, X86_64, X86_ADD, RSP,
			    (int32_t)j->frame_bytes);
	for (unsigned r = 16; r-- > 0;) {
		if (j->saved & 1u << r)
			x86_pop(&j->x, r);
	}
	x86_byte(&j->x, 0xc3);
}

static void leave_with(struct jit *j, enum walk_step step, uint64_t next)
{
	x86_mov_const(&j->x, RAX, next);
	leave(j, step);
}

static void go(struct jit *j, uint8_t reg)
{
	uint32_t other, done;

	x86_mov(&j->x, RAX, jit_source(j, reg, RAX));
	x86_rr(&j->x, X86_64, 0x85, RAX, RAX);
	other = x86_jcc(&j->x, X86_LE);
	leave(j, WALK_STEP_NEXT);
	x86_land(&j->x, other, j->x.len);
	done = x86_jcc(&j->x, X86_E);
	x86_rr(&j->x, X86_32, 0x0fb6, RAX, RAX);
	leave(j, WALK_STEP_FAIL);
	x86_land(&j->x, done, j->x.len);
	leave(j, WALK_STEP_DONE);
}

/* ---- instructions
 * ------------------------------------------------------------ */

static void load(struct jit *j, const struct walk_insn *insn, unsigned index)
{
	const struct walk_op_info *info = walk_op_info(insn->op);
	const unsigned op = info->bytes == 1   ? 0x0fb6
			    : info->bytes == 2 ? 0x0fb7
					       : 0x8b;
	const unsigned rd = jit_dest(j, RAX);

	x86_rm(&j->x, info->bytes == 8 ? X86_64 : X86_32, op, rd,
	       jit_window(info->window), index, insn->imm);
	jit_keep(j, rd);
}

static void store(struct jit *j, const struct walk_insn *insn, unsigned index,
		  uint8_t value)
{
	const struct walk_op_info *info = walk_op_info(insn->op);
	static const unsigned sizes[] = {
		[1] = X86_BYTE, [2] = X86_16, [4] = X86_32, [8] = X86_64};

	x86_rm(&j->x, sizes[info->bytes], info->bytes == 1 ? 0x88 : 0x89,
	       jit_source(j, value, RCX), jit_window(info->window), index,
	       insn->imm);
}

static void load_const(struct jit *j, const struct walk_insn *insn)
{
	const unsigned rd = jit_dest(j, RAX);
	unsigned old;

	if (insn->op == WALK_OP_LDI) {
		x86_mov_const(&j->x, rd, (uint64_t)(int64_t)insn->imm);
	} else {
		old = jit_source(j, insn->d, RAX);
		x86_rr(&j->x, X86_32, 0x8b, rd, old);
		x86_mov_const(&j->x, RCX, (uint64_t)(uint32_t)insn->imm << 32);
		x86_alu(&j->x, X86_64, X86_OR, rd, RCX);
	}
	jit_keep(j, rd);
}

static void bound(struct jit *j, const struct walk_insn *insn)
{
	const unsigned ra = jit_source(j, insn->a, RAX);
	const uint8_t place = j->place[insn->a];

	x86_mov_const(&j->x, RDX, 0);
	if (insn->imm >= 0) {
		x86_alu_imm(&j->x, X86_64, X86_CMP, ra, insn->imm);
	} else {
		x86_mov_const(&j->x, RCX, (uint32_t)insn->imm);
		x86_alu(&j->x, X86_64, X86_CMP, ra, RCX);
	}
	jit_to(j, x86_jcc(&j->x, X86_A), JIT_AT_FAULT);
	x86_rr(&j->x, X86_64, 0x0f47, ra, RDX);
	if (place >= JIT_STACK)
		x86_rm(&j->x, X86_64, 0x89, ra, RSP, X86_NONE,
		       (int32_t)(place & (JIT_STACK - 1)) * 8);
}

static void jump(struct jit *j, const struct walk_insn *insn, bool is_imm)
{
	static const uint8_t conds[] = {X86_E,	X86_NE, X86_B,	X86_BE,
					X86_L,	X86_LE, X86_NE, X86_A,
					X86_AE, X86_G,	X86_GE};
	const unsigned kind = insn->op & 0x0f;
	const bool is_set = kind == (WALK_OP_JSET & 0x0f);
	const bool is_equal = kind <= 1;
	const unsigned ra = jit_source(j, insn->a, RAX);
	const int16_t value = walk_jump_const(insn);

	if (is_imm && is_set) {
		x86_rr(&j->x, X86_64, 0xf7, 0, ra);
		x86_imm32(&j->x, value);
	} else if (is_imm && is_equal && value == 0) {
		x86_rr(&j->x, X86_64, 0x85, ra, ra);
	} else if (is_imm) {
		x86_alu_imm(&j->x, X86_64, X86_CMP, ra, value);
	} else if (is_set) {
		x86_rr(&j->x, X86_64, 0x85, jit_source(j, insn->b, RCX), ra);
	} else {
		x86_alu(&j->x, X86_64, X86_CMP, ra,
			jit_source(j, insn->b, RCX));
	}
	jit_to(j, x86_jcc(&j->x, conds[kind]),
	       j->at + walk_jump_distance(insn));
}

static void end(struct jit *j, const struct walk_insn *insn)
{
	switch (insn->op) {
	case WALK_OP_NEXT:
		x86_mov(&j->x, RAX, jit_source(j, insn->a, RAX));
		leave(j, WALK_STEP_NEXT);
		break;
	case WALK_OP_GO:
		go(j, insn->a);
		break;
	case WALK_OP_RET:
		leave_with(j, WALK_STEP_DONE, 0);
		break;
	default:
		leave_with(j, WALK_STEP_FAIL, (uint64_t)insn->imm);
		break;
	}
}

/* A result that nobody reads, of an instruction that does nothing else. */
static bool is_useless(const struct jit *j, const struct walk_insn *insn)
{
	const uint8_t form = walk_op_info(insn->op)->form;

	return walk_insn_writes(insn) && j->dest == JIT_NOWHERE &&
	       form != WALK_FORM_CAS && form != WALK_FORM_FAA;
}

static void translate_one(struct jit *j, const struct walk_insn *insn)
{
	if (is_useless(j, insn))
		return;
	switch (walk_op_info(insn->op)->form) {
	case WALK_FORM_LOAD:
		load(j, insn, X86_NONE);
		break;
	case WALK_FORM_LOAD_X:
		load(j, insn, jit_index(j, insn->a, RAX));
		break;
	case WALK_FORM_STORE:
		store(j, insn, X86_NONE, insn->a);
		break;
	case WALK_FORM_STORE_X:
		store(j, insn, jit_index(j, insn->a, RAX), insn->b);
		break;
	case WALK_FORM_CONST:
	case WALK_FORM_CONST_HIGH:
		load_const(j, insn);
		break;
	case WALK_FORM_CAS:
	case WALK_FORM_FAA:
		jit_atomic(j, insn);
		break;
	case WALK_FORM_BLOCK:
		jit_block(j, insn);
		break;
	case WALK_FORM_ALU:
	case WALK_FORM_ALU_IMM:
		jit_alu(j, insn);
		break;
	case WALK_FORM_UNARY:
		jit_unary(j, insn);
		break;
	case WALK_FORM_BOUND:
		bound(j, insn);
		break;
	case WALK_FORM_JUMP:
		jump(j, insn, false);
		break;
	case WALK_FORM_JUMP_IMM:
		jump(j, insn, true);
		break;
	case WALK_FORM_JUMP_ALWAYS:
		jit_to(j, x86_jmp(&j->x), j->at + walk_jump_distance(insn));
		break;
	case WALK_FORM_ARG: /* its first slot was translated */
		break;
	default:
		end(j, insn);
		break;
	}
}

static void translate(struct jit *j)
{
	uint32_t fault;

	j->x.len = 0;
	j->holes = 0;
	j->used = 0;
	j->slots = 0;
	memset(j->place, JIT_NOWHERE, sizeof(j->place));
	prologue(j);
	for (j->at = 0; j->at < j->image->count; j->at++) {
		const struct walk_insn *insn = &j->image->insns[j->at];

		j->start[j->at] = j->x.len;
		jit_begin_insn(j, insn);
		translate_one(j, insn);
		jit_end_insn(j, insn);
	}
	fault = j->x.len;
	leave_with(j, WALK_STEP_FAULT, 0);
	for (uint32_t i = 0; i < j->holes; i++) {
		const struct jit_hole *h = &j->hole[i];

		x86_land(&j->x, h->at,
			 h->insn == JIT_AT_FAULT ? fault : j->start[h->insn]);
	}
}

/* What the first translation used decides on the prologue of the second. */
static void plan_frame(struct jit *j)
{
	uint32_t words;

	j->saved = j->used & JIT_CALLEE_REGS;
	words = j->slots;
	/* Calls find the stack aligned: after the return address, the pushed
	 * registers and the slots. */
	if (j->has_calls && (1 + __builtin_popcount(j->saved) + words) % 2)
		words++;
	j->frame_bytes = words * 8;
}

int walk_jit_make(const struct walk_image *image, struct walk_code *code)
{
	struct jit *j = malloc(sizeof(*j));
	int err;

	if (!j)
		return error_set(-ENOMEM, "no memory to translate");
	memset(j, 0, offsetof(struct jit, plan));
	j->image = image;
	j->x.room = image->count * JIT_INSN_BYTES + JIT_ENDS_BYTES;
	j->x.bytes = malloc(j->x.room);
	if (!j->x.bytes) {
		free(j);
		return error_set(-ENOMEM, "no memory to translate");
	}
	jit_find_busy(image, &j->plan);
	translate(j);
	plan_frame(j);
	translate(j);
	err = jit_pages_make(j->x.bytes, j->x.len, code);
	free(j->x.bytes);
	free(j);
	return err;
}

#else

int walk_jit_make(const struct walk_image *image, struct walk_code *code)
{
	return error_set(-EOPNOTSUPP,
			 "there is no translation for this processor");
}

#endif
