/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that looks after a table that this process has open. Clients tell
 * it what they have noticed; of a table with two copies it also counts the
 * replicas itself every second, because a client that does nothing notices
 * nothing. All clients of a table in all processes do this. Who takes the right
 * to resize does the work (kv_grow.c); the others find it taken, and then that
 * nothing is left to be done. Whoever dies over it is followed by another.
 */
#include "kv_upkeep.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/thread.h"
#include "kv_client_priv.h"

#define SUM_FACTOR 0x9e3779b97f4a7c15ull

enum {
	/* Whoever is at work may just be slow, a node may be about to come
	 * back, and a process that lives for a moment has other things to do.
	 */
	SETTLE_MS = 2000,
	LOOK_MS = 1000,	 /* between two looks at the replicas */
	BUSY_MS = 300,	 /* another client is at work */
	RETRY_MS = 1000, /* after the first failure; then twice as long */
	RETRY_MS_MAX = 30000,
	WORDS_BYTES = 200,
};

struct kv_upkeep {
	struct aq_kv *kv;
	pid_t process; /* that started the thread; a child has none */
	pthread_t thread;
	atomic_bool stop;
	/* Guards all that follows. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_started;
	bool is_closing;
	bool is_busy;
	bool watches; /* the copies */
	struct kv_need need;
	uint64_t wait_until_ms; /* nothing is done before that */
	uint32_t retry_ms;
	int err; /* of the last try, with words */
	char words[WORDS_BYTES];
	/* The thread's own: which replicas there were when all was well, the
	 * last time; and since when a copy is lost, or a resize under way. 0:
	 * not now. */
	uint64_t replicas;
	uint64_t lost_ms, begun_ms;
};

/* ---- the work ----------------------------------------------------------- */

struct goal {
	struct kv_upkeep *u;
	const struct kv_need *need;
	const struct aq_kv_options *o;
};

static bool is_single(struct aq_kv_client *c)
{
	struct kv_era *e = c->era[0];

	for (uint32_t s = 0; s < e->g.shard_count && e->g.copy_count > 1; s++)
		if (kv_shard_ready(c, e, s) == 0 && !e->shard[s].is_paired)
			return true;
	return false;
}

/* Somebody else may have done it since it was wished. */
static bool is_wanted(struct aq_kv_client *c, void *user)
{
	const struct goal *goal = user;
	const struct kv_geometry *g = &c->era[0]->g;
	const struct kv_need *n = goal->need;
	bool lacks_room =
		(n->rows || n->extents) && g->generation == n->generation;
	struct kv_geometry next;

	if (!lacks_room && !(n->copy && is_single(c)))
		return false;
	if (kv_geometry_next(g, goal->o, &next) == 0)
		log_info("kv",
			 "table %s %s: from %" PRIu64 " to %" PRIu64
			 " entries, from %" PRIu64 " to %" PRIu64
			 " bytes for values",
			 goal->u->kv->name,
			 lacks_room ? "grows" : "gets another copy",
			 g->rows * g->entries * g->shard_count,
			 next.rows * next.entries * next.shard_count,
			 g->chunk_count * g->chunk_bytes * g->shard_count,
			 next.chunk_count * next.chunk_bytes *
				 next.shard_count);
	return true;
}

static int resize(struct kv_upkeep *u, struct aq_kv_client *c,
		  const struct kv_need *need)
{
	struct aq_kv_options o = {0};
	struct goal goal = {.u = u, .need = need, .o = &o};
	struct kv_geometry was = c->era[0]->g;
	unsigned share = 1;
	uint64_t keys = 0;
	int err = 0;

	/* What another client has begun and left ends first. */
	if (!need->rows && !need->extents && !need->copy)
		return kv_client_resize(c, &o, is_wanted, &goal);
	err = aq_kv_count(c, &keys);
	while (!err) {
		err = kv_upkeep_plan(&was, need, keys, &share, &o);
		if (err)
			break;
		err = kv_client_resize(c, &o, is_wanted, &goal);
		if ((err != -ENOSPC && err != -EDQUOT) ||
		    (!o.capacity && !o.extent_bytes))
			break;
		err = 0;
		share *= 2;
	}
	if (!err && c->era[0]->g.generation != was.generation)
		log_info("kv", "table %s: generation %u serves", u->kv->name,
			 c->era[0]->g.generation);
	return err;
}

