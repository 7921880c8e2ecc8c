/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of tables: places, entries, rows, extents, heads. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "kv/kv_layout.h"

static struct kv_geometry make(uint64_t rows, uint32_t hash)
{
	struct kv_geometry g = {.rows = rows,
				.lock_count = (rows + 15) / 16,
				.seed = 99,
				.chunk_count = 8,
				.entries = 8,
				.entry_bytes = 64,
				.rows_per_lock = 16,
				.client_count = 8,
				.chunk_bytes = KV_CHUNK_BYTES_MIN,
				.hash = hash,
				.locality_milli = 2300,
				.failure_ms = 100};

	kv_leaps(2300, g.leap);
	assert_int_equal(kv_geometry_derive(&g), 0);
	return g;
}

/* floor(2.3^(2.3 + z)) as published. */
static void test_leaps(void **state)
{
	static const uint64_t want[] = {6, 15, 35, 82, 190, 437, 1005};
	uint64_t leap[KV_LEAPS];

	kv_leaps(2300, leap);
	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		assert_int_equal(leap[i], want[i]);
}

static void test_places(void **state)
{
	static const uint64_t sizes[] = {2, 3, 17, 1024, 100000};
	struct kv_place p;

	for (uint32_t hash = 0; hash < KV_HASH_COUNT; hash++)
		for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
			struct kv_geometry g = make(sizes[s], hash);
			uint64_t near = 0, n = 20000;

			for (uint64_t k = 0; k < n; k++) {
				uint64_t d;

				kv_place_of(&g, kv_hash_key(&g, &k, sizeof(k)),
					    &p);
				assert_true(p.row[0] < g.rows);
				assert_true(p.row[1] < g.rows);
				assert_int_not_equal(p.row[0], p.row[1]);
				d = p.row[0] > p.row[1] ? p.row[0] - p.row[1]
							: p.row[1] - p.row[0];
				near += d <= 5;
			}
			if (sizes[s] == 100000 && hash == KV_HASH_DEPENDENT) {
				assert_true(near > n * 52 / 100);
				assert_true(near < n * 56 / 100);
			}
		}
}

static void test_entries(void **state)
{
	struct kv_geometry g = make(100, 0);
	struct kv_item in = {.extent = g.chunk_offset + 4096,
			     .extent_bytes = 992,
			     .stamp = 0xabcdef,
			     .hash = 0x123456789abcdefu,
			     .expire_at_ms = 5};
	uint8_t e[KV_ENTRY_BYTES_MAX] = {0}, key[KV_KEY_MAX];
	struct kv_item out;

	memset(key, 'k', sizeof(key));
	assert_int_equal(kv_entry_read(&g, e, &out), -ENOENT);
	assert_true(kv_entry_is_whole(&g, e));
	assert_true(kv_fits_inline(&g, 26, 30, 0));
	assert_false(kv_fits_inline(&g, 26, 31, 0));
	assert_false(kv_fits_inline(&g, 26, 30, 77));
	kv_entry_inline(&g, e, "key", 3, "value", 5, 77);
	assert_int_equal(kv_entry_read(&g, e, &out), 0);
	assert_false(out.is_extent);
	assert_int_equal(out.expire_at_ms, 77);
	assert_memory_equal(out.key, "key", 3);
	assert_memory_equal(out.value, "value", 5);
	/* A key that fits, and one that does not. */
	for (uint32_t len = 3; len <= KV_KEY_MAX; len += 247) {
		kv_entry_extent(&g, e, key, len, &in);
		assert_int_equal(kv_entry_read(&g, e, &out), 0);
		assert_true(out.is_extent);
		assert_int_equal(out.extent, in.extent);
		assert_int_equal(out.extent_bytes, in.extent_bytes);
		assert_int_equal(out.stamp, in.stamp);
		assert_int_equal(out.hash, in.hash);
		assert_int_equal(out.expire_at_ms, 5);
		assert_int_equal(out.key_len, len);
		assert_int_equal(out.key != NULL, len == 3);
	}
}

/* Entries that have room for a small pair only. */
static void test_small_entries(void **state)
{
	struct kv_geometry g = make(100, 0);
	uint8_t e[KV_ENTRY_BYTES_MAX];
	struct kv_item out;

	g.entry_bytes = KV_ENTRY_BYTES_MIN;
	assert_int_equal(kv_geometry_derive(&g), 0);
	assert_true(kv_fits_inline(&g, 4, 4, 0));
	assert_false(kv_fits_inline(&g, 4, 5, 0));
	assert_false(kv_fits_inline(&g, 1, 0, 77));
	kv_entry_inline(&g, e, "key!", 4, "val!", 4, 0);
	assert_int_equal(kv_entry_read(&g, e, &out), 0);
	assert_memory_equal(out.value, "val!", 4);
	kv_entry_mark_put(&g, e);
	assert_true(kv_entry_is_whole(&g, e));
	/* What was deleted needs no room for its end. */
	assert_true(kv_fits_inline(&g, 8, 0, KV_GONE_MS));
	kv_entry_inline(&g, e, "longkey!", 8, "", 0, KV_GONE_MS);
	assert_int_equal(kv_entry_read(&g, e, &out), 0);
	assert_int_equal(out.expire_at_ms, KV_GONE_MS);
	assert_memory_equal(out.key, "longkey!", 8);
	/* An extent would lie beyond its end. */
	e[0] |= KV_E_EXTENT;
	assert_int_equal(kv_entry_read(&g, e, &out), -EBADMSG);
}

