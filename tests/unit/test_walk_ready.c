/* SPDX-License-Identifier: Apache-2.0 */
/* Ready walks over nodes with one key: list, hash, binary tree, skip list,
 * radix tree, each against what was put into it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "walk_arena.h"

enum {
	SEEDS = 12,
	BUCKETS = 16,
};

static void a_list_finds_every_key_and_no_other(void **state)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		uint64_t keys[KEYS_MAX], first = 0;
		struct arena a;

		arena_open(&a, seed);
		a.s.kind = AQ_WALK_LIST_FIND;
		a.s.next_at = arena_field(&a, 8);
		arena_key_and_value(&a, 1);
		arena_shuffle(&a, keys);
		for (uint32_t i = 0; i < a.count; i++) {
			const uint64_t node = arena_node(&a);

			arena_put_pair(&a, node, 0, keys[i]);
			arena_put(&a, node + a.s.next_at, first, 8);
			first = node;
		}
		arena_make(&a);
		arena_check_find(&a, first);
		arena_close(&a);
	}
}

static void a_hash_table_is_walked_from_its_bucket(void **state)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct arena a;
		uint64_t slots;

		arena_open(&a, seed);
		a.s.kind = AQ_WALK_HASH_FIND;
		arena_key_and_value(&a, 1);
		a.s.next_at = arena_field(&a, 8);
		slots = a.used;
		a.used += BUCKETS * 8;
		for (uint32_t i = 0; i < a.count; i++) {
			const uint64_t node = arena_node(&a);
			const uint64_t slot = slots + a.keys[i] % BUCKETS * 8;
			uint64_t first;

			memcpy(&first, a.bytes + slot, 8);
			arena_put_pair(&a, node, 0, a.keys[i]);
			arena_put(&a, node + a.s.next_at, first, 8);
			arena_put(&a, slot, node, 8);
		}
		arena_make(&a);
		for (uint64_t k = 0; k < RANGE; k++) {
			memset(a.pad, 0, sizeof(a.pad));
			arena_put_key(&a, a.pad + 24, k, true);
			arena_walk(&a, slots + k % BUCKETS * 8);
			assert_int_equal(arena_pad(&a, 0), arena_has(&a, k));
			assert_true(a.took <= RANGE / BUCKETS + 2);
			for (uint32_t i = 0;
			     arena_has(&a, k) && i < a.s.value_bytes; i++)
				assert_int_equal(
					a.pad[aq_walk_value_at(&a.s) + i],
					value_byte(k, i));
		}
		arena_close(&a);
	}
}

static uint64_t make_bst(struct arena *a, uint32_t kind)
{
	uint64_t keys[KEYS_MAX], nodes[KEYS_MAX];

	a->s.kind = kind;
	a->s.left_at = arena_field(a, 8);
	arena_key_and_value(a, 1);
	a->s.right_at = arena_field(a, 8);
	arena_shuffle(a, keys);
	for (uint32_t i = 0; i < a->count; i++) {
		uint32_t p = 0;
		uint64_t side;

		nodes[i] = arena_node(a);
		arena_put_pair(a, nodes[i], 0, keys[i]);
		arena_put(a, nodes[i] + a->s.left_at, 0, 8);
		arena_put(a, nodes[i] + a->s.right_at, 0, 8);
		/* Down from the root to a free side. */
		while (i) {
			uint64_t child;

			side = nodes[p] + (keys[i] < keys[p] ? a->s.left_at
							     : a->s.right_at);
			memcpy(&child, a->bytes + side, 8);
			if (!child) {
				arena_put(a, side, nodes[i], 8);
				break;
			}
			for (p = 0; nodes[p] != child; p++)
				continue;
		}
	}
	arena_make(a);
	return nodes[0];
}

static void a_binary_tree_finds_every_key_and_no_other(void **state)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct arena a;
		uint64_t root;

		arena_open(&a, seed);
		root = make_bst(&a, AQ_WALK_BST_FIND);
		arena_check_find(&a, root);
		arena_close(&a);
	}
}

