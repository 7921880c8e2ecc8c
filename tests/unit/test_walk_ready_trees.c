/* SPDX-License-Identifier: Apache-2.0 */
/* Ready walks over B-trees: find, scan and reduce, against the sorted keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "walk_arena.h"

enum {
	SEEDS = 12,
};

struct tree {
	struct arena a;
	uint64_t last_leaf; /* of a B+ tree; 0: none yet */
	uint32_t leaves;
};

/* What nodes have at leaf_at, as far as it fits there. */
static uint64_t leaf_word(const struct arena *a, bool is_leaf)
{
	const uint64_t every = UINT64_MAX >> (64 - 8 * a->s.leaf_bytes);

	return (is_leaf ? 0x1f0007006full : 0x1f0007005full) & every;
}

static void lay_out(struct tree *t, uint64_t seed, uint32_t kind)
{
	static const uint64_t masks[] = {0x30, UINT64_MAX, 0x100000030,
					 0xf0030};
	struct arena *a = &t->a;
	struct aq_walk_shape *s = &a->s;

	memset(t, 0, sizeof(*t));
	arena_open(a, seed);
	s->kind = kind;
	s->fanout = (uint32_t)rng_between(&a->r, 2, 20);
	s->count_bytes = 1u << rng_below(&a->r, 4);
	s->count_at = arena_field(a, s->count_bytes);
	s->leaf_bytes = 1u << rng_below(&a->r, 4);
	s->leaf_at = arena_field(a, s->leaf_bytes);
	s->leaf_mask = masks[rng_below(&a->r, ARRAY_LEN(masks))];
	s->leaf_value = leaf_word(a, true) & s->leaf_mask;
	arena_key_and_value(a, s->fanout);
	s->child_stride = 8 + (uint32_t)rng_below(&a->r, 8);
	s->child_at = arena_field(a, s->child_stride * (s->fanout + 1));
	s->next_at = arena_field(a, 8);
}

static uint64_t new_node(struct tree *t, uint64_t count, bool is_leaf)
{
	struct arena *a = &t->a;
	const uint64_t node = arena_node(a);

	arena_put(a, node + a->s.count_at, count, a->s.count_bytes);
	arena_put(a, node + a->s.leaf_at, leaf_word(a, is_leaf),
		  a->s.leaf_bytes);
	return node;
}

static void put_child(struct tree *t, uint64_t node, uint64_t i, uint64_t child)
{
	arena_put(&t->a, node + t->a.s.child_at + i * t->a.s.child_stride,
		  child, 8);
}

static uint64_t make_leaf(struct tree *t, uint32_t lo, uint32_t hi)
{
	struct arena *a = &t->a;
	/* Whoever counts more than there is room for has no more than that. */
	const bool boasts = hi - lo == a->s.fanout && rng_below(&a->r, 2);
	const uint64_t node = new_node(t, hi - lo + boasts, true);

	for (uint32_t i = lo; i < hi; i++)
		arena_put_pair(a, node, i - lo, a->keys[i]);
	arena_put(a, node + a->s.next_at, 0, 8);
	if (t->last_leaf)
		arena_put(a, t->last_leaf + a->s.next_at, node, 8);
	t->last_leaf = node;
	t->leaves++;
	return node;
}

/* Of keys [lo, hi); 0 where there is none. */
static uint64_t make_btree(struct tree *t, uint32_t lo, uint32_t hi)
{
	struct arena *a = &t->a;
	const uint32_t n = hi - lo, fanout = a->s.fanout;
	uint32_t keys, at = lo;
	uint64_t node;

	if (n == 0)
		return 0;
	if (n <= fanout)
		return make_leaf(t, lo, hi);
	keys = (uint32_t)rng_between(&a->r, 1, fanout);
	node = new_node(t, keys, false);
	for (uint32_t i = 0; i < keys; i++) {
		/* One key of those that are left; the others stay below it. */
		const uint32_t key =
			at + (uint32_t)rng_below(&a->r, (hi - at) / (keys - i));

		put_child(t, node, i, make_btree(t, at, key));
		arena_put_pair(a, node, i, a->keys[key]);
		at = key + 1;
	}
	put_child(t, node, keys, make_btree(t, at, hi));
	return node;
}

static uint64_t make_bplus(struct tree *t, uint32_t lo, uint32_t hi)
{
	struct arena *a = &t->a;
	const uint32_t n = hi - lo;
	uint32_t keys, at = lo;
	uint64_t node;

	if (n <= a->s.fanout && (n < 2 || rng_below(&a->r, 4)))
		return make_leaf(t, lo, hi);
	keys = (uint32_t)rng_between(&a->r, 1, u32_min(a->s.fanout, n - 1));
	node = new_node(t, keys, false);
	for (uint32_t i = 0; i < keys; i++) {
		const uint32_t key =
			at + 1 +
			(uint32_t)rng_below(&a->r, (hi - at - 1) / (keys - i));

		put_child(t, node, i, make_bplus(t, at, key));
		arena_put_pair(a, node, i, a->keys[key]);
		at = key;
	}
	put_child(t, node, keys, make_bplus(t, at, hi));
	return node;
}

static void a_btree_finds_every_key_and_no_other(void **state)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct tree t;
		uint64_t root;

		lay_out(&t, seed, AQ_WALK_BTREE_FIND);
		root = make_btree(&t, 0, t.a.count);
		arena_make(&t.a);
		arena_check_find(&t.a, root);
		arena_close(&t.a);
	}
}

