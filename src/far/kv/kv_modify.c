/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of one key. Two round trips where nothing is in the way: the locks
 * together with the rows, then the new row together with the unlocking.
 *
 * An insert guesses a path from the cache, takes the locks of all of it, and
 * searches again in what it has read under them; when that finds nothing it
 * lets go and guesses again. A path is executed from its free end, one row per
 * WRITE, so at any moment every entry is somewhere.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "kv_priv.h"

/* One try. */
struct attempt {
	struct kv_mod *m;
	struct kv_place place;
	struct kv_want want;
	struct kv_path path; /* guessed, then found */
	struct kv_new fresh;
	struct kv_overtake overtake;
	struct kv_line *line[2]; /* of the key's rows */
	uint8_t *row[2];
	int found; /* 0 or 1: in which row; -1 */
	int entry;
	struct kv_item item;
	uint32_t skip;
	unsigned full; /* guesses that found nothing */
	uint64_t trips;
	enum effect {
		NOTHING,
		INSERTED,
		UPDATED,
		DELETED
	} effect;
};

/* ---- which rows --------------------------------------------------------- */

static void want_row(struct kv_want *w, uint64_t row)
{
	unsigned i;

	for (i = 0; i < w->count; i++)
		if (w->row[i] == row)
			return;
	w->row[w->count++] = row;
}

/* Whether the key was in one of its rows when they were last seen. */
static bool was_seen(const struct kv_replica *c, const struct attempt *a,
		     const struct kv_view *view)
{
	struct kv_item item;
	uint32_t skip = 0;
	unsigned i;

	for (i = 0; i < 2; i++) {
		bool usable;
		const uint8_t *row =
			view->row(view->ctx, a->place.row[i], &usable);

		if (row && kv_row_find(&c->g, row, &a->place, a->m->key,
				       a->m->key_len, &skip, &item) >= 0)
			return true;
	}
	return false;
}

/* Others that the entries could move to, should the guess be wrong: first those
 * whose locks are taken anyway, then those that cost a bit and no request. */
static void want_spares(struct kv_replica *c, struct attempt *a,
			const struct kv_view *view)
{
	uint64_t spare[KV_ENTRIES_MAX * 2];
	unsigned n = kv_search_spares(c->search, &c->g, view, spare,
				      ARRAY_LEN(spare));
	unsigned room = ARRAY_LEN(a->want.row) - a->want.count, i, pass;

	room = u32_min(room, KV_SPARE_ROWS);
	for (pass = 0; pass < 2; pass++)
		for (i = 0; i < n && room; i++) {
			unsigned before = a->want.count;

			if (kv_want_has_lock(c, &a->want, spare[i], !pass) &&
			    !kv_want_add(c, &a->want, spare[i]))
				room -= a->want.count - before;
		}
}

/* The key's rows, and those of the path that the cache suggests. */
static int plan(struct kv_replica *c, struct attempt *a, unsigned try)
{
	struct kv_view view = kv_cache_view(c, false);
	struct kv_want *w = &a->want;
	bool is_walk;
	unsigned i;
	int err;

	w->count = 0;
	want_row(w, a->place.row[0]);
	want_row(w, a->place.row[1]);
	/* Then this is an update, and needs no path. */
	if (try == 0 && was_seen(c, a, &view)) {
		a->path.count = 0;
		w->whole = false;
		return kv_want_locks(c, w);
	}
	err = kv_search_run(c->search, &c->g, &view, &a->place,
			    (enum aq_kv_search)c->config.options.search,
			    &a->path);
	if (err) {
		/* All that is known is full. It may have changed. */
		a->full++;
		kv_cache_forget(c);
		a->path.count = 0;
	}
	for (i = 0; i < a->path.count; i++)
		want_row(w, a->path.step[i].row);
	is_walk = c->config.options.search == AQ_KV_SEARCH_DFS;
	w->whole = c->config.whole_locks || try >= KV_WHOLE_FROM ||
		   (is_walk && (try > 0 || a->path.count != 1));
	err = kv_want_locks(c, w);
	/* One row: most often there is room in it. */
	if (!err && a->path.count > 1 && !w->whole)
		want_spares(c, a, &view);
	if (err == -E2BIG) {
		/* Too many words of locks; the key's own rows will do, and what
		 * is learned there leads to another path. */
		a->full++;
		kv_cache_forget(c);
		w->count = 2;
		w->whole = true;
		err = kv_want_locks(c, w);
	}
	return err;
}