/* With a client of its own, which wishes nothing. */
static int work(struct kv_upkeep *u, const struct kv_need *need)
{
	struct kv_world world = kv_world_of(u->kv);
	struct kv_client_config config = {
		.options = {.deadline_ms = aq_rack_deadline(u->kv->rack)},
		.stop = &u->stop};
	struct aq_kv_client *c;
	int err = kv_client_open(&world, &config, &c);

	if (err)
		return err;
	err = resize(u, c, need);
	kv_client_destroy(c);
	return err;
}

/* A sum that tells other replicas from as many as before: no two that a table
 * ever has are called the same. */
static void add_each(void *user, const struct kv_id *id)
{
	uint64_t which = (uint64_t)id->name << 32 | id->shard << 8 | id->copy;

	which = (which + 1) * SUM_FACTOR;
	*(uint64_t *)user += (which ^ which >> 29) * SUM_FACTOR;
}

/* Lists the replicas, and looks closer when they are others than when all was
 * well: is a copy lost for which there is a node, is a resize under way?
 * Whoever does that may die over it, so until it has ended all is not well. */
static void look_at_table(struct kv_upkeep *u, struct kv_need *need)
{
	struct kv_world world = kv_world_of(u->kv);
	struct aq_kv_listed table = {0};
	bool is_told = need->copy;
	uint64_t replicas = 0;

	need->copy = false;
	if (world.list(world.ctx, add_each, &replicas) ||
	    (!is_told && replicas == u->replicas) || kv_survey(u->kv, &table))
		return;
	u->replicas = table.condition == AQ_KV_WHOLE && !table.is_resizing
			      ? replicas
			      : 0;
	need->copy = table.condition == AQ_KV_COPY_LOST &&
		     world.nodes(world.ctx) > 1;
	need->end |= table.is_resizing;
}

/* Whether it is so for long enough; *since_ms is when it was seen first. */
static bool has_settled(bool is_so, uint64_t *since_ms)
{
	uint64_t now = clock_mono_ms();

	if (!is_so)
		*since_ms = 0;
	else if (!*since_ms)
		*since_ms = now;
	return is_so && now >= *since_ms + SETTLE_MS;
}

/* Makes of what was wished what is to be done. */
static void consider(struct kv_upkeep *u, bool watches, struct kv_need *need)
{
	if (watches) {
		look_at_table(u, need);
		need->copy = has_settled(need->copy, &u->lost_ms);
	}
	need->end = has_settled(need->end, &u->begun_ms);
}

/* ---- the thread --------------------------------------------------------- */

/* Until something is to be done, or looked at; the lock is held. */
static void wait_for_work(struct kv_upkeep *u)
{
	uint64_t now = clock_mono_ms(), until;
	uint64_t look = u64_max(now + LOOK_MS, u->wait_until_ms);
	struct timespec at;

	while (!u->is_closing) {
		now = clock_mono_ms();
		if (u->need.any && now >= u->wait_until_ms)
			return;
		if (!u->need.any && u->watches && now >= look)
			return;
		if (!u->need.any && !u->watches) {
			pthread_cond_wait(&u->changed, &u->lock);
			continue;
		}
		until = u->need.any ? u->wait_until_ms : look;
		at = (struct timespec){.tv_sec = (time_t)(until / 1000),
				       .tv_nsec =
					       (long)(until % 1000 * 1000000)};
		(void)pthread_cond_timedwait(&u->changed, &u->lock, &at);
	}
}

/* What came of it; the lock is held. */
static void note_end(struct kv_upkeep *u, bool has_worked, int err)
{
	uint64_t now = clock_mono_ms();

	u->err = 0;
	if (!err || err == -EBUSY || err == -ECANCELED) {
		u->retry_ms = 0;
		/* Clients say the same with every change. */
		u->wait_until_ms =
			has_worked && err != -EBUSY ? now : now + BUSY_MS;
		return;
	}
	u->err = err;
	u->retry_ms =
		u->retry_ms ? u32_min(2 * u->retry_ms, RETRY_MS_MAX) : RETRY_MS;
	u->wait_until_ms = now + u->retry_ms;
	if (strcmp(u->words, error_last()) != 0)
		log_warn("kv", "table %s: %s", u->kv->name, error_last());
	snprintf(u->words, sizeof(u->words), "%s", error_last());
}

