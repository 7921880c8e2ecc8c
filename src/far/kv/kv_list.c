/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of a rack, from the names of their regions. Replicas are looked at
 * and nothing is changed: no client slot is taken, no role settled, so a list
 * costs a connection for each replica that answers and waits for none that does
 * not. What the replicas say together is decided in kv_survey_judge, which
 * talks to nobody.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kv_table_priv.h"

/* ---- what it all means -------------------------------------------------- */

static const struct kv_seen *find(const struct kv_seen *seen, size_t count,
				  uint32_t name, uint32_t shard, uint32_t copy)
{
	for (size_t i = 0; i < count; i++)
		if (seen[i].is_read && seen[i].id.name == name &&
		    seen[i].id.shard == shard && seen[i].id.copy == copy)
			return &seen[i];
	return NULL;
}

static const struct kv_seen *find_name(const struct kv_seen *seen, size_t count,
				       uint32_t name)
{
	for (size_t i = 0; i < count; i++)
		if (seen[i].is_read && seen[i].id.name == name)
			return &seen[i];
	return NULL;
}

/* The generation that serves, as clients choose it (kv_client.c): the one that
 * is neither YOUNG nor DONE, or else the one that a DONE one names. */
static const struct kv_seen *choose(const struct kv_seen *seen, size_t count)
{
	const struct kv_seen *done = NULL, *best = NULL;

	for (size_t i = 0; i < count; i++) {
		enum kv_phase phase = kv_state_phase(seen[i].state);

		if (!seen[i].is_read || phase == KV_PHASE_YOUNG)
			continue;
		if (phase == KV_PHASE_DONE)
			done = &seen[i];
		else if (!best || phase > kv_state_phase(best->state))
			best = &seen[i];
	}
	if (done && (!best || best->id.name == done->id.name))
		best = find_name(seen, count, kv_state_next(done->state));
	return best;
}

/* One shard of a generation: adds to what is known of the table. */
static void judge_shard(const struct kv_seen *seen, size_t count,
			const struct kv_geometry *g, uint32_t shard,
			struct aq_kv_listed *out, uint64_t *keys)
{
	const struct kv_seen *a = find(seen, count, g->name, shard, 0);
	const struct kv_seen *b = find(seen, count, g->name, shard, 1);
	const struct kv_seen *serves = a;

	if (!a && !b) {
		out->shards_lost++;
		return;
	}
	if (!a || (b && kv_state_role(b->state) == KV_ROLE_ONLY))
		serves = b;
	*keys += serves->keys;
	if (g->copy_count > 1 &&
	    (!a || !b || kv_state_role(a->state) != KV_ROLE_FIRST ||
	     kv_state_role(b->state) != KV_ROLE_SECOND))
		out->shards_single++;
}

static uint64_t judge_era(const struct kv_seen *seen, size_t count,
			  const struct kv_geometry *g, struct aq_kv_listed *out)
{
	uint64_t keys = 0;

	for (uint32_t s = 0; s < g->shard_count; s++)
		judge_shard(seen, count, g, s, out, &keys);
	return keys;
}

void kv_survey_judge(const struct kv_seen *seen, size_t count,
		     struct aq_kv_listed *out)
{
	const struct kv_seen *now = choose(seen, count), *next = NULL;
	bool is_damaged = false;

	for (size_t i = 0; i < count; i++)
		is_damaged |= seen[i].is_damaged;
	out->condition = AQ_KV_DAMAGED;
	if (!now)
		return;
	out->shards = now->g.shard_count;
	out->copies = now->g.copy_count;
	out->generation = now->g.generation;
	out->grows = now->g.flags & KV_GROWS;
	out->max_bytes = now->g.max_bytes;
	out->capacity = now->g.rows * now->g.entries * now->g.shard_count;
	out->keys = judge_era(seen, count, &now->g, out);
	out->is_resizing = kv_state_phase(now->state) != KV_PHASE_STABLE;
	if (kv_state_phase(now->state) == KV_PHASE_FROZEN)
		next = find_name(seen, count, kv_state_next(now->state));
	/* Most keys are in both. */
	if (next)
		out->keys = u64_max(out->keys,
				    judge_era(seen, count, &next->g, out));
	out->has_keys = !out->shards_lost;
	if (!out->shards_lost)
		out->condition =
			out->shards_single ? AQ_KV_COPY_LOST : AQ_KV_WHOLE;
	else if (!is_damaged)
		out->condition = AQ_KV_PART_LOST;
}

/* ---- looking ------------------------------------------------------------ */

static int count_keys(struct kit_client *k, const struct kv_geometry *g,
		      uint64_t *keys)
{
	uint32_t i, n, batch = KIT_STAGE_BYTES / KV_SLOT_BYTES;
	int64_t sum = 0;
	struct kv_slot s;
	int err = 0;

	for (i = 0; i < g->client_count && !err; i++) {
		n = i % batch;
		if (n == 0)
			err = kit_read_now(
				&k->main,
				g->slot_offset + (uint64_t)i * KV_SLOT_BYTES,
				k->stage,
				(size_t)u32_min(batch, g->client_count - i) *
					KV_SLOT_BYTES);
		memcpy(&s, k->stage + (size_t)n * KV_SLOT_BYTES, sizeof(s));
		sum += (int64_t)le64_get(s.intent.count);
	}
	*keys = sum > 0 ? (uint64_t)sum : 0;
	return err;
}

