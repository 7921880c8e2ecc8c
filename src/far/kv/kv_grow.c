/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The next generation of a table: larger, or with other shards and copies.
 *
 *	1. Its replicas are made, YOUNG; nobody uses them yet.
 *	2. Each shard of the old one is FREEZING, until terms and locks from
 *	   before are over, then FROZEN: it never changes again, changes go to
 *	   the next one, which has the last word. Whoever wants to change
 *	   something and finds a shard FREEZING does the rest of this step.
 *	3. All keys that the next one has no entry for are copied.
 *	4. The old shards are DONE: nobody needs to look there. When terms are
 *	   over the next generation is STABLE, and the old one is dropped.
 *
 * Every step can be done again, and by anybody: what was left by who died in
 * one is found in the replicas' states. While the next one is YOUNG, deleted
 * keys leave an entry that has expired, or the old one would bring them back.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "kv_client_priv.h"

enum {
	ROOM_SHARE = 8, /* of the keys: so much more than them */
	ROOM_MORE = 16, /* and in each shard */
	WORDS_BYTES = 200,
};

static int set_phase(struct kv_replica *replica, enum kv_phase phase,
		     uint32_t next)
{
	return kv_state_move(
		replica,
		kv_state_word(kv_state_role(replica->expect), phase, next));
}

static enum kv_phase phase_of(const struct kv_replica *replica)
{
	return kv_state_phase(replica->expect);
}

/* ---- freezing ----------------------------------------------------------- */

/*
 * The second copy is told before the first: so as long as nobody uses the next
 * generation it may not know, and from then on it does, should it have to
 * serve.
 */
int kv_shard_freeze(struct aq_kv_client *c, struct kv_era *e, uint32_t shard)
{
	struct kv_shard *s = &e->shard[shard];
	struct kv_replica *first = kv_shard_master(s);
	struct kv_replica *second = kv_shard_second(s);
	uint32_t next = kv_state_next(first->expect);
	int err = kv_op_begin(first);

	if (err)
		return err;
	kv_state_outlast(first);
	err = kv_locks_outlast(first);
	if (!err && second) {
		err = kv_op_begin(second);
		if (!err)
			err = kv_state_adopt(second);
		if (!err && phase_of(second) < KV_PHASE_FROZEN)
			err = kv_state_role(second->expect) == KV_ROLE_SECOND
				      ? set_phase(second, KV_PHASE_FROZEN, next)
				      : KV_E_VIEW;
	}
	if (!err)
		err = set_phase(first, KV_PHASE_FROZEN, next);
	s->is_ready = false;
	return err == -ESTALE ? KV_E_VIEW : err;
}

/* ---- what the old one has ----------------------------------------------- */

static int grow_buffer(struct aq_kv_client *c, size_t bytes)
{
	uint8_t *p;

	if (bytes <= c->older_bytes)
		return 0;
	p = realloc(c->older, bytes);
	if (!p)
		return error_set(-ENOMEM, "no memory for a value");
	c->older = p;
	c->older_bytes = bytes;
	return 0;
}

int kv_grow_older(struct kv_mod *m, struct aq_kv_change *ch)
{
	struct kv_change_ctx *x = m->ctx;
	struct aq_kv_client *c = x->client;
	struct aq_kv_op op = {.key = m->key, .key_len = m->key_len};
	struct kv_replica *older = x->route.older;
	uint64_t end = 0;
	int err = grow_buffer(c, KV_OP_BYTES);

	older->outer = x->route.replica;
	while (!err) {
		op.value = c->older;
		op.value_len = c->older_bytes;
		err = kv_client_read_replica(c, older, &op, &end, NULL);
		if (err != -EMSGSIZE)
			break;
		err = grow_buffer(c, op.len);
	}
	older->outer = NULL;
	if (err == -ENOENT)
		return 0;
	if (err)
		return err == -EAGAIN || err == -ESTALE ? KV_E_VIEW : err;
	ch->value = c->older;
	ch->value_len = op.len;
	ch->expire_at_ms = end;
	return 0;
}

/* ---- making ------------------------------------------------------------- */

