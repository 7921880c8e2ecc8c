/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads. No lock: both rows are read together and checked by their CRCs. What
 * is found is true at the moment the row was read, because whoever moves an
 * entry copies it before it is overwritten. What is not found may have moved
 * between the two reads; so a miss counts only when a second look finds both
 * rows unchanged.
 *
 * With several reads under way, or where others have filled the way to the
 * replica (kv_pace.c), it is requests that count, not round trips: then the
 * first row is asked for alone, which has most of the keys, and the second when
 * that has not.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "kv_priv.h"

static uint32_t rows_bytes(const struct kv_replica *c)
{
	return u32_max(c->covering_bytes, 2 * c->g.row_bytes);
}

size_t kv_get_stride(const struct kv_replica *c)
{
	return align_up(rows_bytes(c) + KV_OP_BYTES + sizeof(uint64_t),
			sizeof(uint64_t));
}

int kv_get_init(struct kv_replica *c)
{
	size_t stride = kv_get_stride(c);
	uint32_t i;

	c->get = calloc(c->depth, sizeof(c->get[0]));
	c->done = calloc(c->depth, sizeof(c->done[0]));
	c->look_queue = calloc(c->depth, sizeof(c->look_queue[0]));
	if (!c->get || !c->done || !c->look_queue)
		return error_set(-ENOMEM, "no memory for a client");
	for (i = 0; i < c->depth; i++) {
		c->get[i].rows = c->get_bytes + i * stride;
		c->get[i].extent = c->get[i].rows + rows_bytes(c);
		c->get[i].state_word = c->get[i].extent + KV_OP_BYTES;
	}
	return 0;
}

bool kv_is_expired(const struct kv_replica *c, uint64_t expire_at_ms)
{
	if (LIKELY(!expire_at_ms))
		return false;
	if (c->config.now_ms)
		return c->config.now_ms(c->config.ctx) >= expire_at_ms;
	return clock_real_ms() >= expire_at_ms;
}

/* Whether an entry with a key of that length may be its: by the key's last
 * byte, which differs most. */
static inline bool may_be(const struct kv_geometry *g, const uint8_t *entry,
			  const uint8_t *key, size_t key_len)
{
	size_t last = KV_E_HEAD + key_len - 1;

	if (entry[0] & KV_E_EXTENT)
		return true;
	if (entry[0] & KV_E_EXPIRES)
		last += KV_E_END;
	return last < g->entry_bytes && entry[last] == key[key_len - 1];
}

int kv_row_find(const struct kv_geometry *g, const uint8_t *row,
		const struct kv_place *place, const void *key, size_t key_len,
		uint32_t *skip, struct kv_item *item)
{
	unsigned i;

	for (i = 0; i < g->entries; i++, row += g->entry_bytes) {
		/* Bits 0-15 of the entry: used, and the length of the key. */
		if (row[1] != key_len || !kv_entry_used(row) ||
		    !may_be(g, row, key, key_len) ||
		    kv_entry_read(g, row, item))
			continue;
		if (item->is_extent && item->hash != place->hash)
			continue;
		if (item->key) {
			if (memcmp(item->key, key, key_len) == 0)
				return (int)i;
			continue;
		}
		if (*skip) {
			(*skip)--;
			continue;
		}
		return (int)i;
	}
	return -1;
}

/* ---- one read ----------------------------------------------------------- */

static void tell(struct kv_replica *c, struct kv_get *g, int err)
{
	g->op->err = err;
	c->done[(c->done_head + c->done_count) % c->depth] = g->op;
	c->done_count++;
}

static void finish(struct kv_replica *c, struct kv_get *g, int err)
{
	tell(c, g, err);
	g->state = KV_GET_DONE;
	c->gets_busy--;
	if (err == 0 || err == -EMSGSIZE || err == -ENOENT) {
		c->stats.gets++;
		c->stats.get_trips += g->trips;
		c->stats.gets_missed += err == -ENOENT;
	}
}

static void give_value(struct kv_replica *c, struct kv_get *g,
		       const uint8_t *value, uint64_t len)
{
	struct aq_kv_op *op = g->op;
	size_t part = u64_min(len, op->value_len);

	op->len = len;
	if (part)
		memcpy(op->value, value, part);
	/* Who asks for the length only gives no buffer. */
	finish(c, g, part < len && op->value ? -EMSGSIZE : 0);
}

