/* SPDX-License-Identifier: Apache-2.0 */
/* A client's way to one replica: its memory, its slot there, its connection. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kv_priv.h"

enum {
	SLOT_TRIES = 16,
};

const char *kv_point_name(enum kv_point point)
{
	static const char *const names[] = {
		[KV_POINT_INTENT] = "intent",	[KV_POINT_EXTENT] = "extent",
		[KV_POINT_MAP] = "map",		[KV_POINT_LOCK] = "lock",
		[KV_POINT_READ] = "read",	[KV_POINT_ROW] = "row",
		[KV_POINT_ROW_TAIL] = "crc",	[KV_POINT_FREE] = "free",
		[KV_POINT_UNLOCK] = "unlock",	[KV_POINT_IDLE] = "idle",
		[KV_POINT_LEASE] = "lease",	[KV_POINT_FENCE] = "fence",
		[KV_POINT_MEND] = "mend",	[KV_POINT_STATE] = "state",
		[KV_POINT_REPLICA] = "replica",
	};

	return point < KV_POINT_COUNT ? names[point] : "?";
}

/* ---- slots -------------------------------------------------------------- */

static int try_claim(struct kv_replica *c, uint32_t slot,
		     const struct kv_slot *s)
{
	int err;

	if (kit_slot_state(&s->client) != KIT_SLOT_FREE)
		return -EAGAIN;
	err = kit_slot_take(&c->kit, slot, &s->client);
	if (err)
		return err;
	c->sequence = le64_get(s->intent.sequence) + 1;
	c->count = (int64_t)le64_get(s->intent.count);
	c->recent_count = le32_get(s->intent.recent_count);
	c->new_extent = c->old_extent = 0;
	kit_begin(&c->kit);
	kv_add_intent(c, NULL);
	return kit_run(&c->kit);
}

/* The slot for repairs may be held by somebody who died over one. It has no
 * locks and no extents of its own, so it can be freed as it is. */
static int free_last(struct kv_replica *c, uint32_t slot, struct kv_slot *s)
{
	enum kit_slot_state state = kit_slot_state(&s->client);
	uint64_t word = le64_get(s->client.state);
	char conn[KIT_SLOT_NAME_MAX + 1];
	int err;

	if (state == KIT_SLOT_CLAIMED) {
		kv_pause(c, kv_nameless_ns(c));
	} else {
		if ((state != KIT_SLOT_LIVE && state != KIT_SLOT_FENCED) ||
		    !kit_slot_name_get(&s->client, conn) ||
		    c->kit.remote.is_alive(c->kit.remote.ctx, conn) != 0)
			return 0;
		err = c->kit.remote.fence(c->kit.remote.ctx, conn);
		if (err)
			return err;
	}
	err = kit_slot_move(&c->kit, KV_POINT_FENCE, slot, word, KIT_SLOT_FREE);
	s->client.state = le64_put(
		kit_slot_word(KIT_SLOT_FREE, kit_slot_epoch(&s->client)));
	return err == -EAGAIN ? 0 : err;
}

