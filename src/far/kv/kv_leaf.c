/* SPDX-License-Identifier: Apache-2.0 */
/* A client's way to one leaf: its memory, its slot there, its connection. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kv_priv.h"

enum {
	ARENA_ALIGN = 4096,
	SLOT_TRIES = 16,
};

/* ---- memory ------------------------------------------------------------- */

static size_t take(size_t *at, size_t bytes)
{
	size_t start = *at;

	*at += align_up(bytes, CACHE_LINE);
	return start;
}

static int make_arena(struct kv_leaf *c)
{
	size_t line_bytes = (size_t)c->line_rows * c->g.row_bytes;
	size_t at = 0;
	size_t atom = take(&at, KV_ATOM_COUNT * 8);
	size_t intent = take(&at, 3 * sizeof(struct kv_intent));
	size_t ones = take(&at, 8);
	size_t zeros = take(&at, KV_ZERO_BYTES);
	size_t run_words = take(&at, KV_ZERO_BYTES);
	size_t stage = take(&at, KV_STAGE_BYTES);
	size_t lines = take(&at, c->line_count * line_bytes);
	size_t gets = take(&at, c->depth * kv_get_stride(c));

	c->arena_bytes = align_up(at, ARENA_ALIGN);
	c->arena = aligned_alloc(ARENA_ALIGN, c->arena_bytes);
	if (!c->arena)
		return error_set(-ENOMEM, "no memory for a client");
	memset(c->arena, 0, c->arena_bytes);
	c->atom = (uint64_t *)(c->arena + atom);
	c->intent = (struct kv_intent *)(c->arena + intent);
	c->ones = c->arena + ones;
	memset(c->ones, 1, 8);
	c->zeros = c->arena + zeros;
	c->run_words = c->arena + run_words;
	c->stage = c->arena + stage;
	c->lines = c->arena + lines;
	c->get_bytes = c->arena + gets;
	return 0;
}

static int register_arena(struct kv_leaf *c)
{
	c->mr = c->port.link->verbs->reg_mr(c->port.link->pd, c->arena,
					    c->arena_bytes,
					    IBV_ACCESS_LOCAL_WRITE);
	return c->mr ? 0 : error_set(-ENOMEM, "the NIC registers no memory");
}

static void unregister(struct kv_leaf *c)
{
	const struct client_verbs *v = c->port.link->verbs;

	if (c->mr)
		(void)v->dereg_mr(c->mr);
	if (c->big_mr)
		(void)v->dereg_mr(c->big_mr);
	free(c->big);
	c->mr = c->big_mr = NULL;
	c->big = NULL;
	c->big_bytes = 0;
}

/* ---- slots -------------------------------------------------------------- */

static int try_claim(struct kv_leaf *c, uint32_t slot, const struct kv_slot *s)
{
	enum slot_verdict verdict = SLOT_GO_ON;
	struct slot_claim claim;
	struct slot_cas cas;
	uint64_t old;
	int err;

	if ((le64_get(s->state) & 0xff) != KV_SLOT_FREE)
		return -EAGAIN;
	err = slot_claim_begin(&claim, s, c->port.conn, &cas);
	while (!err && verdict == SLOT_GO_ON) {
		err = kv_cas_now(c, KV_POINT_INTENT,
				 kv_slot_at(&c->g, slot) + cas.offset,
				 cas.compare, cas.swap, &old);
		if (!err)
			verdict = slot_claim_next(&claim, old, &cas);
	}
	if (err)
		return err;
	if (verdict == SLOT_TAKEN)
		return -EAGAIN;
	c->slot = slot;
	c->epoch = (uint32_t)claim.epoch;
	c->sequence = le64_get(s->intent.sequence) + 1;
	c->count = (int64_t)le64_get(s->intent.count);
	c->recent_count = le32_get(s->intent.recent_count);
	c->new_extent = c->old_extent = 0;
	c->has_slot = true;
	kv_begin(c);
	kv_add_intent(c, NULL);
	return kv_run(c);
}

