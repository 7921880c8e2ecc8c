/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An assembler in C: instructions one after the other, with labels. A mistake
 * (an unknown label, too many instructions) is kept, and told by
 * walk_build_end; so callers need not look at each call.
 *
 *	struct walk_build *b = walk_build_create("find", 0, 24, 24, 0);
 *	int other = walk_build_label(b);
 *
 *	walk_build_op(b, WALK_OP_LDN8, 1, 0, 0, 0);
 *	walk_build_op(b, WALK_OP_LDP8, 2, 0, 0, 0);
 *	walk_build_jump(b, WALK_OP_JNE, 1, 2, other);
 *	...
 *	walk_build_place(b, other);
 *	walk_build_op(b, WALK_OP_LDN8, 1, 0, 0, 16);
 *	walk_build_op(b, WALK_OP_GO, 0, 1, 0, 0);
 *	err = walk_build_end(b, 0, &image, &facts);
 */
#ifndef AQ_WALK_BUILD_H
#define AQ_WALK_BUILD_H

#include "image.h"
#include "op.h"
#include "verify.h"

struct walk_build;

enum {
	WALK_LABELS_MAX = 8192,
};

/* NULL: no memory; the other calls accept that, and the end says so. */
struct walk_build *walk_build_create(const char *name, int16_t load_lo,
				     uint16_t load_bytes, uint16_t pad_bytes,
				     uint16_t flags);
void walk_build_destroy(struct walk_build *build); /* NULL: nothing */

/* Any instruction of one slot; jumps with a distance, too. */
void walk_build_op(struct walk_build *build, uint8_t op, uint8_t d, uint8_t a,
		   uint8_t b, int32_t imm);
/* CPY, CMP, SUM. */
void walk_build_block(struct walk_build *build, uint8_t op,
		      const struct walk_block *block);
/* d = any 64 bits, in one or two instructions. */
void walk_build_const(struct walk_build *build, uint8_t d, uint64_t value);

/* A label is a number from walk_build_label; it is placed once, behind every
 * jump to it, and stands for the instruction that follows. */
int walk_build_label(struct walk_build *build);
void walk_build_place(struct walk_build *build, int label);
void walk_build_jump(struct walk_build *build, uint8_t op, uint8_t a, uint8_t b,
		     int label);
void walk_build_jump_imm(struct walk_build *build, uint8_t op, uint8_t a,
			 int16_t value, int label);
void walk_build_jump_always(struct walk_build *build, int label);

/* How many there are so far. */
uint32_t walk_build_count(const struct walk_build *build);

/*
 * The image, verified; its instructions belong to the builder. -EINVAL with
 * error_last(), -ENOMEM. `facts` may be NULL; longest_max as for walk_verify.
 */
int walk_build_end(struct walk_build *build, uint32_t longest_max,
		   struct walk_image *image,
		   struct walk_facts *facts) MUST_CHECK;

#endif