static void see_extent(struct kv_replica *c, struct kv_get *g,
		       const uint8_t *bytes);

static void post_rows(struct kv_replica *c, struct kv_get *g)
{
	uint64_t low = u64_min(g->place.row[0], g->place.row[1]);
	uint64_t high = u64_max(g->place.row[0], g->place.row[1]);
	uint64_t span = (high - low + 1) * c->g.row_bytes;

	g->state = KV_GET_ROWS;
	g->walked_at = 0;
	g->trips++;
	g->asked_ns = kit_now_ns(&c->kit);
	g->asks_state = kv_state_is_due(c, g->asked_ns);
	kv_look_begin(c, g);
	/* Loads wait for the memory only; there is nothing to save. */
	if (span <= c->covering_bytes &&
	    !(g->is_lean && c->kit.remote.look_rkey)) {
		g->row[g->place.row[0] != low] = g->rows;
		g->row[g->place.row[0] == low] =
			g->rows + (high - low) * c->g.row_bytes;
		kv_look_add(c, g, kv_row_at(&c->g, low), g->rows, span);
	} else if (g->is_lean) {
		g->row[0] = g->rows;
		g->row[1] = g->lean_at ? g->rows + c->g.row_bytes : NULL;
		kv_look_add(c, g, kv_row_at(&c->g, g->place.row[g->lean_at]),
			    g->row[g->lean_at], c->g.row_bytes);
	} else {
		g->row[0] = g->rows;
		g->row[1] = g->rows + c->g.row_bytes;
		kv_look_add(c, g, kv_row_at(&c->g, g->place.row[0]), g->row[0],
			    c->g.row_bytes);
		kv_look_add(c, g, kv_row_at(&c->g, g->place.row[1]), g->row[1],
			    c->g.row_bytes);
	}
	/* The last: looks of one get are done in their order. */
	if (g->asks_state)
		kv_look_add(c, g, kv_lease_at(&c->g, KV_LEASE_STATE),
			    g->state_word, 8);
	kv_look_end(c, g);
}

/* Whether the rows count: they were read while the state was the expected one.
 * Else what has to be done is done. */
static bool is_proven(struct kv_replica *c, struct kv_get *g)
{
	uint64_t word;

	if (!g->asks_state) {
		if (LIKELY(c->kit.polled_ns <= c->valid_ns))
			return true;
		post_rows(c, g); /* and asks */
		return false;
	}
	memcpy(&word, g->state_word, sizeof(word));
	if (LIKELY(kv_state_note(c, word, g->asked_ns)))
		return true;
	finish(c, g, KV_E_VIEW);
	return false;
}

static void post_extent(struct kv_replica *c, struct kv_get *g,
			const struct kv_item *item)
{
	g->stamp = item->stamp;
	g->extent_bytes = item->extent_bytes;
	g->state = KV_GET_EXTENT;
	if (g->walked_at == item->extent &&
	    g->walked_bytes == item->extent_bytes) {
		see_extent(c, g, g->walked);
		return;
	}
	g->trips++;
	kv_look_begin(c, g);
	if (item->extent_bytes <= KV_OP_BYTES) {
		kv_look_add(c, g, item->extent, g->extent, item->extent_bytes);
	} else {
		/* The head tells nothing that the entry does not; this only
		 * brings it back to kv_get_drain, which reads all of it. */
		g->evidence = item->extent;
		kv_look_add(c, g, item->extent, g->extent, KV_EXTENT_HEAD);
	}
	kv_look_end(c, g);
}

/* Rows that are not whole, or an extent that has changed: look again. */
static void look_again(struct kv_replica *c, struct kv_get *g)
{
	uint64_t seen = kv_row_crc(&c->g, g->row[0]) * 31;

	if (g->row[1])
		seen += kv_row_crc(&c->g, g->row[1]);
	g->is_lean = false;
	c->stats.reads_torn++;
	g->tries++;
	if (seen != g->evidence || !g->since_ns) {
		g->evidence = seen;
		g->since_ns = kit_now_ns(&c->kit);
	}
	c->has_tending = true;
	post_rows(c, g);
}

