/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients of a table read from far memory: a head is refused or has sizes
 * that add up; an entry, a row, an extent and an intent of any bytes are
 * refused or lie inside what was read.
 */
#include <string.h>

#include "base/crc.h"
#include "fuzz.h"
#include "kv/kv_layout.h"

static struct kv_geometry geometry(uint8_t a, uint8_t b)
{
	struct kv_geometry g = {.rows = 64 + a,
				.lock_count = 8,
				.seed = 1,
				.chunk_count = 4,
				.entries = 1 + b % 8,
				.entry_bytes = 16 + 8 * (b % 14),
				.rows_per_lock = 16,
				.client_count = 4,
				.chunk_bytes = KV_CHUNK_BYTES_MIN,
				.hash = a % KV_HASH_COUNT,
				.locality_milli = 2300,
				.failure_ms = 100};
	int err;

	kv_leaps(2300, g.leap);
	err = kv_geometry_derive(&g);
	ASSERT(err == 0 || g.entries * g.entry_bytes > KV_ROW_BYTES_MAX - 16);
	if (err) {
		g.entries = 1;
		err = kv_geometry_derive(&g);
		ASSERT(!err);
	}
	return g;
}

/* The checksums are put right, so that what lies behind them is reached. */
static void check_head(const uint8_t *data, size_t size)
{
	struct kv_head h = {0};
	struct kv_geometry g;

	memcpy(&h, data, size < sizeof(h) ? size : sizeof(h));
	if (le64_get(h.layout.total_size) < sizeof(h))
		return;
	layout_header_init(&h.layout, &kv_layout, le64_get(h.layout.total_size),
			   "fuzz");
	h.crc = le64_put(crc64(0, &h, offsetof(struct kv_head, crc)));
	if (kv_head_parse(&h, UINT64_MAX, &g))
		return;
	ASSERT(g.row_bytes <= KV_ROW_BYTES_MAX);
	ASSERT(g.chunk_offset >= kv_row_at(&g, g.rows));
	ASSERT(g.size_bytes == le64_get(h.layout.total_size));
	ASSERT(kv_lock_of(&g, g.rows - 1) < g.lock_count);
}

static void check_entry(const struct kv_geometry *g, const uint8_t *entry)
{
	const uint8_t *end = entry + g->entry_bytes;
	struct kv_place place;
	struct kv_item item;

	(void)kv_entry_is_whole(g, entry);
	if (kv_entry_read(g, entry, &item))
		return;
	ASSERT(item.key_len >= 1 && item.key_len <= KV_KEY_MAX);
	ASSERT(!item.key ||
	       (item.key > entry && item.key + item.key_len <= end));
	if (item.is_extent) {
		ASSERT(item.extent >= g->chunk_offset);
		ASSERT(item.extent + item.extent_bytes <= g->size_bytes);
	} else {
		ASSERT(item.value + item.value_len <= end);
	}
	kv_place_of(g, kv_entry_hash(g, &item), &place);
	ASSERT(place.row[0] < g->rows && place.row[1] < g->rows);
	ASSERT(place.row[0] != place.row[1]);
}

static void check_extent(const uint8_t *data, size_t size)
{
	const uint8_t *key, *value;
	uint32_t key_len, stamp = 0;
	uint64_t len;

	if (size >= 12)
		memcpy(&stamp, data + 8, sizeof(stamp));
	if (kv_extent_read(data, size, stamp, &key, &key_len, &value, &len))
		return;
	ASSERT(key >= data && value + len <= data + size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t row[KV_ROW_BYTES_MAX] = {0};
	struct kv_intent intent = {0};
	struct kv_geometry g;
	unsigned i;

	check_head(data, size);
	check_extent(data, size);
	memcpy(&intent, data, size < sizeof(intent) ? size : sizeof(intent));
	(void)kv_intent_is_whole(&intent);
	if (size < 2)
		return 0;
	g = geometry(data[0], data[1]);
	memcpy(row, data + 2, size - 2 < sizeof(row) ? size - 2 : sizeof(row));
	(void)kv_row_is_whole(&g, row);
	for (i = 0; i < g.entries; i++)
		check_entry(&g, kv_entry(&g, row, i));
	kv_row_seal(&g, row, 7);
	ASSERT(kv_row_is_whole(&g, row));
	return 0;
}
