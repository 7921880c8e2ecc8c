/* SPDX-License-Identifier: Apache-2.0 */
/* Entries and rows: packing them, and telling whole ones from others. */
#include <errno.h>
#include <string.h>

#include "base/crc.h"
#include "kv_layout.h"

static uint64_t word_get(const uint8_t *p)
{
	le64 w;

	memcpy(&w, p, sizeof(w));
	return le64_get(w);
}

static void word_put(uint8_t *p, uint64_t v)
{
	le64 w = le64_put(v);

	memcpy(p, &w, sizeof(w));
}

static uint64_t check_of(const struct kv_geometry *g, const uint8_t *entry)
{
	uint8_t head[8];
	uint64_t crc;

	memcpy(head, entry, 8);
	head[6] = head[7] = 0;
	crc = crc64(0, head, 8);
	crc = crc64(crc, entry + 8, g->entry_bytes - 8);
	crc ^= crc >> 32;
	return (crc ^ crc >> 16) & 0xffff;
}

bool kv_fits_inline(const struct kv_geometry *g, size_t key_len,
		    size_t value_len, uint64_t expire_at_ms)
{
	size_t head = KV_E_HEAD + (expire_at_ms > KV_GONE_MS ? KV_E_END : 0);
	size_t room = g->entry_bytes - head;

	return key_len <= room && value_len <= room - key_len;
}

void kv_entry_inline(const struct kv_geometry *g, uint8_t *entry,
		     const void *key, size_t key_len, const void *value,
		     size_t value_len, uint64_t expire_at_ms)
{
	uint8_t *at = entry + KV_E_HEAD;
	uint64_t head =
		KV_E_USED | (uint64_t)key_len << 8 | (uint64_t)value_len << 16;

	memset(entry, 0, g->entry_bytes);
	if (expire_at_ms == KV_GONE_MS) {
		head |= KV_E_GONE;
	} else if (expire_at_ms) {
		head |= KV_E_EXPIRES;
		word_put(at, expire_at_ms);
		at += KV_E_END;
	}
	memcpy(at, key, key_len);
	if (value_len)
		memcpy(at + key_len, value, value_len);
	word_put(entry, head);
	word_put(entry, head | check_of(g, entry) << 48);
}

void kv_entry_extent(const struct kv_geometry *g, uint8_t *entry,
		     const void *key, size_t key_len,
		     const struct kv_item *item)
{
	uint8_t *at = entry + KV_E_EXTENT_HEAD;
	uint64_t head = KV_E_USED | KV_E_EXTENT | (uint64_t)key_len << 8 |
			(uint64_t)(item->extent_bytes / KV_EXTENT_UNIT) << 16 |
			(uint64_t)(item->stamp >> 16 & 0xff) << 40;

	memset(entry, 0, g->entry_bytes);
	word_put(entry + 8, item->extent | (uint64_t)(item->stamp & 0xffff)
						   << 48);
	word_put(entry + 16, item->hash);
	if (item->expire_at_ms) {
		head |= KV_E_EXPIRES;
		word_put(at, item->expire_at_ms);
		at += KV_E_END;
	}
	if (key && at + key_len <= entry + g->entry_bytes) {
		head |= KV_E_HAS_KEY;
		memcpy(at, key, key_len);
	}
	word_put(entry, head);
	word_put(entry, head | check_of(g, entry) << 48);
}

void kv_entry_mark_put(const struct kv_geometry *g, uint8_t *entry)
{
	entry[0] |= KV_E_PUT;
	word_put(entry, (word_get(entry) & 0xffffffffffffu) | check_of(g, entry)
								      << 48);
}

void kv_entry_clear(const struct kv_geometry *g, uint8_t *entry)
{
	memset(entry, 0, g->entry_bytes);
}

