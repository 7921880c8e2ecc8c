/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients: which generations and shards there are, and where an operation goes.
 *
 * A key has one shard in each generation. Where the older one is FROZEN the
 * next has the last word: what it has an entry for, be it one that has expired,
 * counts, and the older is asked only for the rest. It does not change any
 * more, so looking at the next first and at the older after it is as good as
 * looking at both at once.
 */
#include "kv_client_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum {
	AGAIN_MAX = 1000, /* looks at a table that keeps changing */
	LOST_MAX = 3,	  /* of them, without an answer */
	GONE_MAX = 20,	  /* of them, with nothing to be found */
	NAMES_MAX = 16,	  /* generations that there are, or were begun */
};

bool kv_client_crash(void *ctx, int point)
{
	struct aq_kv_client *c = ctx;

	if (!c->is_crashed && c->config.crash)
		c->is_crashed = c->config.crash(c->config.ctx, point);
	return c->is_crashed;
}

static uint64_t now_ms(void *ctx)
{
	struct aq_kv_client *c = ctx;

	return c->config.now_ms(c->config.ctx);
}

/* ---- replicas ----------------------------------------------------------- */

static struct kv_client_config replica_config(struct aq_kv_client *c)
{
	struct kv_client_config config = c->config;

	config.ctx = c;
	config.crash = c->config.crash ? kv_client_crash : NULL;
	config.now_ms = c->config.now_ms ? now_ms : NULL;
	return config;
}

int kv_client_open_replica(struct aq_kv_client *c, const struct kv_id *id,
			   struct kv_replica **out)
{
	struct kv_client_config config = replica_config(c);
	struct kit_remote remote = {.wants_look = c->config.options.flags &
						  AQ_KV_DIRECT_READS};
	struct kv_geometry g;
	int err = c->world.open(c->world.ctx, id, &remote);

	if (err)
		return err;
	err = kv_probe(&remote,
		       remote.size_bytes ? remote.size_bytes : UINT64_MAX, &g);
	if (!err &&
	    (g.shard != id->shard || g.copy != id->copy || g.name != id->name))
		err = error_set(-EBADMSG, "a part of the table is another one");
	if (!err)
		err = kv_replica_create(&remote, &g, &config, out);
	if (err)
		remote.close(remote.ctx, &remote);
	return err;
}

static void add_stats(struct aq_kv_stats *to, const struct aq_kv_stats *s)
{
	uint64_t *a = (uint64_t *)to;
	const uint64_t *b = (const uint64_t *)s;

	for (size_t i = 0; i < sizeof(*s) / sizeof(*a); i++)
		a[i] += b[i];
}

static void close_replica(struct aq_kv_client *c, struct kv_replica **replica)
{
	if (!*replica)
		return;
	add_stats(&c->past, &(*replica)->stats);
	if (c->under_way)
		kv_async_abandon(c, *replica);
	kv_replica_destroy(*replica);
	*replica = NULL;
}

static void era_close(struct aq_kv_client *c, struct kv_era *e)
{
	uint32_t s, k;

	if (!e)
		return;
	for (s = 0; s < KV_SHARDS_MAX; s++)
		for (k = 0; k < KV_COPIES_MAX; k++)
			close_replica(c, &e->shard[s].replica[k]);
	free(e);
}

/* Reads that were under way there have no answer any more, and somebody waits
 * for them. */
static int reconnect(struct aq_kv_client *c, struct kv_replica *replica)
{
	if (c->under_way)
		kv_async_abandon(c, replica);
	return kv_op_begin(replica);
}

int kv_era_reach(struct aq_kv_client *c, struct kv_era *e, uint32_t shard,
		 uint32_t copy)
{
	struct kv_id id = {.name = e->g.name, .shard = shard, .copy = copy};
	struct kv_replica **replica = &e->shard[shard].replica[copy];
	int err;

	if (*replica && !(*replica)->kit.is_broken)
		return 0;
	e->shard[shard].is_ready = false;
	if (*replica)
		return reconnect(c, *replica);
	err = kv_client_open_replica(c, &id, replica);
	if (err == -EHOSTDOWN || err == -ENOENT)
		err = error_prefix(-EHOSTDOWN,
				   "part %u of %u of the table: ", shard + 1,
				   e->g.shard_count);
	if (!err && (*replica)->g.generation != e->g.generation) {
		close_replica(c, replica);
		err = KV_E_VIEW;
	}
	return err;
}

struct kv_replica *kv_client_any(struct aq_kv_client *c)
{
	uint32_t i, s, k;

	for (i = 0; i < KV_ERAS_MAX; i++)
		for (s = 0; c->era[i] && s < c->era[i]->g.shard_count; s++)
			for (k = 0; k < KV_COPIES_MAX; k++)
				if (c->era[i]->shard[s].replica[k])
					return c->era[i]->shard[s].replica[k];
	return NULL;
}