int kv_slot_set_conn(struct kv_leaf *c, const char *conn)
{
	le64 words[SLOT_NAME_WORDS];
	int err = slot_name_put(conn, c->epoch, words);

	if (err)
		return err;
	snprintf(c->port.conn, sizeof(c->port.conn), "%s", conn);
	memcpy(c->stage, words, sizeof(words));
	kv_begin(c);
	kv_add_write(c, KV_POINT_INTENT,
		     kv_slot_at(&c->g, c->slot) + SLOT_NAME_AT, c->stage,
		     SLOT_NAME_BYTES);
	return kv_run(c);
}

/* The slot for repairs may be held by somebody who died over one. It has no
 * locks and no extents of its own, so it can be freed as it is. */
static int free_last(struct kv_leaf *c, uint32_t slot, struct kv_slot *s)
{
	uint64_t word = le64_get(s->state), freed, old;
	char conn[SLOT_NAME_MAX + 1];
	int err;

	if ((word & 0xff) == KV_SLOT_FREE)
		return 0;
	if ((word & 0xff) == KV_SLOT_CLAIMED) {
		kv_pause(c, kv_nameless_ns(c));
	} else {
		if (!slot_name_get(s, conn) ||
		    c->port.is_alive(c->port.ctx, conn) != 0)
			return 0;
		err = c->port.fence(c->port.ctx, conn);
		if (err)
			return err;
	}
	freed = kv_slot_word(KV_SLOT_FREE, word >> 8);
	err = kv_cas_now(c, KV_POINT_FENCE, kv_slot_at(&c->g, slot), word,
			 freed, &old);
	s->state = le64_put(freed);
	return err;
}

/* One of the slots, or with `last` the one that is kept for repairs. */
static int claim_any(struct kv_leaf *c, bool last)
{
	uint32_t i, usual = c->g.client_count - 1;
	uint32_t start = (uint32_t)rng_below(&c->rng, usual);
	uint64_t bytes = (uint64_t)c->g.client_count * KV_SLOT_BYTES;
	struct kv_slot *slots = malloc(bytes);
	int err = slots ? kv_big_reserve(c, bytes) : -ENOMEM;

	if (!err)
		err = kv_read_now(c, c->g.slot_offset, c->big, bytes);
	if (!err) {
		memcpy(slots, c->big, bytes);
		err = -EAGAIN;
	}
	if (err == -EAGAIN && last && free_last(c, usual, &slots[usual]))
		err = -ESTALE;
	for (i = 0; i < (last ? 1 : usual) && err == -EAGAIN; i++) {
		uint32_t at = last ? usual : (start + i) % usual;

		err = try_claim(c, at, &slots[at]);
	}
	free(slots);
	return err;
}

/* All slots are taken, perhaps by some who are dead. */
static int make_room(struct kv_leaf *c)
{
	int err = claim_any(c, true);

	if (err == -EAGAIN) { /* somebody else is at it */
		kv_pause(c, c->failure_ns / 4 + 1);
		return 0;
	}
	if (!err) {
		err = kv_reap(c);
		(void)kv_slot_leave(c);
	}
	return err;
}

int kv_slot_claim(struct kv_leaf *c)
{
	int err, room = 0;

	c->deadline_ns = kv_now_ns(c) + c->deadline_ms * 1000000;
	/* No slot is ours yet; no other has this number. */
	c->slot = UINT16_MAX - 1;
	for (;;) {
		err = claim_any(c, false);
		if (err != -EAGAIN)
			return err;
		if (room > SLOT_TRIES || kv_now_ns(c) > c->deadline_ns)
			return error_set(-EAGAIN,
					 "the table has %u clients already",
					 c->g.client_count);
		err = make_room(c);
		if (err)
			return err;
		room++;
	}
}