static void a_bplus_tree_finds_every_key_and_no_other(void **state)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct tree t;
		uint64_t root;

		lay_out(&t, seed, AQ_WALK_BPLUS_FIND);
		root = make_bplus(&t, 0, t.a.count);
		arena_make(&t.a);
		arena_check_find(&t.a, root);
		arena_close(&t.a);
	}
}

static void check_scan(struct tree *t, uint64_t root, uint64_t low,
		       uint64_t high)
{
	struct arena *a = &t->a;
	const uint32_t pair = 8 + ((a->s.value_bytes + 7) & ~7u);
	uint32_t n = 0;
	bool is_full = false;

	memset(a->pad, 0, sizeof(a->pad));
	memcpy(a->pad + 16, &low, 8);
	memcpy(a->pad + 24, &high, 8);
	arena_walk(a, root);
	for (uint32_t i = 0; i < a->count && !is_full; i++) {
		const uint64_t k = a->keys[i];

		if (k < low || k > high)
			continue;
		is_full = n == a->s.scan_pairs;
		if (is_full)
			break;
		assert_int_equal(arena_pad(a, 32 + n * pair), k);
		for (uint32_t j = 0; j < a->s.value_bytes; j++)
			assert_int_equal(a->pad[32 + n * pair + 8 + j],
					 value_byte(k, j));
		n++;
	}
	assert_int_equal(arena_pad(a, 0), n);
	assert_int_equal(arena_pad(a, 8), is_full);
}

static void a_scan_returns_the_pairs_in_order(void **state)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct tree t;
		uint64_t root;

		lay_out(&t, seed, AQ_WALK_BPLUS_SCAN);
		t.a.s.scan_pairs = (uint32_t)rng_between(&t.a.r, 1, 60);
		root = make_bplus(&t, 0, t.a.count);
		arena_make(&t.a);
		check_scan(&t, root, 0, UINT64_MAX);
		for (int i = 0; i < 60; i++) {
			const uint64_t low = rng_below(&t.a.r, RANGE + 5);

			check_scan(&t, root, low, low + rng_below(&t.a.r, 80));
		}
		check_scan(&t, root, 9, 3);
		arena_close(&t.a);
	}
}

/* The value of a key as reduce sees it. */
static int64_t value_of(const struct arena *a, uint64_t k)
{
	uint64_t v = 0;

	for (uint32_t i = 0; i < a->s.value_bytes; i++)
		v |= (uint64_t)value_byte(k, i) << (8 * i);
	if (a->s.flags & AQ_WALK_VALUE_SIGNED && a->s.value_bytes &&
	    a->s.value_bytes < 8 && v >> (8 * a->s.value_bytes - 1))
		v |= UINT64_MAX << (8 * a->s.value_bytes);
	return (int64_t)v;
}

static void check_reduce(struct tree *t, uint64_t root, uint64_t low,
			 uint64_t high)
{
	struct arena *a = &t->a;
	const bool is_signed = a->s.flags & AQ_WALK_VALUE_SIGNED;
	uint64_t count = 0, sum = 0, min = 0, max = 0;

	memset(a->pad, 0, sizeof(a->pad));
	memcpy(a->pad + 8, &low, 8);
	memcpy(a->pad + 16, &high, 8);
	arena_walk(a, root);
	for (uint32_t i = 0; i < a->count; i++) {
		const uint64_t k = a->keys[i];
		const uint64_t v = (uint64_t)value_of(a, k);

		if (k < low || k > high)
			continue;
		sum += v;
		if (!count || (is_signed ? (int64_t)v < (int64_t)min : v < min))
			min = v;
		if (!count || (is_signed ? (int64_t)v > (int64_t)max : v > max))
			max = v;
		count++;
	}
	assert_int_equal(arena_pad(a, 0), count);
	if (!a->s.value_bytes)
		return;
	assert_int_equal(arena_pad(a, 24), sum);
	assert_int_equal(arena_pad(a, 32), min);
	assert_int_equal(arena_pad(a, 40), max);
}

static void a_reduction_is_that_of_the_keys_between(void **state)
{
	for (uint64_t seed = 0; seed < 2 * SEEDS; seed++) {
		struct tree t;
		uint64_t root;

		lay_out(&t, seed, AQ_WALK_BPLUS_REDUCE);
		t.a.s.value_bytes = seed % 5 == 4 ? 0 : 1u << seed % 4;
		t.a.s.value_stride = 8;
		t.a.s.value_at = arena_field(&t.a, 8 * t.a.s.fanout);
		if (seed % 2)
			t.a.s.flags |= AQ_WALK_VALUE_SIGNED;
		root = make_bplus(&t, 0, t.a.count);
		arena_make(&t.a);
		check_reduce(&t, root, 0, UINT64_MAX);
		assert_true(t.a.took >= t.leaves);
		for (int i = 0; i < 60; i++) {
			const uint64_t low = rng_below(&t.a.r, RANGE + 5);

			check_reduce(&t, root, low,
				     low + rng_below(&t.a.r, 80));
		}
		check_reduce(&t, root, 9, 3);
		arena_close(&t.a);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_btree_finds_every_key_and_no_other),
		cmocka_unit_test(a_bplus_tree_finds_every_key_and_no_other),
		cmocka_unit_test(a_scan_returns_the_pairs_in_order),
		cmocka_unit_test(a_reduction_is_that_of_the_keys_between),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