static void see_rows(struct kv_replica *c, struct kv_get *g)
{
	uint32_t skip = g->skip;
	bool whole[2] = {false, false};
	struct kv_item item;
	unsigned i;

	if (!is_proven(c, g))
		return;
	if (c->gets_busy == 1 && !c->pad)
		kv_pace_note(&c->pace, c->kit.polled_ns - g->asked_ns);
	for (i = 0; i < 2 && g->row[i]; i++) {
		whole[i] = kv_row_is_whole(&c->g, g->row[i]);
		if (!whole[i] ||
		    kv_row_find(&c->g, g->row[i], &g->place, g->op->key,
				g->op->key_len, &skip, &item) < 0)
			continue;
		g->expire_at_ms = item.expire_at_ms;
		if (kv_is_expired(c, item.expire_at_ms) && item.key) {
			g->has_entry = true;
			finish(c, g, -ENOENT);
			return;
		}
		if (item.is_extent)
			post_extent(c, g, &item);
		else
			give_value(c, g, item.value, item.value_len);
		return;
	}
	if (!g->row[1]) {
		g->lean_at = 1;
		post_rows(c, g);
		return;
	}
	g->is_lean = false;
	if (!whole[0] || !whole[1]) {
		look_again(c, g);
		return;
	}
	for (i = 0; i < 2; i++) {
		uint64_t crc = kv_row_crc(&c->g, g->row[i]);

		if (!g->has_crc || g->crc[i] != crc)
			skip = UINT32_MAX; /* not seen so before */
		g->crc[i] = crc;
	}
	if (g->has_crc && skip != UINT32_MAX) {
		finish(c, g, -ENOENT);
		return;
	}
	g->has_crc = true;
	post_rows(c, g);
}

static void see_extent(struct kv_replica *c, struct kv_get *g,
		       const uint8_t *bytes)
{
	const uint8_t *value;
	uint64_t len;
	int err = kv_extent_check(bytes, g->extent_bytes, g->stamp, g->op->key,
				  g->op->key_len, &value, &len);

	if (err == -ENOENT) {
		g->skip++; /* another key with the same hash */
		g->has_crc = false;
		g->is_lean = false;
		post_rows(c, g);
	} else if (err) {
		g->skip = 0;
		look_again(c, g);
	} else if (kv_is_expired(c, g->expire_at_ms)) {
		g->has_entry = true;
		finish(c, g, -ENOENT);
	} else {
		give_value(c, g, value, len);
	}
}

void kv_get_completed(struct kit_client *k, uint64_t index)
{
	struct kv_replica *c = container_of(k, struct kv_replica, kit);
	struct kv_get *g = &c->get[index];

	if (index >= c->depth || g->state == KV_GET_IDLE)
		return;
	if (UNLIKELY(!g->op)) {
		g->state = KV_GET_IDLE;
		c->gets_busy--;
	} else if (g->state == KV_GET_ROWS)
		see_rows(c, g);
	else if (g->state == KV_GET_EXTENT && g->extent_bytes <= KV_OP_BYTES)
		see_extent(c, g, g->extent);
	/* A large one: kv_get_drain finds it in this state. */
	else if (g->state == KV_GET_EXTENT) {
		g->state = KV_GET_LARGE;
		c->has_tending = true;
	}
}

void kv_get_withdraw(struct kv_replica *c, struct kv_get *g)
{
	if (g->state == KV_GET_IDLE) /* a new connection has no reads */
		return;
	if (g->state == KV_GET_DONE) {
		/* The last that was. */
		g->state = KV_GET_IDLE;
		c->done_count--;
		return;
	}
	g->op = NULL;
	/* Else an answer is on its way to its memory. */
	if (g->state == KV_GET_LARGE || kit_stopped(&c->kit)) {
		g->state = KV_GET_IDLE;
		c->gets_busy--;
	}
}

int kv_get_start(struct kv_replica *c, struct aq_kv_op *op, bool may_walk,
		 struct kv_get **out)
{
	uint32_t i = c->get_hint;