/* A row that was torn though its lock was free: its writer died in it. */
static int mend_now(struct kv_replica *c, uint64_t number, uint8_t *row)
{
	(void)kv_row_mend(&c->g, row);
	kv_row_seal(&c->g, row, c->kit.slot);
	return kit_write_now(&c->kit.main, KV_POINT_MEND,
			     kv_row_at(&c->g, number), row, c->g.row_bytes);
}

static int see_rows(struct kv_replica *c, struct attempt *a)
{
	uint32_t skip = a->skip;
	unsigned i;
	int err;

	a->found = -1;
	for (i = 0; i < 2; i++) {
		uint64_t row = a->place.row[i];

		a->line[i] = kv_line_find(c, row);
		a->row[i] = kv_line_row(c, a->line[i], row);
		if (!kv_row_is_whole(&c->g, a->row[i])) {
			err = mend_now(c, row, a->row[i]);
			if (err)
				return err;
		}
		a->line[i]->checked |= 1ull << (row - a->line[i]->first);
	}
	for (i = 0; i < 2 && a->found < 0; i++) {
		a->entry = kv_row_find(&c->g, a->row[i], &a->place, a->m->key,
				       a->m->key_len, &skip, &a->item);
		if (a->entry >= 0)
			a->found = (int)i;
	}
	return 0;
}

/* ---- writing ------------------------------------------------------------ */

void kv_add_row(struct kv_replica *c, uint64_t number, uint8_t *row, int entry)
{
	uint64_t at = kv_row_at(&c->g, number);
	uint32_t body = c->g.row_bytes - KV_TRAILER_BYTES;
	uint32_t from = (uint32_t)entry * c->g.entry_bytes;

	kv_row_seal(&c->g, row, c->kit.slot);
	if (!c->config.split_writes) {
		kit_write(&c->kit.main, KV_POINT_ROW, at + from, row + from,
			  c->g.row_bytes - from);
		return;
	}
	kit_write(&c->kit.main, KV_POINT_ROW, at + from, row + from,
		  c->g.entry_bytes);
	kit_write(&c->kit.main, KV_POINT_ROW_TAIL, at + body, row + body,
		  KV_TRAILER_BYTES);
}

/* Moves everything one step on, from the end. */
static void add_path(struct kv_replica *c, const struct kv_path *path,
		     const uint8_t *entry)
{
	unsigned i;

	for (i = path->count; i-- > 0;) {
		const struct kv_step *s = &path->step[i];
		uint8_t *row = kv_line_row(c, kv_line_find(c, s->row), s->row);
		uint8_t *to = kv_entry(&c->g, row, (unsigned)s->entry);

		if (i == 0) {
			memcpy(to, entry, c->g.entry_bytes);
		} else {
			const struct kv_step *b = &path->step[i - 1];
			uint8_t *before =
				kv_line_row(c, kv_line_find(c, b->row), b->row);

			memcpy(to, kv_entry(&c->g, before, (unsigned)b->entry),
			       c->g.entry_bytes);
		}
		kv_add_row(c, s->row, row, s->entry);
	}
}

/* The end of every try that has changed something, or wants to end anyway. */
static int finish(struct kv_replica *c, struct attempt *a, bool stored)
{
	bool has_extents = c->new_extent || c->old_extent;

	if (a->fresh.is_set && stored)
		kv_new_add_commit(c, &a->fresh);
	if (a->fresh.is_set && !stored)
		kv_extent_add_free(c, a->fresh.offset, a->fresh.size_bytes);
	if (c->old_extent)
		kv_extent_add_free(c, a->item.extent, a->item.extent_bytes);
	c->new_extent = c->old_extent = 0;
	/* From here on nobody needs to look for them. */
	if (has_extents)
		kv_add_intent(c, &a->want.set);
	kv_add_release(c, &a->want.set, a->want.set.count);
	return kit_run(&c->kit);
}

/* Says what becomes of the old value's memory, before anything changes. */
static void note_old(struct kv_replica *c, const struct attempt *a)
{
	if (a->found < 0 || !a->item.is_extent)
		return;
	c->old_extent = a->item.extent;
	c->old_stamp = a->item.stamp;
}

/* Its entries are all that the table has. */
static int too_large(const struct kv_replica *c)
{
	return error_set(-E2BIG,
			 "key and value have at most %u bytes in this table, "
			 "and 8 less where the key has an end",
			 c->g.entry_bytes - KV_E_HEAD);
}

