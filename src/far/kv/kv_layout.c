/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a table: what it says, and what follows from it. */
#include "kv_layout.h"

#include <errno.h>
#include <string.h>

#include "base/crc.h"
#include "base/error.h"

const struct layout_kind kv_layout = {
	.name = "key-value table",
	.magic = "AQKVTABL",
	.major = 4,
	.minor = 0,
	.header_size = KV_HEAD_BYTES,
};

const struct layout_kind kv_lock_layout = {
	.name = "lock table",
	.magic = "AQKVLOCK",
	.major = 1,
	.minor = 0,
	.header_size = 64,
};

static int check_shape(const struct kv_geometry *g)
{
	if (g->entries < 1 || g->entries > KV_ENTRIES_MAX)
		return error_set(-EINVAL, "a row has 1 to %d entries, not %u",
				 KV_ENTRIES_MAX, g->entries);
	if (g->entry_bytes < KV_ENTRY_BYTES_MIN ||
	    g->entry_bytes > KV_ENTRY_BYTES_MAX || g->entry_bytes % 8)
		return error_set(-EINVAL,
				 "an entry has %d to %d bytes, a multiple of "
				 "8, not %u",
				 KV_ENTRY_BYTES_MIN, KV_ENTRY_BYTES_MAX,
				 g->entry_bytes);
	if (g->entries * g->entry_bytes + KV_TRAILER_BYTES > KV_ROW_BYTES_MAX)
		return error_set(-EINVAL,
				 "%u entries of %u bytes are more than the "
				 "%d bytes of a row",
				 g->entries, g->entry_bytes, KV_ROW_BYTES_MAX);
	if (g->rows < 2 || g->rows >> 32)
		return error_set(-EINVAL, "a table has 2 to 2^32 rows");
	if (g->rows_per_lock == 0 || g->rows_per_lock > 65536 ||
	    g->rows_per_lock & (g->rows_per_lock - 1))
		return error_set(-EINVAL,
				 "rows per lock are a power of two up to "
				 "65536, not %u",
				 g->rows_per_lock);
	return 0;
}

static int check_rest(const struct kv_geometry *g)
{
	unsigned i;

	if (g->shard_count < 1 || g->shard_count > KV_SHARDS_MAX ||
	    g->shard >= g->shard_count)
		return error_set(-EINVAL, "a table has 1 to %d shards",
				 KV_SHARDS_MAX);
	if (g->copy_count < 1 || g->copy_count > KV_COPIES_MAX ||
	    g->copy >= g->copy_count)
		return error_set(-EINVAL, "a table has 1 or %d copies",
				 KV_COPIES_MAX);
	if (g->lock_count == 0 || g->lock_count > 1u << 30)
		return error_set(-EINVAL, "a table has 1 to 2^30 locks");
	if (g->client_count < 2 || g->client_count > KV_CLIENTS_MAX)
		return error_set(-EINVAL, "a table has 2 to %d clients, not %u",
				 KV_CLIENTS_MAX, g->client_count);
	if (g->chunk_bytes < KV_CHUNK_BYTES_MIN ||
	    g->chunk_bytes > KV_CHUNK_BYTES_MAX ||
	    g->chunk_bytes & (g->chunk_bytes - 1))
		return error_set(-EINVAL,
				 "a chunk has %d bytes to 4 MiB, a power of "
				 "two, not %u",
				 KV_CHUNK_BYTES_MIN, g->chunk_bytes);
	if (g->chunk_count > 1u << 30 ||
	    g->chunk_count > (1ull << 46) / g->chunk_bytes)
		return error_set(-EINVAL, "too much memory for values");
	if (g->hash >= KV_HASH_COUNT)
		return error_set(-EINVAL, "there is no hash %u", g->hash);
	if (g->failure_ms < 1 || g->failure_ms > 3600000)
		return error_set(-EINVAL, "a client is dead after 1 ms to 1 h");
	for (i = 0; i < KV_LEAPS; i++)
		if (g->leap[i] == 0)
			return error_set(-EINVAL, "a leap of 0 rows");
	return 0;
}

int kv_geometry_derive(struct kv_geometry *g)
{
	uint64_t words;
	int err = check_shape(g);

	if (!g->shard_count)
		g->shard_count = 1;
	if (!g->copy_count)
		g->copy_count = 1;
	if (!err)
		err = check_rest(g);
	if (err)
		return err;
	g->row_bytes = g->entries * g->entry_bytes + KV_TRAILER_BYTES;
	g->block_rows = 64ull * g->rows_per_lock;
	g->lease_offset = KV_HEAD_BYTES;
	g->slot_offset = align_up(g->lease_offset + 8 * KV_LEASE_COUNT, 256);
	g->chunk_word_offset =
		g->slot_offset + (uint64_t)g->client_count * KV_SLOT_BYTES;
	g->row_offset =
		align_up(g->chunk_word_offset + 8 * g->chunk_count, KV_ALIGN);
	g->chunk_offset =
		align_up(g->row_offset + g->rows * g->row_bytes, KV_ALIGN);
	g->size_bytes = g->chunk_offset + g->chunk_count * g->chunk_bytes;
	words = g->flags & KV_WORD_LOCKS ? g->lock_count
					 : (g->lock_count + 63) / 64;
	g->lock_bytes = kv_lock_at(words);
	return 0;
}