/* ---- generations -------------------------------------------------------- */

/* The replicas that were listed, by the names of their generations. */
struct listing {
	unsigned count;
	struct {
		uint32_t name;
		uint64_t shards[KV_COPIES_MAX];
	} at[NAMES_MAX];
};

static void note_id(void *user, const struct kv_id *id)
{
	struct listing *l = user;
	unsigned i;

	if (id->shard >= KV_SHARDS_MAX || id->copy >= KV_COPIES_MAX)
		return;
	for (i = 0; i < l->count && l->at[i].name != id->name; i++)
		;
	if (i == NAMES_MAX)
		return;
	if (i == l->count)
		l->at[l->count++].name = id->name;
	l->at[i].shards[id->copy] |= 1ull << id->shard;
}

static struct kv_era *era_known(struct aq_kv_client *c, uint32_t name)
{
	uint32_t i;

	for (i = 0; i < KV_ERAS_MAX; i++)
		if (c->era[i] && c->era[i]->g.name == name)
			return c->era[i];
	return NULL;
}

/* Opens any one of them. Leaves that are only being made have no head yet; such
 * a generation is none. */
static int era_open(struct aq_kv_client *c, const struct listing *l,
		    unsigned at, struct kv_era **out)
{
	struct kv_id id = {.name = l->at[at].name};
	struct kv_era *e = calloc(1, sizeof(*e));
	struct kv_replica *replica = NULL;
	int err = -ENOENT;

	if (!e)
		return error_set(-ENOMEM, "no memory for a client");
	for (id.copy = 0; id.copy < KV_COPIES_MAX && !replica; id.copy++)
		for (id.shard = 0; id.shard < KV_SHARDS_MAX && !replica;
		     id.shard++) {
			if (!(l->at[at].shards[id.copy] >> id.shard & 1))
				continue;
			err = kv_client_open_replica(c, &id, &replica);
			if (c->is_crashed)
				err = -ESHUTDOWN;
			if (err)
				continue;
			e->g = replica->g;
			e->shard[id.shard].replica[id.copy] = replica;
		}
	if (replica)
		*out = e;
	else
		free(e);
	return replica ? 0 : err;
}

/*
 * Its state, as the replica has it that has got furthest, of those that are
 * connected: once one shard is DONE all are, and where one is FREEZING the next
 * generation is chosen.
 */
static int era_state(struct aq_kv_client *c, struct kv_era *e, uint64_t *state)
{
	uint32_t s, k;
	bool any = false;
	int err = -EHOSTDOWN;

	for (s = 0; s < e->g.shard_count; s++)
		for (k = 0; k < e->g.copy_count; k++) {
			struct kv_replica *replica = e->shard[s].replica[k];

			if (!replica)
				continue;
			err = replica->kit.is_broken ? reconnect(c, replica)
						     : 0;
			if (!err)
				err = kv_state_adopt(replica);
			e->shard[s].is_ready = false;
			if (c->is_crashed)
				return -ESHUTDOWN;
			if (err)
				continue;
			if (!any || kv_state_phase(replica->expect) >
					    kv_state_phase(*state))
				*state = replica->expect;
			any = true;
		}
	return any ? 0 : err;
}

/* What a look around has found. */
struct found {
	unsigned count;
	struct {
		struct kv_era *era;
		uint64_t state;
	} at[NAMES_MAX];
};

/* The generation of that name, if it can be had. */
static int find_era(struct aq_kv_client *c, const struct listing *l,
		    unsigned at, struct found *f)
{
	struct kv_era *e = era_known(c, l->at[at].name);
	uint64_t state;
	int err = e ? era_state(c, e, &state) : -ENOENT;

	if (err && err != -ESHUTDOWN) {
		err = era_open(c, l, at, &e);
		if (err)
			return err;
		err = era_state(c, e, &state);
		if (err)
			era_close(c, e);
	}
	if (!err) {
		f->at[f->count].era = e;
		f->at[f->count++].state = state;
	}
	return err;
}

static int find_eras(struct aq_kv_client *c, struct found *f)
{
	struct listing l = {0};
	int err = c->world.list(c->world.ctx, note_id, &l), one, why = -ENOENT;
	unsigned i;

	for (i = 0; i < l.count && !err; i++) {
		one = find_era(c, &l, i, f);
		if (one == -ESHUTDOWN || one == -ENOMEM)
			err = one;
		else if (one && one != -ENOENT)
			why = one;
	}
	return err ? err : f->count ? 0 : why;
}

static struct kv_era *find_name(const struct found *f, uint32_t name)
{
	unsigned i;

