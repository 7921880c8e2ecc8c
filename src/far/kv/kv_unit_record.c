/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a unit becomes visible, in requests that are executed in their order:
 *
 *  1. the record, which says what the rows will be and which extents come and
 *     go; nobody looks there yet, and no map names it, so a client that dies
 *     has left nothing
 *  2. the intent that names the record: from here on the unit is decided
 *  3. every row is closed: its CRC is wrong, so readers wait
 *  4. every row gets its new contents
 *  5. old extents are given back, an intent without the record, the locks
 *
 * A client that repairs finds the intent of 2, and that all its locks are held,
 * and does 3 to 5 again from the record; doing it twice does no harm, because
 * nobody else can have changed the rows.
 */
#include <errno.h>
#include <string.h>

#include "base/crc.h"
#include "base/error.h"
#include "base/plant.h"
#include "kv_priv.h"

enum {
	AFTER_CRC = 8, /* where the checked part begins */
};

/* A record in local memory, and where its parts are. */
struct record {
	struct kv_unit_record *head;
	le64 *number;
	struct kv_unit_extent *fresh, *stale;
	uint8_t *rows;
	uint32_t row_count, new_count, old_count;
	uint64_t bytes;
};

static uint64_t record_bytes(const struct kv_geometry *g, uint32_t rows,
			     uint32_t extents)
{
	return sizeof(struct kv_unit_record) + 8ull * rows +
	       sizeof(struct kv_unit_extent) * (uint64_t)extents +
	       (uint64_t)g->row_bytes * rows;
}

/* Its parts, by its counts. */
static void lay_out(const struct kv_geometry *g, struct record *r, void *at)
{
	r->head = at;
	r->number = (le64 *)(r->head + 1);
	r->fresh = (struct kv_unit_extent *)(r->number + r->row_count);
	r->stale = r->fresh + r->new_count;
	r->rows = (uint8_t *)(r->stale + r->old_count);
	r->bytes = record_bytes(g, r->row_count, r->new_count + r->old_count);
}

static bool goes(const struct kv_unit *u, uint32_t i)
{
	return u->change[i].verdict != AQ_KV_KEEP && u->key[i].row >= 0 &&
	       u->key[i].item.is_extent;
}

static void count_extents(const struct kv_unit *u, struct record *r)
{
	r->row_count = u->dirty_count;
	for (uint32_t i = 0; i < u->count; i++) {
		r->new_count += u->key[i].fresh.is_set;
		r->old_count += goes(u, i);
	}
}

static struct kv_unit_extent extent_of(uint64_t offset, uint64_t size_bytes,
				       uint32_t stamp)
{
	return (struct kv_unit_extent){.offset = le64_put(offset),
				       .size_bytes = le64_put(size_bytes),
				       .stamp = le32_put(stamp)};
}

static void fill_in(struct kv_replica *c, const struct kv_unit *u,
		    struct record *r, uint32_t stamp)
{
	uint32_t n = 0, fresh = 0, stale = 0;

	*r->head = (struct kv_unit_record){.stamp = le32_put(stamp),
					   .row_count = le32_put(r->row_count),
					   .new_count = le32_put(r->new_count),
					   .old_count = le32_put(r->old_count)};
	for (uint32_t i = 0; i < u->row_count; i++) {
		uint8_t *row = r->rows + (size_t)n * c->g.row_bytes;

		if (!u->is_dirty[i])
			continue;
		memcpy(row, u->rows + (size_t)i * c->g.row_bytes,
		       c->g.row_bytes);
		/* The closed row between has a version, too. */
		kv_row_seal(&c->g, row, c->kit.slot);
		kv_row_seal(&c->g, row, c->kit.slot);
		r->number[n++] = le64_put(u->row[i]);
	}
	for (uint32_t i = 0; i < u->count; i++) {
		const struct kv_unit_key *k = &u->key[i];

		if (k->fresh.is_set)
			r->fresh[fresh++] =
				extent_of(k->fresh.offset, k->fresh.size_bytes,
					  k->fresh.stamp);
		if (goes(u, i))
			r->stale[stale++] =
				extent_of(k->item.extent, k->item.extent_bytes,
					  k->item.stamp);
	}
	r->head->crc = le64_put(
		crc64(0, (uint8_t *)r->head + AFTER_CRC, r->bytes - AFTER_CRC));
}