static int make_replica(const struct kv_world *world,
			const struct kv_geometry *g, uint32_t shard,
			uint32_t copy, enum kv_phase phase)
{
	struct kv_id id = {.name = g->name, .shard = shard, .copy = copy};
	enum kv_role role = g->copy_count == 1 ? KV_ROLE_ONLY
			    : copy	       ? KV_ROLE_SECOND
					       : KV_ROLE_FIRST;
	struct kv_geometry one = *g;

	one.shard = shard;
	one.copy = copy;
	return world->make(world->ctx, &id, &one,
			   kv_state_word(role, phase, 0));
}

int kv_replicas_make(const struct kv_world *world, const struct kv_geometry *g,
		     enum kv_phase phase, uint32_t *made)
{
	uint32_t i, n = g->shard_count * g->copy_count;
	int err = 0;

	for (i = 0; i < n && !err; i += !err)
		err = make_replica(world, g, i / g->copy_count,
				   i % g->copy_count, phase);
	if (made)
		*made = i;
	return err;
}

void kv_replicas_drop(const struct kv_world *world, const struct kv_geometry *g,
		      uint32_t made)
{
	while (made--) {
		struct kv_id id = {.name = g->name,
				   .shard = made / g->copy_count,
				   .copy = made % g->copy_count};

		if (world->drop(world->ctx, &id))
			log_warn("kv", "shard %u of a table is left over: %s",
				 id.shard, error_last());
	}
}

/* Leaves to drop, by the names of their generations. */
struct dropping {
	struct aq_kv_client *client;
	uint32_t keep;	/* this one stays */
	uint32_t below; /* and those that are as new as this */
	uint32_t only;	/* 0: any other */
	bool only_done;
	int err;
};

static int drop_one(struct dropping *d, const struct kv_id *id)
{
	struct aq_kv_client *c = d->client;
	struct kv_replica *replica = NULL;
	bool is_done = true;
	int err;

	if (id->name == d->keep || id->name >= d->below ||
	    (d->only && id->name != d->only))
		return 0;
	if (d->only_done) {
		err = kv_client_open_replica(c, id, &replica);
		is_done = !err &&
			  kv_state_phase(replica->expect) == KV_PHASE_DONE;
		kv_replica_destroy(replica);
	}
	if (!is_done)
		return 0;
	if (kv_client_crash(c, KV_POINT_REPLICA))
		return -ESHUTDOWN;
	err = c->world.drop(c->world.ctx, id);
	return err == -ENOENT ? 0 : err;
}

static void drop_each(void *user, const struct kv_id *id)
{
	struct dropping *d = user;

	if (!d->err)
		d->err = drop_one(d, id);
}

static int drop(struct dropping *d)
{
	int err = d->client->world.list(d->client->world.ctx, drop_each, d);

	return err ? err : d->err;
}

int kv_geometry_next(const struct kv_geometry *was,
		     const struct aq_kv_options *o, struct kv_geometry *g)
{
	struct aq_kv_options all = {
		.capacity = o->capacity ? o->capacity
					: was->rows * was->entries *
						  was->shard_count,
		.extent_bytes = o->extent_bytes
					? o->extent_bytes
					: was->chunk_count * was->chunk_bytes *
						  was->shard_count,
		.entry_bytes = was->entry_bytes,
		.entries_per_row = was->entries,
		.rows_per_lock = was->rows_per_lock,
		.clients = was->client_count,
		.chunk_bytes = was->chunk_bytes,
		.hash = was->hash,
		.locality_milli = was->locality_milli,
		.failure_ms = was->failure_ms,
		.flags = (was->flags & KV_WORD_LOCKS ? AQ_KV_WORD_LOCKS : 0u) |
			 (was->flags & KV_GROWS ? 0u : AQ_KV_FIXED),
		.max_bytes = was->max_bytes,
		.seed = was->seed,
		.shards = o->shards ? o->shards : was->shard_count,
		.copies = o->copies ? o->copies : was->copy_count};
	int err = kv_geometry_make(&all, g);

	g->generation = was->generation + 1;
	return err;
}

/* ---- one after the other ------------------------------------------------ */

/* The phase of the shard that has got furthest; all have to answer. */
static int furthest(struct aq_kv_client *c, struct kv_era *e,
		    enum kv_phase *most)
{
	uint32_t s;
	int err = 0;

