/* SPDX-License-Identifier: Apache-2.0 */
/* Walks through an ordered index, instruction by instruction: all slots of a
 * node are looked at, because they are in no order. */
#include "tree_program.h"

#include <errno.h>

#include "base/error.h"

enum {
	R_AT,	 /* the pointer to this node */
	R_NEXT,	 /* and to the next */
	R_T,	 /* for a moment */
	R_ORDER, /* of two keys: less than 0, 0, greater */
	R_KEY_LEN,
	R_HIGH_LEN,
	R_SLOT_LEN,
	R_BEST_LEN,
	R_BEST, /* child */
	R_TO_LEN,
	R_HAS_TO,
	R_LOW_ORDER, /* of the key and the low fence */
	R_IS_LAST,   /* leaf of the range */
	R_VERSION,
	R_COUNT,
	R_SUM,
	R_SUM_HIGH,
	R_MIN,
	R_MAX,
	R_SIGN,
	R_VALUE,
};

enum {
	PACKET_BYTES = 256, /* of the smallest packets */
	PAD_MORE = sizeof(struct tree_pad),
};

#define AT(member)  ((int32_t)offsetof(struct tree_node, member))
#define PAD(member) ((int32_t)offsetof(struct tree_pad, member))
#define SLOT(slot, member) \
	((int32_t)((slot) + offsetof(struct tree_entry, member)))

struct maker {
	const struct tree_geometry *g;
	struct walk_build *b;
	enum tree_walk walk;
	int go;	   /* to R_NEXT, a pointer */
	int lost;  /* gives up */
	int mixed; /* the same */
	int no_number;
};

static void op(const struct maker *m, uint8_t code, uint8_t d, uint8_t a,
	       uint8_t b, int32_t imm)
{
	walk_build_op(m->b, code, d, a, b, imm);
}

static void jump(const struct maker *m, uint8_t code, uint8_t a, int16_t value,
		 int label)
{
	walk_build_jump_imm(m->b, code, a, value, label);
}

/* ---- keys ---------------------------------------------------------------- */

static void load_len(const struct maker *m, uint8_t code, uint8_t d, int32_t at)
{
	op(m, code, d, 0, 0, at);
	op(m, WALK_OP_BND, 0, d, 0, (int32_t)m->g->key_max);
}

/* d = the order of a key in the pad and one in the node, as by
 * tree_key_compare; both lengths are in registers. */
static void compare(const struct maker *m, uint8_t d, int32_t pad_at,
		    uint8_t pad_len, uint32_t node_at, uint8_t node_len)
{
	const int differ = walk_build_label(m->b);
	const struct walk_block block = {.d = d,
					 .len_reg = R_T,
					 .node_reg = WALK_REG_NONE,
					 .pad_reg = WALK_REG_NONE,
					 .len = m->g->key_max,
					 .node_at = (int32_t)node_at,
					 .pad_at = (uint32_t)pad_at};

	op(m, WALK_OP_MIN, R_T, pad_len, node_len, 0);
	walk_build_block(m->b, WALK_OP_CMP, &block);
	jump(m, WALK_OP_JNEI, d, 0, differ);
	op(m, WALK_OP_SUB, d, pad_len, node_len, 0);
	walk_build_place(m->b, differ);
}

static void copy(const struct maker *m, int32_t pad_at, uint32_t node_at,
		 uint32_t len)
{
	const struct walk_block block = {.len_reg = WALK_REG_NONE,
					 .node_reg = WALK_REG_NONE,
					 .pad_reg = WALK_REG_NONE,
					 .len = len,
					 .node_at = (int32_t)node_at,
					 .pad_at = (uint32_t)pad_at};

	walk_build_block(m->b, WALK_OP_CPY, &block);
}

static uint32_t low_at(void)
{
	return TREE_NODE_HEAD;
}

static uint32_t high_at(const struct maker *m)
{
	return TREE_NODE_HEAD + m->g->key_room;
}

/* ---- down to the leaf ---------------------------------------------------- */

/* The word of the root; then a node, which must be the one it was to be. */
static void begin(const struct maker *m)
{
	const int node = walk_build_label(m->b);

	op(m, WALK_OP_LDP8, R_AT, 0, 0, PAD(at));
	jump(m, WALK_OP_JNEI, R_AT, 0, node);
	op(m, WALK_OP_LDN8, R_NEXT, 0, 0, 0);
	walk_build_jump_always(m->b, m->go);
	walk_build_place(m->b, node);
	op(m, WALK_OP_LDN8, R_T, 0, 0, AT(self));
	walk_build_jump(m->b, WALK_OP_JNE, R_T, R_AT, m->lost);
	op(m, WALK_OP_LDN1, R_T, 0, 0, AT(state));
	jump(m, WALK_OP_JNEI, R_T, TREE_NODE_LIVE, m->lost);
	load_len(m, WALK_OP_LDP1, R_KEY_LEN, PAD(key_len));
}

