/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A unit: a change of several keys of one replica, all or none. The locks of
 * all keys' rows are taken together, the rows and old values are read, the
 * caller decides, and kv_unit_record.c makes the change visible. A key for
 * which both rows are full is first given room: an entry that changes nothing
 * for readers is inserted on an ordinary path, and the unit begins again. It
 * has expired, or it is the older generation's, where that has one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kv_priv.h"

enum {
	READ_BATCH = 64, /* rows that are read in one round trip */
};

int kv_unit_init(struct kv_unit *u)
{
	u->change = calloc(u->count, sizeof(u->change[0]));
	u->key = calloc(u->count, sizeof(u->key[0]));
	u->rows = malloc((size_t)2 * u->count * KV_ROW_BYTES_MAX);
	if (u->change && u->key && u->rows)
		return 0;
	kv_unit_release(u);
	return error_set(-ENOMEM, "no memory for a unit of %u keys", u->count);
}

static void forget_values(struct kv_unit *u)
{
	for (uint32_t i = 0; u->key && i < u->count; i++) {
		free(u->key[i].old);
		u->key[i].old = NULL;
	}
	u->bytes = 0;
}

void kv_unit_release(struct kv_unit *u)
{
	forget_values(u);
	free(u->change);
	free(u->key);
	free(u->rows);
	u->change = NULL;
	u->key = NULL;
	u->rows = NULL;
}

/* ---- rows --------------------------------------------------------------- */

static int row_index(const struct kv_unit *u, uint64_t row)
{
	for (uint32_t i = 0; i < u->row_count; i++)
		if (u->row[i] == row)
			return (int)i;
	return -1;
}

static uint8_t *row_bytes(const struct kv_replica *c, const struct kv_unit *u,
			  int i)
{
	return u->rows + (size_t)i * c->g.row_bytes;
}

static int plan(struct kv_replica *c, struct kv_unit *u)
{
	int err = 0;

	u->row_count = 0;
	u->want = (struct kv_want){0};
	u->memory = (struct kv_new){0};
	for (uint32_t i = 0; i < u->count; i++)
		u->key[i].fresh = (struct kv_new){0};
	for (uint32_t i = 0; i < u->count; i++) {
		struct kv_place *p = &u->key[i].place;

		kv_place_of(
			&c->g,
			kv_hash_key(&c->g, u->keys[i].key, u->keys[i].key_len),
			p);
		for (unsigned k = 0; k < 2 && !err; k++) {
			if (row_index(u, p->row[k]) < 0)
				u->row[u->row_count++] = p->row[k];
			err = kv_lockset_add(c, &u->want.set, p->row[k]);
		}
	}
	return err == -E2BIG ? error_set(err,
					 "%u keys have more locks than one "
					 "operation may hold",
					 u->count)
			     : err;
}

/* A row that was torn though its lock was free: its writer died in it. */
static int mend(struct kv_replica *c, uint64_t number, uint8_t *row)
{
	(void)kv_row_mend(&c->g, row);
	kv_row_seal(&c->g, row, c->kit.slot);
	return kit_write_now(&c->kit.main, KV_POINT_MEND,
			     kv_row_at(&c->g, number), row, c->g.row_bytes);
}

static int read_rows(struct kv_replica *c, struct kv_unit *u)
{
	uint64_t bytes = (uint64_t)u->row_count * c->g.row_bytes;
	int err = kit_big_reserve(&c->kit, bytes);

	for (uint32_t i = 0; i < u->row_count && !err;) {
		kit_begin(&c->kit);
		for (unsigned n = 0; n < READ_BATCH && i < u->row_count;
		     n++, i++)
			kit_read(&c->kit.main, kv_row_at(&c->g, u->row[i]),
				 c->kit.big + (size_t)i * c->g.row_bytes,
				 c->g.row_bytes);
		err = kit_run(&c->kit);
	}
	for (uint32_t i = 0; i < u->row_count && !err; i++) {
		uint8_t *row = c->kit.big + (size_t)i * c->g.row_bytes;

		if (!kv_row_is_whole(&c->g, row))
			err = mend(c, u->row[i], row);
	}
	if (!err)
		memcpy(u->rows, c->kit.big, bytes);
	memset(u->is_dirty, 0, sizeof(u->is_dirty));
	u->dirty_count = 0;
	return err;
}

