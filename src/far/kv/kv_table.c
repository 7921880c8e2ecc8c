/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of a rack: making, opening and dropping them, and their clients. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "client/tally.h"
#include "kv_client_priv.h"
#include "kv_table_priv.h"
#include "kv_upkeep.h"

enum {
	WORDS_BYTES = 200,
	EXTENT_BYTES = 4 << 20, /* of a new shard; and so many chunks at */
	EXTENT_CHUNKS = 4,	/* least */
};
STATIC_ASSERT(AQ_KV_NAME_MAX == (int)KIT_NAME_MAX, "names");

/* ---- tables ------------------------------------------------------------- */

int kv_table_new(struct aq_rack *rack, const char *name, struct aq_kv **out)
{
	struct aq_kv *kv;
	int err = kit_name_check("a table", name);

	if (err)
		return err;
	kv = calloc(1, sizeof(*kv));
	if (!kv)
		return error_set(-ENOMEM, "no memory for a table");
	kv->rack = rack;
	snprintf(kv->name, sizeof(kv->name), "%s", name);
	*out = kv;
	return 0;
}

struct finding {
	struct aq_kv *kv;
	bool any, is_known;
	int err;
};

/* The oldest generation that there is: what is made next to it counts later. */
static void find_head(void *user, const struct kv_id *id)
{
	struct finding *f = user;
	struct kv_world world = kv_world_of(f->kv);
	struct kit_remote remote = {0};
	struct kv_geometry g;
	int err;

	f->any = true;
	if (f->is_known && f->kv->g.name == id->name)
		return;
	err = world.open(f->kv, id, &remote);
	if (!err) {
		err = kv_probe(&remote, remote.size_bytes, &g);
		remote.close(remote.ctx, &remote);
	}
	if (err)
		f->err = err;
	else if (!f->is_known || g.generation < f->kv->g.generation) {
		f->is_known = true;
		f->kv->g = g;
	}
}

struct drop_list {
	struct aq_kv *kv;
	unsigned count;
	int err;
};

static void drop_each(void *user, const struct kv_id *id)
{
	struct drop_list *d = user;
	int err = kv_world_of(d->kv).drop(d->kv, id);

	d->count++;
	if (err && !d->err)
		d->err = err;
}

static int drop_all(struct aq_kv *kv, unsigned *count)
{
	struct drop_list d = {.kv = kv};
	int err = kv_world_of(kv).list(kv, drop_each, &d);

	*count = d.count;
	return err ? err : d.err;
}

/* No node that answers has it. There is none only if all of them did: who makes
 * another one must not do it beside one that cannot be reached. */
static int is_nowhere(struct aq_rack *rack, const char *name)
{
	char silent[CLIENT_NODE_NAME_MAX];
	int n = client_hosts_silent(rack, silent);

	if (n < 0)
		return n;
	return n ? error_set(-EHOSTDOWN,
			     "no node that answers has a table %s, but node %s "
			     "does not answer",
			     name, silent)
		 : error_set(-ENOENT, "there is no table %s", name);
}

/* -EEXIST: there is a table of that name, or what is left of one; -EHOSTDOWN:
 * there may be. */
static int check_absent(const struct aq_kv *kv)
{
	struct aq_kv probe = *kv;
	struct finding f = {.kv = &probe};
	int err = kv_world_of(&probe).list(&probe, find_head, &f);

	if (!err && !f.any) {
		err = is_nowhere(kv->rack, kv->name);
		err = err == -ENOENT ? 0 : err;
	}
	if (err || !f.any)
		return err;
	return f.is_known || (f.err != -ENOENT && f.err != -EBADMSG)
		       ? error_set(-EEXIST, "there is a table %s already",
				   kv->name)
		       : error_set(-EEXIST,
				   "there is what is left of a table %s; "
				   "'aquifer kv drop %s' removes it",
				   kv->name, kv->name);
}

/* Others may make a table of that name just now. Whoever makes its first
 * replica makes the rest as well, so all that were made here are ours. */
static int make_table(struct aq_kv *kv)
{
	struct kv_world world = kv_world_of(kv);
	char words[WORDS_BYTES];
	uint32_t made = 0;
	int err = check_absent(kv);

	if (err)
		return err;
	err = kv_replicas_make(&world, &kv->g, KV_PHASE_STABLE, &made);
	if (!err)
		return 0;
	/* What was made goes; the first reason is the one to tell. */
	snprintf(words, sizeof(words), "%s", aq_last_error());
	kv_replicas_drop(&world, &kv->g, made);
	return error_set(err, "%s", words);
}

static int resolve(struct aq_kv *kv, struct aq_kv_options *o)
{
	int n;

	if (!o->seed &&
	    getrandom(&o->seed, sizeof(o->seed), 0) != (ssize_t)sizeof(o->seed))
		return error_set(-EIO, "the kernel gives no random numbers");
	if (o->shards == AQ_KV_ALL_NODES) {
		n = kv_world_of(kv).nodes(kv);
		if (n < 0)
			return n;
		o->shards = (uint32_t)n;
	}
	/* What grows by itself begins small. */
	if (!o->extent_bytes && !(o->flags & AQ_KV_FIXED))
		o->extent_bytes =
			(uint64_t)u32_max(o->shards, 1) *
			u64_max(EXTENT_BYTES,
				(uint64_t)EXTENT_CHUNKS * o->chunk_bytes);
	return 0;
}

