/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over a whole replica: scanning it, and counting its keys. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kv_priv.h"

enum {
	TORN_TRIES = 10000, /* of one row, with a look at the time */
};

/* A row, until it is whole. */
static int read_again(struct kv_replica *c, uint64_t row, uint8_t *to)
{
	uint64_t lock = kv_lock_of(&c->g, row), since = kit_now_ns(&c->kit);
	bool words = c->g.flags & KV_WORD_LOCKS;
	int err;

	for (;;) {
		err = kit_read_now(&c->kit.main, kv_row_at(&c->g, row),
				   c->kit.stage, c->g.row_bytes);
		if (err)
			return err;
		memcpy(to, c->kit.stage, c->g.row_bytes);
		if (kv_row_is_whole(&c->g, to))
			return 0;
		/* Its writer may be dead. */
		if (kit_now_ns(&c->kit) - since > c->kit.failure_ns / 2) {
			err = kv_recover(c, words ? lock : lock / 64,
					 words ? UINT64_MAX
					       : 1ull << (lock % 64));
			since = kit_now_ns(&c->kit);
		}
		if (!err)
			err = kv_past_deadline(c);
		if (err)
			return err;
	}
}

/* What has expired shows on demand, what was deleted only to ourselves. */
static bool is_hidden(const struct kv_replica *c, const struct kv_item *item,
		      unsigned flags)
{
	if (!kv_is_expired(c, item->expire_at_ms) || (flags & KV_SCAN_GRAVES))
		return false;
	return !(flags & AQ_KV_SCAN_EXPIRED) ||
	       item->expire_at_ms == KV_GRAVE_MS;
}

/* -EAGAIN: the extent is not what the entry says any more. */
static int give(struct kv_replica *c, const struct kv_item *item,
		unsigned flags, aq_kv_item_fn each, void *user)
{
	struct aq_kv_item out = {.key = item->key,
				 .key_len = item->key_len,
				 .value = item->value,
				 .value_len = item->value_len,
				 .expire_at_ms = item->expire_at_ms};
	const uint8_t *bytes, *key, *value;
	uint32_t key_len;
	uint64_t len;
	int err;

	if (is_hidden(c, item, flags))
		return 0;
	if (item->is_extent && (!item->key || !(flags & AQ_KV_SCAN_KEYS))) {
		err = kv_extent_fetch(c, item, &bytes);
		if (err)
			return err;
		if (kv_extent_read(bytes, item->extent_bytes, item->stamp, &key,
				   &key_len, &value, &len))
			return -EAGAIN;
		out.key = key;
		out.key_len = key_len;
		out.value = value;
		out.value_len = len;
	}
	if (flags & AQ_KV_SCAN_KEYS &&
	    (item->is_extent || !(flags & KV_SCAN_INLINE))) {
		out.value = NULL;
		out.value_len = 0;
	}
	return each(&out, user);
}

static int give_row(struct kv_replica *c, uint64_t number, uint8_t *row,
		    unsigned flags, aq_kv_item_fn each, void *user)
{
	struct kv_item item;
	unsigned i;
	int err = 0, tries;

	if (!kv_row_is_whole(&c->g, row))
		err = read_again(c, number, row);
	for (i = 0; i < c->g.entries && !err; i++) {
		for (tries = 0; tries < TORN_TRIES; tries++) {
			if (kv_entry_read(&c->g, kv_entry(&c->g, row, i),
					  &item))
				break;
			err = give(c, &item, flags, each, user);
			if (err != -EAGAIN)
				break;
			/* Changed meanwhile: look at the row again. */
			err = read_again(c, number, row);
			if (err)
				break;
		}
	}
	return err;
}

static int scan(struct kv_replica *c, uint64_t *cursor, uint64_t rows,
		unsigned flags, aq_kv_item_fn each, void *user)
{
	uint64_t per = KIT_STAGE_BYTES / c->g.row_bytes, at = *cursor, i, n;
	uint64_t end = u64_min(c->g.rows, at + u64_max(rows, 1));
	uint8_t *copy = malloc(KIT_STAGE_BYTES);
	int err = copy ? 0 : error_set(-ENOMEM, "no memory for a scan");

	for (; at < end && !err; at += n) {
		n = u64_min(per, end - at);
		err = kit_read_now(&c->kit.main, kv_row_at(&c->g, at),
				   c->kit.stage, n * c->g.row_bytes);
		if (err)
			break;
		memcpy(copy, c->kit.stage, n * c->g.row_bytes);
		for (i = 0; i < n && !err; i++)
			err = give_row(c, at + i, copy + i * c->g.row_bytes,
				       flags, each, user);
	}
	free(copy);
	if (!err)
		*cursor = end == c->g.rows ? 0 : end;
	return err;
}

int kv_replica_scan(struct kv_replica *c, uint64_t *row, uint64_t rows,
		    unsigned flags, aq_kv_item_fn each, void *user)
{
	int err;

	if (*row >= c->g.rows)
		return error_set(-EINVAL, "the table has no row %llu",
				 (unsigned long long)*row);
	err = kv_op_begin(c);
	if (err)
		return err;
	err = kv_get_drain(c, NULL);
	if (!err)
		err = scan(c, row, rows, flags, each, user);
	if (!err)
		err = kv_state_confirm(c);
	return kv_op_end(c, err);
}

int kv_replica_count(struct kv_replica *c, uint64_t *count)
{
	uint32_t clients;

	return kv_replica_count_with(c, count, &clients);
}

int kv_replica_count_with(struct kv_replica *c, uint64_t *count,
			  uint32_t *clients)
{
	uint64_t bytes = (uint64_t)c->g.client_count * KV_SLOT_BYTES, i;
	int64_t sum = 0;
	int err = kv_op_begin(c);

	if (err)
		return err;
	err = kv_get_drain(c, NULL);
	if (!err)
		err = kit_big_reserve(&c->kit, bytes);
	if (!err)
		err = kit_read_now(&c->kit.main, c->g.slot_offset, c->kit.big,
				   bytes);
	if (err)
		return kv_op_end(c, err);
	*clients = 0;
	for (i = 0; i < c->g.client_count; i++) {
		struct kv_slot s;

		memcpy(&s, c->kit.big + i * KV_SLOT_BYTES, sizeof(s));
		sum += (int64_t)le64_get(s.intent.count);
		*clients += kit_slot_state(&s.client) != KIT_SLOT_FREE;
	}
	*count = sum > 0 ? (uint64_t)sum : 0;
	return 0;
}