int kv_slot_leave(struct kv_leaf *c)
{
	int err;

	if (!c->has_slot || c->is_broken || c->is_crashed)
		return 0;
	c->has_slot = false;
	err = kv_slab_give_back(c);
	if (err)
		return err;
	kv_begin(c);
	kv_add_cas(c, KV_POINT_IDLE, kv_slot_at(&c->g, c->slot),
		   kv_slot_word(KV_SLOT_LIVE, c->epoch),
		   kv_slot_word(KV_SLOT_FREE, c->epoch), KV_ATOM_OTHER);
	return kv_run(c);
}

/* ---- clients ------------------------------------------------------------ */

static int check_port(const struct kv_leaf *c)
{
	if (c->g.flags & KV_WORD_LOCKS || c->port.link->has_masked_atomics)
		return 0;
	return error_set(-EOPNOTSUPP,
			 "the table has locks of one bit, but the NIC has no "
			 "masked atomics; make a table with word locks");
}

static int init(struct kv_leaf *c, const struct kv_client_config *config)
{
	const struct aq_kv_client_options *o = &c->config.options;
	uint64_t line_bytes;
	int err;

	c->config = *config;
	rng_init(&c->rng, config->rng_seed ? config->rng_seed
					   : kv_now_ns(c) ^ (uintptr_t)c);
	c->stamp = (uint32_t)rng_u64(&c->rng) & KV_STAMP_MASK;
	/* One more, for a read that is waited for while others are told of. */
	c->depth = (o->depth ? o->depth : KV_DEPTH) + 1;
	if (c->depth > KV_DEPTH_MAX + 1)
		return error_set(-EINVAL,
				 "a client has at most %d reads "
				 "under way",
				 KV_DEPTH_MAX);
	c->covering_bytes = u32_max(o->covering_bytes ? o->covering_bytes
						      : KV_COVERING_BYTES,
				    2 * c->g.row_bytes);
	c->deadline_ms = o->deadline_ms ? o->deadline_ms : KV_DEADLINE_MS;
	c->failure_ns = (uint64_t)c->g.failure_ms * 1000000;
	c->term_ns = u64_max(c->failure_ns / KV_TERM_SHARE, KV_TERM_NS_MIN);
	c->line_rows = u32_min(c->g.rows_per_lock, KV_LINE_ROWS_MAX);
	line_bytes = (uint64_t)c->line_rows * c->g.row_bytes;
	c->line_count = (uint32_t)u64_max(
		u32_min(o->cache_bytes ? o->cache_bytes : KV_CACHE_BYTES,
			KV_CACHE_BYTES_MAX) /
			line_bytes,
		KV_LINES_MIN);
	err = check_port(c);
	if (!err)
		err = make_arena(c);
	if (!err)
		err = register_arena(c);
	if (!err)
		err = kv_cache_init(c);
	if (!err)
		err = kv_get_init(c);
	c->search = kv_search_create();
	if (!err && !c->search)
		err = error_set(-ENOMEM, "no memory for a client");
	if (!err)
		err = kv_slot_claim(c);
	return err ? err : kv_state_adopt(c);
}

int kv_leaf_create(const struct kv_port *port, const struct kv_geometry *g,
		   const struct kv_client_config *config, struct kv_leaf **out)
{
	struct kv_leaf *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return error_set(-ENOMEM, "no memory for a client");
	c->port = *port;
	c->clock = port->link->clock;
	c->g = *g;
	err = init(c, config);
	if (err) {
		/* The port stays the caller's. */
		c->port.close = NULL;
		kv_leaf_destroy(c);
		return err;
	}
	*out = c;
	return 0;
}

void kv_leaf_destroy(struct kv_leaf *c)
{
	if (!c)
		return;
	/* What cannot be given back others take for dead, in time. */
	if (c->mr)
		(void)kv_slot_leave(c);
	kv_slab_forget(c);
	free(c->chunk);
	if (c->port.link)
		unregister(c);
	if (c->port.close)
		c->port.close(c->port.ctx, &c->port);
	kv_search_destroy(c->search);
	free(c->line);
	free(c->get);
	free(c->done);
	free(c->look_queue);
	free(c->arena);
	free(c);
}