static void a_lower_bound_is_the_least_key_that_is_not_less(void **state)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct arena a;
		uint64_t root;

		arena_open(&a, seed);
		root = make_bst(&a, AQ_WALK_BST_LOWER);
		for (uint64_t k = 0; k < RANGE + 5; k++) {
			const uint32_t value_at = aq_walk_value_at(&a.s);
			uint8_t want[32] = {0};
			uint32_t i = 0;

			while (i < a.count && a.keys[i] < k)
				i++;
			memset(a.pad, 0, sizeof(a.pad));
			arena_put_key(&a, a.pad + 24, k, true);
			arena_walk(&a, root);
			assert_int_equal(arena_pad(&a, 0), i < a.count);
			if (i == a.count)
				continue;
			arena_put_key(&a, want, a.keys[i], true);
			assert_memory_equal(a.pad + value_at -
						    aq_walk_key_room(&a.s),
					    want, a.s.key_bytes);
			for (uint32_t j = 0; j < a.s.value_bytes; j++)
				assert_int_equal(a.pad[value_at + j],
						 value_byte(a.keys[i], j));
		}
		arena_close(&a);
	}
}

static void a_skip_list_reads_few_nodes(void **state)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		uint64_t last[32], head, took = 0;
		struct arena a;

		arena_open(&a, seed);
		a.s.kind = AQ_WALK_SKIP_FIND;
		a.s.levels = (uint32_t)rng_between(&a.r, 4, 12);
		arena_key_and_value(&a, 1);
		a.s.next_at = arena_field(&a, 8 * a.s.levels);
		head = arena_node(&a);
		for (uint32_t j = 0; j < a.s.levels; j++) {
			last[j] = head;
			arena_put(&a, head + a.s.next_at + 8 * j, 0, 8);
		}
		for (uint32_t i = 0; i < a.count; i++) {
			const uint64_t node = arena_node(&a);
			uint32_t j = 0;

			arena_put_pair(&a, node, 0, a.keys[i]);
			/* Pointers above its height stay rubbish. */
			do {
				arena_put(&a, last[j] + a.s.next_at + 8 * j,
					  node, 8);
				arena_put(&a, node + a.s.next_at + 8 * j, 0, 8);
				last[j] = node;
			} while (++j < a.s.levels && rng_below(&a.r, 2));
		}
		arena_make(&a);
		arena_check_find(&a, head);
		for (uint64_t k = 0; k < RANGE; k++) {
			memset(a.pad, 0, sizeof(a.pad));
			arena_put_key(&a, a.pad + 24, k, true);
			arena_walk(&a, head);
			took += a.took;
		}
		assert_true(took / RANGE < 40);
		arena_close(&a);
	}
}

/* The child of a node for a part of the key; made if it is not there. */
static uint64_t radix_child(struct arena *a, uint64_t node, uint64_t part)
{
	const uint64_t at = node + a->s.child_at + part * a->s.child_stride;
	uint64_t child;

	memcpy(&child, a->bytes + at, 8);
	if (child)
		return child;
	child = arena_node(a);
	for (uint32_t i = 0; i < a->s.fanout; i++)
		arena_put(a, child + a->s.child_at + i * a->s.child_stride, 0,
			  8);
	if (a->s.leaf_bytes)
		arena_put(a, child + a->s.leaf_at, 0, a->s.leaf_bytes);
	arena_put(a, at, child, 8);
	return child;
}

