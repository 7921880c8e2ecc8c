/* SPDX-License-Identifier: Apache-2.0 */
/* What a table should become, and how full clients take it for. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "kv/kv_client_priv.h"
#include "kv/kv_upkeep.h"

static struct kv_geometry table(uint64_t capacity, uint32_t copies,
				uint64_t max_bytes, uint32_t flags)
{
	struct aq_kv_options o = {.capacity = capacity,
				  .extent_bytes = 4 << 20,
				  .copies = copies,
				  .max_bytes = max_bytes,
				  .flags = flags,
				  .seed = 1};
	struct kv_geometry g;

	assert_int_equal(kv_geometry_make(&o, &g), 0);
	return g;
}

static struct kv_need need(enum kv_wish_kind kind, uint64_t bytes)
{
	struct kv_wish w = {.kind = kind, .bytes = bytes};
	struct kv_need n = {0};

	kv_need_add(&n, &w);
	return n;
}

static void a_full_index_doubles_at_least(void **state)
{
	struct kv_geometry g = table(1000, 1, 0, 0);
	struct kv_need n = need(KV_WISH_ROWS, 0);
	struct aq_kv_options o;
	unsigned share = 1;

	assert_int_equal(kv_upkeep_plan(&g, &n, 600, &share, &o), 0);
	assert_int_equal(o.capacity, 2000);
	assert_int_equal(o.extent_bytes, 0);
	/* Room for three times the keys, so that others need not wait. */
	assert_int_equal(kv_upkeep_plan(&g, &n, 950, &share, &o), 0);
	assert_int_equal(o.capacity, 2850);
	/* A part of it, where the rack has no room for all. */
	share = 4;
	assert_int_equal(kv_upkeep_plan(&g, &n, 600, &share, &o), 0);
	assert_int_equal(o.capacity, 1250);
}

static void a_value_gets_a_place_in_its_own_shard(void **state)
{
	struct kv_geometry g = table(1000, 1, 0, 0);
	struct kv_need n = need(KV_WISH_EXTENTS, 30 << 20);
	struct aq_kv_options o;
	unsigned share = 8;

	assert_int_equal(kv_upkeep_plan(&g, &n, 10, &share, &o), 0);
	assert_int_equal(o.capacity, 0);
	assert_true(o.extent_bytes >= (4u << 20) + (30u << 20));
	n.bytes = 0;
	share = 1;
	assert_int_equal(kv_upkeep_plan(&g, &n, 10, &share, &o), 0);
	assert_int_equal(o.extent_bytes, 8 << 20);
}

static void a_maximum_is_kept_and_then_named(void **state)
{
	struct kv_geometry g = table(100000, 2, 40 << 20, 0), next;
	struct kv_need n = need(KV_WISH_ROWS, 0);
	struct aq_kv_options o;
	unsigned share = 1;

	assert_int_equal(kv_upkeep_plan(&g, &n, 80000, &share, &o), 0);
	assert_true(o.capacity > 100000);
	assert_int_equal(kv_geometry_next(&g, &o, &next), 0);
	assert_true((next.size_bytes + next.lock_bytes) * 2 <= 40u << 20);
	assert_int_equal(next.max_bytes, 40 << 20);
	g = table(100000, 2, 20 << 20, 0);
	share = 1;
	assert_int_equal(kv_upkeep_plan(&g, &n, 80000, &share, &o), -ENOSPC);
	/* A lost copy is made all the same. */
	n.copy = true;
	share = 1;
	assert_int_equal(kv_upkeep_plan(&g, &n, 80000, &share, &o), 0);
	assert_int_equal(o.capacity, 0);
}

static void a_copy_changes_sizes_only_where_it_must(void **state)
{
	struct kv_geometry g = table(1000, 2, 0, 0);
	struct kv_geometry fixed = table(1000, 2, 0, AQ_KV_FIXED);
	struct kv_need n = need(KV_WISH_COPY, 0);
	struct aq_kv_options o;
	unsigned share = 1;

	assert_int_equal(kv_upkeep_plan(&g, &n, 400, &share, &o), 0);
	assert_int_equal(o.capacity, 0);
	/* Others go on while it is copied. */
	assert_int_equal(kv_upkeep_plan(&g, &n, 700, &share, &o), 0);
	assert_int_equal(o.capacity, 2100);
	assert_int_equal(kv_upkeep_plan(&fixed, &n, 700, &share, &o), 0);
	assert_int_equal(o.capacity, 0);
}

static void wishes_of_an_older_generation_are_over(void **state)
{
	struct kv_wish old = {.kind = KV_WISH_ROWS, .generation = 1};
	struct kv_wish new = {
		.kind = KV_WISH_EXTENTS, .generation = 2, .bytes = 7};
	struct kv_need n = {0};

	kv_need_add(&n, &old);
	assert_true(n.rows && n.generation == 1);
	kv_need_add(&n, &new);
	assert_true(!n.rows && n.extents && n.bytes == 7 && n.generation == 2);
	kv_need_add(&n, &old);
	assert_true(!n.rows && n.generation == 2);
}

static void samples_tell_how_full_an_index_is(void **state)
{
	struct rng rng;

	rng_init(&rng, 7);
	for (uint32_t fill = 100; fill <= 900; fill += 200) {
		struct kv_fill f = {0};

		for (int i = 0; i < 300; i++) {
			uint32_t used = 0;

			for (int e = 0; e < 16; e++)
				used += rng_below(&rng, 1000) < fill;
			kv_fill_add(&f, used, 16);
		}
		assert_in_range(f.milli, fill - 75, fill + 75);
	}
}

static void the_rest_of_a_copy_has_its_room(void **state)
{
	enum {
		ENTRIES = 1000,
		USED_MAX = 900
	};

	assert_int_equal(kv_room_share(ENTRIES, 0, 0, 1), 850 / 16);
	assert_int_equal(kv_room_share(ENTRIES, 400, 400, 1), 50 / 16);
	assert_int_equal(kv_room_share(ENTRIES, 400, 400, 4), 0);
	assert_int_equal(kv_room_share(ENTRIES, 400, 450, 1), 0);
	assert_int_equal(kv_room_share(ENTRIES, 900, 0, 1), 0);
	assert_int_equal(kv_room_share(ENTRIES, 0, UINT32_MAX, 0), 0);
	/* All clients but one sleep with their shares, this one takes what it
	 * gets, and then they use theirs. */
	for (uint32_t clients = 1; clients <= 50; clients++) {
		uint64_t left = 300, used = 0, kept, got;

		kept = kv_room_share(ENTRIES, used, left, clients);
		while ((got = kv_room_share(ENTRIES, used, left, clients)) > 0)
			used += got;
		used += kept * (clients - 1);
		assert_true(used + left <= USED_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_index_doubles_at_least),
		cmocka_unit_test(a_value_gets_a_place_in_its_own_shard),
		cmocka_unit_test(a_maximum_is_kept_and_then_named),
		cmocka_unit_test(a_copy_changes_sizes_only_where_it_must),
		cmocka_unit_test(wishes_of_an_older_generation_are_over),
		cmocka_unit_test(samples_tell_how_full_an_index_is),
		cmocka_unit_test(the_rest_of_a_copy_has_its_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
