/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several changes at once. All their locks are tried for in one batch together
 * with the READs of their rows, and all rows are written in one batch together
 * with the unlocking. Of more keys than one such flight has room for, the next
 * flight's locks are tried for in the batch that ends the one before: n flights
 * are n + 1 round trips. It is all locks of a flight or none, so nobody waits
 * here while holding one. Changes are done in their order up to the first that
 * needs more than this (a path, an extent); that one and the rest are the
 * caller's again.
 */
#include <errno.h>
#include <string.h>

#include "kv_priv.h"

enum {
	NOT_CHANGED = KV_ENTRIES_MAX,
};

/* The changes whose locks are held together. */
struct many {
	struct kv_lockset set;
	struct kv_rows rows;
	unsigned count; /* operations */
	struct kv_place place[KV_MANY_KEYS];
	unsigned low[KV_MANY_ROWS]; /* the first changed entry of a row */
};

static bool is_plain(const struct kv_replica *c, const struct aq_kv_op *op)
{
	return op->kind != AQ_KV_OP_PUT ||
	       (!(op->flags & ~(uint32_t)KV_OP_COPY) &&
		kv_fits_inline(&c->g, op->key_len, op->value_len,
			       op->expire_at_ms));
}

/* Where a row is among those that are wanted, or belongs. */
static unsigned row_at(const struct kv_rows *rows, uint64_t number)
{
	unsigned low = 0, high = rows->count;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (rows->number[middle] < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int want_row(struct kv_replica *c, struct many *m, uint64_t number)
{
	struct kv_rows *rows = &m->rows;
	unsigned at = row_at(rows, number);
	int err;

	if (at < rows->count && rows->number[at] == number)
		return 0;
	ASSERT(rows->count < KV_MANY_ROWS);
	err = kv_lockset_add(c, &m->set, number);
	if (err)
		return err;
	memmove(&rows->number[at + 1], &rows->number[at],
		(rows->count - at) * sizeof(rows->number[0]));
	rows->number[at] = number;
	rows->count++;
	return 0;
}

/* As many of them as fit. Flights take turns in the memory for rows. */
static void collect(struct kv_replica *c, struct many *m, unsigned turn,
		    struct aq_kv_op *const *ops, size_t count)
{
	size_t i;

	m->set.count = 0;
	m->rows.count = 0;
	m->rows.bytes = c->many_rows +
			(size_t)(turn % 2) * KV_MANY_ROWS * c->g.row_bytes;
	m->count = 0;
	for (i = 0; i < count && i < c->many_keys && is_plain(c, ops[i]); i++) {
		struct kv_place *place = &m->place[i];

		kv_place_of(&c->g,
			    kv_hash_key(&c->g, ops[i]->key, ops[i]->key_len),
			    place);
		/* A row too many does no harm. */
		if (want_row(c, m, place->row[0]) ||
		    want_row(c, m, place->row[1]))
			break;
		m->count++;
	}
	for (i = 0; i < m->rows.count; i++)
		m->low[i] = NOT_CHANGED;
}

static uint8_t *row_of(struct kv_replica *c, const struct many *m,
		       uint64_t number)
{
	return m->rows.bytes +
	       (size_t)row_at(&m->rows, number) * c->g.row_bytes;
}

static bool all_whole(struct kv_replica *c, const struct many *m)
{
	unsigned i;

	for (i = 0; i < m->rows.count; i++)
		if (!kv_row_is_whole(&c->g, m->rows.bytes +
						    (size_t)i * c->g.row_bytes))
			return false;
	return true;
}

/* In which of its rows the key is, and *entry; -1: it is not there. */
static int find_key(struct kv_replica *c, const struct aq_kv_op *op,
		    const struct kv_place *place, uint8_t *const row[2],
		    int *entry, struct kv_item *item)
{
	uint32_t skip = 0;
	int i;

	for (i = 0; i < 2; i++) {
		*entry = kv_row_find(&c->g, row[i], place, op->key, op->key_len,
				     &skip, item);
		if (*entry >= 0)
			return i;
	}
	return -1;
}

static int find_room(struct kv_replica *c, uint8_t *const row[2], int *entry)
{
	int i;

	for (i = 0; i < 2; i++) {
		*entry = kv_row_free(&c->g, row[i]);
		if (*entry >= 0)
			return i;
	}
	return -1;
}

static void note_change(struct many *m, uint64_t row, int entry)
{
	unsigned i = row_at(&m->rows, row);

	m->low[i] = u32_min(m->low[i], (unsigned)entry);
}

/* Stores in the row here, in the key's entry or a free one; false: it needs
 * more. */
static bool store(struct kv_replica *c, struct many *m,
		  const struct kv_place *place, uint8_t *const row[2],
		  int which, int entry, const struct aq_kv_op *op)
{
	bool is_new = which < 0;
	uint8_t *to;

	if (is_new)
		which = find_room(c, row, &entry);
	if (which < 0)
		return false;
	if (is_new)
		kv_room_note_rows(c, row[0], row[1]);
	to = kv_entry(&c->g, row[which], (unsigned)entry);
	kv_entry_inline(&c->g, to, op->key, op->key_len, op->value,
			op->value_len, op->expire_at_ms);
	/* What was decided by the value before is no put. */
	if (op->kind == AQ_KV_OP_PUT && !(op->flags & KV_OP_COPY))
		kv_entry_mark_put(&c->g, to);
	note_change(m, place->row[which], entry);
	c->count += is_new;
	c->stats.inserts += is_new;
	c->stats.updates += !is_new;
	return true;
}

static void clear(struct kv_replica *c, struct many *m,
		  const struct kv_place *place, uint8_t *const row[2],
		  int which, int entry)
{
	kv_entry_clear(&c->g, kv_entry(&c->g, row[which], (unsigned)entry));
	note_change(m, place->row[which], entry);
	c->count--;
	c->stats.deletes++;
}

static bool put(struct kv_replica *c, struct many *m,
		const struct kv_place *place, const struct aq_kv_op *op)
{
	uint8_t *row[2] = {row_of(c, m, place->row[0]),
			   row_of(c, m, place->row[1])};
	struct kv_item item;
	int entry, which = find_key(c, op, place, row, &entry, &item);

	if (which >= 0 && op->flags & KV_OP_COPY)
		return true;
	if (which >= 0 && item.is_extent)
		return false;
	return store(c, m, place, row, which, entry, op);
}

static bool del(struct kv_replica *c, struct many *m,
		const struct kv_place *place, struct aq_kv_op *op)
{
	uint8_t *row[2] = {row_of(c, m, place->row[0]),
			   row_of(c, m, place->row[1])};
	struct kv_item item;
	int entry, which = find_key(c, op, place, row, &entry, &item);

	if (which < 0) {
		op->err = -ENOENT;
		return true;
	}
	if (item.is_extent)
		return false;
	/* One that has expired goes, too. */
	if (kv_is_expired(c, item.expire_at_ms))
		op->err = -ENOENT;
	clear(c, m, place, row, which, entry);
	return true;
}

/* Where it turns out to need more, the function is called again later. */
static bool modify(struct kv_replica *c, struct many *m,
		   const struct kv_place *place, struct aq_kv_op *op)
{
	uint8_t *row[2] = {row_of(c, m, place->row[0]),
			   row_of(c, m, place->row[1])};
	uint8_t old[KV_ENTRY_BYTES_MAX]; /* the new value may be made of it */
	struct aq_kv_change ch = {.verdict = AQ_KV_KEEP};
	struct aq_kv_op made = *op;
	struct kv_item item;
	int entry, which = find_key(c, op, place, row, &entry, &item);

	if (which >= 0 && item.is_extent)
		return false;
	if (which >= 0 && !kv_is_expired(c, item.expire_at_ms)) {
		memcpy(old, item.value, item.value_len);
		ch.value = old;
		ch.value_len = item.value_len;
		ch.expire_at_ms = item.expire_at_ms;
	}
	op->err = op->fn(&ch, op->fn_user);
	if (op->err || ch.verdict == AQ_KV_KEEP)
		return true;
	if (ch.verdict == AQ_KV_DELETE) {
		if (which >= 0)
			clear(c, m, place, row, which, entry);
		return true;
	}
	if (!kv_fits_inline(&c->g, op->key_len, ch.new_value_len,
			    ch.expire_at_ms))
		return false;
	made.value = (void *)(uintptr_t)ch.new_value; /* only read */
	made.value_len = ch.new_value_len;
	made.expire_at_ms = ch.expire_at_ms;
	return store(c, m, place, row, which, entry, &made);
}

static bool apply(struct kv_replica *c, struct many *m, unsigned at,
		  struct aq_kv_op *op)
{
	const struct kv_place *place = &m->place[at];

	op->err = 0;
	op->len = 0;
	return op->kind == AQ_KV_OP_PUT	  ? put(c, m, place, op)
	       : op->kind == AQ_KV_OP_DEL ? del(c, m, place, op)
					  : modify(c, m, place, op);
}

static void add_changed(struct kv_replica *c, const struct many *m)
{
	for (unsigned i = 0; i < m->rows.count; i++)
		if (m->low[i] != NOT_CHANGED)
			kv_add_row(c, m->rows.number[i],
				   m->rows.bytes + (size_t)i * c->g.row_bytes,
				   (int)m->low[i]);
}

/* The last flight ends. */
static int write_all(struct kv_replica *c, const struct many *m)
{
	kit_begin(&c->kit);
	add_changed(c, m);
	kv_add_release(c, &m->set, m->set.count);
	return kit_run(&c->kit);
}

/* The flight before ends, if there is one, and this one gets its locks. *ended:
 * what was written is there. */
static int take(struct kv_replica *c, const struct many *before,
		const struct many *m, bool *ended)
{
	struct kv_try t = {.set = &m->set, .rows = &m->rows};
	int err;

	kit_begin(&c->kit);
	if (before) {
		add_changed(c, before);
		kv_add_unlocks(c, &before->set, before->set.count);
	}
	kv_try_add(c, &t);
	err = kit_run(&c->kit);
	if (err)
		return err;
	*ended = true;
	err = kv_try_end(c, &t);
	/* The fewer they are the likelier is it that nobody has one of their
	 * locks. */
	c->many_keys = err == -EAGAIN ? u32_max(c->many_keys / 2, 2)
				      : u32_min(c->many_keys + 1, KV_MANY_KEYS);
	return err;
}

/* How far it came. */
struct course {
	size_t done;  /* operations that were carried out */
	size_t sure;  /* those of them that are in the table */
	size_t under; /* those that had or wanted locks at the end */
};

/* Flight after flight, until one is the last or comes to less than it was to.
 */
static int run(struct kv_replica *c, struct many m[2],
	       struct aq_kv_op *const *ops, size_t count, struct course *way)
{
	for (unsigned turn = 0;; turn++) {
		struct many *now = &m[turn % 2];
		unsigned n = 0;
		bool ended = false;
		int err =
			take(c, turn ? &m[(turn + 1) % 2] : NULL, now, &ended);

		way->under = now->count;
		if (ended)
			way->sure = way->done;
		if (err)
			return err;
		if (!all_whole(c, now))
			return kv_locks_drop(c, &now->set, now->set.count);
		while (n < now->count && apply(c, now, n, ops[way->done + n]))
			n++;
		way->done += n;
		way->under -= n;
		if (!way->under)
			collect(c, &m[(turn + 1) % 2], turn + 1,
				ops + way->done, count - way->done);
		if (way->under || !m[(turn + 1) % 2].count) {
			err = write_all(c, now);
			way->sure = err ? way->sure : way->done;
			return err;
		}
	}
}

/* Who did not get all locks, or finds that the table has changed, has none, and
 * what it did before is done. */
static int settle(struct kv_replica *c, int err)
{
	if (err == -EAGAIN || err == KV_E_VIEW)
		err = 0;
	return kv_op_end(c, err);
}

size_t kv_many_run(struct kv_replica *c, struct aq_kv_op *const *ops,
		   size_t count, bool *next_alone)
{
	struct course way = {0};
	struct many m[2];
	size_t i;
	int err;

	*next_alone = true;
	if (c->many_skip) {
		c->many_skip--;
		return 0;
	}
	/* In halves, a row with two changes could not be told from a torn
	 * one. */
	if (c->config.split_writes)
		return 0;
	collect(c, &m[0], 0, ops, count);
	if (m[0].count < 2 || kv_op_begin(c))
		return 0;
	err = settle(c, run(c, m, ops, count, &way));
	*next_alone =
		way.under || (way.done < count && !is_plain(c, ops[way.done]));
	for (i = 0; i < way.sure; i++)
		c->stats.puts += ops[i]->kind == AQ_KV_OP_PUT;
	/* After a failure nobody knows what was done of the rest. */
	if (err)
		way.done += way.under;
	for (i = way.sure; err && i < way.done; i++)
		ops[i]->err = err;
	/* Where it comes to nothing again it should not cost much. */
	if (way.done == 0 && c->many_failed)
		c->many_skip = KV_MANY_SKIP;
	c->many_failed = way.done == 0;
	return way.done;
}
