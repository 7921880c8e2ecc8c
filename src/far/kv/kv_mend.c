/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repair of what dead clients left behind. Every step leads from one of the
 * four states that a death may leave to the next and can be done again by
 * somebody else: torn rows get a CRC, entries that stand twice lose their
 * second copy, extents that are not in the table are given back, and only then
 * the locks are let go.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kv_priv.h"

enum {
	MEND_ROWS_MAX = 1 << 16,
};

unsigned kv_row_mend(const struct kv_geometry *g, uint8_t *row)
{
	unsigned i, bad = 0;

	for (i = 0; i < g->entries; i++) {
		uint8_t *e = kv_entry(g, row, i);

		if (kv_entry_is_whole(g, e))
			continue;
		kv_entry_clear(g, e);
		bad++;
	}
	return bad;
}

/* The rows under all the locks, in their order. */
struct rows {
	uint64_t *number;
	uint8_t *is_dirty;
	uint32_t count;
};

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void add_lock_rows(const struct kv_geometry *g, struct rows *r,
			  uint64_t lock)
{
	uint64_t first = lock * g->rows_per_lock, i;
	uint64_t step = g->lock_count * g->rows_per_lock;

	/* Several locks of the table may be this one. */
	for (; first < g->rows; first += step)
		for (i = first; i < first + g->rows_per_lock && i < g->rows &&
				r->count < MEND_ROWS_MAX;
		     i++)
			r->number[r->count++] = i;
}

static void add_set_rows(const struct kv_geometry *g, struct rows *r,
			 const struct kv_dead *d)
{
	unsigned i;

	for (i = 0; i < d->set.count; i++) {
		uint64_t mask = d->set.group[i].mask;
		uint64_t word = d->set.group[i].word;

		if (!d->holds[i])
			continue;
		if (g->flags & KV_WORD_LOCKS) {
			add_lock_rows(g, r, word);
			continue;
		}
		for (; mask; mask &= mask - 1)
			add_lock_rows(g, r,
				      64 * word +
					      (uint64_t)__builtin_ctzll(mask));
	}
}

static int rows_init(struct kv_replica *c, struct rows *r,
		     const struct kv_dead *dead, unsigned count)
{
	uint32_t i, n = 0;

	r->count = 0;
	r->number = malloc(MEND_ROWS_MAX * sizeof(r->number[0]));
	r->is_dirty = calloc(MEND_ROWS_MAX, 1);
	if (!r->number || !r->is_dirty)
		return error_set(-ENOMEM, "no memory for a repair");
	for (i = 0; i < count; i++)
		add_set_rows(&c->g, r, &dead[i]);
	if (r->count == 0)
		return 0;
	qsort(r->number, r->count, sizeof(r->number[0]), by_number);
	for (i = 1; i < r->count; i++)
		if (r->number[i] != r->number[n])
			r->number[++n] = r->number[i];
	r->count = n + 1;
	return kit_big_reserve(&c->kit, (uint64_t)r->count * c->g.row_bytes);
}

static void rows_release(struct rows *r)
{
	free(r->number);
	free(r->is_dirty);
}

static uint8_t *rows_at(struct kv_replica *c, uint32_t i)
{
	return c->kit.big + (size_t)i * c->g.row_bytes;
}

static int64_t rows_find(const struct rows *r, uint64_t number)
{
	const uint64_t *p = bsearch(&number, r->number, r->count,
				    sizeof(number), by_number);

	return p ? p - r->number : -1;
}

static int rows_read(struct kv_replica *c, const struct rows *r)
{
	uint32_t i = 0, n;
	int err = 0;

	while (i < r->count && !err) {
		/* Those that lie together are read together. */
		for (n = 1; i + n < r->count && n < 64 &&
			    r->number[i + n] == r->number[i] + n;
		     n++)
			;
		err = kit_read_now(&c->kit.main, kv_row_at(&c->g, r->number[i]),
				   rows_at(c, i), (uint64_t)n * c->g.row_bytes);
		i += n;
	}
	return err;
}

/* State 1 to 2 and 3 to 4: every row has its CRC again. */
static void mend_torn(struct kv_replica *c, struct rows *r)
{
	uint32_t i;

	for (i = 0; i < r->count; i++) {
		uint8_t *row = rows_at(c, i);

		if (kv_row_is_whole(&c->g, row))
			continue;
		c->stats.rows_mended++;
		c->stats.entries_lost += kv_row_mend(&c->g, row);
		r->is_dirty[i] = true;
	}
}