static int look_inside(const struct kit_remote *remote, struct kv_seen *out)
{
	struct kit_client *k;
	int err = kv_probe(remote, remote->size_bytes, &out->g);

	if (!err &&
	    (out->g.name != out->id.name || out->g.shard != out->id.shard ||
	     out->g.copy != out->id.copy))
		err = -EBADMSG;
	if (err)
		return err;
	err = kit_plain_create(remote, &k);
	if (err)
		return err;
	err = kit_read_now(&k->main, kv_lease_at(&out->g, KV_LEASE_STATE),
			   k->stage, sizeof(out->state));
	if (!err) {
		memcpy(&out->state, k->stage, sizeof(out->state));
		err = count_keys(k, &out->g, &out->keys);
	}
	kit_plain_destroy(k);
	return err;
}

static int look_at(struct aq_kv *kv, struct kv_seen *out)
{
	struct kv_world world = kv_world_of(kv);
	struct kit_remote remote = {0};
	int err = world.open(world.ctx, &out->id, &remote);

	if (!err) {
		err = look_inside(&remote, out);
		remote.close(remote.ctx, &remote);
	}
	out->is_read = !err;
	out->is_damaged =
		err == -ENOENT || err == -EBADMSG || err == -EPROTONOSUPPORT;
	return err;
}

/* ---- the list ----------------------------------------------------------- */

/* Regions of tables, as the nodes that answer have them. */
struct listing {
	struct listed {
		struct kv_region region;
		uint64_t size_bytes;
	} * row;
	uint32_t count, room;
	const char *only; /* of this table; NULL: of all */
	/* A node answered and its memory did not: there is no way to any, and
	 * one wait for that is enough. */
	bool is_cut_off;
};

static int note_region(const char *name, const struct aq_region_stat *stat,
		       void *user)
{
	struct listing *l = user;
	struct kv_region r;
	int err;

	if (kv_region_parse(name, &r) ||
	    (l->only && strcmp(l->only, r.table) != 0))
		return 0;
	err = kit_grow(&l->row, &l->room, l->count + 1, sizeof(*l->row));
	if (!err)
		l->row[l->count++] = (struct listed){r, stat->size_bytes};
	return err;
}

static int by_table(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;

	return strcmp(x->region.table, y->region.table);
}

/* The rows are all of the table. */
static int survey(struct aq_kv *kv, struct listing *l, const struct listed *row,
		  uint32_t count, struct aq_kv_listed *out)
{
	struct kv_seen *seen = calloc(count + 1, sizeof(*seen));
	uint32_t n = 0;

	if (!seen)
		return error_set(-ENOMEM, "no memory for a list of tables");
	for (uint32_t i = 0; i < count; i++) {
		out->size_bytes += row[i].size_bytes;
		if (row[i].region.is_locks)
			continue;
		seen[n].id = row[i].region.id;
		if (!l->is_cut_off)
			l->is_cut_off = look_at(kv, &seen[n]) == -EHOSTDOWN;
		n++;
	}
	kv_survey_judge(seen, n, out);
	if (l->is_cut_off && out->condition != AQ_KV_WHOLE)
		out->condition = AQ_KV_UNKNOWN;
	free(seen);
	return 0;
}

int kv_survey(struct aq_kv *kv, struct aq_kv_listed *out)
{
	struct listing l = {.only = kv->name};
	int err = aq_region_each(kv->rack, note_region, &l);

	*out = (struct aq_kv_listed){.name = kv->name};
	if (!err)
		err = survey(kv, &l, l.row, l.count, out);
	free(l.row);
	return err;
}

static int show(struct aq_rack *rack, struct listing *l,
		const struct listed *row, uint32_t count, aq_kv_listed_fn each,
		void *user)
{
	struct aq_kv_listed out = {.name = row->region.table};
	struct aq_kv *kv;
	int err = kv_table_new(rack, row->region.table, &kv);

	if (err)
		return err == -EINVAL ? 0 : err; /* its name is no table's */
	err = survey(kv, l, row, count, &out);
	aq_kv_close(kv);
	return err ? err : each(&out, user);
}

int aq_kv_each(struct aq_rack *rack, aq_kv_listed_fn each, void *user)
{
	struct listing l = {0};
	uint32_t i, n;
	int err = aq_region_each(rack, note_region, &l);

	if (!err && l.count)
		qsort(l.row, l.count, sizeof(l.row[0]), by_table);
	for (i = 0; i < l.count && !err; i += n) {
		for (n = 1;
		     i + n < l.count && by_table(&l.row[i], &l.row[i + n]) == 0;
		     n++)
			;
		err = show(rack, &l, &l.row[i], n, each, user);
	}
	free(l.row);
	return err;
}