static int read_extent(const struct kv_geometry *g, const uint8_t *entry,
		       uint64_t head, struct kv_item *out)
{
	const uint8_t *at = entry + KV_E_EXTENT_HEAD;
	const uint8_t *end = entry + g->entry_bytes;
	uint64_t pointer = word_get(entry + 8);

	if (!kv_has_extents(g))
		return -EBADMSG;
	out->is_extent = true;
	out->extent = pointer & 0xffffffffffffu;
	out->stamp = (uint32_t)(pointer >> 48) | (uint32_t)(head >> 40 & 0xff)
							 << 16;
	out->extent_bytes = (uint32_t)(head >> 16 & 0x7fffff) * KV_EXTENT_UNIT;
	out->hash = word_get(entry + 16);
	if (head & KV_E_EXPIRES) {
		out->expire_at_ms = word_get(at);
		at += KV_E_END;
	}
	if (head & KV_E_HAS_KEY) {
		if (at + out->key_len > end)
			return -EBADMSG;
		out->key = at;
	}
	if (out->extent < g->chunk_offset ||
	    out->extent_bytes < KV_EXTENT_HEAD || out->extent > g->size_bytes ||
	    out->extent_bytes > g->size_bytes - out->extent)
		return -EBADMSG;
	return 0;
}

int kv_entry_read(const struct kv_geometry *g, const uint8_t *entry,
		  struct kv_item *out)
{
	uint64_t head = word_get(entry);
	const uint8_t *at = entry + KV_E_HEAD;
	const uint8_t *end = entry + g->entry_bytes;

	if (!(head & KV_E_USED))
		return -ENOENT;
	*out = (struct kv_item){.key_len = head >> 8 & 0xff};
	if (out->key_len == 0 || out->key_len > KV_KEY_MAX)
		return -EBADMSG;
	if (head & KV_E_EXTENT)
		return read_extent(g, entry, head, out);
	out->value_len = head >> 16 & 0xff;
	if (head & KV_E_GONE)
		out->expire_at_ms = KV_GONE_MS;
	if (head & KV_E_EXPIRES) {
		out->expire_at_ms = word_get(at);
		at += KV_E_END;
	}
	if (out->key_len + out->value_len > (size_t)(end - at))
		return -EBADMSG;
	out->key = at;
	out->value = at + out->key_len;
	return 0;
}

bool kv_entry_is_whole(const struct kv_geometry *g, const uint8_t *entry)
{
	struct kv_item item;
	int err = kv_entry_read(g, entry, &item);

	if (err == -ENOENT) {
		for (uint32_t i = 0; i < g->entry_bytes; i++)
			if (entry[i])
				return false;
		return true;
	}
	return !err && word_get(entry) >> 48 == check_of(g, entry);
}

uint64_t kv_entry_hash(const struct kv_geometry *g, const struct kv_item *item)
{
	return item->is_extent ? item->hash
			       : kv_hash_key(g, item->key, item->key_len);
}

uint64_t kv_row_crc(const struct kv_geometry *g, const void *row)
{
	const struct kv_trailer *t =
		(const void *)((const uint8_t *)row + g->row_bytes -
			       KV_TRAILER_BYTES);

	return le64_get(t->crc);
}

bool kv_row_is_whole(const struct kv_geometry *g, const void *row)
{
	uint64_t crc = kv_row_crc(g, row);

	/* A row that was never written is zeros, CRC included. */
	return crc == crc64(0, row, g->row_bytes - 8) ||
	       (crc == 0 && kv_row_is_virgin(g, row));
}

bool kv_row_is_virgin(const struct kv_geometry *g, const void *row)
{
	const uint8_t *p = row;

	return p[0] == 0 && memcmp(p, p + 1, g->row_bytes - 1) == 0;
}

void kv_row_seal(const struct kv_geometry *g, void *row, uint32_t writer)
{
	struct kv_trailer *t =
		(void *)((uint8_t *)row + g->row_bytes - KV_TRAILER_BYTES);

	t->version++;
	t->writer[0] = (uint8_t)writer;
	t->writer[1] = (uint8_t)(writer >> 8);
	t->crc = le64_put(crc64(0, row, g->row_bytes - 8));
}

int kv_row_free(const struct kv_geometry *g, const void *row)
{
	const uint8_t *p = row;
	unsigned i;

	for (i = 0; i < g->entries; i++, p += g->entry_bytes)
		if (!kv_entry_used(p))
			return (int)i;
	return -1;
}