/* One of the slots, or with `last` the one that is kept for repairs. */
static int claim_any(struct kv_replica *c, bool last)
{
	uint32_t i, usual = c->g.client_count - 1;
	uint32_t start = (uint32_t)rng_below(&c->kit.rng, usual);
	uint64_t bytes = (uint64_t)c->g.client_count * KV_SLOT_BYTES;
	struct kv_slot *slots = malloc(bytes);
	int err = slots ? kit_big_reserve(&c->kit, bytes) : -ENOMEM;

	if (!err)
		err = kit_read_now(&c->kit.main, c->g.slot_offset, c->kit.big,
				   bytes);
	if (!err) {
		memcpy(slots, c->kit.big, bytes);
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
static int make_room(struct kv_replica *c)
{
	int err = claim_any(c, true);

	if (err == -EAGAIN) { /* somebody else is at it */
		kv_pause(c, c->kit.failure_ns / 4 + 1);
		return 0;
	}
	if (!err) {
		err = kv_reap(c);
		(void)kv_slot_leave(c);
	}
	return err;
}

int kv_slot_claim(struct kv_replica *c)
{
	int err, room = 0;

	kit_set_deadline(&c->kit, c->deadline_ms);
	/* No slot is ours yet; no other has this number. */
	c->kit.slot = UINT16_MAX - 1;
	for (;;) {
		err = claim_any(c, false);
		if (err != -EAGAIN)
			return err;
		if (room > SLOT_TRIES || kit_is_late(&c->kit))
			return error_set(-EAGAIN,
					 "the table has %u clients already",
					 c->g.client_count);
		err = make_room(c);
		if (err)
			return err;
		room++;
	}
}

int kv_slot_leave(struct kv_replica *c)
{
	int err;

	if (!c->kit.has_slot || kit_stopped(&c->kit))
		return 0;
	c->kit.has_slot = false;
	err = kv_slab_give_back(c);
	return err ? err : kit_slot_leave(&c->kit, c->kit.slot, c->kit.epoch);
}

/* ---- clients ------------------------------------------------------------ */

static void ran(struct kit_client *k, uint64_t ns)
{
	kv_pace_best(&container_of(k, struct kv_replica, kit)->pace, ns);
}

static int init_kit(struct kv_replica *c, const struct kit_remote *remote)
{
	size_t line_bytes = (size_t)c->line_rows * c->g.row_bytes;
	struct kit_config config = {.what = "the table",
				    .points = {.read = KV_POINT_READ,
					       .claim = KV_POINT_INTENT,
					       .fence = KV_POINT_FENCE,
					       .leave = KV_POINT_IDLE},
				    .slots = {.at = c->g.slot_offset,
					      .count = c->g.client_count,
					      .slot_bytes = KV_SLOT_BYTES,
					      .epoch_mask = UINT64_MAX},
				    .failure_ms = c->g.failure_ms,
				    .crash = c->config.crash,
				    .crash_ctx = c->config.ctx};
	struct kit_part parts[] = {
		{&c->atom, KV_ATOM_COUNT * 8},
		{&c->intent, 3 * sizeof(struct kv_intent)},
		{&c->ones, 8},
		{&c->zeros, KV_ZERO_BYTES},
		{&c->run_words, KV_ZERO_BYTES},
		{&c->lines, c->line_count * line_bytes},
		{&c->many_rows, (size_t)2 * KV_MANY_ROWS * c->g.row_bytes},
		{&c->get_bytes, c->depth * kv_get_stride(c)}};
	int err = kit_client_init(&c->kit, remote, &config, parts,
				  ARRAY_LEN(parts));

	if (err)
		return err;
	memset(c->ones, 1, 8);
	c->kit.completed = kv_get_completed;
	c->kit.ran = ran;
	return 0;
}

static int check_remote(const struct kv_replica *c)
{
	if (c->g.flags & KV_WORD_LOCKS ||
	    c->kit.remote.link->has_masked_atomics)
		return 0;
	return error_set(-EOPNOTSUPP,
			 "the table has locks of one bit, but the NIC has no "
			 "masked atomics; make a table with word locks");
}

static int init(struct kv_replica *c, const struct kit_remote *remote,
		const struct kv_client_config *config)
{
	const struct aq_kv_client_options *o = &c->config.options;
	uint64_t line_bytes;
	int err;

	c->config = *config;
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
	c->line_rows = u32_min(c->g.rows_per_lock, KV_LINE_ROWS_MAX);
	line_bytes = (uint64_t)c->line_rows * c->g.row_bytes;
	c->line_count = (uint32_t)u64_max(
		u32_min(o->cache_bytes ? o->cache_bytes : KV_CACHE_BYTES,
			KV_CACHE_BYTES_MAX) /
			line_bytes,
		KV_LINES_MIN);
	err = init_kit(c, remote);
	if (err)
		return err;
	c->many_keys = kv_many_keys_max(c);
	c->term_ns = u64_max(c->kit.failure_ns / KV_TERM_SHARE, KV_TERM_NS_MIN);
	rng_init(&c->kit.rng, config->rng_seed
				      ? config->rng_seed
				      : kit_now_ns(&c->kit) ^ (uintptr_t)c);
	c->stamp = (uint32_t)rng_u64(&c->kit.rng) & KV_STAMP_MASK;
	err = check_remote(c);
	if (!err)
		err = kv_cache_init(c);
	if (!err)
		err = kv_get_init(c);
	if (!err)
		err = kv_walk_init(c);
	c->search = kv_search_create();
	if (!err && !c->search)
		err = error_set(-ENOMEM, "no memory for a client");
	if (!err)
		err = kv_slot_claim(c);
	return err ? err : kv_state_adopt(c);
}

int kv_replica_create(const struct kit_remote *remote,
		      const struct kv_geometry *g,
		      const struct kv_client_config *config,
		      struct kv_replica **out)
{
	struct kv_replica *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return error_set(-ENOMEM, "no memory for a client");
	c->g = *g;
	err = init(c, remote, config);
	if (err) {
		/* The remote stays the caller's. */
		c->kit.remote.close = NULL;
		kv_replica_destroy(c);
		return err;
	}
	*out = c;
	return 0;
}

void kv_replica_destroy(struct kv_replica *c)
{
	if (!c)
		return;
	/* What cannot be given back others take for dead, in time. */
	(void)kv_slot_leave(c);
	kv_slab_forget(c);
	free(c->chunk);
	kit_client_close(&c->kit);
	kv_search_destroy(c->search);
	free(c->line);
	free(c->get);
	free(c->done);
	free(c->look_queue);
	free(c->pad);
	free(c);
}

/* What is there now under this replica's name is still this replica. */
static int check_head(struct kv_replica *c)
{
	struct kv_geometry g;
	int err = kit_read_now(&c->kit.main, 0, c->kit.stage, KV_HEAD_BYTES);

	if (err)
		return err;
	if (kv_head_parse((const struct kv_head *)c->kit.stage, UINT64_MAX,
			  &g) ||
	    g.name != c->g.name || g.generation != c->g.generation ||
	    g.seed != c->g.seed || g.size_bytes != c->g.size_bytes)
		return error_set(-ENOENT, "the table is another one now");
	return 0;
}

int kv_reconnect(struct kv_replica *c)
{
	uint32_t i;
	int err;

	kv_slab_forget(c);
	kv_cache_forget(c);
	c->gets_busy = 0;
	c->done_head = c->done_count = 0;
	c->look_count = 0;
	for (i = 0; i < c->depth; i++)
		c->get[i].state = KV_GET_IDLE;
	c->valid_ns = 0;
	err = kit_renew(&c->kit);
	if (!err)
		err = check_head(c);
	if (!err)
		err = kv_slot_claim(c);
	if (err)
		c->kit.is_broken = true;
	return err;
}

void kv_pause(struct kv_replica *c, uint64_t ns)
{
	uint64_t end = kit_now_ns(&c->kit) + ns;

	do {
		client_clock_relax(c->kit.clock);
		/* Its connection's end is seen when it is needed again. */
		if (c->outer)
			kv_heartbeat(c->outer);
	} while (kit_now_ns(&c->kit) < end);
}

int kv_past_deadline(struct kv_replica *c)
{
	return kit_is_late(&c->kit)
		       ? error_set(-ETIMEDOUT,
				   "others kept the key's locks for too long")
		       : 0;
}

int kv_op_begin(struct kv_replica *c)
{
	int err = 0;

	if (UNLIKELY(c->kit.is_crashed))
		return -ESHUTDOWN;
	if (UNLIKELY(c->kit.is_broken)) {
		err = kv_reconnect(c);
		if (err && err != -EAGAIN && err != -ESHUTDOWN)
			err = error_prefix(-EHOSTDOWN, "the table is lost: ");
	}
	kit_set_deadline(&c->kit, c->deadline_ms);
	return err;
}

/* A change may have been made or not. */
int kv_op_end(struct kv_replica *c, int err)
{
	if (LIKELY(!c->kit.is_broken) || c->kit.is_crashed)
		return err;
	c->new_extent = c->old_extent = 0;
	c->stats.was_fenced++;
	return error_set(-ESTALE,
			 "the connection broke, or this client was too slow "
			 "and was fenced; whether the change was made is not "
			 "known");
}

/* ---- tables ------------------------------------------------------------- */

/* What there is in an empty table. */
struct empty {
	struct layout_header locks;
	struct kv_head head;
	uint64_t words[2];
};

int kv_format(const struct kit_remote *remote, const struct kv_geometry *g,
	      uint64_t state)
{
	struct kit_client *k;
	struct empty *e;
	int err = kit_plain_create(remote, &k);

	if (err)
		return err;
	e = (struct empty *)k->stage;
	layout_header_init(&e->locks, &kv_lock_layout, g->lock_bytes,
			   "aquifer");
	kv_head_build(g, &e->head);
	e->words[0] = state;
	e->words[1] = kv_lease_word(0, 0, g->name);
	err = kit_write_now(&k->locks, KV_POINT_ROW, 0, &e->locks,
			    sizeof(e->locks));
	if (!err) {
		kit_begin(k);
		kit_write(&k->main, KV_POINT_ROW,
			  kv_lease_at(g, KV_LEASE_STATE), e->words,
			  sizeof(e->words));
		/* The head is last: with it the table is one. */
		kit_write(&k->main, KV_POINT_ROW, 0, &e->head, sizeof(e->head));
		err = kit_run(k);
	}
	kit_plain_destroy(k);
	return err;
}

int kv_probe(const struct kit_remote *remote, uint64_t avail_bytes,
	     struct kv_geometry *g)
{
	struct kv_head head;
	int err = kit_head_read(remote, &head, sizeof(head));

	return err ? err : kv_head_parse(&head, avail_bytes, g);
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
		.flags = (o->flags & AQ_KV_WORD_LOCKS ? KV_WORD_LOCKS : 0u) |
			 (o->flags & AQ_KV_FIXED ? 0u : KV_GROWS),
		.max_bytes = o->max_bytes,
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
