/* SPDX-License-Identifier: Apache-2.0 */
/* The copy of an image that counts. */
#include "wfig_count.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "walk/build.h"

enum {
	R_COUNT = WALK_REGS - 1, /* ready walks do not use it */
	LONGEST = 4 * WALK_LONGEST_DEFAULT,
};

struct copy {
	const struct walk_image *image;
	struct walk_build *b;
	int *label; /* by instruction; -1: nothing jumps there */
};

static bool ends_piece(const struct walk_insn *insn)
{
	switch (walk_op_info(insn->op)->form) {
	case WALK_FORM_JUMP:
	case WALK_FORM_JUMP_IMM:
	case WALK_FORM_JUMP_ALWAYS:
	case WALK_FORM_END_REG:
	case WALK_FORM_END:
	case WALK_FORM_END_CODE:
		return true;
	default:
		return false;
	}
}

static bool is_block(const struct walk_insn *insn)
{
	return walk_op_info(insn->op)->form == WALK_FORM_BLOCK;
}

static uint32_t cost_of(const struct walk_insn *insn)
{
	return is_block(insn) ? 1 + walk_block_get(insn).len / 32 : 1;
}

/* From instruction i to where control may go elsewhere or come from there. */
static uint32_t piece_cost(const struct copy *c, uint32_t i)
{
	uint32_t cost = 0;

	for (;;) {
		const struct walk_insn *insn = &c->image->insns[i];

		cost += cost_of(insn);
		i += is_block(insn) ? 2 : 1;
		if (ends_piece(insn) || i >= c->image->count ||
		    c->label[i] >= 0)
			return cost;
	}
}

static void begin_piece(struct copy *c, uint32_t i)
{
	const int32_t at = c->image->pad_bytes;

	walk_build_op(c->b, WALK_OP_LDP8, R_COUNT, 0, 0, at);
	walk_build_op(c->b, WALK_OP_ADDI, R_COUNT, R_COUNT, 0,
		      (int32_t)piece_cost(c, i));
	walk_build_op(c->b, WALK_OP_STP8, 0, R_COUNT, 0, at);
}

static void copy_insn(struct copy *c, uint32_t i)
{
	const struct walk_insn *insn = &c->image->insns[i];
	const uint32_t to = i + walk_jump_distance(insn);
	struct walk_block block;

	switch (walk_op_info(insn->op)->form) {
	case WALK_FORM_JUMP:
		walk_build_jump(c->b, insn->op, insn->a, insn->b, c->label[to]);
		return;
	case WALK_FORM_JUMP_IMM:
		walk_build_jump_imm(c->b, insn->op, insn->a,
				    walk_jump_const(insn), c->label[to]);
		return;
	case WALK_FORM_JUMP_ALWAYS:
		walk_build_jump_always(c->b, c->label[to]);
		return;
	case WALK_FORM_BLOCK:
		block = walk_block_get(insn);
		walk_build_block(c->b, insn->op, &block);
		return;
	default:
		walk_build_op(c->b, insn->op, insn->d, insn->a, insn->b,
			      insn->imm);
	}
}

static void copy_all(struct copy *c)
{
	bool begins = true;

	for (uint32_t i = 0; i < c->image->count; i++) {
		const uint32_t distance =
			walk_jump_distance(&c->image->insns[i]);

		if (distance && c->label[i + distance] < 0)
			c->label[i + distance] = walk_build_label(c->b);
	}
	for (uint32_t i = 0; i < c->image->count;) {
		const struct walk_insn *insn = &c->image->insns[i];

		if (c->label[i] >= 0)
			walk_build_place(c->b, c->label[i]);
		if (begins || c->label[i] >= 0)
			begin_piece(c, i);
		copy_insn(c, i);
		begins = ends_piece(insn);
		i += is_block(insn) ? 2 : 1;
	}
}

int wfig_count_open(const struct walk_image *image, struct walk_program **out)
{
	const struct walk_options options = {.longest_max = LONGEST};
	struct copy c = {.image = image};
	struct walk_image counted;
	int err;

	c.label = malloc(image->count * sizeof(*c.label));
	if (!c.label)
		return -ENOMEM;
	for (uint32_t i = 0; i < image->count; i++)
		c.label[i] = -1;
	c.b = walk_build_create(image->name, image->load_lo, image->load_bytes,
				(uint16_t)(image->pad_bytes + WFIG_COUNT_BYTES),
				image->flags);
	copy_all(&c);
	err = walk_build_end(c.b, LONGEST, &counted, NULL);
	if (!err)
		err = walk_program_open(&counted, &options, out);
	walk_build_destroy(c.b);
	free(c.label);
	return err;
}

enum walk_step wfig_count_step(const struct walk_program *counted,
			       uint8_t *node, uint8_t *pad, uint64_t *next,
			       uint64_t *cost)
{
	uint8_t *slot = pad + counted->image.pad_bytes - WFIG_COUNT_BYTES;
	enum walk_step step;
	uint64_t units;

	memset(slot, 0, WFIG_COUNT_BYTES);
	step = walk_program_step(counted, node, pad, next);
	memcpy(&units, slot, sizeof(units));
	*cost += units;
	return step;
}
