/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of an ordered index as bytes: what is whole, what is torn, where keys
 * go, what a dead writer leaves, and bytes that are anything. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "index/tree_node.h"

enum {
	NODE_MAX = 1024,
	PACKET = 256, /* that a WRITE is torn at */
};

static struct tree_geometry g;

static int setup(void **state)
{
	g = (struct tree_geometry){.chunk_count = 4,
				   .chunk_nodes = 4,
				   .node_bytes = NODE_MAX,
				   .key_max = 16,
				   .value_max = 24,
				   .client_count = 4,
				   .failure_ms = 5,
				   .lock_count = 3};
	return tree_geometry_derive(&g);
}

static struct tree_key key_of(const char *text)
{
	return (struct tree_key){(const uint8_t *)text, (uint32_t)strlen(text)};
}

union node {
	struct tree_node n;
	uint8_t bytes[NODE_MAX];
};

static const uint64_t self = (uint64_t)7 << 32 | 3;

/* A leaf from "b" up to "y" with all slots in use: keys c00, c01 ... */
static uint32_t make_full(union node *u, uint64_t sibling)
{
	struct tree_fences f = {
		.low = key_of("b"), .high = key_of("y"), .has_end = true};
	char text[] = "c00";

	tree_node_init(&g, &u->n, self, 0, 5, &f, sibling);
	for (uint32_t i = 0; i < g.leaf_slots; i++) {
		/* In no order. */
		uint32_t k = (i * 7) % g.leaf_slots;

		text[1] = (char)('0' + k / 10);
		text[2] = (char)('0' + k % 10);
		tree_slot_put(&g, &u->n, i, key_of(text), text, 3);
	}
	return g.leaf_slots;
}

/* ---- geometry ------------------------------------------------------------ */

static void sizes(void **state)
{
	static const struct {
		uint32_t node, key, value, clients, locks;
		int err;
	} rows[] = {
		{1024, 32, 32, 4, 8, 0},	{256, 8, 16, 1, 1, 0},
		{16384, 64, 3072, 4, 8, 0},	{1000, 8, 8, 4, 8, -EINVAL},
		{240, 8, 8, 4, 8, -EINVAL},	{16400, 8, 8, 4, 8, -EINVAL},
		{1024, 0, 8, 4, 8, -EINVAL},	{1024, 65, 8, 4, 8, -EINVAL},
		{1024, 8, 3073, 4, 8, -EINVAL}, {1024, 32, 1000, 4, 8, -EINVAL},
		{1024, 8, 8, 0, 8, -EINVAL},	{1024, 8, 8, 5000, 8, -EINVAL},
		{1024, 8, 8, 4, 0, -EINVAL},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct tree_geometry x = {.chunk_count = 4,
					  .chunk_nodes = 4,
					  .node_bytes = rows[i].node,
					  .key_max = rows[i].key,
					  .value_max = rows[i].value,
					  .client_count = rows[i].clients,
					  .lock_count = rows[i].locks,
					  .failure_ms = 1};

		assert_int_equal(tree_geometry_derive(&x), rows[i].err);
		if (rows[i].err)
			continue;
		assert_true(x.leaf_slots >= 4 &&
			    x.leaf_slots <= TREE_SLOTS_MAX);
		assert_true(tree_entry_at(&x, 0, x.leaf_slots) <= x.node_bytes);
		assert_true(tree_entry_at(&x, 1, x.inner_slots) <=
			    x.node_bytes);
		/* What mending relies on. */
		assert_int_equal(x.slots_at % 16 + x.leaf_stride % 16 +
					 x.inner_stride % 16,
				 0);
	}
}

static void heads(void **state)
{
	struct tree_geometry h;
	struct tree_head head;

	tree_head_put(&g, &head);
	assert_int_equal(tree_head_get(&head, g.size_bytes, &h), 0);
	assert_memory_equal(&g, &h, sizeof(g));
	assert_int_equal(tree_head_get(&head, g.size_bytes - 1, &h), -EBADMSG);
	for (size_t i = 0; i < sizeof(head); i++) {
		((uint8_t *)&head)[i] ^= 0x10;
		assert_true(tree_head_get(&head, g.size_bytes, &h) < 0);
		((uint8_t *)&head)[i] ^= 0x10;
	}
}

static void orders(void **state)
{
	static const char *const rows[] = {"", "a", "aa", "ab", "b", "b\x80"};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
			int c = tree_key_compare(key_of(rows[i]),
						 key_of(rows[k]));

			assert_int_equal((c > 0) - (c < 0), (i > k) - (i < k));
		}
}