/* ---- requests ----------------------------------------------------------- */

/* Room for that many more in the batch: else what it has is sent. */
static int make_room(struct kv_replica *c, unsigned more)
{
	int err = 0;

	if (c->kit.wr_count + more > KIT_WR_MAX) {
		err = kit_run(&c->kit);
		kit_begin(&c->kit);
	}
	return err;
}

static int add_fresh(struct kv_replica *c, const struct record *r)
{
	int err = 0;

	for (uint32_t i = 0; i < r->new_count && !err; i++) {
		struct kv_new n = {.offset = le64_get(r->fresh[i].offset),
				   .size_bytes =
					   le64_get(r->fresh[i].size_bytes)};

		err = make_room(c, 1);
		if (kv_class_of(&c->g, n.size_bytes)) {
			kit_write(&c->kit.main, KV_POINT_MAP,
				  kv_map_at(&c->g, n.offset, n.size_bytes),
				  c->ones, 1);
			continue;
		}
		/* Its words stand in memory that the next one needs. */
		kv_new_add_commit(c, &n);
		if (!err)
			err = kit_run(&c->kit);
		kit_begin(&c->kit);
	}
	return err;
}

/* Trailers with a wrong CRC, written behind the record in local memory. */
static int add_closing(struct kv_replica *c, const struct record *r)
{
	uint8_t *at = (uint8_t *)r->head + align_up(r->bytes, 8);
	uint32_t body = c->g.row_bytes - KV_TRAILER_BYTES;
	int err = 0;

	if (PLANTED(kv_unit_open))
		return 0;
	for (uint32_t i = 0; i < r->row_count && !err; i++) {
		struct kv_trailer *t = (void *)(at + i * KV_TRAILER_BYTES);

		memcpy(t, r->rows + (size_t)i * c->g.row_bytes + body,
		       sizeof(*t));
		t->version--;
		t->crc = le64_put(~le64_get(t->crc));
		err = make_room(c, 1);
		kit_write(&c->kit.main, KV_POINT_ROW,
			  kv_row_at(&c->g, le64_get(r->number[i])) + body, t,
			  sizeof(*t));
	}
	return err;
}

static int add_rows(struct kv_replica *c, const struct record *r)
{
	int err = 0;

	for (uint32_t i = 0; i < r->row_count && !err; i++) {
		err = make_room(c, 1);
		kit_write(&c->kit.main, KV_POINT_ROW,
			  kv_row_at(&c->g, le64_get(r->number[i])),
			  r->rows + (size_t)i * c->g.row_bytes, c->g.row_bytes);
	}
	return err;
}

/* ---- a unit's own client ------------------------------------------------ */

static void note_effects(struct kv_replica *c, const struct kv_unit *u)
{
	for (uint32_t i = 0; i < u->count; i++) {
		bool had = u->key[i].row >= 0;

		switch (u->change[i].verdict) {
		case AQ_KV_STORE:
			c->count += !had;
			c->stats.inserts += !had;
			c->stats.updates += had;
			break;
		case AQ_KV_DELETE:
			c->count -= had;
			c->stats.deletes += had;
			break;
		case AQ_KV_KEEP:
		default:
			break;
		}
	}
}

