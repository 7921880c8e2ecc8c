/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every key of a generation: copied to the next one, or, when that is all there
 * is, looked at for entries of deleted keys. A copy notes how far it has got,
 * so that another client can go on with it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/plant.h"
#include "kv_client_priv.h"

enum {
	TOGETHER = 16, /* keys that are tried for at once */
};

/* Under the key's locks: nobody has changed it since, and the old one is not
 * DONE, so nobody has deleted it without a trace. */
static int copy_fn(struct aq_kv_change *ch, void *user)
{
	const struct kv_mod *m = user;

	if (m->had_entry || !ch->value)
		return 0;
	ch->new_value = ch->value;
	ch->new_value_len = ch->value_len;
	ch->verdict = AQ_KV_STORE;
	return 0;
}

static int bury_fn(struct aq_kv_change *ch, void *user)
{
	const struct kv_mod *m = user;

	if (m->had_entry && !ch->value)
		ch->verdict = AQ_KV_DELETE;
	return 0;
}

/* What is known of a key; its bytes follow, and those of its value. */
struct noted {
	uint64_t expire_at_ms;
	uint32_t value_len;
	uint8_t key_len;
	bool has_value; /* it stands in its row */
};

/* Keys of some rows, one after the other. They are kept, because what is done
 * with them may close the replica they are from. */
struct keys {
	uint8_t *bytes;
	size_t used, room;
	bool only_graves;
};

static int note_key(const struct aq_kv_item *item, void *user)
{
	struct keys *k = user;
	struct noted n = {.expire_at_ms = item->expire_at_ms,
			  .value_len = (uint32_t)item->value_len,
			  .key_len = (uint8_t)item->key_len,
			  .has_value = item->value != NULL};
	size_t need = k->used + sizeof(n) + n.key_len + n.value_len;

	if (k->only_graves && item->expire_at_ms != KV_GRAVE_MS)
		return 0;
	if (need > k->room) {
		uint8_t *p = realloc(k->bytes, 2 * need);

		if (!p)
			return error_set(-ENOMEM, "no memory for keys");
		k->bytes = p;
		k->room = 2 * need;
	}
	memcpy(k->bytes + k->used, &n, sizeof(n));
	memcpy(k->bytes + k->used + sizeof(n), item->key, n.key_len);
	if (n.has_value)
		memcpy(k->bytes + k->used + sizeof(n) + n.key_len, item->value,
		       n.value_len);
	k->used = need;
	return 0;
}

/* The key that begins there, as an operation; where the next one does. */
static size_t take_key(const struct keys *k, size_t at, struct aq_kv_op *op,
		       bool *has_value)
{
	uint8_t *key = k->bytes + at + sizeof(struct noted);
	struct noted n;

	memcpy(&n, k->bytes + at, sizeof(n));
	*has_value = n.has_value;
	*op = (struct aq_kv_op){.kind = AQ_KV_OP_PUT,
				.flags = KV_OP_COPY,
				.key = key,
				.key_len = n.key_len,
				.value = key + n.key_len,
				.value_len = n.value_len,
				.expire_at_ms = n.expire_at_ms};
	return at + sizeof(n) + n.key_len + n.value_len;
}

static int change_alone(struct aq_kv_client *c, const struct aq_kv_op *op,
			aq_kv_change_fn fn)
{
	struct kv_mod m = {.key = op->key,
			   .key_len = op->key_len,
			   .fn = fn,
			   .needs_value = true};

	m.user = &m;
	return kv_client_change(c, &m);
}

/* The one replica to which a key goes when nobody else has to be told. */
static struct kv_replica *simple_target(struct aq_kv_client *c,
					const struct aq_kv_op *op)
{
	struct kv_route r = {0};
	int err = kv_client_route(c, kv_client_hash(c, op->key, op->key_len),
				  true, &r);

	return !err && r.older && !r.second ? r.replica : NULL;
}

/*
 * Keys whose values stood in the rows, several in two round trips: what is
 * frozen never changes, so nobody needs to read them again. How many from the
 * first on are done. What broke on the way may be done again, alone.
 */
static size_t copy_together(struct aq_kv_client *c, struct aq_kv_op *op,
			    size_t count)
{
	struct kv_replica *to = count < 2 ? NULL : simple_target(c, &op[0]);
	struct aq_kv_op *ops[TOGETHER];
	size_t n = 0, done, i;
	bool next_alone;

	while (to && n < count && (n == 0 || simple_target(c, &op[n]) == to)) {
		ops[n] = &op[n];
		n++;
	}
	if (n < 2 || kv_async_settle(c, to))
		return 0;
	done = kv_many_run(to, ops, n, &next_alone);
	for (i = 0; i < done; i++)
		if (op[i].err)
			return i;
	return done;
}