/* ---- whole and torn ------------------------------------------------------ */

static void entries(void **state)
{
	struct tree_item items[TREE_SLOTS_MAX], item;
	union node u;
	uint32_t n = make_full(&u, 0);

	assert_int_equal(tree_node_judge(&g, &u.n, self), TREE_WHOLE);
	assert_int_equal(tree_node_judge(&g, &u.n, self + (1ull << 32)),
			 TREE_OTHER);
	assert_int_equal(tree_node_side(&g, &u.n, key_of("a")), -1);
	assert_int_equal(tree_node_side(&g, &u.n, key_of("b")), 0);
	assert_int_equal(tree_node_side(&g, &u.n, key_of("xz")), 0);
	assert_int_equal(tree_node_side(&g, &u.n, key_of("y")), 1);
	assert_int_equal(tree_node_free_slot(&g, &u.n), -1);
	assert_int_equal(tree_node_find(&g, &u.n, key_of("c01"), &item),
			 TREE_SLOT_USED);
	assert_int_equal(item.value_len, 3);
	assert_memory_equal(item.value, "c01", 3);
	tree_slot_clear(&g, &u.n, item.slot);
	assert_int_equal(tree_node_find(&g, &u.n, key_of("c01"), &item),
			 TREE_SLOT_EMPTY);
	assert_int_equal(tree_node_judge(&g, &u.n, self), TREE_WHOLE);
	assert_int_equal(tree_node_sort(&g, &u.n, items), n - 1);
	for (uint32_t i = 1; i < n - 1; i++)
		assert_true(tree_key_compare(items[i - 1].key, items[i].key) <
			    0);
	tree_node_set_state(&g, &u.n, TREE_NODE_FREE);
	assert_int_equal(tree_node_judge(&g, &u.n, self), TREE_OTHER);
}

/* Every bit of what counts is in some sum. */
static void each_bit_counts(void **state)
{
	union node u;

	(void)make_full(&u, 0);
	for (uint32_t i = 0; i < g.slots_at + g.leaf_stride; i++) {
		bool is_padding =
			i >= g.slots_at + TREE_ENTRY_HEAD + 3 &&
			(i < g.slots_at + TREE_ENTRY_HEAD + g.key_room ||
			 i >= g.slots_at + TREE_ENTRY_HEAD + g.key_room + 3);

		u.bytes[i] ^= 4;
		assert_int_equal(tree_node_judge(&g, &u.n, self) != TREE_WHOLE,
				 !is_padding);
		u.bytes[i] ^= 4;
	}
}

/* A READ that saw part of a WRITE of all of a node. */
static void mixtures_are_torn(void **state)
{
	union node old, new, mix;
	uint8_t mid[TREE_KEY_MAX];
	union node right;
	uint32_t len;

	(void)make_full(&old, 0);
	new = old;
	tree_node_middle(&g, &new.n, key_of("c05x"), mid, &len);
	tree_node_split(&g, &new.n, &right.n, self + 1, 9,
			(struct tree_key){mid, len});
	for (unsigned cut = PACKET; cut < g.node_bytes; cut += PACKET) {
		mix = new;
		memcpy(mix.bytes + cut, old.bytes + cut, g.node_bytes - cut);
		assert_int_equal(tree_node_judge(&g, &mix.n, self), TREE_TORN);
		mix = old;
		memcpy(mix.bytes + cut, new.bytes + cut, g.node_bytes - cut);
		assert_int_equal(tree_node_judge(&g, &mix.n, self), TREE_TORN);
	}
}

/* ---- splitting and mending ----------------------------------------------- */

static void check_halves(union node *left, union node *right, uint32_t want,
			 struct tree_key mid)
{
	struct tree_item items[TREE_SLOTS_MAX];
	uint32_t l, r;

	assert_int_equal(tree_node_judge(&g, &left->n, self), TREE_WHOLE);
	assert_int_equal(tree_node_judge(&g, &right->n, self + 1), TREE_WHOLE);
	assert_int_equal(tree_key_compare(tree_node_high(&g, &left->n), mid),
			 0);
	assert_int_equal(tree_key_compare(tree_node_low(&right->n), mid), 0);
	assert_true(le64_get(left->n.sibling) == self + 1);
	r = tree_node_sort(&g, &right->n, items);
	for (uint32_t i = 0; i < r; i++)
		assert_int_equal(tree_node_side(&g, &right->n, items[i].key),
				 0);
	l = tree_node_sort(&g, &left->n, items);
	for (uint32_t i = 0; i < l; i++)
		assert_int_equal(tree_node_side(&g, &left->n, items[i].key), 0);
	assert_int_equal(l + r, want);
}

