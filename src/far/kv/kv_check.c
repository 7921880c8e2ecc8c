/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verifies every invariant of kv_layout.h by reading all of the table: rows and
 * their CRCs, entries and where they stand, keys that stand twice, extents and
 * the maps of their chunks, locks.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kv_priv.h"

/* A key, by hash and by a second one, to find those that stand twice. */
struct seen_key {
	uint64_t hash;
	uint64_t row;
};

struct check {
	struct aq_kv_report *r;
	struct seen_key *key; /* room for all entries */
	uint64_t key_count;
	uint64_t *extent; /* offsets that entries point to */
	uint64_t extent_count;
};

static int by_hash(const void *a, const void *b)
{
	const struct seen_key *x = a, *y = b;

	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int check_extent(struct kv_replica *c, struct check *k,
			const struct kv_item *item)
{
	const uint8_t *bytes, *key, *value;
	uint32_t key_len;
	uint64_t len;
	int err = kv_extent_fetch(c, item, &bytes);

	if (err)
		return err;
	if (kv_extent_read(bytes, item->extent_bytes, item->stamp, &key,
			   &key_len, &value, &len) ||
	    kv_hash_key(&c->g, key, key_len) != item->hash ||
	    (item->key && (key_len != item->key_len ||
			   memcmp(key, item->key, key_len) != 0)) ||
	    kv_extent_size(key_len, len) != item->extent_bytes)
		k->r->bad_extents++;
	k->extent[k->extent_count++] = item->extent;
	return 0;
}

static int check_entry(struct kv_replica *c, struct check *k, uint64_t row,
		       const uint8_t *entry)
{
	struct aq_kv_report *r = k->r;
	struct kv_place place;
	struct kv_item item;
	int err = kv_entry_read(&c->g, entry, &item);

	if (!kv_entry_is_whole(&c->g, entry)) {
		r->bad_entries++;
		return 0;
	}
	if (err == -ENOENT)
		return 0;
	r->used++;
	r->expired += kv_is_expired(c, item.expire_at_ms);
	kv_place_of(&c->g, kv_entry_hash(&c->g, &item), &place);
	if (place.row[0] != row && place.row[1] != row)
		r->bad_entries++;
	k->key[k->key_count++] = (struct seen_key){place.hash, row};
	if (!item.is_extent) {
		r->inline_entries++;
		return 0;
	}
	r->extent_entries++;
	return check_extent(c, k, &item);
}

static int check_rows(struct kv_replica *c, struct check *k)
{
	uint64_t per = KIT_STAGE_BYTES / c->g.row_bytes, at, i, n;
	uint8_t *copy = malloc(KIT_STAGE_BYTES);
	unsigned e;
	int err = copy ? 0 : error_set(-ENOMEM, "no memory for a check");

	for (at = 0; at < c->g.rows && !err; at += n) {
		n = u64_min(per, c->g.rows - at);
		err = kit_read_now(&c->kit.main, kv_row_at(&c->g, at),
				   c->kit.stage, n * c->g.row_bytes);
		memcpy(copy, c->kit.stage, n * c->g.row_bytes);
		for (i = 0; i < n && !err; i++) {
			uint8_t *row = copy + i * c->g.row_bytes;

			k->r->rows++;
			k->r->bad_rows += !kv_row_is_whole(&c->g, row);
			for (e = 0; e < c->g.entries && !err; e++)
				err = check_entry(c, k, at + i,
						  kv_entry(&c->g, row, e));
		}
	}
	free(copy);
	return err;
}

/* The same hash twice is the same key but for one chance in 2^64. */
static void check_doubles(struct check *k)
{
	uint64_t i;

	qsort(k->key, k->key_count, sizeof(k->key[0]), by_hash);
	for (i = 1; i < k->key_count; i++)
		k->r->duplicates += k->key[i].hash == k->key[i - 1].hash;
	qsort(k->extent, k->extent_count, sizeof(k->extent[0]), by_value);
	for (i = 1; i < k->extent_count; i++)
		k->r->shared_extents += k->extent[i] == k->extent[i - 1];
}

static bool is_pointed_to(const struct check *k, uint64_t offset)
{
	return bsearch(&offset, k->extent, k->extent_count,
		       sizeof(k->extent[0]), by_value) != NULL;
}

/* What the map calls used, somebody points to. */
static int check_chunk(struct kv_replica *c, struct check *k, uint64_t chunk,
		       uint64_t word, bool *run_is_known)
{
	uint32_t class = kv_chunk_class(word), n, i;
	int err;

	if (class == KV_CLASS_RUN) {
		if (kv_chunk_run(word))
			*run_is_known =
				is_pointed_to(k, kv_chunk_at(&c->g, chunk));
		k->r->leaked_extents += !*run_is_known;
		return 0;
	}
	n = kv_chunk_extents(&c->g, class);
	if (n == 0)
		return 0;
	err = kit_read_now(&c->kit.main, kv_chunk_at(&c->g, chunk),
			   c->kit.stage, n);
	for (i = 0; i < n && !err; i++) {
		bool known =
			is_pointed_to(k, kv_extent_at(&c->g, chunk, class, i));

		k->r->leaked_extents += c->kit.stage[i] && !known;
		k->r->bad_extents += !c->kit.stage[i] && known;
	}
	return err;
}

static int check_chunks(struct kv_replica *c, struct check *k)
{
	uint64_t bytes = 8 * c->g.chunk_count, i;
	uint8_t *words;
	bool run_is_known = false;
	int err;

	if (bytes == 0)
		return 0;
	words = malloc(bytes);
	err = words ? kit_big_reserve(&c->kit, bytes)
		    : error_set(-ENOMEM, "no memory for a check");
	if (!err)
		err = kit_read_now(&c->kit.main, c->g.chunk_word_offset,
				   c->kit.big, bytes);
	if (!err)
		memcpy(words, c->kit.big, bytes);
	for (i = 0; i < c->g.chunk_count && !err; i++) {
		le64 w;

		memcpy(&w, words + 8 * i, sizeof(w));
		err = check_chunk(c, k, i, le64_get(w), &run_is_known);
	}
	free(words);
	return err;
}

static int check_locks(struct kv_replica *c, struct check *k)
{
	uint64_t words = (c->g.lock_bytes - kv_lock_at(0)) / 8, at, i, n;
	int err = 0;

	for (at = 0; at < words && !err; at += n) {
		n = u64_min(words - at, KIT_STAGE_BYTES / 8);
		err = kit_read_now(&c->kit.locks, kv_lock_at(at), c->kit.stage,
				   8 * n);
		for (i = 0; i < n && !err; i++) {
			uint64_t w;

			memcpy(&w, c->kit.stage + 8 * i, sizeof(w));
			k->r->locks_held +=
				c->g.flags & KV_WORD_LOCKS
					? w != 0
					: (uint64_t)__builtin_popcountll(w);
		}
	}
	return err;
}

static int count_clients(struct kv_replica *c, struct check *k)
{
	uint64_t count = 0, i;
	int err = kv_replica_count(c, &count);

	for (i = 0; i < c->g.client_count && !err; i++)
		k->r->clients += c->kit.big[i * KV_SLOT_BYTES] != KIT_SLOT_FREE;
	k->r->count_error =
		count > k->r->used ? count - k->r->used : k->r->used - count;
	return err;
}

int kv_replica_check(struct kv_replica *c, struct aq_kv_report *report)
{
	uint64_t entries = c->g.rows * c->g.entries;
	struct check k = {.r = report};
	int err = kv_op_begin(c);

	*report = (struct aq_kv_report){0};
	k.key = malloc(entries * sizeof(k.key[0]));
	k.extent = malloc(entries * sizeof(k.extent[0]));
	if (!err && (!k.key || !k.extent))
		err = error_set(-ENOMEM, "no memory for a check");
	if (!err)
		err = kv_get_drain(c, NULL);
	if (!err)
		err = check_rows(c, &k);
	if (!err) {
		check_doubles(&k);
		err = check_chunks(c, &k);
	}
	if (!err)
		err = check_locks(c, &k);
	if (!err)
		err = count_clients(c, &k);
	free(k.key);
	free(k.extent);
	return kv_op_end(c, err);
}