	if (c->gets_busy + c->done_count >= c->depth)
		return -EAGAIN;
	while (c->get[i].state != KV_GET_IDLE && c->get[i].state != KV_GET_DONE)
		i = i + 1 < c->depth ? i + 1 : 0;
	c->get_hint = i;
	c->get[i] = (struct kv_get){.rows = c->get[i].rows,
				    .extent = c->get[i].extent,
				    .state_word = c->get[i].state_word,
				    .op = op,
				    .is_lean = c->gets_busy >= KV_LEAN_FROM ||
					       c->kit.remote.look_rkey ||
					       c->pace.is_busy};
	kv_place_of(&c->g, kv_hash_key(&c->g, op->key, op->key_len),
		    &c->get[i].place);
	c->gets_busy++;
	if (may_walk && kv_walk_get(c, &c->get[i]))
		see_rows(c, &c->get[i]);
	else
		post_rows(c, &c->get[i]);
	*out = &c->get[i];
	return 0;
}

/* ---- what a completion cannot do by itself ------------------------------ */

int kv_extent_fetch(struct kv_replica *c, const struct kv_item *item,
		    const uint8_t **bytes)
{
	int err = kit_big_reserve(&c->kit,
				  u64_max(item->extent_bytes, KIT_STAGE_BYTES));

	if (!err)
		err = kit_read_now(&c->kit.main, item->extent, c->kit.big,
				   item->extent_bytes);
	*bytes = c->kit.big;
	return err;
}

static int look_only(struct aq_kv_change *change, void *user)
{
	return 0;
}

/* Reads that need more than one look: large extents, and rows that stay torn.
 * Taking their locks brings these in order, whatever the reason. */
static int tend_one(struct kv_replica *c, struct kv_get *g)
{
	struct kv_item item = {.extent = g->evidence,
			       .extent_bytes = g->extent_bytes};
	struct kv_mod touch = {
		.key = g->op->key, .key_len = g->op->key_len, .fn = look_only};
	const uint8_t *bytes;
	int err = 0;

	if (g->state == KV_GET_LARGE) {
		err = kv_extent_fetch(c, &item, &bytes);
		if (!err)
			see_extent(c, g, bytes);
	} else if (g->state == KV_GET_ROWS && g->since_ns &&
		   kit_now_ns(&c->kit) - g->since_ns > c->kit.failure_ns / 2) {
		g->since_ns = kit_now_ns(&c->kit);
		err = kv_mod_run(c, &touch);
		/* It may have been answered meanwhile. Else the answer is still
		 * on its way to the memory of this one. */
		if (err == KV_E_VIEW && g->state == KV_GET_ROWS) {
			tell(c, g, err);
			g->op = NULL;
		}
		if (err == KV_E_VIEW)
			err = 0;
	}
	if (g->state == KV_GET_ROWS && g->since_ns && g->op)
		c->has_tending = true;
	return err;
}

static int tend(struct kv_replica *c)
{
	uint32_t i;
	int err = 0;

	c->has_tending = false;
	for (i = 0; i < c->depth && !err; i++)
		if (c->get[i].op && (c->get[i].state == KV_GET_LARGE ||
				     c->get[i].state == KV_GET_ROWS))
			err = tend_one(c, &c->get[i]);
	return err;
}

int kv_get_step(struct kv_replica *c)
{
	bool ignored;
	int err = 0;

	if (c->look_count)
		kv_look_run(c);
	else
		err = kit_poll(&c->kit, &ignored);
	if (!err && UNLIKELY(kit_stopped(&c->kit)))
		err = c->kit.is_broken ? -ESTALE : -ESHUTDOWN;
	if (!err && UNLIKELY(c->has_tending)) {
		/* Loads that met a writer must let it go on. */
		if (c->look_count)
			client_clock_relax(c->kit.clock);
		err = tend(c);
	}
	return err;
}

int kv_get_drain(struct kv_replica *c, const struct kv_get *g)
{
	unsigned looks = 0;
	int err = 0;

	while (!err &&
	       (g ? g->op && g->state != KV_GET_DONE : c->gets_busy > 0)) {
		err = kv_get_step(c);
		if (!err && ++looks % KV_TORN_TRIES == 0)
			err = kv_past_deadline(c);
	}
	return err;
}