/* A key that is not below the high fence is in the next node. */
static void pass_right(const struct maker *m)
{
	const int inside = walk_build_label(m->b);

	op(m, WALK_OP_LDN1, R_HIGH_LEN, 0, 0, AT(high_len));
	jump(m, WALK_OP_JEQI, R_HIGH_LEN, TREE_NO_END, inside);
	op(m, WALK_OP_BND, 0, R_HIGH_LEN, 0, (int32_t)m->g->key_max);
	compare(m, R_ORDER, PAD(key), R_KEY_LEN, high_at(m), R_HIGH_LEN);
	jump(m, WALK_OP_JSLTI, R_ORDER, 0, inside);
	op(m, WALK_OP_LDN8, R_NEXT, 0, 0, AT(sibling));
	walk_build_jump_always(m->b, m->go);
	walk_build_place(m->b, inside);
}

/* The entry with the largest key that is not above ours leads down. */
static void descend(const struct maker *m)
{
	op(m, WALK_OP_LDI, R_BEST, 0, 0, 0);
	op(m, WALK_OP_LDI, R_BEST_LEN, 0, 0, 0);
	for (uint32_t i = 0; i < m->g->inner_slots; i++) {
		const uint32_t slot = m->g->slots_at + i * m->g->inner_stride;
		const uint32_t key = slot + TREE_ENTRY_HEAD;
		const int next = walk_build_label(m->b);
		const int take = walk_build_label(m->b);

		op(m, WALK_OP_LDN1, R_T, 0, 0, SLOT(slot, is_used));
		jump(m, WALK_OP_JNEI, R_T, 1, next);
		load_len(m, WALK_OP_LDN1, R_SLOT_LEN, SLOT(slot, key_len));
		compare(m, R_ORDER, PAD(key), R_KEY_LEN, key, R_SLOT_LEN);
		jump(m, WALK_OP_JSLTI, R_ORDER, 0, next);
		jump(m, WALK_OP_JEQI, R_BEST, 0, take);
		compare(m, R_ORDER, PAD(best), R_BEST_LEN, key, R_SLOT_LEN);
		jump(m, WALK_OP_JSGEI, R_ORDER, 0, next);
		walk_build_place(m->b, take);
		copy(m, PAD(best), key, m->g->key_max);
		op(m, WALK_OP_MOV, R_BEST_LEN, R_SLOT_LEN, 0, 0);
		op(m, WALK_OP_LDN8, R_BEST, 0, 0,
		   (int32_t)(key + m->g->key_room));
		walk_build_place(m->b, next);
	}
	op(m, WALK_OP_MOV, R_NEXT, R_BEST, 0, 0);
	walk_build_jump_always(m->b, m->go);
}

/* The ends that others jump to. */
static void finish(const struct maker *m)
{
	walk_build_place(m->b, m->go);
	jump(m, WALK_OP_JEQI, R_NEXT, 0, m->lost);
	op(m, WALK_OP_STP8, 0, R_NEXT, 0, PAD(at));
	op(m, WALK_OP_MOV32, R_NEXT, R_NEXT, 0, 0);
	op(m, WALK_OP_MULI, R_NEXT, R_NEXT, 0, (int32_t)m->g->node_bytes);
	walk_build_const(m->b, R_T, m->g->node_offset);
	op(m, WALK_OP_ADD, R_NEXT, R_NEXT, R_T, 0);
	op(m, WALK_OP_NEXT, 0, R_NEXT, 0, 0);
	walk_build_place(m->b, m->lost);
	op(m, WALK_OP_FAIL, 0, 0, 0, TREE_FAIL_LOST);
	if (m->walk == TREE_WALK_FIND)
		return;
	walk_build_place(m->b, m->mixed);
	op(m, WALK_OP_FAIL, 0, 0, 0, TREE_FAIL_MIXED);
	if (m->walk == TREE_WALK_COUNT)
		return;
	walk_build_place(m->b, m->no_number);
	op(m, WALK_OP_FAIL, 0, 0, 0, TREE_FAIL_VALUE);
}

/* ---- leaves that are added up -------------------------------------------- */

/* What there is so far, from the pad or into it. */
static void move_state(const struct maker *m, bool is_load)
{
	static const struct {
		uint8_t reg;
		int32_t at;
	} state[] = {{R_COUNT, PAD(count)},
		     {R_SUM, PAD(sum)},
		     {R_SUM_HIGH, PAD(sum_high)},
		     {R_MIN, PAD(min)},
		     {R_MAX, PAD(max)}};
	const unsigned n =
		m->walk == TREE_WALK_SUM ? (unsigned)ARRAY_LEN(state) : 1;

	for (unsigned i = 0; i < n; i++)
		if (is_load)
			op(m, WALK_OP_LDP8, state[i].reg, 0, 0, state[i].at);
		else
			op(m, WALK_OP_STP8, 0, state[i].reg, 0, state[i].at);
}

