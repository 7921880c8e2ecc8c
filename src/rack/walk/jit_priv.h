/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the translation tell each other. */
#ifndef AQ_WALK_JIT_PRIV_H
#define AQ_WALK_JIT_PRIV_H

#include "op.h"
#include "walk_priv.h"
#include "x86_emit.h"

struct jit_plan {
	uint64_t live[WALK_INSNS_MAX + 1];  /* read at i or later */
	uint64_t busy[WALK_INSNS_MAX + 1];  /* must keep their places at i */
	uint32_t first[WALK_INSNS_MAX + 1]; /* the first jump to i, or none */
};

struct jit_hole {
	uint32_t at; /* in the code */
	uint32_t insn;
};

enum {
	JIT_AT_FAULT = UINT32_MAX, /* as the target of a hole */
	/* The most that one instruction becomes. */
	JIT_INSN_BYTES = 256,
	JIT_ENDS_BYTES = 256,
	JIT_NOWHERE = 0xff, /* a register that has no place */
	JIT_STACK = 0x40,   /* else a place is a register, or this + a slot */
};

/* One translation under way. */
struct jit {
	struct x86 x;
	const struct walk_image *image;
	uint8_t place[WALK_REGS]; /* where each register is now */
	uint8_t dest;		  /* where the result goes, or JIT_NOWHERE */
	uint32_t used;	/* registers of the processor that were in use */
	uint32_t slots; /* of the stack that were */
	bool has_calls; /* some instruction calls a function */
	/* From a first translation, which is thrown away: */
	uint32_t saved;	      /* registers that the prologue keeps */
	uint32_t frame_bytes; /* of the stack, for slots */
	uint32_t at;	      /* the instruction */
	uint32_t holes;
	/* From here on it is written before it is read. Most programs are
	 * short, so to clear it would be most of the work. */
	struct jit_plan plan;
	uint32_t start[WALK_INSNS_MAX];
	struct jit_hole hole[WALK_INSNS_MAX * 2];
};

void jit_find_busy(const struct walk_image *image, struct jit_plan *plan);

/* Where the operands are. A register that is on the stack is loaded into
 * `spare`; a result goes to the register that jit_dest names, and is stored by
 * jit_keep where its place is on the stack. */
unsigned jit_source(struct jit *j, uint8_t reg, unsigned spare);
/* The same for a register that is an index or a length. */
unsigned jit_index(struct jit *j, uint8_t reg, unsigned spare);
unsigned jit_dest(struct jit *j, unsigned spare);
void jit_keep(struct jit *j, unsigned from);

/* jit_place.c: chooses places around an instruction. */
void jit_begin_insn(struct jit *j, const struct walk_insn *insn);
void jit_end_insn(struct jit *j, const struct walk_insn *insn);

/* jit_pages.c: pages that have these bytes and can be executed. */
int jit_pages_make(const uint8_t *bytes, size_t len,
		   struct walk_code *code) MUST_CHECK;

/* jit_alu.c, jit_block.c: the instructions of these forms. */
void jit_alu(struct jit *j, const struct walk_insn *insn);
void jit_unary(struct jit *j, const struct walk_insn *insn);
void jit_block(struct jit *j, const struct walk_insn *insn);
void jit_atomic(struct jit *j, const struct walk_insn *insn);

/* A jump to an instruction, or to JIT_AT_FAULT. */
void jit_to(struct jit *j, uint32_t hole, uint32_t insn);

/* Where translated code has what: the windows are in RSI and RDI, and RAX, RCX
 * and RDX are for a moment. */
enum {
	JIT_NODE = RSI,
	JIT_PAD = RDI,
	JIT_CALLER_REGS = 1u << R8 | 1u << R9 | 1u << R10 | 1u << R11,
	JIT_CALLEE_REGS = 1u << RBX | 1u << RBP | 1u << R12 | 1u << R13 |
			  1u << R14 | 1u << R15,
};

static inline unsigned jit_window(uint8_t window)
{
	return window == WALK_NODE ? JIT_NODE : JIT_PAD;
}

#endif