	for (i = 0; i < f->count; i++)
		if (f->at[i].era->g.name == name)
			return f->at[i].era;
	return NULL;
}

/*
 * Which of them count. One is neither YOUNG nor DONE, or else it is the one
 * that a DONE one names; and from FREEZING on there is a next. Others that are
 * YOUNG are begun and left.
 */
static int choose(const struct found *f, struct kv_era *era[KV_ERAS_MAX])
{
	uint64_t state = 0, done = 0;
	unsigned i;

	for (i = 0; i < f->count; i++) {
		enum kv_phase phase = kv_state_phase(f->at[i].state);

		if (phase == KV_PHASE_DONE) {
			done = f->at[i].state;
		} else if (phase != KV_PHASE_YOUNG) {
			era[0] = f->at[i].era;
			state = f->at[i].state;
		}
	}
	if (!era[0] && done)
		era[0] = find_name(f, kv_state_next(done));
	if (!era[0])
		return error_set(-EHOSTDOWN,
				 "the table is being resized, and not all of "
				 "it answers");
	if (kv_state_next(state))
		era[1] = find_name(f, kv_state_next(state));
	return 0;
}

int kv_client_look_around(struct aq_kv_client *c)
{
	struct kv_era *era[KV_ERAS_MAX] = {0};
	struct found f = {0};
	unsigned i;
	int err;

	if (!c->world.open)
		return kv_state_adopt(c->era[0]->shard[0].replica[0]);
	err = find_eras(c, &f);
	if (!err)
		err = choose(&f, era);
	if (err)
		memcpy(era, c->era, sizeof(era)); /* those stay */
	for (i = 0; i < f.count; i++)
		if (f.at[i].era != era[0] && f.at[i].era != era[1] &&
		    f.at[i].era != c->era[0] && f.at[i].era != c->era[1])
			era_close(c, f.at[i].era);
	for (i = 0; i < KV_ERAS_MAX; i++)
		if (c->era[i] != era[0] && c->era[i] != era[1])
			era_close(c, c->era[i]);
	memcpy(c->era, era, sizeof(era));
	return err;
}

/* ---- where an operation goes -------------------------------------------- */

uint64_t kv_client_hash(const struct aq_kv_client *c, const void *key,
			size_t key_len)
{
	const struct kv_era *next = c->era[1];

	/* Nobody asks which of one. */
	if (c->era[0]->g.shard_count == 1 &&
	    (!next || next->g.shard_count == 1))
		return 0;
	return kv_hash_key(&c->era[0]->g, key, key_len);
}

/* The next generation's replica of the key. */
int kv_client_route_next(struct aq_kv_client *c, uint64_t hash,
			 struct kv_route *r)
{
	struct kv_era *e = c->era[1];
	uint32_t shard;
	int err;

	if (!e || (r->older && e->g.name != kv_state_next(r->older->expect)))
		return KV_E_VIEW;
	shard = kv_shard_of(hash, e->g.shard_count);
	err = kv_shard_ready(c, e, shard);
	if (err)
		return err;
	r->replica = kv_shard_master(&e->shard[shard]);
	r->second = kv_shard_second(&e->shard[shard]);
	r->leaves_graves = true;
	return kv_state_phase(r->replica->expect) == KV_PHASE_YOUNG ? 0
								    : KV_E_VIEW;
}

int kv_client_route(struct aq_kv_client *c, uint64_t hash, bool is_change,
		    struct kv_route *r)
{
	struct kv_era *e = c->era[0];
	uint32_t shard = kv_shard_of(hash, e->g.shard_count);
	struct kv_shard *s = &e->shard[shard];
	int err;

	*r = (struct kv_route){0};
	err = kv_shard_ready(c, e, shard);
	if (err)
		return err;
	r->replica = kv_shard_master(s);
	r->second = kv_shard_second(s);
	switch (kv_state_phase(r->replica->expect)) {
	case KV_PHASE_STABLE:
		return 0;
	case KV_PHASE_YOUNG:
		r->leaves_graves = true;
		return 0;
	case KV_PHASE_FREEZING:
		if (!is_change)
			return 0;
		err = kv_shard_freeze(c, e, shard);
		return err ? err : KV_E_VIEW;
	case KV_PHASE_FROZEN:
		r->older = r->replica;
		return kv_client_route_next(c, hash, r);
	case KV_PHASE_DONE:
	default:
		return KV_E_VIEW;
	}
}

