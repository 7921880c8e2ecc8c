/* SPDX-License-Identifier: Apache-2.0 */
/* The structures of the play "walk" and the programs that walk them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "walk/build.h"
#include "walk_play_priv.h"

enum {
	KEY = offsetof(struct wp_slot, key),
	VALUE = offsetof(struct wp_slot, value),
	NEXT = offsetof(struct wp_slot, next),
	TALLY = offsetof(struct wp_slot, tally),
	LOAD = TALLY + 8,
	PAD_KEY = offsetof(struct wp_store_pad, key),
	PAD_VALUE = offsetof(struct wp_store_pad, value),
	PAD_EXPECT = offsetof(struct wp_store_pad, expect),
	PAD_WAS = offsetof(struct wp_store_pad, was),
	PAD_FOUND = offsetof(struct wp_store_pad, found),
	TREE_KEY = 1000,
	LIST_KEY = 500,
	ANYWHERE = -1,
};

/* ---- where things are ---------------------------------------------------- */

static unsigned piece_of(const struct wp *p, uint32_t slot)
{
	return slot * WP_SLOT / WP_STRIPE % p->nodes.count;
}

/* A slot that is free, of that piece. Slot 0 is what null leads to. */
static uint32_t take(struct wp *p, bool used[WP_SLOTS], int piece)
{
	uint32_t slot;

	do
		slot = sim_rand_range(&p->run.rand, 1, WP_SLOTS - 1);
	while (used[slot] ||
	       (piece != ANYWHERE && piece_of(p, slot) != (unsigned)piece));
	used[slot] = true;
	return slot;
}

void wp_field_draw(struct wp *p)
{
	bool used[WP_SLOTS] = {false};

	/* Chains on one node each, but the last. */
	for (unsigned k = 0; k < WP_BUCKETS + WP_KEYS; k++) {
		unsigned b = k % WP_BUCKETS;
		uint32_t slot =
			take(p, used,
			     b + 1 < WP_BUCKETS ? (int)(b % p->nodes.count)
						: ANYWHERE);

		if (k < WP_BUCKETS)
			p->bucket[k] = slot;
		else
			p->key[k - WP_BUCKETS + 1] = slot;
	}
	for (unsigned i = 0; i < WP_LIST; i++)
		p->list[i] = take(p, used, ANYWHERE);
	for (unsigned i = 0; i < WP_TREE; i++)
		p->tree[i] = take(p, used, ANYWHERE);
	for (unsigned i = 0; i < WP_CIRCLE; i++)
		p->circle[i] = take(p, used, ANYWHERE);
	p->lost_end = take(p, used, ANYWHERE);
	p->torn_end = take(p, used, ANYWHERE);
}

uint64_t wp_tree_key(unsigned i)
{
	return TREE_KEY + 2 * i;
}

uint64_t wp_tree_value(const struct wp_generation *g, unsigned i)
{
	return (uint64_t)g->number << 56 | (uint64_t)i << 8 | 0x7e;
}

uint64_t wp_list_key(unsigned i)
{
	return LIST_KEY + i;
}

uint64_t wp_value(struct wp *p, const struct wp_generation *g, unsigned key)
{
	return (uint64_t)g->number << 56 | (uint64_t)key << 48 |
	       ++p->run.next_value;
}

bool wp_value_is_of(uint64_t value, const struct wp_generation *g, unsigned key)
{
	return value >> 56 == g->number && (value >> 48 & 0xff) == key;
}

uint8_t wp_blob_byte(unsigned key, uint8_t tag, unsigned i)
{
	return (uint8_t)(tag + i * 7 + key * 13);
}

/* The subtree of sorted keys lo to hi - 1: where its root is. */
static uint64_t fill_tree(struct wp *p, struct wp_hand *h, unsigned lo,
			  unsigned hi)
{
	unsigned mid = lo + (hi - lo) / 2;
	struct wp_slot *s;

	if (lo == hi)
		return 0;
	s = wp_hand_look(h, p->tree[mid]);
	s->key = wp_tree_key(mid);
	s->value = wp_tree_value(h->g, mid);
	s->left = fill_tree(p, h, lo, mid);
	s->right = fill_tree(p, h, mid + 1, hi);
	return wp_offset(p->tree[mid]);
}