/* What is there now under this leaf's name is still this leaf. */
static int check_head(struct kv_leaf *c)
{
	struct kv_geometry g;
	struct kv_head head;
	int err = kv_read_now(c, 0, c->stage, sizeof(head));

	if (err)
		return err;
	memcpy(&head, c->stage, sizeof(head));
	if (kv_head_parse(&head, UINT64_MAX, &g) || g.name != c->g.name ||
	    g.generation != c->g.generation || g.seed != c->g.seed ||
	    g.size_bytes != c->g.size_bytes)
		return error_set(-ENOENT, "the table is another one now");
	return 0;
}

int kv_reconnect(struct kv_leaf *c)
{
	uint32_t i;
	int err;

	if (!c->port.renew)
		return error_set(-ESTALE, "the connection is gone");
	if (c->port.link)
		unregister(c);
	kv_slab_forget(c);
	kv_cache_forget(c);
	c->has_slot = false;
	c->gets_busy = 0;
	c->done_head = c->done_count = 0;
	c->look_count = 0;
	for (i = 0; i < c->depth; i++)
		c->get[i].state = KV_GET_IDLE;
	err = c->port.renew(c->port.ctx, &c->port);
	if (err)
		return err;
	c->is_broken = false;
	c->valid_ns = 0;
	err = register_arena(c);
	if (!err)
		err = check_head(c);
	if (!err)
		err = kv_slot_claim(c);
	if (err)
		c->is_broken = true;
	return err;
}

int kv_op_begin(struct kv_leaf *c)
{
	int err = 0;

	if (UNLIKELY(c->is_crashed))
		return -ESHUTDOWN;
	if (UNLIKELY(c->is_broken)) {
		err = kv_reconnect(c);
		if (err && err != -EAGAIN && err != -ESHUTDOWN)
			err = error_prefix(-EHOSTDOWN, "the table is lost: ");
	}
	c->deadline_ns = kv_now_ns(c) + c->deadline_ms * 1000000;
	return err;
}

/* A change may have been made or not. */
int kv_op_end(struct kv_leaf *c, int err)
{
	if (LIKELY(!c->is_broken) || c->is_crashed)
		return err;
	c->new_extent = c->old_extent = 0;
	c->stats.was_fenced++;
	return error_set(-ESTALE,
			 "the connection broke, or this client was too slow "
			 "and was fenced; whether the change was made is not "
			 "known");
}

/* ---- tables ------------------------------------------------------------- */

/* A client without a slot, for the head only. */
static int open_plain(const struct kv_port *port, struct kv_leaf **out)
{
	struct kv_leaf *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return error_set(-ENOMEM, "no memory for a client");
	c->port = *port;
	c->clock = port->link->clock;
	c->port.close = NULL;
	c->line_rows = c->depth = c->line_count = 1;
	c->g.row_bytes = KV_ROW_BYTES_MAX;
	err = make_arena(c);
	if (!err)
		err = register_arena(c);
	if (err)
		kv_leaf_destroy(c);
	else
		*out = c;
	return err;
}