/* ---- values ------------------------------------------------------------- */

static int keep_value(struct kv_unit *u, uint32_t i, const void *value,
		      uint64_t len)
{
	struct aq_kv_change *ch = &u->change[i];

	u->bytes += len;
	if (u->bytes > KV_UNIT_BYTES)
		return error_set(-E2BIG,
				 "the values of these keys have more than %d "
				 "bytes together",
				 KV_UNIT_BYTES);
	u->key[i].old = malloc(len + 1);
	if (!u->key[i].old)
		return error_set(-ENOMEM, "no memory for a value");
	if (len)
		memcpy(u->key[i].old, value, len);
	ch->value = u->key[i].old;
	ch->value_len = len;
	return 0;
}

/* The extent's value. -ENOENT: it has another key with the same hash. */
static int fetch(struct kv_replica *c, struct kv_unit *u, uint32_t i)
{
	const struct kv_item *item = &u->key[i].item;
	const uint8_t *bytes, *value;
	uint64_t len;
	int err = kv_extent_fetch(c, item, &bytes);

	if (err)
		return err;
	err = kv_extent_check(bytes, item->extent_bytes, item->stamp,
			      u->keys[i].key, u->keys[i].key_len, &value, &len);
	if (err == -ENOENT)
		return err;
	return err ? error_set(-EREMOTEIO, "the value of a key is damaged; "
					   "`aquifer kv check` says more")
		   : keep_value(u, i, value, len);
}

static void find_entry(struct kv_replica *c, struct kv_unit *u, uint32_t i,
		       uint32_t skip)
{
	struct kv_unit_key *k = &u->key[i];

	k->row = -1;
	for (unsigned n = 0; n < 2 && k->row < 0; n++) {
		int at = row_index(u, k->place.row[n]);

		k->entry = kv_row_find(&c->g, row_bytes(c, u, at), &k->place,
				       u->keys[i].key, u->keys[i].key_len,
				       &skip, &k->item);
		if (k->entry >= 0)
			k->row = at;
	}
}

static int read_key(struct kv_replica *c, struct kv_unit *u, uint32_t i)
{
	struct kv_unit_key *k = &u->key[i];
	struct aq_kv_change *ch = &u->change[i];
	uint32_t skip = 0;
	int err;

	*ch = (struct aq_kv_change){.verdict = AQ_KV_KEEP};
	do {
		find_entry(c, u, i, skip++);
		if (k->row < 0)
			return u->older ? u->older(u, i, ch) : 0;
		err = k->item.is_extent ? fetch(c, u, i)
					: keep_value(u, i, k->item.value,
						     k->item.value_len);
	} while (err == -ENOENT);
	ch->expire_at_ms = k->item.expire_at_ms;
	if (!err && kv_is_expired(c, ch->expire_at_ms))
		*ch = (struct aq_kv_change){.verdict = AQ_KV_KEEP};
	return err;
}

static int read_keys(struct kv_replica *c, struct kv_unit *u)
{
	int err = 0;

	forget_values(u);
	for (uint32_t i = 0; i < u->count && !err; i++) {
		bool was_older;

		err = read_key(c, u, i);
		/* What another replica says is in memory that is used again. */
		was_older = !err && u->change[i].value && !u->key[i].old;
		if (was_older)
			err = keep_value(u, i, u->change[i].value,
					 u->change[i].value_len);
		kv_heartbeat(c);
	}
	return err;
}

/* ---- changing ----------------------------------------------------------- */

static void note_dirty(struct kv_unit *u, int row)
{
	u->dirty_count += !u->is_dirty[row];
	u->is_dirty[row] = true;
}