static int build_entry(struct kv_replica *c, struct attempt *a,
		       const struct aq_kv_change *ch, uint8_t *entry)
{
	struct kv_mod *m = a->m;
	struct kv_item item = {.hash = a->place.hash,
			       .expire_at_ms = ch->expire_at_ms};

	if (kv_fits_inline(&c->g, m->key_len, ch->new_value_len,
			   ch->expire_at_ms)) {
		kv_entry_inline(&c->g, entry, m->key, m->key_len, ch->new_value,
				ch->new_value_len, ch->expire_at_ms);
		return 0;
	}
	if (!kv_has_extents(&c->g))
		return too_large(c);
	if (!a->fresh.is_set) {
		int err = kv_new_alloc(c, m->key_len, ch->new_value_len,
				       &a->fresh);

		if (err)
			return err;
		c->new_extent = a->fresh.offset;
		c->new_stamp = a->fresh.stamp;
	}
	item.extent = a->fresh.offset;
	item.extent_bytes = (uint32_t)a->fresh.size_bytes;
	item.stamp = a->fresh.stamp;
	kv_entry_extent(&c->g, entry, m->key, m->key_len, &item);
	return 0;
}

/* A large value that was not written before the locks were taken. */
static int write_large(struct kv_replica *c, struct attempt *a,
		       const struct aq_kv_change *ch)
{
	int err;

	if (!a->fresh.is_set || a->fresh.is_written ||
	    KV_EXTENT_HEAD + a->m->key_len + ch->new_value_len <=
		    KIT_STAGE_BYTES)
		return 0;
	kit_begin(&c->kit);
	kv_add_intent(c, &a->want.set);
	err = kit_run(&c->kit);
	return err ? err
		   : kv_new_write(c, &a->fresh, a->m->key, a->m->key_len,
				  ch->new_value, ch->new_value_len);
}

/* Elsewhere first; meanwhile this client's locks must not look forgotten. From
 * here on nobody knows what was done when the connection breaks. */
static int mirror(struct kv_replica *c, struct attempt *a,
		  const struct aq_kv_change *ch)
{
	int err;

	a->m->is_sent = true;
	if (!a->m->mirror)
		return 0;
	c->held = &a->want.set;
	c->heartbeat_ns = kit_now_ns(&c->kit);
	err = a->m->mirror(a->m, ch);
	c->held = NULL;
	return err;
}

static bool needs_old(const struct kv_mod *m)
{
	return m->put ? m->put->flags != 0 : m->needs_old || m->needs_value;
}

static int look_older(struct kv_replica *c, struct attempt *a,
		      struct aq_kv_change *ch)
{
	int err;

	if (!a->m->older || a->found >= 0 || !needs_old(a->m))
		return 0;
	c->held = &a->want.set;
	c->heartbeat_ns = kit_now_ns(&c->kit);
	err = a->m->older(a->m, ch);
	c->held = NULL;
	return err;
}

/* One that needs not know what was there. */
static bool is_plain_put(const struct kv_mod *m)
{
	return m->put && !m->put->flags;
}

static int store(struct kv_replica *c, struct attempt *a,
		 const struct aq_kv_change *ch)
{
	struct kv_view view = kv_cache_view(c, true);
	uint8_t entry[KV_ENTRY_BYTES_MAX];
	int err = 0;

	if (a->found < 0) {
		err = kv_search_run(c->search, &c->g, &view, &a->place,
				    (enum aq_kv_search)c->config.options.search,
				    &a->path);
		if (err) {
			c->stats.searches_failed++;
			return -EAGAIN;
		}
	}
	err = build_entry(c, a, ch, entry);
	if (!err && is_plain_put(a->m))
		kv_entry_mark_put(&c->g, entry);
	if (!err)
		err = write_large(c, a, ch);
	if (!err)
		err = mirror(c, a, ch);
	if (err)
		return err;
	note_old(c, a);
	kit_begin(&c->kit);
	if (c->new_extent || c->old_extent)
		kv_add_intent(c, &a->want.set);
	if (a->fresh.is_set && !a->fresh.is_written)
		(void)kv_new_add(c, &a->fresh, a->m->key, a->m->key_len,
				 ch->new_value, ch->new_value_len);
	if (a->found >= 0) {
		memcpy(kv_entry(&c->g, a->row[a->found], (unsigned)a->entry),
		       entry, c->g.entry_bytes);
		kv_add_row(c, a->place.row[a->found], a->row[a->found],
			   a->entry);
	} else {
		kv_room_note_rows(c, a->row[0], a->row[1]);
		add_path(c, &a->path, entry);
		c->count++;
	}
	a->effect = a->found < 0 ? INSERTED : UPDATED;
	return finish(c, a, entry[0] & KV_E_EXTENT);
}