static void splits(void **state)
{
	union node left, right;
	uint8_t mid[TREE_KEY_MAX];
	uint32_t len, n = make_full(&left, 99);

	tree_node_middle(&g, &left.n, key_of("x"), mid, &len);
	tree_node_split(&g, &left.n, &right.n, self + 1, 9,
			(struct tree_key){mid, len});
	check_halves(&left, &right, n, (struct tree_key){mid, len});
	assert_true(le64_get(right.n.sibling) == 99);
	/* The last node, and a key behind all: the old one stays full. */
	n = make_full(&left, 0);
	tree_node_middle(&g, &left.n, key_of("x"), mid, &len);
	assert_int_equal(len, 1);
	tree_node_split(&g, &left.n, &right.n, self + 1, 9,
			(struct tree_key){mid, len});
	check_halves(&left, &right, n, key_of("x"));
	assert_true(tree_node_free_slot(&g, &left.n) < 0);
}

/* A client dies within the WRITE of the left half: whatever packets arrived,
 * mending gives what the head says. */
static void mends_half_a_split(void **state)
{
	struct tree_item items[TREE_SLOTS_MAX], item;
	union node old, new, right, mix;
	uint8_t mid[TREE_KEY_MAX];
	uint32_t len, want;
	unsigned lost = 0;

	(void)make_full(&old, 0);
	new = old;
	tree_node_middle(&g, &new.n, key_of("c05x"), mid, &len);
	tree_node_split(&g, &new.n, &right.n, self + 1, 9,
			(struct tree_key){mid, len});
	want = tree_node_sort(&g, &new.n, items);
	for (unsigned cut = PACKET; cut < g.node_bytes; cut += PACKET) {
		mix = new;
		memcpy(mix.bytes + cut, old.bytes + cut, g.node_bytes - cut);
		assert_int_equal(tree_node_mend(&g, &mix.n, self, &lost), 0);
		assert_int_equal(tree_node_judge(&g, &mix.n, self), TREE_WHOLE);
		assert_int_equal(tree_node_sort(&g, &mix.n, items), want);
	}
	assert_int_equal(lost, 0);
	/* Half an entry goes, and only that. */
	mix = old;
	assert_int_equal(tree_node_find(&g, &mix.n, key_of("c03"), &item),
			 TREE_SLOT_USED);
	((uint8_t *)item.value)[0] ^= 1;
	assert_int_equal(tree_node_mend(&g, &mix.n, self, &lost), 0);
	assert_int_equal(lost, 1);
	assert_int_equal(tree_node_sort(&g, &mix.n, items), g.leaf_slots - 1);
	mix.bytes[0] ^= 1;
	assert_int_equal(tree_node_mend(&g, &mix.n, self, &lost), -EBADMSG);
}

/* Nothing is ever read or written outside, whatever the bytes are; the
 * sanitizers look. */
static void bytes_that_are_anything(void **state)
{
	uint8_t mid[TREE_KEY_MAX];
	struct tree_item items[TREE_SLOTS_MAX], item;
	union node *u = malloc(sizeof(*u));
	unsigned lost;
	uint32_t len;
	struct rng r;

	assert_non_null(u);
	rng_init(&r, 5);
	for (unsigned i = 0; i < 3000; i++) {
		/* Some of a good node, the rest of it anything. */
		(void)make_full(u, 0);
		for (unsigned k = 0; k < 1 + i % 40; k++)
			u->bytes[rng_below(&r, i % 2 ? NODE_MAX : 200)] =
				(uint8_t)rng_u64(&r);
		(void)tree_node_judge(&g, &u->n, self);
		u->n.level &= 1;
		(void)tree_node_find(&g, &u->n, key_of("c05"), &item);
		(void)tree_node_sort(&g, &u->n, items);
		tree_node_middle(&g, &u->n, key_of("c05"), mid, &len);
		lost = 0;
		if (!tree_node_mend(&g, &u->n, self, &lost))
			assert_int_equal(tree_node_judge(&g, &u->n, self),
					 TREE_WHOLE);
	}
	free(u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(heads),
		cmocka_unit_test(orders),
		cmocka_unit_test(entries),
		cmocka_unit_test(each_bit_counts),
		cmocka_unit_test(mixtures_are_torn),
		cmocka_unit_test(splits),
		cmocka_unit_test(mends_half_a_split),
		cmocka_unit_test(bytes_that_are_anything),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