static void fill_keys(struct wp *p, struct wp_hand *h)
{
	struct wp_generation *g = h->g;

	for (unsigned k = 1; k <= WP_KEYS; k++) {
		struct wp_slot *s = wp_hand_look(h, p->key[k]);
		struct wp_slot *bucket =
			wp_hand_look(h, p->bucket[(k - 1) % WP_BUCKETS]);
		int64_t op;

		s->key = k;
		g->tag[k] = 1;
		for (unsigned i = 0; i < WP_BLOB; i++)
			s->blob[i] = wp_blob_byte(k, g->tag[k], i);
		if (sim_rand_below(&p->run.rand, 2))
			continue;
		s->value = wp_value(p, g, k);
		s->next = bucket->next;
		bucket->next = wp_offset(p->key[k]);
		g->has[k] = WP_LINKED;
		op = lin_invoke(p->run.history, 99, lin_int(g->number * 64 + k),
				LIN_WRITE, lin_int(s->value), lin_nil(),
				play_now_ns(&p->run));
		if (op >= 0)
			lin_return_ok(p->run.history, op, play_now_ns(&p->run));
	}
}

void wp_field_fill(struct wp *p, struct wp_hand *h)
{
	for (unsigned i = 0; i < WP_LIST; i++) {
		struct wp_slot *s = wp_hand_look(h, p->list[i]);

		s->key = wp_list_key(i);
		s->next = i + 1 < WP_LIST ? wp_offset(p->list[i + 1]) : 0;
	}
	for (unsigned i = 0; i < WP_CIRCLE; i++)
		wp_hand_look(h, p->circle[i])->next =
			wp_offset(p->circle[(i + 1) % WP_CIRCLE]);
	wp_hand_look(h, p->lost_end)->next =
		(64ull << 20) + (rng_u64(&p->run.rand) >> 3);
	wp_hand_look(h, p->torn_end)->next =
		p->nodes.count > 1 ? 2 * WP_STRIPE - 8 : 1ull << 40;
	(void)fill_tree(p, h, 0, WP_TREE);
	fill_keys(p, h);
}

/* ---- programs ------------------------------------------------------------ */

struct aq_walk_shape wp_shape(enum wp_kind kind)
{
	struct aq_walk_shape s = {
		.kind = AQ_WALK_LIST_FIND,
		.key_at = KEY,
		.key_bytes = 8,
		.value_at = VALUE,
		.value_bytes = 8,
		.next_at = NEXT,
		.left_at = offsetof(struct wp_slot, left),
		.right_at = offsetof(struct wp_slot, right),
	};

	if (kind == WP_HASH)
		s.kind = AQ_WALK_HASH_FIND;
	if (kind == WP_TREE_FIND)
		s.kind = AQ_WALK_BST_FIND;
	if (kind == WP_TREE_FIND)
		s.next_at = 0;
	else
		s.left_at = s.right_at = 0;
	if (kind == WP_BLOB_FIND) {
		s.value_at = offsetof(struct wp_slot, blob);
		s.value_bytes = WP_BLOB;
	}
	return s;
}

/* What is done at the node that the pad's key names. */
static void build_store(struct walk_build *b, enum wp_kind kind)
{
	walk_build_op(b, WALK_OP_LDP8, 4, 0, 0, PAD_VALUE);
	if (kind == WP_SET) {
		walk_build_op(b, WALK_OP_LDN8, 5, 0, 0, VALUE);
		walk_build_op(b, WALK_OP_STN8, 0, 4, 0, VALUE);
	} else {
		walk_build_op(b, WALK_OP_LDP8, 3, 0, 0, PAD_EXPECT);
		walk_build_op(b, WALK_OP_CASN, 5, 3, 4, VALUE);
	}
	walk_build_op(b, WALK_OP_STP8, 0, 5, 0, PAD_WAS);
}

/* One more visit, at the station and in the pad. */
static void build_visit(struct walk_build *b)
{
	walk_build_op(b, WALK_OP_LDI, 6, 0, 0, 1);
	walk_build_op(b, WALK_OP_FAAN, 7, 6, 0, TALLY);
	walk_build_op(b, WALK_OP_LDP8, 8, 0, 0, PAD_WAS);
	walk_build_op(b, WALK_OP_ADDI, 8, 8, 0, 1);
	walk_build_op(b, WALK_OP_STP8, 0, 8, 0, PAD_WAS);
}

static int load(struct aq_rack *rack, struct walk_build *b,
		struct aq_walk **walk)
{
	const struct aq_walk_options o = {.iterations = WP_CIRCLE_MAX};
	struct walk_image image;
	void *bytes = NULL;
	int err = walk_build_end(b, 0, &image, NULL);

