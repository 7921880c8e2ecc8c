/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of a get, instruction by instruction. */
#include "kv_program.h"

#include <errno.h>

#include "base/error.h"

enum {
	R_T, /* for a moment */
	R_ROWS,
	R_HASH,
	R_KEY_LEN,
	R_HEAD,	 /* of an entry */
	R_BYTES, /* of the extent */
	R_NEXT,
	R_ONE,
};

enum {
	PAD_ROWS = sizeof(struct kv_pad),
	ENTRY_POINTER = 8,
	ENTRY_HASH = 16,
	POINTER_SHIFT = 16, /* of the 48 bits that are no stamp */
	EXTENT_SHORT = 640, /* 512 bytes, a key and a head */
	EXTENT_LONG = 2048,
};

#define PAD(member) ((int32_t)offsetof(struct kv_pad, member))

struct maker {
	const struct kv_geometry *g;
	struct walk_build *b;
	enum kv_walk walk;
	int found; /* R_HEAD and R_NEXT are those of an entry */
	int end;   /* all that there is of the key is here */
};

static void op(const struct maker *m, uint8_t code, uint8_t d, uint8_t a,
	       uint8_t b, int32_t imm)
{
	walk_build_op(m->b, code, d, a, b, imm);
}

uint32_t kv_walk_extent_max(const struct kv_geometry *g, enum kv_walk walk)
{
	return u32_min(walk == KV_WALK_SHORT ? EXTENT_SHORT : EXTENT_LONG,
		       WALK_PAD_MAX - PAD_ROWS - g->row_bytes);
}

uint32_t kv_pad_bytes(const struct kv_geometry *g, enum kv_walk walk)
{
	return PAD_ROWS + g->row_bytes +
	       u32_max(g->row_bytes, kv_walk_extent_max(g, walk));
}

/* A node is a row, an extent or the state, as the pad says. */
static void take_extent(const struct maker *m)
{
	const struct walk_block block = {
		.len_reg = R_BYTES,
		.node_reg = WALK_REG_NONE,
		.pad_reg = WALK_REG_NONE,
		.len = kv_walk_extent_max(m->g, m->walk),
		.pad_at = PAD_ROWS + m->g->row_bytes};

	op(m, WALK_OP_LDP8, R_BYTES, 0, 0, PAD(extent_bytes));
	op(m, WALK_OP_BND, 0, R_BYTES, 0, (int32_t)block.len);
	walk_build_block(m->b, WALK_OP_CPY, &block);
	op(m, WALK_OP_STP1, 0, R_ONE, 0, PAD(has_extent));
	walk_build_jump_always(m->b, m->end);
}

static void take_state(const struct maker *m)
{
	op(m, WALK_OP_LDN8, R_T, 0, 0, 0);
	op(m, WALK_OP_STP8, 0, R_T, 0, PAD(state));
	op(m, WALK_OP_RET, 0, 0, 0, 0);
}

static void copy_row(const struct maker *m, uint32_t pad_at)
{
	const struct walk_block block = {.len_reg = WALK_REG_NONE,
					 .node_reg = WALK_REG_NONE,
					 .pad_reg = WALK_REG_NONE,
					 .len = m->g->row_bytes,
					 .pad_at = pad_at};

	walk_build_block(m->b, WALK_OP_CPY, &block);
}

/* An entry with the hash and an extent. */
static void find_entry(const struct maker *m)
{
	op(m, WALK_OP_LDP1, R_ROWS, 0, 0, PAD(rows));
	op(m, WALK_OP_ADDI, R_T, R_ROWS, 0, 1);
	op(m, WALK_OP_STP1, 0, R_T, 0, PAD(rows));
	op(m, WALK_OP_LDP8, R_HASH, 0, 0, PAD(hash));
	op(m, WALK_OP_LDP1, R_KEY_LEN, 0, 0, PAD(key_len));
	for (uint32_t i = 0; i < m->g->entries; i++) {
		const int32_t at = (int32_t)(i * m->g->entry_bytes);
		const int next = walk_build_label(m->b);

		op(m, WALK_OP_LDN8, R_HEAD, 0, 0, at);
		op(m, WALK_OP_ANDI, R_T, R_HEAD, 0, KV_E_USED | KV_E_EXTENT);
		walk_build_jump_imm(m->b, WALK_OP_JNEI, R_T,
				    KV_E_USED | KV_E_EXTENT, next);
		op(m, WALK_OP_LDN1, R_T, 0, 0, at + 1);
		walk_build_jump(m->b, WALK_OP_JNE, R_T, R_KEY_LEN, next);
		op(m, WALK_OP_LDN8, R_T, 0, 0, at + ENTRY_HASH);
		walk_build_jump(m->b, WALK_OP_JNE, R_T, R_HASH, next);
		op(m, WALK_OP_LDN8, R_NEXT, 0, 0, at + ENTRY_POINTER);
		walk_build_jump_always(m->b, m->found);
		walk_build_place(m->b, next);
	}
}