static void *upkeep_main(void *arg)
{
	struct kv_upkeep *u = arg;

	pthread_mutex_lock(&u->lock);
	for (;;) {
		struct kv_need need;
		bool watches, has_worked;
		int err = 0;

		wait_for_work(u);
		if (u->is_closing)
			break;
		need = u->need;
		watches = u->watches;
		u->need = (struct kv_need){0};
		u->is_busy = true;
		pthread_mutex_unlock(&u->lock);
		consider(u, watches, &need);
		has_worked = need.rows || need.extents || need.copy || need.end;
		if (has_worked)
			err = work(u, &need);
		pthread_mutex_lock(&u->lock);
		u->is_busy = false;
		note_end(u, has_worked, err);
		pthread_cond_broadcast(&u->changed);
	}
	pthread_mutex_unlock(&u->lock);
	return NULL;
}

/* The lock is held. */
static int start(struct kv_upkeep *u)
{
	int err;

	if (u->is_started || u->is_closing)
		return 0;
	u->process = getpid();
	err = thread_start(&u->thread, upkeep_main, u);
	if (err)
		return error_set(err, "no thread for the table's upkeep");
	u->is_started = true;
	return 0;
}

int kv_upkeep_wish(void *ctx, const struct kv_wish *w)
{
	struct kv_upkeep *u = ctx;
	bool is_room = w->kind == KV_WISH_ROWS || w->kind == KV_WISH_EXTENTS;
	int err = 0;

	pthread_mutex_lock(&u->lock);
	/* It was tried a moment ago. */
	if (is_room && u->err && clock_mono_ms() < u->wait_until_ms)
		err = error_set(-ENOSPC, "the table is full: %s", u->words);
	if (!err) {
		if (!u->need.any || !u->is_started)
			pthread_cond_broadcast(&u->changed);
		kv_need_add(&u->need, w);
		err = start(u);
	}
	pthread_mutex_unlock(&u->lock);
	return err;
}

/* ---- with the table ----------------------------------------------------- */

struct kv_upkeep *kv_upkeep_create(struct aq_kv *kv)
{
	struct kv_upkeep *u = calloc(1, sizeof(*u));
	pthread_condattr_t attr;

	if (!u)
		return NULL;
	u->kv = kv;
	atomic_init(&u->stop, false);
	pthread_mutex_init(&u->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&u->changed, &attr);
	pthread_condattr_destroy(&attr);
	return u;
}

void kv_upkeep_watch(struct kv_upkeep *u)
{
	pthread_mutex_lock(&u->lock);
	u->watches = u->kv->g.copy_count > 1;
	/* Without the thread nobody looks; what is lost is still noticed by
	 * clients that work. */
	if (u->watches)
		(void)start(u);
	pthread_mutex_unlock(&u->lock);
}

static void stop(struct kv_upkeep *u)
{
	uint64_t end = clock_mono_ms() + aq_rack_deadline(u->kv->rack);
	struct timespec at = {.tv_sec = (time_t)(end / 1000),
			      .tv_nsec = (long)(end % 1000 * 1000000)};

	pthread_mutex_lock(&u->lock);
	u->is_closing = true;
	pthread_cond_broadcast(&u->changed);
	while (u->is_busy &&
	       pthread_cond_timedwait(&u->changed, &u->lock, &at) == 0)
		;
	pthread_mutex_unlock(&u->lock);
	atomic_store_explicit(&u->stop, true, memory_order_relaxed);
	(void)pthread_join(u->thread, NULL);
}

void kv_upkeep_destroy(struct kv_upkeep *u)
{
	if (!u)
		return;
	/* A child of fork has neither the thread nor a say about the lock. */
	if (u->is_started && u->process != getpid())
		return;
	if (u->is_started)
		stop(u);
	pthread_cond_destroy(&u->changed);
	pthread_mutex_destroy(&u->lock);
	free(u);
}