static int new_extent(struct kv_replica *c, struct kv_unit *u, uint32_t i)
{
	const struct aq_kv_change *ch = &u->change[i];
	struct kv_new *n = &u->key[i].fresh;
	int err;

	if (!kv_has_extents(&c->g))
		return error_set(-E2BIG,
				 "key and value have at most %u bytes in this "
				 "table, and 8 less where the key has an end",
				 c->g.entry_bytes - KV_E_HEAD);
	err = kv_new_alloc(c, u->keys[i].key_len, ch->new_value_len, n);
	if (!err)
		err = kv_new_fill(c, n, u->keys[i].key, u->keys[i].key_len,
				  ch->new_value, ch->new_value_len);
	kv_heartbeat(c);
	return err;
}

/* -EAGAIN: the key has no entry, and there is no room for one. */
static int store(struct kv_replica *c, struct kv_unit *u, uint32_t i)
{
	const struct aq_kv_change *ch = &u->change[i];
	const struct aq_kv_key *key = &u->keys[i];
	struct kv_unit_key *k = &u->key[i];
	bool is_inline = kv_fits_inline(&c->g, key->key_len, ch->new_value_len,
					ch->expire_at_ms);
	struct kv_item item = {.hash = k->place.hash,
			       .expire_at_ms = ch->expire_at_ms};
	int row = k->row, entry = k->entry, err;
	uint8_t *to;

	for (unsigned n = 0; n < 2 && row < 0; n++) {
		int at = row_index(u, k->place.row[n]);

		entry = kv_row_free(&c->g, row_bytes(c, u, at));
		if (entry >= 0)
			row = at;
	}
	if (row < 0)
		return -EAGAIN;
	err = is_inline ? 0 : new_extent(c, u, i);
	if (err)
		return err;
	to = kv_entry(&c->g, row_bytes(c, u, row), (unsigned)entry);
	item.extent = k->fresh.offset;
	item.extent_bytes = (uint32_t)k->fresh.size_bytes;
	item.stamp = k->fresh.stamp;
	if (is_inline)
		kv_entry_inline(&c->g, to, key->key, key->key_len,
				ch->new_value, ch->new_value_len,
				ch->expire_at_ms);
	else
		kv_entry_extent(&c->g, to, key->key, key->key_len, &item);
	note_dirty(u, row);
	return 0;
}

static void erase(struct kv_replica *c, struct kv_unit *u, uint32_t i)
{
	const struct kv_unit_key *k = &u->key[i];

	kv_entry_clear(&c->g, kv_entry(&c->g, row_bytes(c, u, k->row),
				       (unsigned)k->entry));
	note_dirty(u, k->row);
}

/* A deleted key leaves an entry that has expired, where others still look at an
 * older generation. */
static void leave_graves(struct kv_unit *u)
{
	for (uint32_t i = 0; u->leaves_graves && i < u->count; i++) {
		struct aq_kv_change *ch = &u->change[i];

		if (ch->verdict != AQ_KV_DELETE ||
		    (u->key[i].row < 0 && !ch->value))
			continue;
		ch->verdict = AQ_KV_STORE;
		ch->new_value = "";
		ch->new_value_len = 0;
		ch->expire_at_ms = KV_GRAVE_MS;
	}
}

static int check_sizes(struct kv_unit *u)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < u->count; i++) {
		const struct aq_kv_change *ch = &u->change[i];

		if (ch->verdict != AQ_KV_STORE)
			continue;
		bytes += ch->new_value_len;
		if (ch->new_value_len > AQ_KV_VALUE_MAX ||
		    bytes > KV_UNIT_BYTES)
			return error_set(-E2BIG,
					 "a value has at most %d bytes, and "
					 "those of a unit %d together",
					 AQ_KV_VALUE_MAX, KV_UNIT_BYTES);
	}
	return 0;
}