	*most = KV_PHASE_STABLE;
	for (s = 0; s < e->g.shard_count && !err; s++) {
		struct kv_replica *replica;

		err = kv_shard_ready(c, e, s);
		if (err)
			break;
		replica = kv_shard_master(&e->shard[s]);
		err = kv_op_begin(replica);
		if (!err)
			err = kv_state_adopt(replica);
		if (!err && phase_of(replica) > *most)
			*most = phase_of(replica);
	}
	return err;
}

/* What was made for nothing goes, because there is no room; the first reason is
 * the one to tell. */
static int make_all(struct aq_kv_client *c, const struct kv_geometry *g)
{
	struct dropping made = {.client = c,
				.keep = c->era[0]->g.name,
				.below = UINT32_MAX,
				.only = g->name};
	char words[WORDS_BYTES];
	int err = kv_replicas_make(&c->world, g, KV_PHASE_YOUNG, NULL);

	if (!err || c->is_crashed)
		return err;
	snprintf(words, sizeof(words), "%s", error_last());
	(void)drop(&made);
	return error_set(err, "%s", words);
}

static int begin(struct aq_kv_client *c, const struct aq_kv_options *o,
		 uint32_t name)
{
	struct dropping old_ones = {
		.client = c, .keep = c->era[0]->g.name, .below = name};
	const struct kv_geometry *was = &c->era[0]->g;
	uint64_t old = was->rows * was->entries * was->shard_count, room;
	uint64_t keys = 0;
	struct kv_geometry g = {0};
	int err = kv_geometry_next(was, o, &g);

	room = g.rows * g.entries * g.shard_count;
	/* It must not be full before all of them are there. */
	if (!err && room < old)
		err = aq_kv_count(c, &keys);
	if (!err && keys && keys + keys / ROOM_SHARE + ROOM_MORE > room)
		err = error_set(
			-EINVAL, "%llu entries are too few for %llu keys",
			(unsigned long long)room, (unsigned long long)keys);
	g.name = name;
	/* What others have begun before and left. */
	if (!err)
		err = drop(&old_ones);
	if (!err && kv_client_crash(c, KV_POINT_REPLICA))
		err = -ESHUTDOWN;
	if (!err)
		err = make_all(c, &g);
	return err;
}

/* The right to do it, and when it ends. */
struct right {
	uint64_t word;
	uint32_t generation; /* whose replica has the word */
	uint32_t slot, epoch;
};

/* The first shard is where the next generation is chosen: over the connection
 * that has the right to, or not at all. */
static int freeze_one(struct aq_kv_client *c, uint32_t shard,
		      const struct right *r, uint32_t next)
{
	struct kv_shard *s = &c->era[0]->shard[shard];
	struct kv_replica *replica;
	int err = kv_shard_ready(c, c->era[0], shard);

	if (err)
		return err;
	replica = kv_shard_master(s);
	if (phase_of(replica) == KV_PHASE_STABLE) {
		if (shard == 0 && (replica->kit.slot != r->slot ||
				   replica->kit.epoch != r->epoch))
			return KV_E_VIEW;
		err = set_phase(replica, KV_PHASE_FREEZING, next);
	}
	if (!err && phase_of(replica) == KV_PHASE_FREEZING)
		err = kv_shard_freeze(c, c->era[0], shard);
	return err;
}

static int freeze_all(struct aq_kv_client *c, const struct right *r)
{
	uint32_t s, next = kv_lease_count(r->word);
	int err = 0;

	for (s = 0; s < c->era[0]->g.shard_count && !err; s++) {
		err = freeze_one(c, s, r, next);
		if (!err)
			next = kv_state_next(
				kv_shard_master(&c->era[0]->shard[s])->expect);
	}
	return err;
}

/* All replicas of an era that can be reached, from one phase to the next. */
static int set_all(struct aq_kv_client *c, struct kv_era *e, enum kv_phase from,
		   enum kv_phase to)
{
	uint32_t s, k;
	int err = 0;

	for (s = 0; s < e->g.shard_count && !err; s++) {
		err = kv_shard_ready(c, e, s);
		for (k = 0; k < e->g.copy_count && !err; k++) {
			struct kv_replica *replica = e->shard[s].replica[k];

			/* A copy that is lost has nothing to say any more. */
			if (!replica || replica->kit.is_broken)
				continue;
			err = kv_state_adopt(replica);
			if (!err && phase_of(replica) == from)
				err = set_phase(
					replica, to,
					to == KV_PHASE_STABLE
						? 0
						: kv_state_next(
							  replica->expect));
		}
		e->shard[s].is_ready = false;
	}
	return err;
}

