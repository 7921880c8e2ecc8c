/* SPDX-License-Identifier: Apache-2.0 */
/* A store: its memory, its first block on the device, its beginning and end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "base/crc.h"
#include "base/error.h"
#include "hlog_priv.h"

const struct layout_kind hlog_super_kind = {
	.name = "hybrid log",
	.magic = "AQHLOG\r\n",
	.major = 1,
	.minor = 0,
	.header_size = sizeof(struct hlog_super),
};

static bool is_pow2(uint64_t v)
{
	return v && (v & (v - 1)) == 0;
}

static uint32_t log2_of(uint64_t v)
{
	return 63 - (uint32_t)__builtin_clzll(v);
}

static int check_geometry(struct hlog *h)
{
	if (!is_pow2(h->shard_count) || h->shard_count > HLOG_SHARDS_MAX)
		return error_set(-EINVAL,
				 "shards: a power of two up to %d, not %u",
				 HLOG_SHARDS_MAX, h->shard_count);
	if (!is_pow2(h->page_bytes) || h->page_bytes < HLOG_PAGE_BYTES_MIN ||
	    h->page_bytes > HLOG_PAGE_BYTES_MAX)
		return error_set(-EINVAL,
				 "pages: a power of two from %d to %d, not %u",
				 HLOG_PAGE_BYTES_MIN, HLOG_PAGE_BYTES_MAX,
				 h->page_bytes);
	if (h->value_max < 1 || h->value_max > HLOG_VALUE_BYTES_MAX ||
	    hlog_record_bytes(h->value_max) + sizeof(struct hlog_page) >
		    h->page_bytes)
		return error_set(-EINVAL,
				 "values: 1 to %d bytes and less than a page, "
				 "not %u",
				 HLOG_VALUE_BYTES_MAX, h->value_max);
	if (!is_pow2(h->bucket_count) ||
	    h->bucket_count > 1ull << HLOG_REF_ADDR_BITS)
		return error_set(-EINVAL, "%llu records are too many",
				 (unsigned long long)h->bucket_count);
	return 0;
}

static int share_device(struct hlog *h)
{
	uint64_t size = h->device->size_bytes;
	uint64_t word_max = 1ull << HLOG_REF_ADDR_BITS;

	if (size < HLOG_SUPER_BYTES)
		size = HLOG_SUPER_BYTES;
	h->page_max =
		(size - HLOG_SUPER_BYTES) / h->shard_count / h->page_bytes;
	h->page_max =
		u64_min(h->page_max, word_max / (h->page_bytes / HLOG_WORD));
	if (h->page_max < 1)
		return error_set(-ENOSPC,
				 "the device has %llu bytes, and one page of "
				 "%u for each of %u shards needs more",
				 (unsigned long long)h->device->size_bytes,
				 h->page_bytes, h->shard_count);
	return 0;
}

static int init_shard(struct hlog *h, uint32_t i, uint32_t pframe_count,
		      uint32_t mutable_percent)
{
	struct hlog_shard *sh = &h->shard[i];

	lock_init(&sh->lock);
	sh->number = i;
	sh->pframe_count = pframe_count;
	/* Two pages at least can be on their way out. */
	sh->mutable_count =
		u32_max(1, u32_min(pframe_count - 2,
				   (uint32_t)((uint64_t)pframe_count *
					      mutable_percent / 100)));
	sh->memory = h->memory + (uint64_t)i * pframe_count * h->page_bytes;
	sh->state = calloc(pframe_count, sizeof(*sh->state));
	sh->used = calloc(pframe_count, sizeof(*sh->used));
	if (!sh->state || !sh->used)
		return -ENOMEM;
	return hlog_index_init(&sh->index, h->bucket_count);
}

