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
	SLOT_BITS = 10, /* twice as many as there may be rows */
	SLOTS = 1 << SLOT_BITS,
};

STATIC_ASSERT(SLOTS >= 2 * KV_MANY_ROWS, "a search for a row ends");
/* Rows and unlocks; an intent, locks, READs and the state. */
STATIC_ASSERT(KV_MANY_READ_KEYS + KV_GROUPS + 1 + KV_GROUPS +
			      2 * KV_MANY_READ_KEYS + 1 <=
		      KIT_WR_MAX,
	      "two flights in a batch");
/* The same without READs; and all rows of one that could not be loaded. */
STATIC_ASSERT(KV_MANY_KEYS + KV_GROUPS + 1 + KV_GROUPS + 1 <= KIT_WR_MAX &&
		      (int)KV_MANY_ROWS <= KIT_WR_MAX,
	      "two flights whose rows are loaded");

/* The changes whose locks are held together. */
struct many {
	struct kv_lockset set;
	struct kv_rows rows;
	uint16_t slot[SLOTS]; /* rows by their number: 1 + where; 0: none */
	unsigned count;	      /* operations */
	struct kv_place place[KV_MANY_KEYS];
	uint16_t at[KV_MANY_KEYS][2]; /* their rows among the rows */
	unsigned low[KV_MANY_ROWS];   /* the first changed entry of a row */
};

/* Where the key of an operation is. */
struct spot {
	uint8_t *row[2]; /* the second is NULL if the key is in the first */
	int which;	 /* -1: in none of them */
	int entry;
	struct kv_item item;
};

uint32_t kv_many_keys_max(const struct kv_replica *c)
{
	return c->kit.remote.look_rkey ? KV_MANY_KEYS : KV_MANY_READ_KEYS;
}

static bool is_plain(const struct kv_replica *c, const struct aq_kv_op *op)
{
	return op->kind != AQ_KV_OP_PUT ||
	       kv_fits_inline(&c->g, op->key_len, op->value_len,
			      op->expire_at_ms);
}

/* The slot of a row, or where it belongs. */
static uint16_t *slot_of(struct many *m, uint64_t number)
{
	size_t i = number * UINT64_C(0x9e3779b97f4a7c15) >> (64 - SLOT_BITS);

	while (m->slot[i] && m->rows.number[m->slot[i] - 1] != number)
		i = (i + 1) % SLOTS;
	return &m->slot[i];
}

static int want_row(struct kv_replica *c, struct many *m, uint64_t number,
		    enum kv_row_state state, uint16_t *at)
{
	uint16_t *slot = slot_of(m, number);
	struct kv_rows *rows = &m->rows;
	int err;

	if (!*slot) {
		if (rows->count == KV_MANY_ROWS)
			return -E2BIG;
		err = kv_lockset_add(c, &m->set, number);
		if (err)
			return err;
		rows->number[rows->count] = number;
		rows->state[rows->count] = (uint8_t)state;
		m->low[rows->count] = NOT_CHANGED;
		*slot = (uint16_t)++rows->count;
	}
	*at = (uint16_t)(*slot - 1);
	if (state == KV_ROW_NEEDED)
		rows->state[*at] = KV_ROW_NEEDED;
	return 0;
}

/* As many of them as fit. Flights take turns in the memory for rows. Where rows
 * can be loaded, the second one of a key is, if the key is not in the first. */
static void collect(struct kv_replica *c, struct many *m, unsigned turn,
		    struct aq_kv_op *const *ops, size_t count)
{
	enum kv_row_state second =
		c->kit.remote.look_rkey ? KV_ROW_SPARE : KV_ROW_NEEDED;
	size_t i;

	m->set.count = 0;
	m->rows.count = 0;
	m->rows.bytes = c->many_rows +
			(size_t)(turn % 2) * KV_MANY_ROWS * c->g.row_bytes;
	m->count = 0;
	if (count)
		memset(m->slot, 0, sizeof(m->slot));
	for (i = 0; i < count && i < c->many_keys && is_plain(c, ops[i]); i++) {
		struct kv_place *place = &m->place[i];

		kv_place_of(&c->g,
			    kv_hash_key(&c->g, ops[i]->key, ops[i]->key_len),
			    place);
		/* A row too many does no harm. */
		if (want_row(c, m, place->row[0], KV_ROW_NEEDED,
			     &m->at[i][0]) ||
		    want_row(c, m, place->row[1], second, &m->at[i][1]))
			break;
		m->count++;
	}
}

/* A row that can be used; NULL: it is torn, or cannot be read. */
static uint8_t *whole_row(struct kv_replica *c, struct many *m, unsigned at)
{
	uint8_t *row = m->rows.bytes + (size_t)at * c->g.row_bytes;

	if (m->rows.state[at] == KV_ROW_WHOLE)
		return row;
	if (m->rows.state[at] == KV_ROW_SPARE && kv_row_load(c, &m->rows, at))
		return NULL;
	if (!kv_row_is_whole(&c->g, row))
		return NULL;
	m->rows.state[at] = KV_ROW_WHOLE;
	return row;
}