/* The one that is left has everything. */
static int finish(struct aq_kv_client *c)
{
	struct dropping done = {.client = c,
				.keep = c->era[0]->g.name,
				.below = UINT32_MAX,
				.only_done = true};
	int err;

	kv_state_outlast(kv_client_any(c));
	err = set_all(c, c->era[0], KV_PHASE_YOUNG, KV_PHASE_STABLE);
	if (!err)
		err = drop(&done);
	if (!err)
		err = kv_client_look_around(c);
	return err ? err : kv_bury_all(c);
}

/* ---- the right to do it ------------------------------------------------- */

/* Whether nothing of the holder is executed any more. */
static int holder_is_dead(struct kv_replica *replica, uint64_t word,
			  bool *is_dead)
{
	uint32_t slot = kv_lease_holder(word) - 1;
	char conn[KIT_SLOT_NAME_MAX + 1];
	struct kv_slot s;
	int err, alive;

	*is_dead = true;
	if (slot >= replica->g.client_count || slot == replica->kit.slot)
		return 0;
	err = kit_read_now(&replica->kit.main, kit_slot_at(&replica->kit, slot),
			   replica->kit.stage, sizeof(s));
	if (err)
		return err;
	memcpy(&s, replica->kit.stage, sizeof(s));
	if (kit_slot_state(&s.client) == KIT_SLOT_FREE ||
	    (uint32_t)kit_slot_epoch(&s.client) != kv_lease_epoch(word) ||
	    !kit_slot_name_get(&s.client, conn))
		return 0;
	if (kit_slot_state(&s.client) == KIT_SLOT_FENCED)
		return replica->kit.remote.fence(replica->kit.remote.ctx, conn);
	alive = replica->kit.remote.is_alive(replica->kit.remote.ctx, conn);
	*is_dead = alive == 0;
	return alive < 0 ? alive : 0;
}

/* It is the name of the generation that may be made by it. 0 is a state's word
 * for none, and only the first of a table is called so. */
static uint32_t next_count(uint64_t word)
{
	uint32_t count = (kv_lease_count(word) + 1) & 0xffff;

	return count ? count : 1;
}

static int right_take(struct kv_replica *replica, struct right *r)
{
	uint64_t at = kv_lease_at(&replica->g, KV_LEASE_GROW), word, old;
	bool is_dead = true;
	int err = kv_op_begin(replica);

	if (!err)
		err = kit_read_now(&replica->kit.main, at,
				   &replica->atom[KV_ATOM_LEASE], 8);
	if (err)
		return err;
	word = replica->atom[KV_ATOM_LEASE];
	if (kv_lease_holder(word))
		err = holder_is_dead(replica, word, &is_dead);
	if (err)
		return err;
	*r = (struct right){.word = kv_lease_word(replica->kit.slot + 1,
						  replica->kit.epoch,
						  next_count(word)),
			    .generation = replica->g.generation,
			    .slot = replica->kit.slot,
			    .epoch = replica->kit.epoch};
	if (is_dead)
		err = kit_cas_now(&replica->kit.main, KV_POINT_LEASE, at, word,
				  r->word, &old);
	if (!err && (!is_dead || old != word))
		err = error_set(-EBUSY, "somebody else is resizing the table");
	return err;
}

/* What fails here is over with this client's slot. */
static void right_give(struct aq_kv_client *c, const struct right *r)
{
	struct kv_replica *replica;
	uint64_t old;

	if (c->is_crashed || c->era[0]->g.generation != r->generation)
		return;
	replica = kv_shard_master(&c->era[0]->shard[0]);
	if (!replica || replica->kit.is_broken)
		return;
	if (kit_cas_now(&replica->kit.main, KV_POINT_LEASE,
			kv_lease_at(&replica->g, KV_LEASE_GROW), r->word,
			kv_lease_word(0, 0, kv_lease_count(r->word)), &old))
		replica->kit.is_broken = true;
}

static int steps(struct aq_kv_client *c, const struct aq_kv_options *o,
		 enum kv_phase most, const struct right *r)
{
	int err = 0;