static int copy_keys(struct aq_kv_client *c, const struct keys *k)
{
	struct aq_kv_op op[TOGETHER];
	size_t at = 0, next[TOGETHER], n, done;
	bool has_value;
	int err = 0;

	while (at < k->used && !err) {
		for (n = 0, done = at; n < TOGETHER && done < k->used; n++) {
			done = next[n] = take_key(k, done, &op[n], &has_value);
			if (!has_value)
				break;
		}
		done = copy_together(c, op, n);
		if (done)
			at = next[done - 1];
		else {
			err = change_alone(c, &op[0], copy_fn);
			at = next[0];
		}
	}
	return err;
}

static int bury_keys(struct aq_kv_client *c, const struct keys *k)
{
	struct aq_kv_op op;
	bool has_value;
	size_t at = 0;
	int err = 0;

	while (at < k->used && !err) {
		at = take_key(k, at, &op, &has_value);
		err = change_alone(c, &op, bury_fn);
	}
	return err;
}

/* Another client may go on from here. */
static bool is_stopped(const struct aq_kv_client *c)
{
	return c->config.stop &&
	       atomic_load_explicit(c->config.stop, memory_order_relaxed);
}

/* Where to go on, after somebody who has copied a part. */
int kv_copied_read(struct kv_replica *replica, uint64_t *row)
{
	int err = kv_op_begin(replica);

	if (!err)
		err = kit_read_now(&replica->kit.main,
				   kv_lease_at(&replica->g, KV_LEASE_COPIED),
				   &replica->atom[KV_ATOM_OTHER], 8);
	if (!err)
		*row = u64_min(replica->atom[KV_ATOM_OTHER], replica->g.rows);
	return err;
}

static int write_copied(struct kv_replica *replica, uint64_t row)
{
	int err = kv_op_begin(replica);

	if (err)
		return err;
	replica->atom[KV_ATOM_OTHER] = row;
	return kit_write_now(&replica->kit.main, KV_POINT_STATE,
			     kv_lease_at(&replica->g, KV_LEASE_COPIED),
			     &replica->atom[KV_ATOM_OTHER], 8);
}

/* What is done with each key of a generation. */
struct walk {
	bool is_copy; /* else it buries graves */
	uint32_t generation;
	struct keys keys;
};

/* Some rows of a shard. *row is where they begin, and then where the next ones
 * do; the number of rows: there are none. */
static int walk_rows(struct aq_kv_client *c, struct walk *w, uint32_t shard,
		     uint64_t *row)
{
	struct kv_era *e = c->era[0];
	uint64_t rows = e->g.rows, batch = KIT_STAGE_BYTES / e->g.row_bytes;
	unsigned flags = AQ_KV_SCAN_KEYS |
			 (w->is_copy ? KV_SCAN_INLINE : KV_SCAN_GRAVES);
	int err = is_stopped(c) ? -ECANCELED : kv_client_begin(c);

	w->keys.used = 0;
	if (!err)
		err = kv_shard_ready(c, e, shard);
	if (!err)
		err = kv_replica_scan(kv_shard_master(&e->shard[shard]), row,
				      batch, flags, note_key, &w->keys);
	if (!err && w->is_copy && PLANTED(kv_copied))
		err = write_copied(kv_shard_master(&e->shard[shard]), rows);
	if (!err)
		err = w->is_copy ? copy_keys(c, &w->keys)
				 : bury_keys(c, &w->keys);
	if (*row == 0)
		*row = rows;
	/* A change may have found other eras. */
	if (!err && c->era[0]->g.generation != w->generation)
		err = KV_E_VIEW;
	if (!err && w->is_copy)
		err = kv_shard_ready(c, c->era[0], shard);
	if (!err && w->is_copy)
		err = write_copied(kv_shard_master(&c->era[0]->shard[shard]),
				   *row);
	return err;
}

/* Every key of the older era, or of the only one; or every grave. */
static int walk(struct aq_kv_client *c, bool is_copy)
{
	struct walk w = {.is_copy = is_copy,
			 .generation = c->era[0]->g.generation,
			 .keys = {.only_graves = !is_copy}};
	uint32_t s, shards = c->era[0]->g.shard_count;
	uint64_t row, rows = c->era[0]->g.rows;
	int err = 0;

	for (s = 0; s < shards && !err; s++) {
		row = 0;
		if (is_copy)
			err = kv_shard_ready(c, c->era[0], s);
		if (!err && is_copy)
			err = kv_copied_read(
				kv_shard_master(&c->era[0]->shard[s]), &row);
		while (!err && row < rows)
			err = walk_rows(c, &w, s, &row);
	}
	free(w.keys.bytes);
	return err;
}

int kv_copy_all(struct aq_kv_client *c)
{
	return walk(c, true);
}

int kv_bury_all(struct aq_kv_client *c)
{
	return walk(c, false);
}
