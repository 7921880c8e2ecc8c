/* SPDX-License-Identifier: Apache-2.0 */
/* Units of <aquifer/kv.h>: which replicas take part. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "kv_client_priv.h"

/* The older generation's value of a key that has no entry in the next. */
static int older(struct kv_unit *u, uint32_t i, struct aq_kv_change *ch)
{
	struct kv_mod m = {.key = u->keys[i].key,
			   .key_len = u->keys[i].key_len,
			   .ctx = u->ctx};

	return kv_grow_older(&m, ch);
}

static int same_fn(struct aq_kv_change *changes, void *user)
{
	const struct kv_unit *first = user;

	for (uint32_t i = 0; i < first->count; i++) {
		changes[i].verdict = first->change[i].verdict;
		changes[i].new_value = first->change[i].new_value;
		changes[i].new_value_len = first->change[i].new_value_len;
		changes[i].expire_at_ms = first->change[i].expire_at_ms;
	}
	return 0;
}

/* The same at the second copy, under the first one's locks. */
static int mirror(struct kv_unit *u)
{
	struct kv_change_ctx *x = u->ctx;
	struct kv_replica *second = x->route.second;
	struct kv_unit same = {.keys = u->keys,
			       .count = u->count,
			       .fn = same_fn,
			       .user = u,
			       .room = {.older = u->room.older, .ctx = x}};
	int err = kv_unit_init(&same);

	if (err)
		return err;
	second->outer = x->route.replica;
	err = kv_async_quiet(x->client, second);
	if (!err)
		err = kv_replica_unit(second, &same);
	second->outer = NULL;
	kv_unit_release(&same);
	/* Nothing has happened yet: find out who serves, and begin again. */
	if (err == -ESTALE || err == -EHOSTDOWN || err == -EAGAIN)
		err = KV_E_VIEW;
	return err;
}

static bool is_same_key(const struct aq_kv_key *a, const struct aq_kv_key *b)
{
	return a->key_len == b->key_len &&
	       memcmp(a->key, b->key, a->key_len) == 0;
}

static int check_keys(const struct aq_kv_key *keys, size_t count)
{
	if (count == 0)
		return error_set(-EINVAL, "a unit has at least one key");
	if (count > AQ_KV_UNIT_KEYS)
		return error_set(-E2BIG, "a unit has at most %d keys, not %zu",
				 AQ_KV_UNIT_KEYS, count);
	for (size_t i = 0; i < count; i++) {
		if (!keys[i].key || keys[i].key_len < 1 ||
		    keys[i].key_len > AQ_KV_KEY_MAX)
			return error_set(-EINVAL,
					 "a key has 1 to %d bytes, not %zu",
					 AQ_KV_KEY_MAX, keys[i].key_len);
		for (size_t k = 0; k < i; k++)
			if (is_same_key(&keys[i], &keys[k]))
				return error_set(-EINVAL,
						 "a key is in a unit twice");
	}
	return 0;
}

/* In every generation that there is now. */
static int check_shards(const struct aq_kv_client *c, const struct kv_unit *u)
{
	for (unsigned e = 0; e < KV_ERAS_MAX; e++) {
		uint32_t shards = c->era[e] ? c->era[e]->g.shard_count : 1;
		uint32_t first = 0;

		for (uint32_t i = 0; i < u->count && shards > 1; i++) {
			uint64_t hash = kv_client_hash(c, u->keys[i].key,
						       u->keys[i].key_len);
			uint32_t shard = kv_shard_of(hash, shards);

			if (i == 0)
				first = shard;
			if (shard != first)
				return error_set(-EXDEV,
						 "the keys are in different "
						 "parts of the table (%u and "
						 "%u of %u)",
						 first + 1, shard + 1, shards);
		}
	}
	return 0;
}

static int run_once(struct aq_kv_client *c, struct kv_unit *u)
{
	struct kv_change_ctx *x = u->ctx;
	struct kv_route *r = &x->route;
	int err = check_shards(c, u);

	if (!err)
		err = kv_client_route(
			c,
			kv_client_hash(c, u->keys[0].key, u->keys[0].key_len),
			true, r);
	if (!err)
		err = kv_async_settle(c, r->replica);
	if (!err)
		err = kv_room_check(c, r, u->count);
	if (err)
		return err;
	u->mirror = r->second ? mirror : NULL;
	u->older = r->older ? older : NULL;
	u->leaves_graves = r->leaves_graves;
	u->room = (struct kv_mod){.older = r->older ? kv_grow_older : NULL,
				  .mirror = r->second ? kv_pair_mirror : NULL,
				  .ctx = x};
	return kv_replica_unit(r->replica, u);
}

int aq_kv_unit(struct aq_kv_client *c, const struct aq_kv_key *keys,
	       size_t count, aq_kv_unit_fn fn, void *user)
{
	struct kv_change_ctx x = {.client = c};
	struct kv_unit u = {.keys = keys,
			    .count = (uint32_t)count,
			    .fn = fn,
			    .user = user,
			    .ctx = &x};
	bool has_waited = false;
	unsigned tries = 0;
	int err = check_keys(keys, count);

	if (!err)
		err = kv_unit_init(&u);
	if (err)
		return err;
	err = kv_client_begin(c);
	while (!err) {
		err = run_once(c, &u);
		if (UNLIKELY(err == -ENOSPC)) { /* nothing has happened */
			err = kv_room_await(c, &x.route, &has_waited);
			if (!err)
				continue;
		}
		/* Only these say that nothing has happened. */
		if (LIKELY(err != KV_E_VIEW && err != -EHOSTDOWN))
			break;
		err = kv_client_again(c, err, &tries);
	}
	kv_unit_release(&u);
	return err;
}