/* State 2 to 4: of an entry that stands in both rows the second goes. */
static void mend_double(struct kv_replica *c, struct rows *r, uint32_t at)
{
	uint8_t *row = rows_at(c, at);
	unsigned i, k;

	for (i = 0; i < c->g.entries; i++) {
		uint8_t *e = kv_entry(&c->g, row, i);
		struct kv_place place;
		struct kv_item item;
		uint8_t *first;
		int64_t other;

		if (kv_entry_read(&c->g, e, &item))
			continue;
		kv_place_of(&c->g, kv_entry_hash(&c->g, &item), &place);
		if (place.row[1] != r->number[at])
			continue;
		other = rows_find(r, place.row[0]);
		if (other < 0)
			continue;
		first = rows_at(c, (uint32_t)other);
		for (k = 0; k < c->g.entries; k++)
			if (memcmp(kv_entry(&c->g, first, k), e,
				   c->g.entry_bytes) == 0) {
				kv_entry_clear(&c->g, e);
				r->is_dirty[at] = true;
				c->stats.doubles_mended++;
				break;
			}
	}
}

/* CRCs first: then every row can be read while the rest goes on. */
static int rows_write(struct kv_replica *c, struct rows *r)
{
	uint32_t i;
	int err = 0;

	for (i = 0; i < r->count && !err; i++) {
		if (!r->is_dirty[i])
			continue;
		kv_row_seal(&c->g, rows_at(c, i), c->kit.slot);
		err = kit_write_now(&c->kit.main, KV_POINT_MEND,
				    kv_row_at(&c->g, r->number[i]),
				    rows_at(c, i), c->g.row_bytes);
		r->is_dirty[i] = false;
		if (!err)
			err = kv_lease_renew(c);
	}
	return err;
}

static bool rows_have_extent(struct kv_replica *c, const struct rows *r,
			     uint64_t extent, uint32_t stamp)
{
	struct kv_item item;
	uint32_t i;
	unsigned k;

	for (i = 0; i < r->count; i++)
		for (k = 0; k < c->g.entries; k++)
			if (!kv_entry_read(&c->g,
					   kv_entry(&c->g, rows_at(c, i), k),
					   &item) &&
			    item.is_extent && item.extent == extent &&
			    item.stamp == stamp)
				return true;
	return false;
}

/* It may have been given back before and be somebody else's by now; then its
 * stamp is another: stamps are written before the map says "used". */
int kv_extent_reclaim(struct kv_replica *c, uint64_t extent, uint32_t stamp,
		      uint64_t *size_bytes)
{
	struct kv_extent *head = (struct kv_extent *)(c->kit.stage + 64);
	uint64_t size;
	int err;

	*size_bytes = 0;
	if (extent < c->g.chunk_offset ||
	    extent > c->g.size_bytes - KV_EXTENT_HEAD)
		return 0;
	err = kit_read_now(&c->kit.main, extent, head, sizeof(*head));
	if (err || le32_get(head->stamp) != stamp)
		return err;
	if (le32_get(head->key_len) > KV_KEY_MAX ||
	    le64_get(head->value_len) > AQ_KV_VALUE_MAX)
		return 0;
	size = kv_extent_size(le32_get(head->key_len),
			      le64_get(head->value_len));
	*size_bytes = size;
	if (!kv_class_of(&c->g, size))
		return 0; /* the chunks' words tell who has it */
	kit_begin(&c->kit);
	kit_read(&c->kit.main, kv_map_at(&c->g, extent, size), c->kit.stage, 1);
	kit_read(&c->kit.main, extent, head, sizeof(*head));
	err = kit_run(&c->kit);
	if (err || !c->kit.stage[0] || le32_get(head->stamp) != stamp)
		return err;
	kit_begin(&c->kit);
	kv_extent_add_free(c, extent, size);
	return kit_run(&c->kit);
}