static void add_number(const struct maker *m, uint32_t slot)
{
	const int no_carry = walk_build_label(m->b);

	op(m, WALK_OP_LDN2, R_T, 0, 0, SLOT(slot, value_len));
	jump(m, WALK_OP_JNEI, R_T, TREE_NUMBER_BYTES, m->no_number);
	op(m, WALK_OP_LDN8, R_VALUE, 0, 0,
	   (int32_t)(slot + TREE_ENTRY_HEAD + m->g->key_room));
	op(m, WALK_OP_SARI, R_T, R_VALUE, 0, 63);
	op(m, WALK_OP_ADD, R_SUM_HIGH, R_SUM_HIGH, R_T, 0);
	op(m, WALK_OP_ADD, R_SUM, R_SUM, R_VALUE, 0);
	walk_build_jump(m->b, WALK_OP_JLE, R_VALUE, R_SUM, no_carry);
	op(m, WALK_OP_ADDI, R_SUM_HIGH, R_SUM_HIGH, 0, 1);
	walk_build_place(m->b, no_carry);
	op(m, WALK_OP_XOR, R_VALUE, R_VALUE, R_SIGN, 0);
	op(m, WALK_OP_MIN, R_MIN, R_MIN, R_VALUE, 0);
	op(m, WALK_OP_MAX, R_MAX, R_MAX, R_VALUE, 0);
}

/* A slot's key is below ours, or not below the end: it does not count. */
static void skip_outside(const struct maker *m, uint32_t slot, int next)
{
	const uint32_t key = slot + TREE_ENTRY_HEAD;
	const int no_end = walk_build_label(m->b);

	load_len(m, WALK_OP_LDN1, R_SLOT_LEN, SLOT(slot, key_len));
	compare(m, R_ORDER, PAD(key), R_KEY_LEN, key, R_SLOT_LEN);
	jump(m, WALK_OP_JSGTI, R_ORDER, 0, next);
	jump(m, WALK_OP_JEQI, R_HAS_TO, 0, no_end);
	compare(m, R_ORDER, PAD_MORE, R_TO_LEN, key, R_SLOT_LEN);
	jump(m, WALK_OP_JSLEI, R_ORDER, 0, next);
	walk_build_place(m->b, no_end);
}

static void add_slots(const struct maker *m, bool is_part)
{
	for (uint32_t i = 0; i < m->g->leaf_slots; i++) {
		const uint32_t slot = m->g->slots_at + i * m->g->leaf_stride;
		const int next = walk_build_label(m->b);

		op(m, WALK_OP_LDN4, R_T, 0, 0, SLOT(slot, node_version));
		walk_build_jump(m->b, WALK_OP_JNE, R_T, R_VERSION, m->mixed);
		op(m, WALK_OP_LDN1, R_T, 0, 0, SLOT(slot, is_used));
		op(m, WALK_OP_BND, 0, R_T, 0, 1);
		jump(m, WALK_OP_JEQI, R_T, 0, next);
		if (is_part)
			skip_outside(m, slot, next);
		op(m, WALK_OP_ADDI, R_COUNT, R_COUNT, 0, 1);
		if (m->walk == TREE_WALK_SUM)
			add_number(m, slot);
		walk_build_place(m->b, next);
	}
}

/* Sets R_IS_LAST; jumps to `part` if only some of the leaf's keys count. */
static void find_extent(const struct maker *m, int part)
{
	const int all = walk_build_label(m->b);
	const int no_high = walk_build_label(m->b);

	op(m, WALK_OP_LDP1, R_HAS_TO, 0, 0, PAD(has_to));
	load_len(m, WALK_OP_LDP1, R_TO_LEN, PAD(to_len));
	op(m, WALK_OP_LDI, R_IS_LAST, 0, 0, 1);
	jump(m, WALK_OP_JEQI, R_HIGH_LEN, TREE_NO_END, no_high);
	op(m, WALK_OP_BND, 0, R_HIGH_LEN, 0, (int32_t)m->g->key_max);
	op(m, WALK_OP_LDI, R_IS_LAST, 0, 0, 0);
	jump(m, WALK_OP_JEQI, R_HAS_TO, 0, all);
	compare(m, R_ORDER, PAD_MORE, R_TO_LEN, high_at(m), R_HIGH_LEN);
	jump(m, WALK_OP_JSGTI, R_ORDER, 0, all);
	op(m, WALK_OP_LDI, R_IS_LAST, 0, 0, 1);
	jump(m, WALK_OP_JEQI, R_ORDER, 0, all);
	walk_build_jump_always(m->b, part);
	walk_build_place(m->b, no_high);
	jump(m, WALK_OP_JNEI, R_HAS_TO, 0, part);
	walk_build_place(m->b, all);
	jump(m, WALK_OP_JNEI, R_LOW_ORDER, 0, part);
}