int kv_format(const struct kv_port *port, const struct kv_geometry *g,
	      uint64_t state)
{
	struct kv_leaf *c;
	struct layout_header locks;
	struct kv_port lock_port = *port;
	struct kv_head head;
	uint64_t words[] = {state, kv_lease_word(0, 0, g->name)};
	int err = open_plain(port, &c);

	if (err)
		return err;
	layout_header_init(&locks, &kv_lock_layout, g->lock_bytes, "aquifer");
	kv_head_build(g, &head);
	lock_port.addr = port->lock_addr;
	lock_port.rkey = port->lock_rkey;
	c->port = lock_port;
	c->port.close = NULL;
	memcpy(c->stage, &locks, sizeof(locks));
	kv_begin(c);
	kv_add_write(c, KV_POINT_ROW, 0, c->stage, sizeof(locks));
	err = kv_run(c);
	/* The head is last: with it the table is one. */
	if (!err) {
		c->port = *port;
		c->port.close = NULL;
		c->g = *g;
		memcpy(c->stage, words, sizeof(words));
		memcpy(c->stage + sizeof(words), &head, sizeof(head));
		kv_begin(c);
		kv_add_write(c, KV_POINT_ROW, kv_lease_at(g, KV_LEASE_STATE),
			     c->stage, sizeof(words));
		kv_add_write(c, KV_POINT_ROW, 0, c->stage + sizeof(words),
			     sizeof(head));
		err = kv_run(c);
	}
	kv_leaf_destroy(c);
	return err;
}

int kv_probe(const struct kv_port *port, uint64_t avail_bytes,
	     struct kv_geometry *g)
{
	struct kv_head head;
	struct kv_leaf *c;
	int err = open_plain(port, &c);

	if (err)
		return err;
	err = kv_read_now(c, 0, c->stage, sizeof(head));
	memcpy(&head, c->stage, sizeof(head));
	if (!err)
		err = kv_head_parse(&head, avail_bytes, g);
	kv_leaf_destroy(c);
	return err;
}

int kv_geometry_make(const struct aq_kv_options *o, struct kv_geometry *g)
{
	uint32_t entries = o->entries_per_row ? o->entries_per_row : 8;
	uint32_t chunk = o->chunk_bytes ? o->chunk_bytes : 256 << 10;
	uint64_t extent = o->extent_bytes ? o->extent_bytes : 64 << 20;
	uint32_t shards = o->shards ? o->shards : 1;
	uint64_t capacity = (o->capacity + shards - 1) / shards;
	uint64_t locks;

	extent = (extent + shards - 1) / shards;
	if (o->capacity == 0 || o->capacity >> 40)
		return error_set(-EINVAL,
				 "a table needs a capacity, of at most 2^40");
	if (entries > KV_ENTRIES_MAX)
		entries = KV_ENTRIES_MAX + 1; /* refused below, with words */
	*g = (struct kv_geometry){
		.rows = u64_max((capacity + entries - 1) / entries, 2),
		.shard_count = shards,
		.copy_count = o->copies ? o->copies : 1,
		.seed = o->seed,
		.chunk_count = chunk ? (extent + chunk - 1) / chunk : 0,
		.entries = entries,
		.entry_bytes = o->entry_bytes ? o->entry_bytes : 64,
		.rows_per_lock = o->rows_per_lock ? o->rows_per_lock : 16,
		.client_count = o->clients ? o->clients : 256,
		.chunk_bytes = chunk,
		.hash = o->hash,
		.locality_milli = o->locality_milli ? o->locality_milli : 2300,
		.failure_ms = o->failure_ms ? o->failure_ms : 1000,
		.flags = o->flags & AQ_KV_WORD_LOCKS ? KV_WORD_LOCKS : 0,
	};
	if (g->locality_milli < 1100 || g->locality_milli > 10000)
		return error_set(-EINVAL, "the locality is 1.1 to 10");
	if (o->copies > KV_COPIES_MAX || o->shards > KV_SHARDS_MAX)
		return error_set(-EINVAL,
				 "a table has at most %d shards and %d copies",
				 KV_SHARDS_MAX, KV_COPIES_MAX);
	locks = (g->rows + g->rows_per_lock - 1) / g->rows_per_lock;
	g->lock_count = u64_min(locks, o->lock_max ? o->lock_max : 1u << 20);
	kv_leaps(g->locality_milli, g->leap);
	if (!kv_has_extents(g))
		g->chunk_count = 0;
	return kv_geometry_derive(g);
}