	if (most == KV_PHASE_YOUNG) /* somebody died over the last step */
		return finish(c);
	if (most == KV_PHASE_STABLE)
		err = begin(c, o, kv_lease_count(r->word));
	if (!err)
		err = freeze_all(c, r);
	if (!err)
		err = kv_client_look_around(c);
	/* Others may have ended this one meanwhile. Then the right is nobody's
	 * concern any more, and whoever has that of the next may freeze it
	 * while it is walked: what was seen before would be lost. */
	if (!err && c->era[0]->g.generation != r->generation)
		err = KV_E_VIEW;
	if (!err)
		err = kv_copy_all(c);
	if (!err)
		err = set_all(c, c->era[0], KV_PHASE_FROZEN, KV_PHASE_DONE);
	if (!err)
		err = kv_client_look_around(c);
	return err ? err : finish(c);
}

/* Nothing is left to be done: sizes, and all copies are there. */
static bool is_as_wanted(struct aq_kv_client *c, const struct aq_kv_options *o)
{
	struct kv_era *e = c->era[0];
	struct kv_geometry g;
	uint32_t s;

	if (kv_geometry_next(&e->g, o, &g) || g.rows != e->g.rows ||
	    g.chunk_count != e->g.chunk_count ||
	    g.shard_count != e->g.shard_count ||
	    g.copy_count != e->g.copy_count)
		return false;
	for (s = 0; s < e->g.shard_count && e->g.copy_count > 1; s++)
		if (kv_shard_ready(c, e, s) || !e->shard[s].is_paired)
			return false;
	return true;
}

/* A resize from its beginning to its end. */
struct resize {
	struct aq_kv_options o;
	kv_wanted_fn is_wanted; /* NULL: until it is as o says */
	void *user;
	bool was_begun; /* it only ended what somebody else had begun */
};

static int run(struct aq_kv_client *c, struct resize *z)
{
	enum kv_phase most;
	struct right r;
	int err = kv_client_look_around(c);

	if (!err)
		err = furthest(c, c->era[0], &most);
	if (!err)
		err = right_take(kv_shard_master(&c->era[0]->shard[0]), &r);
	/* It may have been somebody else's turn until now. */
	if (!err)
		err = furthest(c, c->era[0], &most);
	if (err)
		return err;
	z->was_begun = most != KV_PHASE_STABLE;
	if (z->was_begun || !z->is_wanted || z->is_wanted(c, z->user))
		err = steps(c, &z->o, most, &r);
	right_give(c, &r);
	return err;
}

static bool is_over(struct aq_kv_client *c, const struct resize *z)
{
	if (!z->was_begun)
		return true;
	return z->is_wanted ? !z->is_wanted(c, z->user)
			    : is_as_wanted(c, &z->o);
}

static int resize(struct aq_kv_client *c, struct resize *z)
{
	unsigned tries = 0;
	int again, err = kv_client_begin(c);

	if (!err && !c->world.open)
		return error_set(-EOPNOTSUPP, "this table has one replica");
	if (!err && z->o.shards == AQ_KV_ALL_NODES) {
		again = c->world.nodes(c->world.ctx);
		err = again < 0 ? again : 0;
		z->o.shards = (uint32_t)again;
	}
	while (!err) {
		err = run(c, z);
		if (!err && is_over(c, z))
			return 0;
		if (!err)
			continue;
		if (c->is_crashed)
			return -ESHUTDOWN;
		/* Every step can be done again. */
		if (err == -ESTALE || err == -ENOENT || err == -EEXIST)
			err = KV_E_VIEW;
		again = kv_client_begin(c); /* another deadline */
		err = again ? again : kv_client_again(c, err, &tries);
	}
	return err;
}

int kv_client_resize(struct aq_kv_client *c, const struct aq_kv_options *o,
		     kv_wanted_fn is_wanted, void *user)
{
	struct resize z = {.o = *o, .is_wanted = is_wanted, .user = user};
	int err;

	c->is_resizing = true;
	err = resize(c, &z);
	c->is_resizing = false;
	return err;
}

int aq_kv_resize(struct aq_kv_client *c, const struct aq_kv_options *options)
{
	return kv_client_resize(c, options, NULL, NULL);
}