/* One row, and nothing beside it, is one WRITE: all or none by itself. */
static int commit_row(struct kv_replica *c, struct kv_unit *u)
{
	uint32_t i = 0;

	while (!u->is_dirty[i])
		i++;
	memcpy(c->kit.big, u->rows + (size_t)i * c->g.row_bytes,
	       c->g.row_bytes);
	kv_row_seal(&c->g, c->kit.big, c->kit.slot);
	note_effects(c, u);
	kit_begin(&c->kit);
	kit_write(&c->kit.main, KV_POINT_ROW, kv_row_at(&c->g, u->row[i]),
		  c->kit.big, c->g.row_bytes);
	kv_add_release(c, &u->want.set, u->want.set.count);
	return kit_run(&c->kit);
}

static int add_end(struct kv_replica *c, const struct kv_unit *u,
		   const struct record *r, const struct kv_new *memory)
{
	int err = 0;

	for (uint32_t i = 0; i < r->old_count && !err; i++) {
		err = make_room(c, 1);
		kv_extent_add_free(c, le64_get(r->stale[i].offset),
				   le64_get(r->stale[i].size_bytes));
	}
	/* Two intents, the record, and the locks. */
	if (!err)
		err = make_room(c, 3 + KV_GROUPS);
	c->new_extent = c->old_extent = 0;
	c->intent_flags = 0;
	kv_add_intent(c, &u->want.set);
	if (!kv_class_of(&c->g, memory->size_bytes))
		kv_extent_add_free(c, memory->offset, memory->size_bytes);
	kv_add_release(c, &u->want.set, u->want.set.count);
	return err;
}

static int send(struct kv_replica *c, struct kv_unit *u, struct record *r,
		const struct kv_new *memory)
{
	int err, end;

	note_effects(c, u);
	kit_begin(&c->kit);
	kit_write(&c->kit.main, KV_POINT_EXTENT, memory->offset, r->head,
		  r->bytes);
	c->new_extent = memory->offset;
	c->new_stamp = memory->stamp;
	c->old_extent = r->bytes;
	c->intent_flags = KV_INTENT_UNIT;
	kv_add_intent(c, &u->want.set);
	err = add_fresh(c, r);
	if (!err)
		err = add_closing(c, r);
	if (!err)
		err = add_rows(c, r);
	end = add_end(c, u, r, memory);
	if (!err)
		err = end ? end : kit_run(&c->kit);
	return err;
}

static bool is_one_row(const struct record *r)
{
	return r->row_count == 1 && !r->new_count && !r->old_count;
}

int kv_unit_prepare(struct kv_replica *c, struct kv_unit *u)
{
	struct record r = {0};
	int err;

	count_extents(u, &r);
	if (is_one_row(&r))
		return kit_big_reserve(&c->kit, c->g.row_bytes);
	if (!kv_has_extents(&c->g))
		return error_set(-EOPNOTSUPP,
				 "a table with entries of less than %d bytes "
				 "has no units of several rows",
				 KV_ENTRY_EXTENT_MIN);
	r.bytes = record_bytes(&c->g, r.row_count, r.new_count + r.old_count);
	err = kv_new_alloc(c, 0, r.bytes, &u->memory);
	return err ? err
		   : kit_big_reserve(&c->kit, align_up(r.bytes, 8) +
						      (uint64_t)r.row_count *
							      KV_TRAILER_BYTES);
}

int kv_unit_commit(struct kv_replica *c, struct kv_unit *u)
{
	struct record r = {0};

	count_extents(u, &r);
	if (is_one_row(&r))
		return commit_row(c, u);
	lay_out(&c->g, &r, c->kit.big);
	fill_in(c, u, &r, u->memory.stamp);
	return send(c, u, &r, &u->memory);
}

/* ---- a dead client's ---------------------------------------------------- */

