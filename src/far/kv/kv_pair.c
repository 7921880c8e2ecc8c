/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two copies of a shard on different nodes.
 *
 * The first serves. A change takes the key's locks there, is made at the second
 * (which has locks of its own), and then at the first, which is when it
 * happens. So the second has everything that anybody may have seen or been told
 * of.
 *
 * When the second does not answer, the first is made the ONLY one before
 * anything is acknowledged without it. When the first does not, the second
 * becomes RISING, which everybody who relies on the first looks for within a
 * term; when the terms are over it is the ONLY one. Nodes are taken for dead
 * when neither their NIC nor their control interface answers for the failure
 * time: two nodes that different clients cannot reach at the same time are not
 * covered.
 *
 * A client that is fenced at the first is fenced at the second with it (its
 * slot names both connections), so nothing of it comes late.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/plant.h"
#include "kv_client_priv.h"

enum {
	PATIENCE_STEPS = 16, /* of the failure time */
};

/* ---- who serves --------------------------------------------------------- */

static bool is_gone(int err)
{
	return err == -EHOSTDOWN || err == -ENOENT;
}

/* Tries again to connect to a copy, with patience: slow is not dead. One that
 * does not count any more needs none. */
static int reach(struct aq_kv_client *c, struct kv_era *e, uint32_t shard,
		 uint32_t copy)
{
	struct kv_shard *s = &e->shard[shard];
	struct kv_replica *other = s->replica[!copy];
	uint64_t end = kit_now_ns(&other->kit) + other->kit.failure_ns;
	uint64_t wait = other->kit.failure_ns / PATIENCE_STEPS + 1;
	int gone = -EHOSTDOWN, err = kv_state_adopt(other);

	if (err)
		return err;
	if (kv_state_role(other->expect) == KV_ROLE_ONLY)
		return gone;
	while (is_gone(gone) && kit_now_ns(&other->kit) < end) {
		kv_pause(other, wait);
		gone = kv_era_reach(c, e, shard, copy);
	}
	return gone;
}

static enum kv_role role_of(const struct kv_replica *replica)
{
	return kv_state_role(replica->expect);
}

/* Keeps the rest. */
static int set_role(struct kv_replica *replica, enum kv_role role)
{
	return kv_state_move(
		replica, kv_state_word(role, kv_state_phase(replica->expect),
				       kv_state_next(replica->expect)));
}

static int rise(struct kv_replica *second)
{
	int err = 0;

	if (role_of(second) == KV_ROLE_SECOND)
		err = set_role(second, KV_ROLE_RISING);
	if (err)
		return err;
	kv_state_outlast(second);
	return set_role(second, KV_ROLE_ONLY);
}

/* Both answer. */
static int settle_both(struct kv_shard *s)
{
	enum kv_role a = role_of(s->replica[0]), b = role_of(s->replica[1]);

	s->is_paired = a == KV_ROLE_FIRST && b == KV_ROLE_SECOND;
	s->master = b == KV_ROLE_ONLY;
	if (s->is_paired || (a == KV_ROLE_ONLY) != (b == KV_ROLE_ONLY))
		return 0;
	if (b == KV_ROLE_RISING)
		return rise(s->replica[1]);
	return error_set(-EREMOTEIO,
			 "both copies of a part of the table were used alone; "
			 "drop one of them");
}

static int settle_one(struct kv_shard *s, unsigned copy)
{
	struct kv_replica *replica = s->replica[copy];

	s->is_paired = false;
	s->master = copy;
	if (role_of(replica) == KV_ROLE_ONLY)
		return 0;
	return copy == 0 ? set_role(replica, KV_ROLE_ONLY) : rise(replica);
}