/* What is in the table stays; what is not goes. */
static int settle(struct kv_replica *c, const struct rows *r,
		  const struct kv_dead *d)
{
	uint64_t new = le64_get(d->intent.new_extent), size = 0, kept = 0;
	uint64_t old = le64_get(d->intent.old_extent), ignored;
	uint32_t new_stamp = le32_get(d->intent.new_stamp);
	uint32_t old_stamp = le32_get(d->intent.old_stamp);
	int err = 0;

	if (new && d->is_held && rows_have_extent(c, r, new, new_stamp)) {
		struct kv_extent *head = (struct kv_extent *)c->kit.stage;

		kept = new;
		err = kit_read_now(&c->kit.main, new, head, sizeof(*head));
		size = kv_extent_size(le32_get(head->key_len),
				      le64_get(head->value_len));
	} else if (new) {
		err = kv_extent_reclaim(c, new, new_stamp, &ignored);
	}
	if (!err && old && d->is_held &&
	    !rows_have_extent(c, r, old, old_stamp)) {
		err = kv_extent_reclaim(c, old, old_stamp, &ignored);
		/* A run that was in the table has no owner: free it here. */
		if (!err && ignored && !kv_class_of(&c->g, ignored)) {
			kit_begin(&c->kit);
			kv_extent_add_free(c, old, ignored);
			err = kit_run(&c->kit);
		}
	}
	return err ? err : kv_slab_orphan(c, d->slot, kept, size);
}

/* Of these locks, those that no dead client before this one names: each is let
 * go once, because from then on it may be somebody else's. */
static uint64_t only_here(const struct kv_replica *c,
			  const struct kv_dead *dead, unsigned at, unsigned g)
{
	uint64_t mask = dead[at].set.group[g].mask;
	unsigned i, k;

	if (c->g.flags & KV_WORD_LOCKS)
		return mask; /* its own, or nobody's */
	for (i = 0; i < at; i++)
		for (k = 0; k < dead[i].set.count; k++)
			if (dead[i].holds[k] &&
			    dead[i].set.group[k].word ==
				    dead[at].set.group[g].word)
				mask &= ~dead[i].set.group[k].mask;
	return mask;
}

static int unlock(struct kv_replica *c, const struct kv_dead *dead, unsigned at)
{
	const struct kv_dead *d = &dead[at];
	uint64_t mask;
	unsigned i;

	kit_begin(&c->kit);
	for (i = 0; i < d->set.count; i++) {
		mask = d->holds[i] ? only_here(c, dead, at, i) : 0;
		if (!mask)
			continue;
		c->stats.repairs++;
		kv_add_unlock_of(c, d->set.group[i].word, mask,
				 kv_lock_holder(d->slot, (uint32_t)d->epoch));
	}
	return kit_run(&c->kit);
}

/* Frees its slot; its number of keys stays. */
static int bury(struct kv_replica *c, const struct kv_dead *d)
{
	uint64_t at = kit_slot_at(&c->kit, d->slot);
	struct kv_intent *t = &c->intent[0];
	int err;

	*t = (struct kv_intent){
		.sequence = le64_put(le64_get(d->intent.sequence) + 1),
		.count = d->intent.count};
	t->crc = le32_put(kv_intent_crc(t));
	err = kit_write_now(&c->kit.main, KV_POINT_MEND,
			    at + offsetof(struct kv_slot, intent), t,
			    kv_intent_bytes(0));
	if (!err)
		err = kit_slot_move(&c->kit, KV_POINT_MEND, d->slot,
				    kit_slot_word(KIT_SLOT_FENCED, d->epoch),
				    KIT_SLOT_FREE);
	return err == -EAGAIN ? 0 : err;
}

int kv_mend(struct kv_replica *c, struct kv_dead *dead, unsigned count)
{
	struct rows r = {0};
	uint32_t i;
	int err = 0;

	for (i = 0; i < count && !err; i++)
		if (kv_intent_is_whole(&dead[i].intent) &&
		    le32_get(dead[i].intent.flags) & KV_INTENT_UNIT)
			err = kv_unit_redo(c, &dead[i]);
	if (!err)
		err = rows_init(c, &r, dead, count);
	if (!err)
		err = rows_read(c, &r);
	if (!err) {
		mend_torn(c, &r);
		err = rows_write(c, &r);
	}
	if (!err) {
		for (i = 0; i < r.count; i++)
			mend_double(c, &r, i);
		err = rows_write(c, &r);
	}
	for (i = 0; i < count && !err; i++) {
		err = settle(c, &r, &dead[i]);
		if (!err)
			err = kv_lease_renew(c);
	}
	for (i = 0; i < count && !err; i++)
		err = unlock(c, dead, i);
	for (i = 0; i < count && !err; i++)
		err = bury(c, &dead[i]);
	rows_release(&r);
	return err;
}
