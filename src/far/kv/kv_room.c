/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room in a table: clients notice when it gets short, say so, and wait.
 *
 * A client sees how full the index is at its own inserts: their rows are a fair
 * sample. Chunks for values are taken from the first on, so the number of one
 * says how many are taken. Beyond three quarters somebody should make the table
 * larger (kv_upkeep.c); who finds no room at all waits for that.
 *
 * While keys are copied to the next generation, new ones arrive there as well.
 * It must not get full of those: then the copying could never end, and nothing
 * else could begin. So clients count what is there and what is still to come,
 * and each makes a small share of the changes that would fit before it counts
 * again; where there is no share, changes wait for the copying. Shares that
 * clients have and do not use are the error of a count: with SHARE_OF they are
 * a sixteenth of the room at most. As many chunks as the old generation has are
 * left alone, too.
 */
#include <errno.h>

#include "base/error.h"
#include "kv_client_priv.h"

enum {
	FULL_MILLI = 750,   /* from here on somebody is told */
	SAMPLE_INSERTS = 8, /* one of so many is looked at */
	SAMPLES = 32,	    /* that the mean is about of */
	END_MILLI = 850,    /* at a copy's end; from 950 on no path is found */
	SHARE_OF = 16,	    /* of the room, for all clients together */
	POLL_NS = 2000000,
};

void kv_fill_add(struct kv_fill *f, uint32_t used, uint32_t of)
{
	int32_t now = (int32_t)(1000 * used / of), old = (int32_t)f->milli;

	if (f->samples < SAMPLES)
		f->samples++;
	f->milli = (uint32_t)(old + (now - old) / (int32_t)f->samples);
}

uint64_t kv_room_share(uint64_t entries, uint64_t used, uint64_t left,
		       uint32_t clients)
{
	uint64_t end = entries * END_MILLI / 1000;

	return used + left >= end
		       ? 0
		       : (end - used - left) / SHARE_OF / u32_max(clients, 1);
}

static int wish(struct kv_replica *c, enum kv_wish_kind kind, uint64_t bytes)
{
	struct kv_wish w = {
		.kind = kind, .generation = c->g.generation, .bytes = bytes};

	return c->config.wish(c->config.wish_ctx, &w);
}

static bool grows(const struct kv_replica *c)
{
	return c->config.wish && c->g.flags & KV_GROWS;
}

static uint32_t used_of(const struct kv_geometry *g, const uint8_t *row)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->entries; i++)
		n += kv_entry_used(row + (size_t)i * g->entry_bytes);
	return n;
}

void kv_room_note_rows(struct kv_replica *c, const uint8_t *first,
		       const uint8_t *second)
{
	if (!grows(c) || ++c->fill.inserts < SAMPLE_INSERTS)
		return;
	c->fill.inserts = 0;
	kv_fill_add(&c->fill, used_of(&c->g, first) + used_of(&c->g, second),
		    2 * c->g.entries);
	if (c->fill.milli > FULL_MILLI && c->fill.samples == SAMPLES)
		(void)wish(c, KV_WISH_ROWS, 0); /* there is room as yet */
}

void kv_room_note_chunk(struct kv_replica *c, uint64_t chunk)
{
	if (grows(c) && 1000 * (chunk + 1) > FULL_MILLI * c->g.chunk_count)
		(void)wish(c, KV_WISH_EXTENTS, 0);
}

/* ---- waiting ------------------------------------------------------------ */

static void set_limit(struct kv_replica *c, const struct kv_replica *older)
{
	if (!c)
		return;
	c->short_bytes = 0;
	c->chunk_limit = 0;
	if (older && c->g.chunk_count >= 2 * older->g.chunk_count)
		c->chunk_limit = c->g.chunk_count - older->g.chunk_count;
}

/* The keys of a generation that nobody has copied yet. */
static int count_left(struct kv_replica *older, uint64_t *left)
{
	uint64_t keys = 0, copied = 0;
	int err = 0;

	if (!older->frozen_keys) {
		err = kv_replica_count(older, &keys);
		older->frozen_keys = keys + 1;
	}
	if (!err)
		err = kv_copied_read(older, &copied);
	*left = (uint64_t)((double)(older->frozen_keys - 1) *
			   (double)(older->g.rows - copied) /
			   (double)older->g.rows);
	return err;
}

/* -ENOSPC: what is left of the older one needs the room that there is. */
static int check_rows(struct kv_replica *c, struct kv_replica *older,
		      uint32_t changes)
{
	uint64_t left = 0, used = 0;
	uint32_t clients = 0;
	int err = 0;

	if (c->share >= changes) {
		c->share -= changes;
		return 0;
	}
	/* Keys on their way are counted twice rather than not at all. */
	err = count_left(older, &left);
	if (!err)
		err = kv_replica_count_with(c, &used, &clients);
	if (err)
		return err;
	c->share = kv_room_share(c->g.rows * c->g.entries, used, left, clients);
	if (c->share >= changes) {
		c->share -= changes;
		return 0;
	}
	return error_set(-ENOSPC, "the table is full until all of it is "
				  "copied to a larger one");
}

int kv_room_check(struct aq_kv_client *c, const struct kv_route *r,
		  uint32_t changes)
{
	bool has_limit = r->older && r->leaves_graves && grows(r->replica) &&
			 !c->is_resizing &&
			 r->older->g.shard_count == r->replica->g.shard_count;
	const struct kv_replica *older = has_limit ? r->older : NULL;
	int err;

	set_limit(r->replica, older);
	set_limit(r->second, older);
	/* Somebody copies, or has died over it. */
	if (r->older && c->config.wish && !c->is_resizing)
		(void)wish(r->older, KV_WISH_END, 0);
	err = has_limit ? check_rows(r->replica, r->older, changes) : 0;
	return err == -ESTALE ? KV_E_VIEW : err;
}

/* KV_E_VIEW: the table is not what it was any more. */
static int confirm(struct kv_replica *c)
{
	int err = kv_op_begin(c);

	if (!err)
		err = kv_state_confirm(c);
	return err == -ESTALE ? KV_E_VIEW : err;
}

int kv_room_await(struct aq_kv_client *c, const struct kv_route *r,
		  bool *has_waited)
{
	struct kv_replica *at = r->replica;
	uint64_t bytes;
	int err = 0;

	/* Without a replica it was something else that had no room. */
	if (!at || !grows(at) || c->is_resizing)
		return -ENOSPC;
	bytes = at->short_bytes;
	if (!bytes && r->second)
		bytes = r->second->short_bytes;
	/* One that is being copied to grows later. */
	if (!r->older)
		err = wish(at, bytes ? KV_WISH_EXTENTS : KV_WISH_ROWS, bytes);
	if (err)
		return err;
	if (kit_now_ns(&at->kit) > c->deadline_ns)
		return error_set(-ENOSPC,
				 "the table is full, and still grows; try "
				 "again");
	c->past.room_waits += !*has_waited;
	*has_waited = true;
	kv_pause(at, POLL_NS);
	/* Nothing of what led here has looked at the states. */
	if (r->older)
		err = confirm(r->older);
	return err ? err : confirm(at);
}