/* Not in this row: the other one, unless this is it. */
static void go_to_second(const struct maker *m)
{
	const int first = walk_build_label(m->b);

	walk_build_jump_imm(m->b, WALK_OP_JEQI, R_ROWS, 0, first);
	copy_row(m, PAD_ROWS + m->g->row_bytes);
	walk_build_jump_always(m->b, m->end);
	walk_build_place(m->b, first);
	copy_row(m, PAD_ROWS);
	op(m, WALK_OP_LDP8, R_NEXT, 0, 0, PAD(second));
	walk_build_jump_imm(m->b, WALK_OP_JEQI, R_NEXT, 0, m->end);
	op(m, WALK_OP_NEXT, 0, R_NEXT, 0, 0);
}

/* With the entry's row in the first place; the other one is not needed. */
static void go_to_extent(const struct maker *m)
{
	walk_build_place(m->b, m->found);
	copy_row(m, PAD_ROWS);
	op(m, WALK_OP_SHRI, R_BYTES, R_HEAD, 0, 16);
	op(m, WALK_OP_ANDI, R_BYTES, R_BYTES, 0, 0x7fffff);
	op(m, WALK_OP_MULI, R_BYTES, R_BYTES, 0, KV_EXTENT_UNIT);
	op(m, WALK_OP_STP8, 0, R_BYTES, 0, PAD(extent_bytes));
	walk_build_jump_imm(m->b, WALK_OP_JGTI, R_BYTES,
			    (int16_t)kv_walk_extent_max(m->g, m->walk), m->end);
	op(m, WALK_OP_SHLI, R_NEXT, R_NEXT, 0, POINTER_SHIFT);
	op(m, WALK_OP_SHRI, R_NEXT, R_NEXT, 0, POINTER_SHIFT);
	op(m, WALK_OP_STP8, 0, R_NEXT, 0, PAD(extent));
	op(m, WALK_OP_NEXT, 0, R_NEXT, 0, 0);
}

/* The state is last, because it proves what was read before it. */
static void finish(const struct maker *m)
{
	const int done = walk_build_label(m->b);

	walk_build_place(m->b, m->end);
	op(m, WALK_OP_LDP8, R_NEXT, 0, 0, PAD(state_at));
	walk_build_jump_imm(m->b, WALK_OP_JEQI, R_NEXT, 0, done);
	op(m, WALK_OP_STP1, 0, R_ONE, 0, PAD(has_state));
	op(m, WALK_OP_NEXT, 0, R_NEXT, 0, 0);
	walk_build_place(m->b, done);
	op(m, WALK_OP_RET, 0, 0, 0, 0);
}

int kv_program_make(const struct kv_geometry *g, enum kv_walk walk,
		    struct walk_build **build, struct walk_image *image)
{
	struct maker m = {.g = g, .walk = walk};
	int row, no_state, err;

	if (!kv_has_extents(g))
		return error_set(-EOPNOTSUPP,
				 "entries of %u bytes have no "
				 "extents",
				 g->entry_bytes);
	m.b = walk_build_create(
		walk == KV_WALK_SHORT ? "kv-get" : "kv-get-long", 0,
		(uint16_t)u32_max(g->row_bytes, kv_walk_extent_max(g, walk)),
		(uint16_t)kv_pad_bytes(g, walk), 0);
	m.found = walk_build_label(m.b);
	m.end = walk_build_label(m.b);
	no_state = walk_build_label(m.b);
	row = walk_build_label(m.b);
	op(&m, WALK_OP_LDI, R_ONE, 0, 0, 1);
	op(&m, WALK_OP_LDP1, R_T, 0, 0, PAD(has_state));
	walk_build_jump_imm(m.b, WALK_OP_JEQI, R_T, 0, no_state);
	take_state(&m);
	walk_build_place(m.b, no_state);
	op(&m, WALK_OP_LDP8, R_T, 0, 0, PAD(extent));
	walk_build_jump_imm(m.b, WALK_OP_JEQI, R_T, 0, row);
	take_extent(&m);
	walk_build_place(m.b, row);
	find_entry(&m);
	go_to_second(&m);
	go_to_extent(&m);
	finish(&m);
	err = walk_build_end(m.b, UINT32_MAX, image, NULL);
	if (err)
		walk_build_destroy(m.b);
	else
		*build = m.b;
	return err;
}