/* Looks for the key of operation `n`; false: a row cannot be used. */
static bool find_key(struct kv_replica *c, struct many *m, unsigned n,
		     const struct aq_kv_op *op, struct spot *s)
{
	uint32_t skip = 0;

	s->row[1] = NULL;
	for (int i = 0; i < 2; i++) {
		s->row[i] = whole_row(c, m, m->at[n][i]);
		if (!s->row[i])
			return false;
		s->which = i;
		s->entry = kv_row_find(&c->g, s->row[i], &m->place[n], op->key,
				       op->key_len, &skip, &s->item);
		if (s->entry >= 0)
			return true;
	}
	s->which = -1;
	return true;
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

static void note_change(struct many *m, unsigned at, int entry)
{
	m->low[at] = u32_min(m->low[at], (unsigned)entry);
}

/* Stores in the row here, in the key's entry or a free one; false: it needs
 * more. */
static bool store(struct kv_replica *c, struct many *m, unsigned n,
		  struct spot *s, const struct aq_kv_op *op)
{
	bool is_new = s->which < 0;
	uint8_t *to;

	if (is_new)
		s->which = find_room(c, s->row, &s->entry);
	if (s->which < 0)
		return false;
	if (is_new)
		kv_room_note_rows(c, s->row[0], s->row[1]);
	to = kv_entry(&c->g, s->row[s->which], (unsigned)s->entry);
	kv_entry_inline(&c->g, to, op->key, op->key_len, op->value,
			op->value_len, op->expire_at_ms);
	/* What was decided by the value before is no put. */
	if (op->kind == AQ_KV_OP_PUT && !op->flags)
		kv_entry_mark_put(&c->g, to);
	note_change(m, m->at[n][s->which], s->entry);
	c->count += is_new;
	c->stats.inserts += is_new;
	c->stats.updates += !is_new;
	return true;
}

static void clear(struct kv_replica *c, struct many *m, unsigned n,
		  const struct spot *s)
{
	kv_entry_clear(&c->g,
		       kv_entry(&c->g, s->row[s->which], (unsigned)s->entry));
	note_change(m, m->at[n][s->which], s->entry);
	c->count--;
	c->stats.deletes++;
}

static bool put(struct kv_replica *c, struct many *m, unsigned n,
		struct spot *s, struct aq_kv_op *op)
{
	bool lives = s->which >= 0 && !kv_is_expired(c, s->item.expire_at_ms);
	struct aq_kv_op made = *op;

	if (s->which >= 0 && op->flags & KV_OP_COPY)
		return true;
	if (op->flags & AQ_KV_NX && lives)
		op->err = -EEXIST;
	else if (op->flags & AQ_KV_XX && !lives)
		op->err = -ENOENT;
	if (op->err)
		return true;
	if (op->flags & AQ_KV_KEEP_TTL)
		made.expire_at_ms = lives ? s->item.expire_at_ms : 0;
	return kv_fits_inline(&c->g, op->key_len, op->value_len,
			      made.expire_at_ms) &&
	       store(c, m, n, s, &made);
}

static bool del(struct kv_replica *c, struct many *m, unsigned n,
		const struct spot *s, struct aq_kv_op *op)
{
	/* One that has expired goes, too. */
	if (s->which < 0 || kv_is_expired(c, s->item.expire_at_ms))
		op->err = -ENOENT;
	if (s->which >= 0)
		clear(c, m, n, s);
	return true;
}

/* Where it turns out to need more, the function is called again later. */
static bool modify(struct kv_replica *c, struct many *m, unsigned n,
		   struct spot *s, struct aq_kv_op *op)
{
	uint8_t old[KV_ENTRY_BYTES_MAX]; /* the new value may be made of it */
	struct aq_kv_change ch = {.verdict = AQ_KV_KEEP};
	struct aq_kv_op made = *op;

	if (s->which >= 0 && !kv_is_expired(c, s->item.expire_at_ms)) {
		memcpy(old, s->item.value, s->item.value_len);
		ch.value = old;
		ch.value_len = s->item.value_len;
		ch.expire_at_ms = s->item.expire_at_ms;
	}
	op->err = op->fn(&ch, op->fn_user);
	if (op->err || ch.verdict == AQ_KV_KEEP)
		return true;
	if (ch.verdict == AQ_KV_DELETE) {
		if (s->which >= 0)
			clear(c, m, n, s);
		return true;
	}
	if (!kv_fits_inline(&c->g, op->key_len, ch.new_value_len,
			    ch.expire_at_ms))
		return false;
	made.value = (void *)(uintptr_t)ch.new_value; /* only read */
	made.value_len = ch.new_value_len;
	made.expire_at_ms = ch.expire_at_ms;
	return store(c, m, n, s, &made);
}

/* False: it needs more than this. */
static bool apply(struct kv_replica *c, struct many *m, unsigned n,
		  struct aq_kv_op *op)
{
	bool is_copy = op->kind == AQ_KV_OP_PUT && op->flags & KV_OP_COPY;
	struct spot s;

	op->err = 0;
	op->len = 0;
	if (!find_key(c, m, n, op, &s) ||
	    (s.which >= 0 && s.item.is_extent && !is_copy))
		return false;
	return op->kind == AQ_KV_OP_PUT	  ? put(c, m, n, &s, op)
	       : op->kind == AQ_KV_OP_DEL ? del(c, m, n, &s, op)
					  : modify(c, m, n, &s, op);
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
static int take(struct kv_replica *c, const struct many *before, struct many *m,
		bool *ended)
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
	c->many_keys = err == -EAGAIN
			       ? u32_max(c->many_keys / 2, 2)
			       : u32_min(c->many_keys + 1, kv_many_keys_max(c));
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
		c->stats.puts += ops[i]->kind == AQ_KV_OP_PUT && !ops[i]->err;
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