int aq_kv_create(struct aq_rack *rack, const char *name,
		 const struct aq_kv_options *options, struct aq_kv **out)
{
	struct aq_kv_options o = *options;
	struct aq_kv *kv;
	int err = kv_table_new(rack, name, &kv);

	if (err)
		return err;
	kv->node = o.node;
	kv->may_use_host = o.flags & AQ_KV_HOST_LOCKS;
	err = resolve(kv, &o);
	if (!err)
		err = kv_geometry_make(&o, &kv->g);
	if (!err)
		err = make_table(kv);
	if (err) {
		aq_kv_close(kv);
		return err;
	}
	kv->node = NULL;
	aq_kv_close(kv);
	return aq_kv_open(rack, name, out);
}

int aq_kv_open(struct aq_rack *rack, const char *name, struct aq_kv **out)
{
	struct finding f = {0};
	struct aq_kv *kv;
	int err = kv_table_new(rack, name, &kv);

	if (err)
		return err;
	f.kv = kv;
	err = kv_world_of(kv).list(kv, find_head, &f);
	if (!err && !f.any)
		err = is_nowhere(rack, name);
	if (!err && !f.is_known)
		err = f.err;
	/* Its next generation may have locks where these are. */
	kv->may_use_host = !(kv->g.flags & KV_DEVICE_LOCKS);
	if (!err)
		kv->upkeep = kv_upkeep_create(kv);
	if (!err && !kv->upkeep)
		err = error_set(-ENOMEM, "no memory for a table");
	if (err)
		aq_kv_close(kv);
	else
		*out = kv;
	return err;
}

void aq_kv_close(struct aq_kv *kv)
{
	if (kv)
		kv_upkeep_destroy(kv->upkeep);
	free(kv);
}

int aq_kv_drop(struct aq_rack *rack, const char *name)
{
	unsigned count = 0, locks = 0;
	struct aq_kv *kv;
	int err = kv_table_new(rack, name, &kv);

	if (err)
		return err;
	err = drop_all(kv, &count);
	if (!err)
		err = kv_remains_drop(kv, &locks);
	if (!err && !count && !locks)
		err = error_set(-ENOENT, "there is no table %s", name);
	aq_kv_close(kv);
	return err;
}

void aq_kv_get_info(const struct aq_kv *kv, struct aq_kv_info *info)
{
	const struct kv_geometry *g = &kv->g;
	uint64_t shards = g->shard_count;

	*info = (struct aq_kv_info){
		.rows = g->rows * shards,
		.capacity = g->rows * g->entries * shards,
		.locks = g->lock_count * shards,
		.extent_bytes = g->chunk_count * g->chunk_bytes * shards,
		.size_bytes = (g->size_bytes + g->lock_bytes) * shards *
			      g->copy_count,
		.entries_per_row = g->entries,
		.entry_bytes = g->entry_bytes,
		.row_bytes = g->row_bytes,
		.rows_per_lock = g->rows_per_lock,
		.clients = g->client_count,
		.chunk_bytes = g->chunk_bytes,
		.hash = g->hash,
		.locality_milli = g->locality_milli,
		.failure_ms = g->failure_ms,
		.inline_bytes = g->entry_bytes - KV_E_HEAD,
		.masked_atomics = !(g->flags & KV_WORD_LOCKS),
		.locks_on_device = g->flags & KV_DEVICE_LOCKS,
		.shards = g->shard_count,
		.copies = g->copy_count,
		.generation = g->generation,
		.grows = g->flags & KV_GROWS,
		.max_bytes = g->max_bytes,
	};
}

int aq_kv_client_open(struct aq_kv *kv,
		      const struct aq_kv_client_options *options,
		      struct aq_kv_client **out)
{
	struct kv_client_config config = {0};
	struct kv_world world = kv_world_of(kv);
	int err;

	if (options)
		config.options = *options;
	if (!config.options.deadline_ms)
		config.options.deadline_ms = aq_rack_deadline(kv->rack);
	config.wish = kv_upkeep_wish;
	config.wish_ctx = kv->upkeep;
	config.tally = client_tally_open(
		kv->rack,
		config.options.flags & AQ_KV_IS_REDIS ? TALLY_REDIS : TALLY_KV,
		kv->name);
	err = kv_client_open(&world, &config, out);
	if (err)
		client_tally_close(kv->rack, config.tally);
	else
		kv_upkeep_watch(kv->upkeep);
	return err;
}

void aq_kv_client_close(struct aq_kv_client *c)
{
	const struct aq_kv *kv = c ? c->world.ctx : NULL;
	struct tally *tally = c ? c->config.tally : NULL;

	kv_client_destroy(c);
	if (tally)
		client_tally_close(kv->rack, tally);
}