static void add_leaf(const struct maker *m)
{
	const int part = walk_build_label(m->b);
	const int added = walk_build_label(m->b);
	const int end = walk_build_label(m->b);

	load_len(m, WALK_OP_LDN1, R_SLOT_LEN, AT(low_len));
	compare(m, R_LOW_ORDER, PAD(key), R_KEY_LEN, low_at(), R_SLOT_LEN);
	jump(m, WALK_OP_JSLTI, R_LOW_ORDER, 0, m->lost);
	op(m, WALK_OP_LDN4, R_VERSION, 0, 0, AT(version));
	if (m->walk == TREE_WALK_SUM)
		walk_build_const(m->b, R_SIGN, TREE_NUMBER_SIGN);
	move_state(m, true);
	find_extent(m, part);
	add_slots(m, false);
	walk_build_jump_always(m->b, added);
	walk_build_place(m->b, part);
	add_slots(m, true);
	walk_build_place(m->b, added);
	move_state(m, false);
	jump(m, WALK_OP_JNEI, R_IS_LAST, 0, end);
	/* All below this leaf's end was added. */
	copy(m, PAD(key), high_at(m), m->g->key_max);
	op(m, WALK_OP_STP1, 0, R_HIGH_LEN, 0, PAD(key_len));
	op(m, WALK_OP_LDN8, R_NEXT, 0, 0, AT(sibling));
	walk_build_jump_always(m->b, m->go);
	walk_build_place(m->b, end);
	op(m, WALK_OP_LDI, R_T, 0, 0, 1);
	op(m, WALK_OP_STP1, 0, R_T, 0, PAD(is_done));
	op(m, WALK_OP_RET, 0, 0, 0, 0);
}

/* ---- all of it ----------------------------------------------------------- */

/* The last slot of a node that is written in several packets could be there
 * only in part, and no other slot would have an old version. */
static bool last_slot_crosses(const struct tree_geometry *g)
{
	const uint32_t at = g->slots_at + (g->leaf_slots - 1) * g->leaf_stride;
	const uint32_t last =
		at + TREE_ENTRY_HEAD + g->key_room + TREE_NUMBER_BYTES - 1;

	return at / PACKET_BYTES != last / PACKET_BYTES;
}

static int check(const struct tree_geometry *g, enum tree_walk walk)
{
	if (g->node_bytes > WALK_LOAD_MAX ||
	    tree_pad_bytes(g, walk) > WALK_PAD_MAX)
		return error_set(-EOPNOTSUPP,
				 "nodes of %u bytes are too large for a walk",
				 g->node_bytes);
	if (walk != TREE_WALK_FIND && last_slot_crosses(g))
		return error_set(-EOPNOTSUPP,
				 "in nodes of %u bytes the last entry may be "
				 "in two packets",
				 g->node_bytes);
	return 0;
}

int tree_program_make(const struct tree_geometry *g, enum tree_walk walk,
		      struct walk_build **build, struct walk_image *image)
{
	static const char *const names[] = {
		[TREE_WALK_FIND] = "index-find",
		[TREE_WALK_COUNT] = "index-count",
		[TREE_WALK_SUM] = "index-sum",
	};
	struct maker m = {.g = g, .walk = walk};
	int leaf, err = check(g, walk);

	if (err)
		return err;
	m.b = walk_build_create(names[walk], 0, (uint16_t)g->node_bytes,
				(uint16_t)tree_pad_bytes(g, walk), 0);
	m.go = walk_build_label(m.b);
	m.lost = walk_build_label(m.b);
	m.mixed = walk_build_label(m.b);
	m.no_number = walk_build_label(m.b);
	leaf = walk_build_label(m.b);
	begin(&m);
	pass_right(&m);
	op(&m, WALK_OP_LDN1, R_T, 0, 0, AT(level));
	jump(&m, WALK_OP_JEQI, R_T, 0, leaf);
	descend(&m);
	walk_build_place(m.b, leaf);
	if (walk == TREE_WALK_FIND) {
		copy(&m, PAD_MORE, 0, g->node_bytes);
		op(&m, WALK_OP_RET, 0, 0, 0, 0);
	} else {
		add_leaf(&m);
	}
	finish(&m);
	err = walk_build_end(m.b, UINT32_MAX, image, NULL);
	if (err)
		walk_build_destroy(m.b);
	else
		*build = m.b;
	return err;
}
