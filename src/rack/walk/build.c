/* SPDX-License-Identifier: Apache-2.0 */
/* The assembler. */
#include "build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum {
	NOWHERE = UINT32_MAX,
};

struct fixup {
	uint32_t insn;
	int label;
};

struct walk_build {
	struct walk_image image;
	int err; /* the first mistake; its words are in `words` */
	const char *words;
	uint32_t count;
	int labels;
	uint32_t fixups;
	struct walk_insn insns[WALK_INSNS_MAX];
	uint32_t place[WALK_LABELS_MAX]; /* NOWHERE: not yet */
	struct fixup fixup[WALK_INSNS_MAX];
};

static void mistake(struct walk_build *b, const char *words)
{
	if (b->err)
		return;
	b->err = -EINVAL;
	b->words = words;
}

struct walk_build *walk_build_create(const char *name, int16_t load_lo,
				     uint16_t load_bytes, uint16_t pad_bytes,
				     uint16_t flags)
{
	struct walk_build *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	if (strlen(name) >= WALK_NAME_BYTES)
		mistake(b, "its name is longer than 23 letters");
	memcpy(b->image.name, name, strnlen(name, WALK_NAME_BYTES - 1));
	b->image.load_lo = load_lo;
	b->image.load_bytes = load_bytes;
	b->image.pad_bytes = pad_bytes;
	b->image.flags = flags;
	return b;
}

void walk_build_destroy(struct walk_build *build)
{
	free(build);
}

static bool has_room(struct walk_build *b, uint32_t slots)
{
	if (!b)
		return false;
	if (b->count + slots > WALK_INSNS_MAX) {
		mistake(b, "it has more than 4096 instructions; do less per "
			   "node");
		return false;
	}
	return true;
}

void walk_build_op(struct walk_build *build, uint8_t op, uint8_t d, uint8_t a,
		   uint8_t b, int32_t imm)
{
	if (!has_room(build, 1))
		return;
	build->insns[build->count++] = (struct walk_insn){
		.op = op,
		.d = d,
		.a = a,
		.b = b,
		.imm = imm,
	};
}

void walk_build_block(struct walk_build *build, uint8_t op,
		      const struct walk_block *block)
{
	if (!has_room(build, 2))
		return;
	if (block->pad_at > UINT16_MAX || block->len > UINT16_MAX)
		mistake(build, "a block is longer than any window");
	walk_block_put(&build->insns[build->count], op, block);
	build->count += 2;
}

void walk_build_const(struct walk_build *build, uint8_t d, uint64_t value)
{
	walk_build_op(build, WALK_OP_LDI, d, 0, 0, (int32_t)value);
	if ((uint64_t)(int64_t)(int32_t)value != value)
		walk_build_op(build, WALK_OP_LDIH, d, 0, 0,
			      (int32_t)(value >> 32));
}

int walk_build_label(struct walk_build *build)
{
	if (!build)
		return 0;
	if (build->labels == WALK_LABELS_MAX) {
		mistake(build, "it has too many labels");
		return 0;
	}
	build->place[build->labels] = NOWHERE;
	return build->labels++;
}

void walk_build_place(struct walk_build *build, int label)
{
	if (!build)
		return;
	if (label < 0 || label >= build->labels ||
	    build->place[label] != NOWHERE)
		mistake(build, "a label is unknown, or placed twice");
	else
		build->place[label] = build->count;
}

/* The distance is filled in at the end. */
static void jump(struct walk_build *b, struct walk_insn insn, int label)
{
	if (!has_room(b, 1))
		return;
	b->fixup[b->fixups++] = (struct fixup){b->count, label};
	b->insns[b->count++] = insn;
}

void walk_build_jump(struct walk_build *build, uint8_t op, uint8_t a, uint8_t b,
		     int label)
{
	jump(build, (struct walk_insn){.op = op, .a = a, .b = b}, label);
}

void walk_build_jump_imm(struct walk_build *build, uint8_t op, uint8_t a,
			 int16_t value, int label)
{
	jump(build,
	     (struct walk_insn){.op = op, .a = a, .imm = (uint16_t)value},
	     label);
}

void walk_build_jump_always(struct walk_build *build, int label)
{
	jump(build, (struct walk_insn){.op = WALK_OP_JA}, label);
}

uint32_t walk_build_count(const struct walk_build *build)
{
	return build ? build->count : 0;
}

static void fix_jumps(struct walk_build *b)
{
	for (uint32_t i = 0; i < b->fixups; i++) {
		const struct fixup *f = &b->fixup[i];
		struct walk_insn *insn = &b->insns[f->insn];
		uint32_t distance;

		if (f->label < 0 || f->label >= b->labels ||
		    b->place[f->label] == NOWHERE) {
			mistake(b, "a jump leads to a label that was not "
				   "placed");
			return;
		}
		if (b->place[f->label] <= f->insn) {
			mistake(b, "a jump leads back; unroll the loop");
			return;
		}
		distance = b->place[f->label] - f->insn;
		if (walk_op_info(insn->op)->form == WALK_FORM_JUMP_IMM)
			insn->imm =
				(int32_t)(distance << 16 | (uint16_t)insn->imm);
		else
			insn->imm = (int32_t)distance;
	}
}

int walk_build_end(struct walk_build *build, uint32_t longest_max,
		   struct walk_image *image, struct walk_facts *facts)
{
	int err;

	if (!build)
		return error_set(-ENOMEM, "no memory to build a walk");
	fix_jumps(build);
	build->fixups = 0;
	if (build->err)
		return error_set(build->err, "walk '%s': %s", build->image.name,
				 build->words);
	build->image.count = build->count;
	build->image.insns = build->insns;
	err = walk_verify(&build->image, longest_max, facts);
	if (err)
		return error_prefix(err, "walk '%s': ", build->image.name);
	build->image.hash = walk_image_hash(&build->image);
	*image = build->image;
	return 0;
}