/* The head of one entry and the rest of another are not taken for one, wherever
 * the writer stopped; only equal bytes hide it. */
static void test_half_entries(void **state)
{
	struct kv_geometry g = make(100, 0);
	uint8_t a[KV_ENTRY_BYTES_MAX], b[KV_ENTRY_BYTES_MAX];
	uint8_t mix[KV_ENTRY_BYTES_MAX];
	unsigned missed = 0;

	kv_entry_inline(&g, a, "first", 5, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
			33, 0);
	kv_entry_inline(&g, b, "other", 5, "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
			33, 0);
	for (uint32_t cut = 8; cut < 8 + 5 + 33; cut++) {
		memcpy(mix, a, g.entry_bytes);
		memcpy(mix + cut, b + cut, g.entry_bytes - cut);
		missed += kv_entry_is_whole(&g, mix);
	}
	assert_int_equal(missed, 0);
}

static void test_rows(void **state)
{
	struct kv_geometry g = make(100, 0);
	uint8_t row[KV_ROW_BYTES_MAX] = {0};
	uint64_t before;

	assert_true(kv_row_is_whole(&g, row));
	assert_int_equal(kv_row_free(&g, row), 0);
	kv_row_seal(&g, row, 3);
	before = kv_row_crc(&g, row);
	assert_true(kv_row_is_whole(&g, row));
	kv_row_seal(&g, row, 3);
	assert_int_not_equal(kv_row_crc(&g, row), before);
	for (uint32_t i = 0; i < g.row_bytes; i++) {
		row[i] ^= 0x10;
		assert_false(kv_row_is_whole(&g, row));
		row[i] ^= 0x10;
	}
	for (unsigned i = 0; i < g.entries; i++)
		kv_entry_inline(&g, kv_entry(&g, row, i), "k", 1, "v", 1, 0);
	assert_int_equal(kv_row_free(&g, row), -1);
}

static void test_extents(void **state)
{
	struct kv_geometry g = make(100, 0);
	uint8_t bytes[128];
	const uint8_t *value;
	uint64_t len, size;

	size = kv_extent_build((struct kv_extent *)bytes, "key", 3, "value", 5,
			       9);
	assert_int_equal(size, KV_EXTENT_HEAD + 8);
	memcpy(bytes + KV_EXTENT_HEAD, "keyvalue", 8);
	assert_int_equal(
		kv_extent_check(bytes, size, 9, "key", 3, &value, &len), 0);
	assert_int_equal(len, 5);
	assert_memory_equal(value, "value", 5);
	assert_int_equal(
		kv_extent_check(bytes, size, 8, "key", 3, &value, &len),
		-EBADMSG);
	assert_int_equal(
		kv_extent_check(bytes, size, 9, "kez", 3, &value, &len),
		-ENOENT);
	assert_int_equal(
		kv_extent_check(bytes, size - 1, 9, "key", 3, &value, &len),
		-EBADMSG);
	bytes[KV_EXTENT_HEAD + 4] ^= 1;
	assert_int_equal(
		kv_extent_check(bytes, size, 9, "key", 3, &value, &len),
		-EBADMSG);
	for (uint32_t class = KV_CLASS_SHIFT_MIN; class < 15; class ++) {
		uint32_t n = kv_chunk_extents(&g, class);

		assert_true(n > 0);
		assert_true(kv_extent_at(&g, 2, class, n - 1) +
				    (1ull << class) <=
			    kv_chunk_at(&g, 3));
	}
}

static void test_heads(void **state)
{
	struct kv_geometry g = make(100, 0), out;
	struct kv_head h, bad;

	kv_head_build(&g, &h);
	assert_int_equal(kv_head_parse(&h, g.size_bytes, &out), 0);
	assert_memory_equal(&out, &g, sizeof(g));
	assert_int_equal(kv_head_parse(&h, g.size_bytes - 1, &out), -EBADMSG);
	for (size_t i = 64; i < sizeof(h); i += 7) {
		bad = h;
		((uint8_t *)&bad)[i] ^= 1;
		assert_int_equal(kv_head_parse(&bad, g.size_bytes, &out),
				 -EBADMSG);
	}
	g.entry_bytes = 33;
	assert_int_equal(kv_geometry_derive(&g), -EINVAL);
	g = make(100, 0);
	g.rows_per_lock = 3;
	assert_int_equal(kv_geometry_derive(&g), -EINVAL);
	g = make(100, 0);
	g.client_count = KV_CLIENTS_MAX + 1;
	assert_int_equal(kv_geometry_derive(&g), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leaps),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_entries),
		cmocka_unit_test(test_small_entries),
		cmocka_unit_test(test_half_entries),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_extents),
		cmocka_unit_test(test_heads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
