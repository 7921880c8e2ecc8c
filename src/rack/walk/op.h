/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The instructions of a walk: one table with the number, the name, the form and
 * what the instruction touches. Verifier, interpreter, translation, assembler
 * and listing all read it here.
 *
 * An instruction has 8 bytes: op, d, a, b, imm. Registers r0 to r63 have 64
 * bits. NODE and PAD are windows of bytes; [x] is the byte at offset x of one.
 * Fields that a form does not name are 0. Numbers are part of the image format
 * and never change their meaning.
 */
#ifndef AQ_WALK_OP_H
#define AQ_WALK_OP_H

#include "base/base.h"

/* Which fields an instruction has, and what they mean. */
enum walk_form {
	WALK_FORM_NONE,	      /* no such instruction */
	WALK_FORM_LOAD,	      /* d = [imm] */
	WALK_FORM_LOAD_X,     /* d = [r_a + imm] */
	WALK_FORM_CONST,      /* d = imm, sign extended */
	WALK_FORM_CONST_HIGH, /* d = low half of d, imm as its high half */
	WALK_FORM_STORE,      /* [imm] = r_a */
	WALK_FORM_STORE_X,    /* [r_a + imm] = r_b */
	WALK_FORM_CAS,	      /* d = [imm]; if it is r_a, [imm] = r_b */
	WALK_FORM_FAA,	      /* d = [imm]; [imm] += r_a */
	WALK_FORM_BLOCK,      /* two slots, see struct walk_block */
	WALK_FORM_ALU,	      /* d = r_a op r_b */
	WALK_FORM_ALU_IMM,    /* d = r_a op imm, sign extended */
	WALK_FORM_UNARY,      /* d = op r_a */
	WALK_FORM_BOUND,      /* r_a > imm (unsigned) ends with FAULT */
	WALK_FORM_JUMP,	      /* if r_a op r_b, go imm instructions on */
	WALK_FORM_JUMP_IMM,   /* if r_a op low half of imm, go high half on */
	WALK_FORM_JUMP_ALWAYS,
	WALK_FORM_END_REG, /* r_a says where the walk goes */
	WALK_FORM_END,
	WALK_FORM_END_CODE, /* imm, 0 to 255, is the code */
	WALK_FORM_ARG,	    /* the second slot of a block instruction */
};

enum walk_window {
	WALK_NO_WINDOW,
	WALK_NODE,
	WALK_PAD,
	WALK_BOTH,
};