/* Whether the bytes are the record; they come from far memory. */
static bool parse(const struct kv_geometry *g, struct record *r, uint8_t *at,
		  uint64_t bytes, uint32_t stamp)
{
	const struct kv_unit_record *head = (const void *)at;

	r->row_count = le32_get(head->row_count);
	r->new_count = le32_get(head->new_count);
	r->old_count = le32_get(head->old_count);
	if (le32_get(head->stamp) != stamp || r->row_count > KV_UNIT_ROWS ||
	    r->new_count > KV_UNIT_KEYS || r->old_count > KV_UNIT_KEYS)
		return false;
	lay_out(g, r, at);
	if (r->bytes != bytes ||
	    le64_get(head->crc) != crc64(0, at + AFTER_CRC, bytes - AFTER_CRC))
		return false;
	for (uint32_t i = 0; i < r->row_count; i++)
		if (le64_get(r->number[i]) >= g->rows)
			return false;
	for (uint32_t i = 0; i < r->new_count + r->old_count; i++) {
		uint64_t offset = le64_get(r->fresh[i].offset);
		uint64_t size = le64_get(r->fresh[i].size_bytes);

		if (offset < g->chunk_offset || offset > g->size_bytes ||
		    size > g->size_bytes - offset ||
		    size > kv_extent_size(KV_KEY_MAX, AQ_KV_VALUE_MAX))
			return false;
	}
	return true;
}

static int reclaim_stale(struct kv_replica *c, const struct record *r)
{
	int err = 0;

	for (uint32_t i = 0; i < r->old_count && !err; i++) {
		uint64_t offset = le64_get(r->stale[i].offset), size;

		err = kv_extent_reclaim(c, offset, le32_get(r->stale[i].stamp),
					&size);
		/* A run that was in the table has no owner: free it here. */
		if (!err && size && !kv_class_of(&c->g, size)) {
			kit_begin(&c->kit);
			kv_extent_add_free(c, offset, size);
			err = kit_run(&c->kit);
		}
		if (!err)
			err = kv_lease_renew(c);
	}
	return err;
}

static int carry_out(struct kv_replica *c, const struct record *r)
{
	int err;

	kit_begin(&c->kit);
	err = add_fresh(c, r);
	if (!err)
		err = add_closing(c, r);
	if (!err)
		err = add_rows(c, r);
	if (!err)
		err = kit_run(&c->kit);
	c->stats.rows_mended += err ? 0 : r->row_count;
	if (!err)
		err = kv_lease_renew(c);
	return err ? err : reclaim_stale(c, r);
}

/* Its intent goes on naming the locks, which are let go later; but what follows
 * must never be taken for a unit that is not carried out yet. */
static int settle_intent(struct kv_replica *c, struct kv_dead *d)
{
	struct kv_intent *t = &d->intent, *to = &c->intent[0];

	t->flags = le32_put(0);
	t->new_extent = t->old_extent = le64_put(0);
	t->sequence = le64_put(le64_get(t->sequence) + 1);
	t->crc = le32_put(kv_intent_crc(t));
	*to = *t;
	return kit_write_now(&c->kit.main, KV_POINT_MEND,
			     kit_slot_at(&c->kit, d->slot) +
				     offsetof(struct kv_slot, intent),
			     to, kv_intent_bytes(d->set.count));
}

int kv_unit_redo(struct kv_replica *c, struct kv_dead *d)
{
	uint64_t at = le64_get(d->intent.new_extent);
	uint64_t bytes = le64_get(d->intent.old_extent);
	uint64_t most = record_bytes(&c->g, KV_UNIT_ROWS, 2 * KV_UNIT_KEYS);
	struct record r = {0};
	int err = 0;

	/* Else somebody who repaired before was done with it. */
	if (d->is_held && !PLANTED(kv_unit_redo) &&
	    bytes >= sizeof(struct kv_unit_record) && bytes <= most &&
	    at >= c->g.chunk_offset && at <= c->g.size_bytes - bytes) {
		err = kit_big_reserve(
			&c->kit, align_up(bytes, 8) + (uint64_t)KV_UNIT_ROWS *
							      KV_TRAILER_BYTES);
		if (!err)
			err = kit_read_now(&c->kit.main, at, c->kit.big, bytes);
		if (!err && parse(&c->g, &r, c->kit.big, bytes,
				  le32_get(d->intent.new_stamp)))
			err = carry_out(c, &r);
	}
	return err ? err : settle_intent(c, d);
}