/* *full: for which key there is no room. Entries that go first make room. */
static int apply(struct kv_replica *c, struct kv_unit *u, uint32_t *full)
{
	int err = 0;

	for (uint32_t i = 0; i < u->count; i++)
		if (u->change[i].verdict == AQ_KV_DELETE && u->key[i].row >= 0)
			erase(c, u, i);
	for (uint32_t i = 0; i < u->count && !err; i++) {
		if (u->change[i].verdict != AQ_KV_STORE)
			continue;
		err = store(c, u, i);
		*full = i;
	}
	return err;
}

/* ---- running ------------------------------------------------------------ */

/* An extent that was made for nothing. The map does not know the small ones. */
static int give_back(struct kv_replica *c, const struct kv_new *n)
{
	if (!n->is_set || kv_class_of(&c->g, n->size_bytes))
		return 0;
	kit_begin(&c->kit);
	kv_extent_add_free(c, n->offset, n->size_bytes);
	return kit_run(&c->kit);
}

static int let_go(struct kv_replica *c, struct kv_unit *u, int result)
{
	int err;

	if (kit_stopped(&c->kit))
		return result;
	err = give_back(c, &u->memory);
	for (uint32_t i = 0; i < u->count && !err; i++)
		err = give_back(c, &u->key[i].fresh);
	if (!err)
		err = kv_locks_drop(c, &u->want.set, u->want.set.count);
	return err ? err : result;
}

/* With the locks. */
static int decide(struct kv_replica *c, struct kv_unit *u, uint32_t *full)
{
	int err = read_rows(c, u);

	if (!err)
		err = read_keys(c, u);
	if (!err)
		err = u->fn(u->change, u->user);
	if (!err)
		err = check_sizes(u);
	if (!err) {
		leave_graves(u);
		err = apply(c, u, full);
	}
	if (!err && u->dirty_count)
		err = kv_unit_prepare(c, u);
	if (!err && u->mirror && u->dirty_count)
		err = u->mirror(u);
	return err;
}

static int attempt(struct kv_replica *c, struct kv_unit *u, uint32_t *full)
{
	int err = plan(c, u);

	if (!err)
		err = kv_locks_try(c, &u->want.set);
	if (err == -EAGAIN)
		err = kv_locks_take(c, &u->want);
	if (err)
		return err;
	*full = UINT32_MAX;
	c->held = &u->want.set;
	c->heartbeat_ns = kit_now_ns(&c->kit);
	c->taking = u;
	err = decide(c, u, full);
	c->taking = NULL;
	c->held = NULL;
	if (err || !u->dirty_count)
		return let_go(c, u, err);
	return kv_unit_commit(c, u);
}

/* Another client may have made the key meanwhile: then there is room. An entry
 * here hides what an older generation has, so that comes along. */
static int grave_fn(struct aq_kv_change *ch, void *user)
{
	const struct kv_mod *m = user;

	if (m->had_entry)
		return 0;
	ch->verdict = AQ_KV_STORE;
	ch->new_value = ch->value ? ch->value : "";
	ch->new_value_len = ch->value_len;
	if (!ch->value)
		ch->expire_at_ms = KV_GRAVE_MS;
	return 0;
}

static int make_room(struct kv_replica *c, const struct kv_unit *u,
		     const struct aq_kv_key *key)
{
	struct kv_mod m = u->room;

	m.key = key->key;
	m.key_len = key->key_len;
	m.fn = grave_fn;
	m.user = &m;
	m.needs_value = true;
	return kv_mod_run(c, &m);
}

int kv_unit_run(struct kv_replica *c, struct kv_unit *u)
{
	uint32_t full = UINT32_MAX;
	int err = 0;

	for (unsigned try = 0; try < KV_INSERT_TRIES && !err; try++) {
		err = attempt(c, u, &full);
		kv_cache_unpin(c);
		if (err != -EAGAIN)
			return err;
		err = full < u->count ? make_room(c, u, &u->keys[full]) : 0;
		if (!err)
			err = kv_past_deadline(c);
	}
	return err ? err
		   : error_set(-ENOSPC, "the table is full: there is no room "
					"for the keys of a unit");
}