	if (!err) {
		bytes = malloc(walk_image_bytes(&image));
		err = bytes ? 0 : -ENOMEM;
	}
	if (!err) {
		walk_image_write(&image, bytes);
		err = aq_walk_load_bytes(rack, bytes, walk_image_bytes(&image),
					 &o, walk);
	}
	free(bytes);
	walk_build_destroy(b);
	return err;
}

static int load_store(struct aq_rack *rack, enum wp_kind kind,
		      struct aq_walk **walk)
{
	struct walk_build *b = walk_build_create(
		kind == WP_SET	  ? "set"
		: kind == WP_SWAP ? "swap"
				  : "add",
		0, LOAD, sizeof(struct wp_store_pad), WALK_STORES);
	int other = walk_build_label(b);

	if (kind == WP_ADD)
		build_visit(b);
	walk_build_op(b, WALK_OP_LDN8, 1, 0, 0, KEY);
	walk_build_op(b, WALK_OP_LDP8, 2, 0, 0, PAD_KEY);
	walk_build_jump(b, WALK_OP_JNE, 1, 2, other);
	if (kind != WP_ADD)
		build_store(b, kind);
	walk_build_op(b, WALK_OP_LDI, 9, 0, 0, 1);
	walk_build_op(b, WALK_OP_STP8, 0, 9, 0, PAD_FOUND);
	walk_build_op(b, WALK_OP_RET, 0, 0, 0, 0);
	walk_build_place(b, other);
	walk_build_op(b, WALK_OP_LDN8, 1, 0, 0, NEXT);
	walk_build_op(b, WALK_OP_GO, 0, 1, 0, 0);
	return load(rack, b, walk);
}

int wp_ring_load(struct aq_rack *rack, struct aq_walk **walk)
{
	struct walk_build *b = walk_build_create(
		"ring", 0, LOAD, sizeof(struct wp_store_pad), WALK_STORES);

	build_visit(b);
	walk_build_op(b, WALK_OP_LDN8, 1, 0, 0, NEXT);
	walk_build_op(b, WALK_OP_NEXT, 0, 1, 0, 0);
	return load(rack, b, walk);
}

int wp_walks_load(struct aq_rack *rack,
		  struct aq_walk *walk[WP_KINDS][WP_PLACES])
{
	static const uint32_t flags[WP_PLACES] = {
		[WP_BY_SWITCH] = AQ_WALK_THERE,
		[WP_HERE] = AQ_WALK_HERE,
		[WP_BY_CLIENT] = AQ_WALK_THERE | AQ_WALK_CROSS_BOUNCE};
	int err = 0;

	for (unsigned k = 0; k < WP_SET && !err; k++) {
		const struct aq_walk_shape shape = wp_shape(k);

		for (unsigned i = 0; i < WP_PLACES && !err; i++) {
			const struct aq_walk_options o = {
				.flags = flags[i], .iterations = WP_CIRCLE_MAX};

			err = aq_walk_make(rack, &shape, &o, &walk[k][i]);
		}
	}
	for (unsigned k = WP_SET; k < WP_KINDS && !err; k++)
		err = load_store(rack, k, &walk[k][0]);
	return err;
}

/* ---- programs that no node may take -------------------------------------- */

json_t *wp_bad_image(bool join)
{
	static const struct walk_insn far_away[] = {
		{.op = WALK_OP_LDN8, .d = 1},
		{.op = WALK_OP_LDNX8, .d = 2, .a = 1},
		{.op = WALK_OP_RET},
	};
	/* On one way to the load the index is small, on the other it is not. */
	static const struct walk_insn two_ways[] = {
		{.op = WALK_OP_LDN8, .d = 2},
		{.op = WALK_OP_LDI, .d = 1, .imm = 100000},
		{.op = WALK_OP_JEQI, .a = 2, .imm = 2 << 16},
		{.op = WALK_OP_LDI, .d = 1, .imm = 0},
		{.op = WALK_OP_LDNX8, .d = 3, .a = 1},
		{.op = WALK_OP_RET},
	};
	struct walk_image image = {
		.name = "bad",
		.load_bytes = LOAD,
		.insns = join ? two_ways : far_away,
		.count = join ? ARRAY_LEN(two_ways) : ARRAY_LEN(far_away),
	};
	uint8_t bytes[WALK_HEADER_BYTES + sizeof(two_ways)];
	char text[2 * sizeof(bytes) + 1];
	size_t len = walk_image_bytes(&image);

	ASSERT(len <= sizeof(bytes));
	walk_image_write(&image, bytes);
	hex_write(text, bytes, len);
	return json_pack("{s:s}", "image", text);
}