/*
 * floor(f^(f + z)) without a logarithm's library: f^z by multiplication, and
 * f^f by the series of exp(f * ln f). Good to 1e-12, and only its floor is
 * used, by the one who makes the table; everybody else reads it there.
 */
static double ln_of(double x)
{
	double y = (x - 1) / (x + 1), term = y, sum = 0;
	int i;

	for (i = 1; i < 400; i += 2) {
		sum += term / i;
		term *= y * y;
	}
	return 2 * sum;
}

static double exp_of(double x)
{
	double term = 1, sum = 1;
	int i;

	for (i = 1; i < 100; i++) {
		term *= x / i;
		sum += term;
	}
	return sum;
}

void kv_leaps(uint32_t milli, uint64_t leap[KV_LEAPS])
{
	double f = milli / 1000.0, v = exp_of(f * ln_of(f));
	int i;

	for (i = 0; i < KV_LEAPS; i++) {
		leap[i] = v < 1	     ? 1
			  : v > 4e18 ? 4000000000000000000
				     : (uint64_t)v;
		v *= f;
	}
}

void kv_head_build(const struct kv_geometry *g, struct kv_head *h)
{
	unsigned i;

	memset(h, 0, sizeof(*h));
	layout_header_init(&h->layout, &kv_layout, g->size_bytes, "aquifer");
	h->rows = le64_put(g->rows);
	h->lock_count = le64_put(g->lock_count);
	h->seed = le64_put(g->seed);
	h->chunk_count = le64_put(g->chunk_count);
	h->entries = le32_put(g->entries);
	h->entry_bytes = le32_put(g->entry_bytes);
	h->rows_per_lock = le32_put(g->rows_per_lock);
	h->client_count = le32_put(g->client_count);
	h->chunk_bytes = le32_put(g->chunk_bytes);
	h->hash = le32_put(g->hash);
	h->locality_milli = le32_put(g->locality_milli);
	h->failure_ms = le32_put(g->failure_ms);
	h->flags = le32_put(g->flags);
	h->generation = le32_put(g->generation);
	h->shard = le32_put(g->shard);
	h->shard_count = le32_put(g->shard_count);
	h->copy = le32_put(g->copy);
	h->copy_count = le32_put(g->copy_count);
	h->name = le32_put(g->name);
	h->max_bytes = le64_put(g->max_bytes);
	for (i = 0; i < KV_LEAPS; i++)
		h->leap[i] = le64_put(g->leap[i]);
	h->crc = le64_put(crc64(0, h, offsetof(struct kv_head, crc)));
}

int kv_head_parse(const struct kv_head *h, uint64_t avail_bytes,
		  struct kv_geometry *g)
{
	struct layout_info info;
	unsigned i;
	int err = layout_header_check(h, avail_bytes, &kv_layout, &info);

	if (err)
		return err;
	if (le64_get(h->crc) != crc64(0, h, offsetof(struct kv_head, crc)))
		return error_set(-EBADMSG, "the table's head is damaged");
	*g = (struct kv_geometry){
		.rows = le64_get(h->rows),
		.lock_count = le64_get(h->lock_count),
		.seed = le64_get(h->seed),
		.chunk_count = le64_get(h->chunk_count),
		.entries = le32_get(h->entries),
		.entry_bytes = le32_get(h->entry_bytes),
		.rows_per_lock = le32_get(h->rows_per_lock),
		.client_count = le32_get(h->client_count),
		.chunk_bytes = le32_get(h->chunk_bytes),
		.hash = le32_get(h->hash),
		.locality_milli = le32_get(h->locality_milli),
		.failure_ms = le32_get(h->failure_ms),
		.flags = le32_get(h->flags),
		.generation = le32_get(h->generation),
		.shard = le32_get(h->shard),
		.shard_count = le32_get(h->shard_count),
		.copy = le32_get(h->copy),
		.copy_count = le32_get(h->copy_count),
		.name = le32_get(h->name),
		.max_bytes = le64_get(h->max_bytes),
	};
	for (i = 0; i < KV_LEAPS; i++)
		g->leap[i] = le64_get(h->leap[i]);
	if (kv_geometry_derive(g))
		return error_prefix(-EBADMSG, "the table's head: ");
	if (g->size_bytes != info.total_size)
		return error_set(-EBADMSG, "the table's sizes do not add up");
	return 0;
}

uint32_t kv_intent_crc(const struct kv_intent *intent)
{
	uint32_t n = le32_get(intent->group_count);
	uint32_t bytes = kv_intent_bytes(u32_min(n, KV_GROUPS));
	struct kv_intent copy;
	uint64_t crc;

	memcpy(&copy, intent, bytes); /* most are short */
	copy.crc = le32_put(0);
	crc = crc64(0, &copy, bytes);
	return (uint32_t)(crc ^ crc >> 32);
}

bool kv_intent_is_whole(const struct kv_intent *intent)
{
	uint32_t n = le32_get(intent->group_count);
	uint32_t crc = le32_get(intent->crc);

	if (crc == 0 && le64_get(intent->sequence) == 0 && n == 0)
		return true;
	return n <= KV_GROUPS && crc == kv_intent_crc(intent);
}