int kv_client_again(struct aq_kv_client *c, int err, unsigned *tries)
{
	struct kv_replica *any = kv_client_any(c);
	uint32_t was = c->era[0]->g.generation;
	int look;

	if (c->is_crashed)
		return -ESHUTDOWN;
	if (err != KV_E_VIEW && (err != -EHOSTDOWN || !c->world.open))
		return err;
	*tries += err == KV_E_VIEW ? 1 : AGAIN_MAX / LOST_MAX;
	if (*tries >= AGAIN_MAX ||
	    (any && kit_now_ns(&any->kit) > c->deadline_ns))
		return err == KV_E_VIEW ? error_set(-ETIMEDOUT,
						    "the table keeps changing")
					: err;
	look = kv_client_look_around(c);
	/* What did not answer was dropped by a resize: nothing is lost. */
	if (!look && err == -EHOSTDOWN && c->era[0]->g.generation != was)
		*tries -= AGAIN_MAX / LOST_MAX - 1;
	/* Leaves come and go: what was listed may be gone. To callers -ENOENT
	 * is a key that is not there, so it never leaves this room by here. */
	if (look == KV_E_VIEW || look == -ESTALE)
		return 0;
	if (look == -ENOENT || look == -EHOSTDOWN || look == -EBADMSG) {
		*tries += AGAIN_MAX / GONE_MAX;
		if (any)
			kv_pause(any, any->term_ns);
		return 0;
	}
	return look;
}

/* ---- clients ------------------------------------------------------------ */

int kv_client_begin(struct aq_kv_client *c)
{
	struct kv_replica *any;

	/* They were submitted before. */
	if (UNLIKELY(c->change_count))
		kv_async_flush(c);
	any = kv_client_any(c);
	if (UNLIKELY(c->is_crashed))
		return -ESHUTDOWN;
	if (LIKELY(any != NULL)) {
		c->clock = any->kit.clock;
		c->start_ns = kit_now_ns(&any->kit);
		c->deadline_ns = c->start_ns + any->deadline_ms * 1000000;
	}
	return 0;
}

static struct aq_kv_client *new_client(const struct kv_client_config *config)
{
	struct aq_kv_client *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->config = *config;
	c->depth = config->options.depth ? config->options.depth : KV_DEPTH;
	c->done = calloc(u32_min(c->depth, KV_DEPTH_MAX), sizeof(c->done[0]));
	if (c->done)
		return c;
	free(c);
	return NULL;
}

int kv_client_open(const struct kv_world *world,
		   const struct kv_client_config *config,
		   struct aq_kv_client **out)
{
	struct aq_kv_client *c = new_client(config);
	int err;

	if (!c)
		return error_set(-ENOMEM, "no memory for a client");
	c->world = *world;
	err = kv_client_look_around(c);
	if (err)
		kv_client_destroy(c);
	else
		*out = c;
	return err;
}

int kv_client_create(const struct kit_remote *remote,
		     const struct kv_geometry *g,
		     const struct kv_client_config *config,
		     struct aq_kv_client **out)
{
	struct aq_kv_client *c = new_client(config);
	struct kv_client_config replica;
	int err = -ENOMEM;

	if (c)
		c->era[0] = calloc(1, sizeof(*c->era[0]));
	if (!c || !c->era[0]) {
		kv_client_destroy(c);
		return error_set(err, "no memory for a client");
	}
	c->era[0]->g = *g;
	replica = replica_config(c);
	err = kv_replica_create(remote, g, &replica,
				&c->era[0]->shard[0].replica[0]);
	if (err)
		kv_client_destroy(c);
	else
		*out = c;
	return err;
}

void kv_client_destroy(struct aq_kv_client *c)
{
	if (!c)
		return;
	era_close(c, c->era[0]);
	era_close(c, c->era[1]);
	free(c->done);
	free(c->older);
	free(c);
}

bool kv_client_is_crashed(const struct aq_kv_client *c)
{
	return c->is_crashed;
}

void kv_client_forget(struct aq_kv_client *c)
{
	for (uint32_t i = 0; i < KV_ERAS_MAX; i++) {
		struct kv_era *era = c->era[i];

		for (uint32_t s = 0; era && s < era->g.shard_count; s++)
			for (uint32_t k = 0; k < KV_COPIES_MAX; k++)
				if (era->shard[s].replica[k])
					kv_cache_forget(
						era->shard[s].replica[k]);
	}
}

void aq_kv_client_stats(const struct aq_kv_client *c, struct aq_kv_stats *stats)
{
	uint32_t i, s, k;

	*stats = c->past;
	for (i = 0; i < KV_ERAS_MAX; i++)
		for (s = 0; c->era[i] && s < c->era[i]->g.shard_count; s++)
			for (k = 0; k < KV_COPIES_MAX; k++)
				if (c->era[i]->shard[s].replica[k])
					add_stats(stats, &c->era[i]
								  ->shard[s]
								  .replica[k]
								  ->stats);
}