static int erase(struct kv_replica *c, struct attempt *a,
		 const struct aq_kv_change *ch)
{
	int err = mirror(c, a, ch);

	if (err)
		return err;
	note_old(c, a);
	kit_begin(&c->kit);
	if (c->old_extent)
		kv_add_intent(c, &a->want.set);
	kv_entry_clear(&c->g,
		       kv_entry(&c->g, a->row[a->found], (unsigned)a->entry));
	kv_add_row(c, a->place.row[a->found], a->row[a->found], a->entry);
	c->count--;
	a->effect = DELETED;
	return finish(c, a, false);
}

/* ---- deciding ----------------------------------------------------------- */

/* The old value, if somebody looks at it or the key is not in the entry. */
static int read_old(struct kv_replica *c, struct attempt *a,
		    struct aq_kv_change *ch)
{
	const uint8_t *bytes, *value;
	uint64_t len;
	int err;

	if (a->found < 0)
		return 0;
	if (!a->item.is_extent) {
		ch->value = a->item.value;
		ch->value_len = a->item.value_len;
	} else if (a->m->needs_value || !a->item.key) {
		/* What stood in the stage was written with the locks. */
		err = kv_extent_fetch(c, &a->item, &bytes);
		if (err)
			return err;
		err = kv_extent_check(bytes, a->item.extent_bytes,
				      a->item.stamp, a->m->key, a->m->key_len,
				      &value, &len);
		if (err == -ENOENT) {
			a->skip++; /* another key with the same hash */
			return -EAGAIN;
		}
		if (err)
			return error_set(-EREMOTEIO,
					 "the value of a key is damaged; "
					 "`aquifer kv check` says more");
		ch->value = value;
		ch->value_len = len;
	} else {
		ch->value = ""; /* there is one */
	}
	ch->expire_at_ms = a->item.expire_at_ms;
	if (kv_is_expired(c, ch->expire_at_ms)) {
		ch->value = NULL;
		ch->value_len = 0;
		ch->expire_at_ms = 0;
	}
	return 0;
}

static int let_go(struct kv_replica *c, struct attempt *a, int result)
{
	int err;

	kit_begin(&c->kit);
	err = finish(c, a, false);
	return err ? err : result;
}

static int apply_put(const struct kv_put *p, struct aq_kv_change *ch)
{
	if (p->flags & AQ_KV_NX && ch->value)
		return -EEXIST;
	if (p->flags & AQ_KV_XX && !ch->value)
		return -ENOENT;
	if (!(p->flags & AQ_KV_KEEP_TTL))
		ch->expire_at_ms = p->expire_at_ms;
	ch->new_value = p->value;
	ch->new_value_len = p->len;
	ch->verdict = AQ_KV_STORE;
	return 0;
}

/* With the old value known. -EAGAIN: begin again. */
static int carry_out(struct kv_replica *c, struct attempt *a,
		     struct aq_kv_change *ch)
{
	bool had = a->found >= 0 || ch->value;
	int err =
		a->m->put ? apply_put(a->m->put, ch) : a->m->fn(ch, a->m->user);

	if (!err && ch->verdict == AQ_KV_STORE &&
	    ch->new_value_len > AQ_KV_VALUE_MAX)
		err = error_set(-E2BIG, "a value has at most %s",
				SIZE_TEXT(AQ_KV_VALUE_MAX));
	if (err)
		return let_go(c, a, err);
	if (ch->verdict == AQ_KV_DELETE && a->m->leaves_graves && had) {
		ch->verdict = AQ_KV_STORE;
		ch->new_value = "";
		ch->new_value_len = 0;
		ch->expire_at_ms = KV_GRAVE_MS;
	}
	if (ch->verdict == AQ_KV_STORE)
		err = store(c, a, ch);
	else if (ch->verdict == AQ_KV_DELETE && a->found >= 0)
		err = erase(c, a, ch);
	else
		return let_go(c, a, 0);
	if (!err || err == -EAGAIN || kit_stopped(&c->kit))
		return err;
	return let_go(c, a, err);
}