static int init_shards(struct hlog *h, const struct hlog_options *opt)
{
	uint32_t percent = opt->mutable_percent ? opt->mutable_percent
						: HLOG_MUTABLE_PERCENT_DEFAULT;
	uint64_t pframes = opt->local_bytes / h->shard_count / h->page_bytes;
	int rc = 0;

	if (percent > 100)
		return error_set(-EINVAL, "%u %% of the tail", percent);
	if (pframes < HLOG_PFRAMES_MIN || pframes > UINT32_MAX)
		return error_set(-EINVAL,
				 "%llu local bytes: at least %llu are needed "
				 "for %d pages of each shard",
				 (unsigned long long)opt->local_bytes,
				 (unsigned long long)HLOG_PFRAMES_MIN *
					 h->shard_count * h->page_bytes,
				 HLOG_PFRAMES_MIN);
	h->memory_bytes = pframes * h->shard_count * h->page_bytes;
	h->memory = hlog_memory(h->memory_bytes);
	h->shard =
		aligned_alloc(CACHE_LINE, h->shard_count * sizeof(*h->shard));
	if (!h->memory || !h->shard)
		return error_set(-ENOMEM, "no memory for the log's tail");
	memset(h->shard, 0, h->shard_count * sizeof(*h->shard));
	for (uint32_t i = 0; i < h->shard_count && rc == 0; i++)
		rc = init_shard(h, i, (uint32_t)pframes, percent);
	return rc < 0 ? error_set(rc, "no memory for the index") : 0;
}

int hlog_store_alloc(const struct hlog_options *opt,
		     const struct hlog_super *super, struct hlog **out)
{
	struct hlog *h = calloc(1, sizeof(*h));
	int rc;

	if (!h)
		return -ENOMEM;
	h->device = opt->device;
	h->value_max = opt->value_max;
	h->page_bytes =
		opt->page_bytes ? opt->page_bytes : HLOG_PAGE_BYTES_DEFAULT;
	h->shard_count =
		opt->shard_count ? opt->shard_count : HLOG_SHARDS_DEFAULT;
	h->bucket_count = hlog_index_buckets(opt->record_count /
					     u32_max(h->shard_count, 1));
	atomic_init(&h->failed, 0);
	if (super) {
		h->id = le64_get(super->store);
		h->value_max = le32_get(super->value_max);
		h->page_bytes = le32_get(super->page_bytes);
		h->shard_count = le32_get(super->shard_count);
		h->bucket_count = le64_get(super->bucket_count);
	}
	rc = check_geometry(h);
	if (rc == 0)
		rc = share_device(h);
	if (rc == 0) {
		h->shard_shift = 64 - log2_of(h->shard_count);
		rc = init_shards(h, opt);
	}
	if (rc < 0) {
		hlog_destroy(h);
		return rc;
	}
	*out = h;
	return 0;
}

void hlog_destroy(struct hlog *h)
{
	if (!h)
		return;
	for (uint32_t i = 0; h->shard && i < h->shard_count; i++) {
		hlog_index_release(&h->shard[i].index);
		free(h->shard[i].state);
		free(h->shard[i].used);
	}
	free(h->shard);
	if (h->memory)
		munmap(h->memory, h->memory_bytes);
	free(h);
}

/* ---- the first block ---------------------------------------------------- */

static uint64_t super_checksum(const struct hlog_super *sb)
{
	size_t from = offsetof(struct hlog_super, store);

	return crc64(0, (const uint8_t *)sb + from,
		     offsetof(struct hlog_super, checksum) - from);
}

/* A queue for one block at a time, with a block of its own. */
static int open_block(struct hlog_device *dev, uint8_t **block,
		      struct hlog_queue **q)
{
	struct hlog_queue_options qo = {.depth = 1,
					.read_max = HLOG_SUPER_BYTES,
					.write_from_bytes = HLOG_SUPER_BYTES};
	int rc;