/* What the slots of the first copy name: both connections. */
static int name_both(struct kv_shard *s)
{
	char both[KIT_SLOT_NAME_MAX];
	const char *mine = s->replica[0]->kit.remote.conn;
	int n = (int)strcspn(mine, "+"), len;

	len = snprintf(both, sizeof(both), "%.*s+%s", n, mine,
		       s->replica[1]->kit.remote.conn);
	if (len >= (int)sizeof(both))
		return error_set(-EPROTO, "a connection's name is too long");
	if (strcmp(both, mine) == 0)
		return 0;
	return kit_slot_rename(&s->replica[0]->kit, both);
}

static int settle_pair(struct aq_kv_client *c, struct kv_era *e, uint32_t shard)
{
	struct kv_shard *s = &e->shard[shard];
	int err[2] = {kv_era_reach(c, e, shard, 0),
		      kv_era_reach(c, e, shard, 1)},
	    one;
	unsigned i;

	for (i = 0; i < 2; i++) {
		if (is_gone(err[i]) && !err[!i])
			err[i] = reach(c, e, shard, i);
		if (!err[i])
			err[i] = kv_state_adopt(s->replica[i]);
		if (err[i] && !is_gone(err[i]))
			return err[i] == -ESTALE ? KV_E_VIEW : err[i];
	}
	if (err[0] && err[1])
		return error_prefix(-EHOSTDOWN, "both copies: ");
	one = err[0]   ? settle_one(s, 1)
	      : err[1] ? settle_one(s, 0)
		       : settle_both(s);
	if (!one && s->is_paired)
		one = name_both(s);
	if (!one)
		s->is_ready = true;
	if (!one && !s->is_paired && c->config.wish)
		(void)c->config.wish(
			c->config.wish_ctx,
			&(struct kv_wish){.kind = KV_WISH_COPY,
					  .generation = e->g.generation});
	return one == -ESTALE ? KV_E_VIEW : one;
}

int kv_shard_ready(struct aq_kv_client *c, struct kv_era *e, uint32_t shard)
{
	struct kv_shard *s = &e->shard[shard];
	int err;

	if (e->g.copy_count == 1) {
		err = kv_era_reach(c, e, shard, 0);
		/* Something was seen there that nobody has looked into yet. */
		if (!err && s->replica[0]->state != s->replica[0]->expect)
			err = kv_state_adopt(s->replica[0]);
		return err == -ESTALE ? KV_E_VIEW : err;
	}
	if (s->is_ready && !kv_shard_master(s)->kit.is_broken &&
	    kv_shard_master(s)->state == kv_shard_master(s)->expect) {
		struct kv_replica *second = kv_shard_second(s);

		if (!second ||
		    !kv_state_is_due(second, kit_now_ns(&second->kit)))
			return 0;
		err = second->kit.is_broken ? KV_E_VIEW
					    : kv_state_confirm(second);
		if (!err)
			return 0;
	}
	s->is_ready = false;
	return settle_pair(c, e, shard);
}

/* ---- changes ------------------------------------------------------------ */

static int same_fn(struct aq_kv_change *ch, void *user)
{
	const struct aq_kv_change *first = user;

	ch->verdict = first->verdict;
	ch->new_value = first->new_value;
	ch->new_value_len = first->new_value_len;
	ch->expire_at_ms = first->expire_at_ms;
	return 0;
}

int kv_pair_mirror(struct kv_mod *m, const struct aq_kv_change *ch)
{
	struct kv_change_ctx *x = m->ctx;
	struct aq_kv_change copy = *ch;
	struct kv_mod same = {.key = m->key,
			      .key_len = m->key_len,
			      .fn = same_fn,
			      .user = &copy};
	struct kv_replica *second = x->route.second;
	int err;

	if (PLANTED(kv_mirror))
		return 0;
	second->outer = x->route.replica;
	err = kv_async_quiet(x->client, second);
	if (!err)
		err = kv_replica_change(second, &same);
	second->outer = NULL;
	/* Nothing has happened yet: find out who serves, and begin again. */
	if (err == -ESTALE || err == -EHOSTDOWN || err == -EAGAIN)
		err = KV_E_VIEW;
	return err;
}