static int decide(struct kv_replica *c, struct attempt *a)
{
	struct aq_kv_change ch = {.verdict = AQ_KV_KEEP};
	int err = see_rows(c, a);

	if (!err)
		err = read_old(c, a, &ch);
	if (!err)
		err = look_older(c, a, &ch);
	if (err && err != -EAGAIN)
		return kit_stopped(&c->kit) ? err : let_go(c, a, err);
	a->m->had_entry = a->found >= 0;
	if (!err)
		err = carry_out(c, a, &ch);
	if (err == -EAGAIN && !kit_stopped(&c->kit))
		a->want.owed = a->want.set; /* the next try lets them go */
	return err;
}

/* Locks of a try that nothing follows. */
static int pay(struct kv_replica *c, struct attempt *a, int err)
{
	int drop;

	if (!a->want.owed.count || kit_stopped(&c->kit))
		return err;
	drop = kv_locks_drop(c, &a->want.owed, a->want.owed.count);
	a->want.owed.count = 0;
	return err ? err : drop;
}

/* A value that is known and large is written before any lock is taken. */
static int prepare(struct kv_replica *c, struct attempt *a)
{
	const struct kv_mod *m = a->m;
	const struct kv_put *p = m->put;
	int err;

	if (!p || kv_fits_inline(&c->g, m->key_len, p->len, p->expire_at_ms))
		return 0;
	if (!kv_has_extents(&c->g))
		return too_large(c);
	err = kv_new_alloc(c, m->key_len, p->len, &a->fresh);
	if (err == -ENOSPC && !kv_reap(c)) /* what dead clients had */
		err = kv_new_alloc(c, m->key_len, p->len, &a->fresh);
	if (err)
		return err;
	c->new_extent = a->fresh.offset;
	c->new_stamp = a->fresh.stamp;
	a->want.fresh = &a->fresh;
	a->want.mod = m;
	if (KV_EXTENT_HEAD + m->key_len + p->len <= KIT_STAGE_BYTES)
		return 0;
	kit_begin(&c->kit);
	kv_add_intent(c, NULL);
	err = kit_run(&c->kit);
	return err ? err
		   : kv_new_write(c, &a->fresh, m->key, m->key_len, p->value,
				  p->len);
}

static void count_trips(struct kv_replica *c, const struct attempt *a)
{
	uint64_t trips = c->kit.trips - a->trips;

	switch (a->effect) {
	case INSERTED:
		c->stats.inserts++;
		c->stats.insert_trips += trips;
		break;
	case UPDATED:
		c->stats.updates++;
		c->stats.update_trips += trips;
		break;
	case DELETED:
		c->stats.deletes++;
		c->stats.delete_trips += trips;
		break;
	case NOTHING:
		break;
	}
}

static int try_often(struct kv_replica *c, struct attempt *a)
{
	unsigned try;
	int err = prepare(c, a);

	for (try = 0; try < KV_INSERT_TRIES && !err; try++) {
		err = plan(c, a, try);
		if (!err && a->full >= KV_FULL_TRIES)
			break;
		if (!err)
			err = kv_locks_take(c, &a->want);
		if (!err)
			err = decide(c, a);
		kv_cache_unpin(c);
		if (err == KV_E_OVERTAKEN) {
			a->effect = UPDATED;
			a->m->had_entry = true;
			return 0;
		}
		if (err != -EAGAIN)
			return pay(c, a, err);
		c->stats.searches_second++;
		err = kv_past_deadline(c);
	}
	err = pay(c, a, err);
	return err ? err
		   : error_set(-ENOSPC,
			       "the table is full: no path of at most %d rows "
			       "leads to a free entry",
			       KV_PATH_MAX);
}

int kv_mod_run(struct kv_replica *c, struct kv_mod *m)
{
	struct attempt a = {.m = m, .trips = c->kit.trips};
	int err;

	kv_place_of(&c->g, kv_hash_key(&c->g, m->key, m->key_len), &a.place);
	/* With other replicas, more than this one's row tells what has
	 * happened.
	 */
	if (is_plain_put(m) && !m->mirror && !m->older && !m->leaves_graves) {
		a.overtake.place = &a.place;
		a.overtake.key = m->key;
		a.overtake.key_len = m->key_len;
		a.want.overtake = &a.overtake;
	}
	err = try_often(c, &a);
	if (!err)
		count_trips(c, &a);
	/* It was made for nothing. */
	if (c->new_extent && !kit_stopped(&c->kit)) {
		a.want.set.count = 0;
		c->old_extent = 0;
		(void)let_go(c, &a, 0);
	}
	return err;
}