	*block = aligned_alloc(HLOG_SUPER_BYTES, HLOG_SUPER_BYTES);
	if (!*block)
		return -ENOMEM;
	memset(*block, 0, HLOG_SUPER_BYTES);
	qo.write_from = *block;
	rc = dev->ops->queue_open(dev, &qo, q);
	if (rc < 0)
		free(*block);
	return rc;
}

int hlog_super_write(struct hlog *h)
{
	struct hlog_queue *q;
	struct hlog_super *sb;
	uint8_t *block;
	int rc = open_block(h->device, &block, &q);

	if (rc < 0)
		return rc;
	sb = (struct hlog_super *)block;
	layout_header_init(&sb->header, &hlog_super_kind, h->device->size_bytes,
			   "aquifer hlog");
	sb->store = le64_put(h->id);
	sb->bucket_count = le64_put(h->bucket_count);
	sb->shard_count = le32_put(h->shard_count);
	sb->page_bytes = le32_put(h->page_bytes);
	sb->value_max = le32_put(h->value_max);
	sb->generation = le32_put(h->generation);
	sb->checksum = le64_put(super_checksum(sb));
	rc = hlog_device_write_wait(q, 0, block, HLOG_SUPER_BYTES);
	h->device->ops->queue_close(q);
	free(block);
	return rc < 0 ? error_set(rc, "the first block cannot be written: %s",
				  strerror(-rc))
		      : 0;
}

int hlog_super_read(struct hlog_device *dev, struct hlog_super *out)
{
	struct layout_info info;
	struct hlog_super sb;
	struct hlog_queue *q;
	uint8_t *block;
	int rc = open_block(dev, &block, &q);

	if (rc < 0)
		return rc;
	rc = hlog_device_read_wait(q, 0, block, HLOG_SUPER_BYTES);
	memcpy(&sb, block, sizeof(sb));
	dev->ops->queue_close(q);
	free(block);
	if (rc < 0)
		return error_set(rc, "the first block cannot be read: %s",
				 strerror(-rc));
	rc = layout_header_check(&sb, dev->size_bytes, &hlog_super_kind, &info);
	if (rc < 0)
		return rc;
	if (le64_get(sb.checksum) != super_checksum(&sb))
		return error_set(-EBADMSG, "the log's first block is damaged");
	if (info.total_size != dev->size_bytes)
		return error_set(-EINVAL,
				 "the log was made for %llu bytes, the device "
				 "has %llu",
				 (unsigned long long)info.total_size,
				 (unsigned long long)dev->size_bytes);
	*out = sb;
	return 0;
}

int hlog_create(const struct hlog_options *opt, struct hlog **out)
{
	struct hlog *h;
	int rc = hlog_store_alloc(opt, NULL, &h);

	if (rc < 0)
		return rc;
	if (getrandom(&h->id, sizeof(h->id), 0) != sizeof(h->id))
		rc = error_set(-EIO, "the kernel gives no random numbers");
	if (rc == 0)
		rc = hlog_super_write(h);
	if (rc < 0) {
		hlog_destroy(h);
		return rc;
	}
	*out = h;
	return 0;
}

/* ---- sizes -------------------------------------------------------------- */

uint64_t hlog_local_bytes(uint64_t record_count, uint32_t value_bytes,
			  uint32_t local_part, uint32_t total_part)
{
	return record_count * hlog_record_bytes(value_bytes) / total_part *
	       local_part;
}

uint64_t hlog_device_bytes(uint64_t record_count, uint32_t value_bytes,
			   uint32_t page_bytes, uint32_t shard_count)
{
	uint64_t per_page = (page_bytes - sizeof(struct hlog_page)) /
			    hlog_record_bytes(value_bytes);
	/* Hashing does not fill all shards alike: six standard deviations. */
	uint64_t per_shard = record_count / shard_count;
	uint64_t spread = 6;

	while (spread * spread < 36 * (per_shard + 1))
		spread += 1 + spread / 64;
	return HLOG_SUPER_BYTES +
	       ((per_shard + spread) / per_page + 2) * page_bytes * shard_count;
}