#define WALK_OPS_SIZED(X, NAME, name, num, form, window) \
	X(NAME##1, name "1", (num) + 0, form, window, 1) \
	X(NAME##2, name "2", (num) + 1, form, window, 2) \
	X(NAME##4, name "4", (num) + 2, form, window, 4) \
	X(NAME##8, name "8", (num) + 3, form, window, 8)

/* Unsigned, but SAR; x / 0 is 0, x % 0 is x, shifts count modulo the width. The
 * forms that end in 32 work on the low halves and clear the high half of d. */
#define WALK_OPS_ALU(X, S, s, num, form)                   \
	X(ADD##S, "add" s, (num) + 0, form, NO_WINDOW, 0)  \
	X(SUB##S, "sub" s, (num) + 1, form, NO_WINDOW, 0)  \
	X(MUL##S, "mul" s, (num) + 2, form, NO_WINDOW, 0)  \
	X(DIV##S, "div" s, (num) + 3, form, NO_WINDOW, 0)  \
	X(MOD##S, "mod" s, (num) + 4, form, NO_WINDOW, 0)  \
	X(AND##S, "and" s, (num) + 5, form, NO_WINDOW, 0)  \
	X(OR##S, "or" s, (num) + 6, form, NO_WINDOW, 0)    \
	X(XOR##S, "xor" s, (num) + 7, form, NO_WINDOW, 0)  \
	X(SHL##S, "shl" s, (num) + 8, form, NO_WINDOW, 0)  \
	X(SHR##S, "shr" s, (num) + 9, form, NO_WINDOW, 0)  \
	X(SAR##S, "sar" s, (num) + 10, form, NO_WINDOW, 0) \
	X(MIN##S, "min" s, (num) + 11, form, NO_WINDOW, 0) \
	X(MAX##S, "max" s, (num) + 12, form, NO_WINDOW, 0)

/* LT, LE, GT, GE are unsigned, with S they are signed; SET: r_a & x is not 0.
 */
#define WALK_OPS_JUMP(X, S, num, form)                    \
	X(JEQ##S, "jeq", (num) + 0, form, NO_WINDOW, 0)   \
	X(JNE##S, "jne", (num) + 1, form, NO_WINDOW, 0)   \
	X(JLT##S, "jlt", (num) + 2, form, NO_WINDOW, 0)   \
	X(JLE##S, "jle", (num) + 3, form, NO_WINDOW, 0)   \
	X(JSLT##S, "jslt", (num) + 4, form, NO_WINDOW, 0) \
	X(JSLE##S, "jsle", (num) + 5, form, NO_WINDOW, 0) \
	X(JSET##S, "jset", (num) + 6, form, NO_WINDOW, 0)

/* X(id, name, number, form, window, bytes accessed) */
#define WALK_OPS(X)                                                          \
	WALK_OPS_SIZED(X, LDN, "ldn", 0x10, LOAD, NODE)                      \
	WALK_OPS_SIZED(X, LDP, "ldp", 0x14, LOAD, PAD)                       \
	WALK_OPS_SIZED(X, LDNX, "ldnx", 0x18, LOAD_X, NODE)                  \
	WALK_OPS_SIZED(X, LDPX, "ldpx", 0x1c, LOAD_X, PAD)                   \
	X(LDI, "ldi", 0x20, CONST, NO_WINDOW, 0)                             \
	X(LDIH, "ldih", 0x21, CONST_HIGH, NO_WINDOW, 0)                      \
	WALK_OPS_SIZED(X, STP, "stp", 0x28, STORE, PAD)                      \
	WALK_OPS_SIZED(X, STPX, "stpx", 0x2c, STORE_X, PAD)                  \
	WALK_OPS_SIZED(X, STN, "stn", 0x30, STORE, NODE)                     \
	WALK_OPS_SIZED(X, STNX, "stnx", 0x34, STORE_X, NODE)                 \
	X(CASN, "casn", 0x38, CAS, NODE, 8)                                  \
	X(FAAN, "faan", 0x39, FAA, NODE, 8)                                  \
	/* node bytes to the pad */                                          \
	X(CPY, "cpy", 0x3c, BLOCK, BOTH, 0)                                  \
	/* d = -1, 0, 1: pad bytes less than, equal to, greater than node */ \
	X(CMP, "cmp", 0x3d, BLOCK, BOTH, 0)                                  \
	/* d = CRC-32 (IEEE 802.3, inverted in and out) of node bytes */     \
	X(SUM, "sum", 0x3e, BLOCK, NODE, 0)                                  \
	X(ARG, "arg", 0x3f, ARG, NO_WINDOW, 0)                               \
	WALK_OPS_ALU(X, , "", 0x40, ALU)                                     \
	WALK_OPS_ALU(X, I, "", 0x50, ALU_IMM)                                \
	WALK_OPS_ALU(X, 32, "32", 0x60, ALU)                                 \
	WALK_OPS_ALU(X, I32, "32", 0x70, ALU_IMM)                            \
	X(MOV, "mov", 0x80, UNARY, NO_WINDOW, 0)                             \
	X(MOV32, "mov32", 0x81, UNARY, NO_WINDOW, 0)                         \
	X(NEG, "neg", 0x82, UNARY, NO_WINDOW, 0)                             \
	X(NEG32, "neg32", 0x83, UNARY, NO_WINDOW, 0)                         \
	/* sign extended from 1, 2, 4 bytes */                               \
	X(SX1, "sx1", 0x84, UNARY, NO_WINDOW, 0)                             \
	X(SX2, "sx2", 0x85, UNARY, NO_WINDOW, 0)                             \
	X(SX4, "sx4", 0x86, UNARY, NO_WINDOW, 0)                             \
	/* the low 2, 4, 8 bytes in the opposite order, the rest 0 */        \
	X(BSW2, "bsw2", 0x87, UNARY, NO_WINDOW, 0)                           \
	X(BSW4, "bsw4", 0x88, UNARY, NO_WINDOW, 0)                           \
	X(BSW8, "bsw8", 0x89, UNARY, NO_WINDOW, 0)                           \
	X(BND, "bnd", 0x8f, BOUND, NO_WINDOW, 0)                             \
	WALK_OPS_JUMP(X, , 0x90, JUMP)                                       \
	WALK_OPS_JUMP(X, I, 0xa0, JUMP_IMM)                                  \
	X(JGTI, "jgt", 0xa7, JUMP_IMM, NO_WINDOW, 0)                         \
	X(JGEI, "jge", 0xa8, JUMP_IMM, NO_WINDOW, 0)                         \
	X(JSGTI, "jsgt", 0xa9, JUMP_IMM, NO_WINDOW, 0)                       \
	X(JSGEI, "jsge", 0xaa, JUMP_IMM, NO_WINDOW, 0)                       \
	X(JA, "ja", 0xaf, JUMP_ALWAYS, NO_WINDOW, 0)                         \
	/* go to r_a */                                                      \
	X(NEXT, "next", 0xb0, END_REG, NO_WINDOW, 0)                         \
	/* 0: done; top bit: fail with the low byte; else go to r_a */       \
	X(GO, "go", 0xb1, END_REG, NO_WINDOW, 0)                             \
	X(RET, "ret", 0xb2, END, NO_WINDOW, 0)                               \
	X(FAIL, "fail", 0xb3, END_CODE, NO_WINDOW, 0)

enum walk_op {
#define WALK_OP_ENUM(id, name, num, form, window, bytes) WALK_OP_##id = (num),
	WALK_OPS(WALK_OP_ENUM)
#undef WALK_OP_ENUM
};

struct walk_op_info {
	const char *name;
	uint8_t form;	/* enum walk_form; WALK_FORM_NONE: no such op */
	uint8_t window; /* enum walk_window */
	uint8_t bytes;	/* of an access, 0 where there is none */
};

/* Of any op, also those that do not exist. */
const struct walk_op_info *walk_op_info(uint8_t op);

enum {
	WALK_REGS = 64,
	WALK_REG_NONE = 0xff, /* in a block instruction: no register */
	WALK_BLOCK_MAX = 4096,
};

struct walk_insn;

/*
 * A block instruction, which takes two slots. First: d (CMP and SUM, else 0), a
 * = len_reg, imm = node_at. Second (ARG): a = node_reg, b = pad_reg, imm = the
 * length in the high half, pad_at in the low one. SUM has pad_at 0 and no
 * pad_reg. With a len_reg its value is the length and `len` the limit, which
 * the verifier holds it to.
 */
struct walk_block {
	uint8_t d;
	uint8_t len_reg;  /* WALK_REG_NONE: the length is len */
	uint8_t node_reg; /* WALK_REG_NONE, or added to node_at */
	uint8_t pad_reg;
	uint32_t len; /* 1 to WALK_BLOCK_MAX */
	int32_t node_at;
	uint32_t pad_at;
};

struct walk_block walk_block_get(const struct walk_insn *first);
/* Writes two instructions. */
void walk_block_put(struct walk_insn *first, uint8_t op,
		    const struct walk_block *block);

/* The instructions that a jump goes on (0 where it is none), and the constant
 * that a JUMP_IMM compares with. */
uint32_t walk_jump_distance(const struct walk_insn *insn);
int16_t walk_jump_const(const struct walk_insn *insn);

#endif