static void a_radix_tree_finds_every_key_and_no_other(void **state)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct arena a;
		uint64_t root, top;

		arena_open(&a, seed);
		a.s.kind = AQ_WALK_RADIX_FIND;
		a.s.fanout = seed % 2 ? 16 : 256;
		a.s.key_bytes = (uint32_t)rng_between(&a.r, 1, 3);
		a.s.value_bytes = (uint32_t)rng_below(&a.r, 20);
		a.s.value_at = arena_field(&a, a.s.value_bytes);
		a.s.leaf_bytes = seed % 4 < 2 ? 2 : 0;
		a.s.leaf_at = arena_field(&a, a.s.leaf_bytes);
		a.s.leaf_mask = 0x100;
		a.s.leaf_value = 0x100;
		a.s.child_stride = 8 + 4 * (uint32_t)rng_below(&a.r, 2);
		a.s.child_at = arena_field(&a, a.s.child_stride * a.s.fanout);
		top = arena_node(&a);
		memset(a.bytes + top, 0, a.node_bytes);
		root = radix_child(&a, top, 0);
		for (uint64_t k = 0; k < RANGE; k++) {
			uint64_t node = root;

			/* With flags, nodes without a value are there, too. */
			if (!arena_has(&a, k) && !a.s.leaf_bytes)
				continue;
			for (uint32_t i = 1; i < a.s.key_bytes; i++) {
				node = radix_child(&a, node, 0);
				if (a.s.fanout == 16)
					node = radix_child(&a, node, 0);
			}
			if (a.s.fanout == 16)
				node = radix_child(&a, node, k >> 4);
			node = radix_child(&a, node,
					   a.s.fanout == 16 ? k & 15 : k);
			arena_put_pair(&a, node, 0, k);
			if (arena_has(&a, k) && a.s.leaf_bytes)
				arena_put(&a, node + a.s.leaf_at, 0x1f1, 2);
		}
		arena_make(&a);
		arena_check_find(&a, root);
		arena_close(&a);
	}
}

static void impossible_shapes_are_refused(void **state)
{
	static const struct {
		struct aq_walk_shape s;
		const char *words;
	} bad[] = {
		{{.kind = 0}, "no such kind"},
		{{.kind = 99}, "no such kind"},
		{{.kind = 1, .key_bytes = 3}, "integer key"},
		{{.kind = 1, .key_bytes = 8, .flags = 64}, "unknown flags"},
		{{.kind = 1, .key_bytes = 0, .flags = 1}, "string key"},
		{{.kind = 1, .key_bytes = 8, .key_at = 5000}, "above 4095"},
		{{.kind = 1, .key_bytes = 8, .next_at = 4090}, "4096 bytes"},
		{{.kind = 1, .key_bytes = 8, .value_bytes = 4040},
		 "larger than a pad"},
		{{.kind = 1, .key_bytes = 8, .value_bytes = 4032}, "its pad"},
		{{.kind = 6, .key_bytes = 8}, "1 to 256 keys"},
		{{.kind = 6, .key_bytes = 8, .fanout = 9}, "count_bytes"},
		{{.kind = 6, .key_bytes = 8, .fanout = 9, .count_bytes = 4},
		 "leaf_bytes"},
		{{.kind = 6,
		  .key_bytes = 8,
		  .fanout = 9,
		  .count_bytes = 4,
		  .leaf_bytes = 4},
		 "stride"},
		{{.kind = 7, .key_bytes = 8, .flags = 1}, "integer keys"},
		{{.kind = 8, .key_bytes = 8, .value_bytes = 3}, "reduce works"},
		{{.kind = 9, .key_bytes = 8, .levels = 33}, "32 levels"},
		{{.kind = 10, .key_bytes = 8, .fanout = 4}, "16 or 256"},
	};
	struct walk_build *build;
	struct walk_image image;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(walk_ready(&bad[i].s, 0, &build, &image),
				 -EINVAL);
		if (!strstr(error_last(), bad[i].words))
			fail_msg("%zu: '%s' lacks '%s'", i, error_last(),
				 bad[i].words);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_finds_every_key_and_no_other),
		cmocka_unit_test(a_hash_table_is_walked_from_its_bucket),
		cmocka_unit_test(a_binary_tree_finds_every_key_and_no_other),
		cmocka_unit_test(
			a_lower_bound_is_the_least_key_that_is_not_less),
		cmocka_unit_test(a_skip_list_reads_few_nodes),
		cmocka_unit_test(a_radix_tree_finds_every_key_and_no_other),
		cmocka_unit_test(impossible_shapes_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
