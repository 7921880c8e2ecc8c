/* SPDX-License-Identifier: Apache-2.0 */
/* Extents and the chunks they come from. */
#include <errno.h>
#include <string.h>

#include "base/crc.h"
#include "kv_layout.h"

enum {
	AFTER_CRC = 8, /* where the checked part begins */
};

uint64_t kv_extent_build(struct kv_extent *head, const void *key,
			 size_t key_len, const void *value, size_t value_len,
			 uint32_t stamp)
{
	uint64_t crc;

	*head = (struct kv_extent){.stamp = le32_put(stamp),
				   .key_len = le32_put((uint32_t)key_len),
				   .value_len = le64_put(value_len)};
	crc = crc64(0, (uint8_t *)head + AFTER_CRC, sizeof(*head) - AFTER_CRC);
	crc = crc64(crc, key, key_len);
	if (value_len)
		crc = crc64(crc, value, value_len);
	head->crc = le64_put(crc);
	return KV_EXTENT_HEAD + key_len + value_len;
}

int kv_extent_read(const void *extent, uint64_t avail_bytes, uint32_t stamp,
		   const uint8_t **key, uint32_t *key_len,
		   const uint8_t **value, uint64_t *value_len)
{
	const uint8_t *p = extent;
	struct kv_extent head;
	uint64_t total;

	if (avail_bytes < sizeof(head))
		return -EBADMSG;
	memcpy(&head, p, sizeof(head));
	*key_len = le32_get(head.key_len);
	*value_len = le64_get(head.value_len);
	if (le32_get(head.stamp) != stamp || *key_len == 0 ||
	    *key_len > KV_KEY_MAX || *value_len > avail_bytes)
		return -EBADMSG;
	total = sizeof(head) + *key_len + *value_len;
	if (total > avail_bytes ||
	    le64_get(head.crc) != crc64(0, p + AFTER_CRC, total - AFTER_CRC))
		return -EBADMSG;
	*key = p + sizeof(head);
	*value = *key + *key_len;
	return 0;
}

int kv_extent_check(const void *extent, uint64_t avail_bytes, uint32_t stamp,
		    const void *key, size_t key_len, const uint8_t **value,
		    uint64_t *value_len)
{
	const uint8_t *its_key;
	uint32_t its_len;
	int err = kv_extent_read(extent, avail_bytes, stamp, &its_key, &its_len,
				 value, value_len);

	if (err)
		return err;
	return its_len == key_len && memcmp(its_key, key, key_len) == 0
		       ? 0
		       : -ENOENT;
}

/* n extents and n bytes of map, rounded up so that extents are aligned. */
uint32_t kv_chunk_extents(const struct kv_geometry *g, uint32_t class)
{
	uint64_t size, n;

	if (class < KV_CLASS_SHIFT_MIN || class > 29)
		return 0;
	size = 1ull << class;
	n = g->chunk_bytes / (size + 1);
	while (n && align_up(n, 64) + n * size > g->chunk_bytes)
		n--;
	return (uint32_t)n;
}

uint64_t kv_extent_at(const struct kv_geometry *g, uint64_t chunk,
		      uint32_t class, uint32_t index)
{
	return kv_chunk_at(g, chunk) +
	       align_up(kv_chunk_extents(g, class), 64) +
	       ((uint64_t)index << class);
}
