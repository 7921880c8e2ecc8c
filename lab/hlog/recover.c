/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the index of a store from its log. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "hlog_priv.h"

struct reader {
	struct hlog *h;
	struct hlog_queue *queue;
	uint8_t *page;
	uint32_t old_generation; /* of the store, before this recovery */
	struct hlog_recovery *found;
};

/* The page's first part tells how much more there is. */
static int read_page(struct reader *r, const struct hlog_shard *sh,
		     uint64_t number)
{
	uint32_t page_bytes = r->h->page_bytes;
	uint64_t base = hlog_far_offset(r->h, sh, number * page_bytes);
	uint32_t end = u32_min(HLOG_READ_CHUNK, page_bytes);
	uint32_t off = 0;

	while (off < end) {
		uint32_t len = u32_min(end - off, HLOG_READ_CHUNK);
		const struct hlog_page *head = (struct hlog_page *)r->page;
		int rc = hlog_device_read_wait(r->queue, base + off,
					       r->page + off, len);

		if (rc < 0)
			return rc;
		off += len;
		if (le64_get(head->magic) == HLOG_PAGE_MAGIC &&
		    le32_get(head->used_bytes) <= page_bytes)
			end = u32_max(end, le32_get(head->used_bytes));
	}
	return 0;
}

/* Records of a page that was checked. -EBADMSG: they do not fit the log before
 * them. */
static int take_records(struct reader *r, struct hlog_shard *sh,
			uint64_t number)
{
	const struct hlog_page *head = (struct hlog_page *)r->page;
	uint32_t used = le32_get(head->used_bytes);
	uint32_t off = sizeof(*head);

	while (off < used) {
		const struct hlog_record *rec =
			(struct hlog_record *)(r->page + off);
		uint32_t size = hlog_record_bytes(hlog_record_value_bytes(rec));
		uint64_t hash = hlog_hash(le64_get(rec->key));
		uint64_t *entry;

		if (hlog_shard_of(r->h, hash) != sh)
			return -EBADMSG;
		entry = hlog_index_make(&sh->index, hash);
		if (!entry)
			return error_set(-ENOMEM, "no memory for the index");
		if (le64_get(rec->prev) != *entry)
			return -EBADMSG;
		*entry = hlog_ref_make(number * r->h->page_bytes + off, size,
				       hlog_hash_tag(hash));
		r->found->records++;
		r->found->tombstones += hlog_record_is_tombstone(rec);
		off += size;
	}
	return 0;
}

static int recover_shard(struct reader *r, struct hlog_shard *sh)
{
	struct hlog_page_id id = {.store = r->h->id,
				  .shard = sh->number,
				  .generation = r->old_generation};
	uint32_t low = 0;
	uint64_t n;
	int rc = 0;

	for (n = 0; n < r->h->page_max; n++) {
		id.number = n;
		rc = read_page(r, sh, n);
		if (rc < 0)
			return error_set(rc, "the log cannot be read: %s",
					 strerror(-rc));
		rc = hlog_page_check(r->page, r->h->page_bytes, &id, low);
		if (rc == 0)
			rc = take_records(r, sh, n);
		if (rc < 0)
			break;
		low = le32_get(((struct hlog_page *)r->page)->generation);
		r->found->pages++;
	}
	if (rc == -EBADMSG)
		r->found->damaged_shards++;
	else if (rc < 0 && rc != -ENOENT)
		return rc;
	/* All of it is far; the next append opens page n. */
	sh->head_page = sh->ro_page = sh->write_page = sh->tail_page = n;
	return 0;
}

static int recover_all(struct reader *r)
{
	struct hlog_device *dev = r->h->device;
	struct hlog_queue_options qo = {.depth = 1,
					.read_max = HLOG_READ_CHUNK};
	int rc;

	r->page = malloc(r->h->page_bytes);
	if (!r->page)
		return -ENOMEM;
	rc = dev->ops->queue_open(dev, &qo, &r->queue);
	if (rc < 0)
		goto out_free;
	for (uint32_t i = 0; i < r->h->shard_count && rc == 0; i++)
		rc = recover_shard(r, &r->h->shard[i]);
	dev->ops->queue_close(r->queue);
out_free:
	free(r->page);
	return rc;
}

int hlog_recover(const struct hlog_options *opt, struct hlog_recovery *found,
		 struct hlog **out)
{
	struct hlog_recovery ignored;
	struct reader r = {.found = found ? found : &ignored};
	struct hlog_super sb;
	int rc = hlog_super_read(opt->device, &sb);

	if (rc < 0)
		return rc;
	*r.found = (struct hlog_recovery){0};
	rc = hlog_store_alloc(opt, &sb, &r.h);
	if (rc < 0)
		return rc;
	r.old_generation = le32_get(sb.generation);
	r.h->generation = r.old_generation + 1;
	rc = recover_all(&r);
	/* Before the first page of this generation. */
	if (rc == 0)
		rc = hlog_super_write(r.h);
	if (rc < 0) {
		hlog_destroy(r.h);
		return rc;
	}
	*out = r.h;
	return 0;
}
