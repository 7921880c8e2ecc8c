/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code of a walk while it is made: instructions by block, with offsets that
 * count from the node's pointer. At the end what nobody uses is left out, the
 * window is chosen, and all goes to the assembler.
 */
#ifndef AQ_WALKC_CODE_H
#define AQ_WALKC_CODE_H

#include "flow.h"
#include "walk/op.h"

enum code_kind {
	CODE_OP,     /* any instruction of one slot but a jump */
	CODE_CONST,  /* d = value */
	CODE_BLOCK,  /* CPY, CMP */
	CODE_BRANCH, /* the last of its block: to its first successor */
	CODE_GONE,
};

struct code_insn {
	enum code_kind kind;
	uint8_t op, d, a, b;
	bool is_imm;   /* a branch that compares with `value` */
	uint32_t insn; /* of bpf, for messages */
	int64_t value; /* constant, immediate, or offset */
	struct walk_block block;
};

/* The part of a window that is used. */
struct code_window {
	struct walkc_span allowed; /* bytes 0: not known */
	bool is_whole;		   /* all of it is needed */
	bool is_used;
	int64_t lo, hi; /* what is used at fixed places, if anything is */
};

struct walkc_code {
	const struct walkc_flow *flow;
	struct code_insn *insns;
	uint32_t count, room;
	bool failed; /* there was no memory */
	/* By block. */
	uint32_t *first, *end;
	bool *is_reached;
	bool *is_decided; /* its branch always goes to decided_to */
	uint32_t *decided_to;
	struct code_window node, pad;
	bool has_stores;
	uint32_t at; /* the instruction that is being translated */
};

int walkc_code_open(struct walkc_code *c,
		    const struct walkc_flow *flow) MUST_CHECK;
void walkc_code_close(struct walkc_code *c);

void code_op(struct walkc_code *c, uint8_t op, unsigned d, unsigned a,
	     unsigned b, int64_t value);
void code_const(struct walkc_code *c, unsigned d, uint64_t value);
void code_block(struct walkc_code *c, uint8_t op,
		const struct walk_block *block);
void code_branch(struct walkc_code *c, uint8_t op, unsigned a, unsigned b,
		 bool is_imm, int64_t value);

/* ---- trim.c ---- */

/* Joins copies of neighbouring bytes, and removes what nobody uses. */
int walkc_code_trim(struct walkc_code *c) MUST_CHECK;

/* ---- emit.c ---- */

/* The file of the walk; the caller frees it. */
int walkc_code_emit(struct walkc_code *c, uint32_t longest_max, void **image,
		    size_t *image_bytes) MUST_CHECK;

#endif
