/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of records and pages: sealing them, and checking what comes back.
 */
#include <errno.h>
#include <string.h>

#include "base/crc.h"
#include "hlog_priv.h"

uint32_t hlog_record_crc(const struct hlog_record *r)
{
	/* Not 0, so that a record of zeros is not sound. */
	uint32_t crc =
		crc32_raw(0xffffffff, r, offsetof(struct hlog_record, crc));

	return crc32_raw(crc, r->value, hlog_record_value_bytes(r));
}

bool hlog_record_is_sound(const void *bytes, uint32_t size_bytes)
{
	const struct hlog_record *r = bytes;
	uint32_t value_bytes;

	if (size_bytes < sizeof(*r))
		return false;
	value_bytes = hlog_record_value_bytes(r);
	return value_bytes <= HLOG_VALUE_BYTES_MAX &&
	       hlog_record_bytes(value_bytes) == size_bytes &&
	       le32_get(r->crc) == hlog_record_crc(r);
}

static uint64_t page_checksum(const struct hlog_page *p)
{
	return crc64(0, p, offsetof(struct hlog_page, checksum));
}

void hlog_page_seal(void *page, uint32_t used_bytes,
		    const struct hlog_page_id *id)
{
	struct hlog_page *head = page;
	uint8_t *base = page;
	uint32_t off = sizeof(*head);
	uint32_t count = 0;

	while (off < used_bytes) {
		struct hlog_record *r = (struct hlog_record *)(base + off);

		r->crc = le32_put(hlog_record_crc(r));
		off += hlog_record_bytes(hlog_record_value_bytes(r));
		count++;
	}
	memset(head, 0, sizeof(*head));
	head->magic = le64_put(HLOG_PAGE_MAGIC);
	head->store = le64_put(id->store);
	head->number = le64_put(id->number);
	head->shard = le32_put(id->shard);
	head->used_bytes = le32_put(used_bytes);
	head->generation = le32_put(id->generation);
	head->record_count = le32_put(count);
	head->checksum = le64_put(page_checksum(head));
}

static int check_records(const uint8_t *base, uint32_t used_bytes,
			 uint32_t record_count)
{
	uint32_t off = sizeof(struct hlog_page);
	uint32_t count = 0;

	while (off < used_bytes) {
		const struct hlog_record *r =
			(const struct hlog_record *)(base + off);
		uint32_t size;

		if (used_bytes - off < sizeof(*r))
			return -EBADMSG;
		size = hlog_record_bytes(hlog_record_value_bytes(r));
		if (size > used_bytes - off || !hlog_record_is_sound(r, size))
			return -EBADMSG;
		off += size;
		count++;
	}
	return count == record_count ? 0 : -EBADMSG;
}

int hlog_page_check(const void *page, uint32_t page_bytes,
		    const struct hlog_page_id *id, uint32_t low_generation)
{
	const struct hlog_page *head = page;
	uint32_t generation = le32_get(head->generation);
	uint32_t used = le32_get(head->used_bytes);

	if (le64_get(head->magic) != HLOG_PAGE_MAGIC)
		return le64_get(head->magic) == 0 ? -ENOENT : -EBADMSG;
	if (le64_get(head->checksum) != page_checksum(head))
		return -EBADMSG;
	if (le64_get(head->store) != id->store || generation < low_generation ||
	    generation > id->generation)
		return -ENOENT;
	if (le64_get(head->number) != id->number ||
	    le32_get(head->shard) != id->shard || used > page_bytes ||
	    used < sizeof(*head))
		return -EBADMSG;
	return check_records(page, used, le32_get(head->record_count));
}
