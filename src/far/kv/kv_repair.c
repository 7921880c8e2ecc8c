/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding out who is dead, and seeing to it that it is repaired (kv_mend.c).
 *
 * Locks are single bits and do not say whose they are; but who holds one has it
 * in its intent, and a client that lives changes its intent often. So
 * the holder of a lock that stays is among those whose intents name it and do
 * not change. These are fenced: marked in their slots, and their connections
 * ended at the memory node, after which nothing of them is executed any more.
 *
 * Whether a lock that is set was set by the dead: all slots, the lock and all
 * slots again are read in one batch. If a living client had the lock when it
 * was read, then one of its two looks names it, or it is among the locks that
 * the client tried for in between. While the lease is held, whoever meets a
 * lock that it cannot have steps back, so this comes to an end.
 *
 * Slow is not dead: silence counts by the clock and by looks, so a machine that
 * stalled as a whole has not made anybody silent; and who repairs renews its
 * lease, so a long repair is not taken for a dead one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kv_priv.h"

enum {
	WATCH_STEPS = 64,
};

static int read_slots(struct kv_replica *c, struct kv_slot *out)
{
	uint64_t bytes = (uint64_t)c->g.client_count * KV_SLOT_BYTES;
	int err = kit_big_reserve(&c->kit, 2 * bytes);

	if (!err)
		err = kit_read_now(&c->kit.main, c->g.slot_offset, c->kit.big,
				   bytes);
	if (!err)
		memcpy(out, c->kit.big, bytes);
	return err;
}

static enum kit_slot_state state_of(const struct kv_slot *s)
{
	return kit_slot_state(&s->client);
}

/* Which of these locks the client names. One that is being written just now
 * is not silent; it will be looked at again. */
static uint64_t names(const struct kv_slot *s, uint64_t word, uint64_t mask)
{
	uint32_t i, n = le32_get(s->intent.group_count);
	uint64_t hit = 0;

	if (!kv_intent_is_whole(&s->intent))
		return mask;
	for (i = 0; i < n; i++)
		if (le32_get(s->intent.group[i].word) == word)
			hit |= le64_get(s->intent.group[i].mask) & mask;
	return hit;
}

static bool is_same(const struct kv_slot *a, const struct kv_slot *b)
{
	return le64_get(a->client.state) == le64_get(b->client.state) &&
	       memcmp(&a->intent, &b->intent, sizeof(a->intent)) == 0;
}

static int read_lock(struct kv_replica *c, uint64_t word, uint64_t *value)
{
	int err = kit_read_now(&c->kit.locks, kv_lock_at(word),
			       &c->atom[KV_ATOM_OTHER], 8);

	if (!err)
		*value = c->atom[KV_ATOM_OTHER];
	return err;
}

/* ---- fencing ------------------------------------------------------------ */

int kv_fence(struct kv_replica *c, uint32_t slot, const struct kv_slot *s)
{
	char conn[KIT_SLOT_NAME_MAX + 1];
	int err;

	if (!kit_slot_name_get(&s->client, conn))
		return error_set(-EBADMSG, "slot %u of the table has no name",
				 slot);
	if (state_of(s) == KIT_SLOT_LIVE) {
		err = kit_slot_move(&c->kit, KV_POINT_FENCE, slot,
				    le64_get(s->client.state), KIT_SLOT_FENCED);
		if (err) /* -EAGAIN: it has gone by itself */
			return err == -EAGAIN ? 0 : err;
		c->stats.fenced++;
	}
	return c->kit.remote.fence(c->kit.remote.ctx, conn);
}

/* ---- repair ------------------------------------------------------------- */

struct ward { /* what a repair works with */
	struct kv_slot *before;
	struct kv_slot *first;
	struct kv_slot *now;
	struct kv_dead *dead;
	bool *is_taken; /* by slot: it is among the dead */
	unsigned count;
};

static int ward_init(struct kv_replica *c, struct ward *w)
{
	*w = (struct ward){
		.before = calloc(c->g.client_count, sizeof(w->before[0])),
		.first = calloc(c->g.client_count, sizeof(w->first[0])),
		.now = calloc(c->g.client_count, sizeof(w->now[0])),
		.dead = calloc(c->g.client_count, sizeof(w->dead[0])),
		.is_taken = calloc(c->g.client_count, 1)};
	return w->before && w->first && w->now && w->dead && w->is_taken
		       ? 0
		       : error_set(-ENOMEM, "no memory for a repair");
}

static void ward_release(struct ward *w)
{
	free(w->before);
	free(w->first);
	free(w->now);
	free(w->dead);
	free(w->is_taken);
}

/* Where the locks are that the client names. Who names none belongs to one
 * region all the same, so that two do not clean up after it. */
static uint32_t regions_of(const struct kv_replica *c, uint32_t slot,
			   const struct kv_slot *s)
{
	uint32_t i, n = le32_get(s->intent.group_count), regions = 0;

	if (!kv_intent_is_whole(&s->intent))
		return KV_REGIONS_ALL;
	for (i = 0; i < n; i++)
		regions |= 1u << kv_region_of(
				   &c->g, le32_get(s->intent.group[i].word));
	return n ? regions : 1u << slot % KV_REGIONS;
}

static void take_dead(struct ward *w, uint32_t slot)
{
	struct kv_dead *d = &w->dead[w->count++];
	uint32_t k;

	*d = (struct kv_dead){.slot = slot,
			      .epoch = kit_slot_epoch(&w->now[slot].client),
			      .intent = w->now[slot].intent};
	d->set.count = u32_min(le32_get(d->intent.group_count), KV_GROUPS);
	for (k = 0; k < d->set.count; k++) {
		d->set.group[k].word = le32_get(d->intent.group[k].word);
		d->set.group[k].mask = le64_get(d->intent.group[k].mask);
	}
	w->is_taken[slot] = true;
}

/*
 * All that are fenced, also by somebody who died over it, and name locks in the
 * regions whose leases are held. *regions grows by those that are also needed
 * for one of them: locks that two of the dead name are looked at together.
 */
static int collect(struct kv_replica *c, struct ward *w, uint32_t *regions)
{
	uint32_t i;
	int err = 0;

	w->count = 0;
	memset(w->is_taken, 0, c->g.client_count);
	for (i = 0; i < c->g.client_count && !err; i++) {
		if (state_of(&w->now[i]) != KIT_SLOT_FENCED ||
		    !(regions_of(c, i, &w->now[i]) & *regions))
			continue;
		err = kv_fence(c, i, &w->now[i]);
		if (err)
			break;
		/* Only now its intent cannot change any more. */
		err = kit_read_now(&c->kit.main, kit_slot_at(&c->kit, i),
				   c->kit.stage, KV_SLOT_BYTES);
		memcpy(&w->now[i], c->kit.stage, KV_SLOT_BYTES);
		if (err || state_of(&w->now[i]) != KIT_SLOT_FENCED)
			continue;
		*regions |= regions_of(c, i, &w->now[i]);
		take_dead(w, i);
	}
	return err;
}

/* Whether the client tried for one of these locks between two looks. */
static bool tried(const struct kv_slot *a, const struct kv_slot *b,
		  uint64_t word, uint64_t mask)
{
	uint32_t last = le32_get(b->intent.recent_count), i;
	uint32_t n = last - le32_get(a->intent.recent_count);

	if (!kv_intent_is_whole(&a->intent) ||
	    !kv_intent_is_whole(&b->intent) || n > KV_RECENT)
		return true; /* who knows */
	for (i = 1; i <= n; i++) {
		uint32_t lock =
			le32_get(b->intent.recent[(last - i) % KV_RECENT]);

		if (lock / 64 == word && mask & 1ull << (lock % 64))
			return true;
	}
	return false;
}

/* Also one that another client has fenced just now, as far as we know: that its
 * connection has ended is only known of those that were collected here. */
static bool may_act(const struct kv_slot *s)
{
	return state_of(s) == KIT_SLOT_LIVE || state_of(s) == KIT_SLOT_FENCED;
}

/* Slots, lock, slots: into w->first, *value, w->now. */
static int look(struct kv_replica *c, struct ward *w, uint64_t word,
		uint64_t *value)
{
	uint64_t bytes = (uint64_t)c->g.client_count * KV_SLOT_BYTES;
	int err = kit_big_reserve(&c->kit, 2 * bytes);

	if (err)
		return err;
	kit_begin(&c->kit);
	kit_read(&c->kit.main, c->g.slot_offset, c->kit.big, bytes);
	kit_read(&c->kit.locks, kv_lock_at(word), &c->atom[KV_ATOM_OTHER], 8);
	kit_read(&c->kit.main, c->g.slot_offset, c->kit.big + bytes, bytes);
	err = kit_run(&c->kit);
	if (err)
		return err;
	*value = c->atom[KV_ATOM_OTHER];
	memcpy(w->first, c->kit.big, bytes);
	memcpy(w->now, c->kit.big + bytes, bytes);
	return 0;
}

/* Whether a living client may have had one of the locks that are set; who has
 * done nothing for long is fenced on the way. */
static int look_round(struct kv_replica *c, struct ward *w, struct kv_dead *d,
		      unsigned g, bool is_late, bool *is_clear)
{
	uint64_t word = d->set.group[g].word, mask = d->set.group[g].mask;
	uint64_t value;
	uint32_t i;
	int err = look(c, w, word, &value);

	if (err)
		return err;
	*is_clear = true;
	if (c->g.flags & KV_WORD_LOCKS) {
		d->holds[g] =
			value == kv_lock_holder(d->slot, (uint32_t)d->epoch);
		return 0;
	}
	d->holds[g] = (value & mask) == mask;
	for (i = 0; d->holds[g] && i < c->g.client_count && !err; i++) {
		const struct kv_slot *now = &w->now[i];

		if (i == c->kit.slot || w->is_taken[i] ||
		    (!may_act(now) && !may_act(&w->first[i])))
			continue;
		if (!names(now, word, mask) &&
		    !names(&w->first[i], word, mask) &&
		    !tried(&w->first[i], now, word, mask))
			continue;
		*is_clear = false;
		/* It names locks of ours, so it is to be collected, too. */
		if (state_of(now) == KIT_SLOT_FENCED)
			return -EAGAIN;
		if (is_late && state_of(now) == KIT_SLOT_LIVE &&
		    is_same(now, &w->before[i]))
			err = kv_fence(c, i, now);
	}
	return err;
}

/* -EAGAIN: somebody else had to be fenced; begin again. */
static int wait_clear(struct kv_replica *c, struct ward *w, struct kv_dead *d,
		      unsigned g)
{
	uint64_t fenced = c->stats.fenced;
	bool is_clear = false, is_late;
	struct kit_watch watch;
	int err = read_slots(c, w->before);

	kit_watch_start(&c->kit, &watch);
	while (!err) {
		is_late = kit_watch_is_late(&c->kit, &watch, c->kit.failure_ns);
		err = look_round(c, w, d, g, is_late, &is_clear);
		if (err || is_clear)
			break;
		if (c->stats.fenced != fenced)
			return -EAGAIN;
		if (is_late) {
			kit_watch_start(&c->kit, &watch);
			err = read_slots(c, w->before);
		}
		if (!err)
			err = kv_lease_renew(c);
		if (!err)
			err = kv_past_deadline(c);
		if (!err)
			kv_pause(c, KV_LEASE_POLL_NS);
	}
	return err;
}

/* With leases; *regions are those that it needs, which may be more: then
 * nothing was done. */
static int repair(struct kv_replica *c, struct ward *w, uint32_t *regions)
{
	unsigned i, k;
	int err;

	do {
		err = read_slots(c, w->now);
		if (!err)
			err = collect(c, w, regions);
		if (!err && *regions != c->leases)
			return 0;
		for (i = 0; i < w->count && !err; i++) {
			struct kv_dead *d = &w->dead[i];

			d->is_held = d->set.count > 0;
			for (k = 0; k < d->set.count && !err; k++) {
				err = wait_clear(c, w, d, k);
				d->is_held &= d->holds[k];
			}
		}
	} while (err == -EAGAIN);
	if (!err && w->count)
		err = kv_mend(c, w->dead, w->count);
	return err;
}

/* Those of `before` that still say the same are fenced. */
static int fence_silent(struct kv_replica *c, struct ward *w)
{
	uint32_t i;
	int err = read_slots(c, w->now);

	for (i = 0; i < c->g.client_count && !err; i++)
		if (i != c->kit.slot &&
		    state_of(&w->before[i]) == KIT_SLOT_LIVE &&
		    is_same(&w->now[i], &w->before[i]))
			err = kv_fence(c, i, &w->now[i]);
	return err;
}

/* Leases are taken in the order of their regions, so who finds out that it
 * needs more begins anew. What it has fenced stays fenced, and any client may
 * be the one to repair it. */
static int with_leases(struct kv_replica *c, struct ward *w, uint32_t regions,
		       bool has_suspects)
{
	bool is_over = false;
	int err = 0, give;

	while (!err && !is_over) {
		err = kv_leases_take(c, regions);
		if (err)
			return err;
		if (has_suspects)
			err = fence_silent(c, w);
		has_suspects = false;
		if (!err)
			err = repair(c, w, &regions);
		is_over = regions == c->leases;
		give = kv_leases_give(c);
		err = err ? err : give;
	}
	return err;
}

/* Only the suspects stay in `before`; whether there are any. */
static bool pick_suspects(struct kv_replica *c, struct ward *w, uint64_t word,
			  uint64_t mask)
{
	bool any = false;
	uint32_t i;

	for (i = 0; i < c->g.client_count; i++) {
		enum kit_slot_state s = state_of(&w->now[i]);
		bool is_silent = is_same(&w->now[i], &w->before[i]);

		if (i != c->kit.slot &&
		    (s == KIT_SLOT_LIVE || s == KIT_SLOT_FENCED) &&
		    names(&w->now[i], word, mask) &&
		    (is_silent || s == KIT_SLOT_FENCED))
			any = true;
		else
			memset(&w->before[i], 0, sizeof(w->before[i]));
	}
	return any;
}

/* Watches the lock for the failure time; *value is what stays set. */
static int watch_lock(struct kv_replica *c, uint64_t word, uint64_t mask,
		      uint64_t *value)
{
	struct kit_watch w;
	int err;

	kit_watch_start(&c->kit, &w);
	do {
		err = read_lock(c, word, value);
		if (err)
			return err;
		*value &= mask;
		if (*value)
			kv_pause(c, c->kit.failure_ns / WATCH_STEPS + 1);
	} while (*value && !kit_watch_is_late(&c->kit, &w, c->kit.failure_ns));
	return 0;
}

int kv_recover(struct kv_replica *c, uint64_t word, uint64_t mask)
{
	struct ward w;
	uint64_t value = 0;
	int err = ward_init(c, &w);

	if (!err)
		err = read_slots(c, w.before);
	if (!err)
		err = watch_lock(c, word, mask, &value);
	if (!err && value) {
		err = read_slots(c, w.now);
		if (!err &&
		    pick_suspects(c, &w, word,
				  c->g.flags & KV_WORD_LOCKS ? UINT64_MAX
							     : value))
			err = with_leases(
				c, &w, 1u << kv_region_of(&c->g, word), true);
	}
	ward_release(&w);
	return err;
}

int kv_lease_wait(struct kv_replica *c, uint64_t word)
{
	uint32_t region = kv_region_of(&c->g, word);
	bool is_dead;
	struct ward w;
	int err = kv_lease_watch(c, region, &is_dead);

	if (err || !is_dead)
		return err;
	err = ward_init(c, &w);
	if (!err)
		err = with_leases(c, &w, 1u << region, false);
	ward_release(&w);
	return err;
}

/* Who died on its way to a slot had nothing yet. If it is alive after all, its
 * last step fails. */
static int free_claimed(struct kv_replica *c, struct ward *w)
{
	uint64_t word;
	bool any = false;
	uint32_t i;
	int err = 0;

	for (i = 0; i < c->g.client_count; i++)
		any |= i != c->kit.slot &&
		       state_of(&w->before[i]) == KIT_SLOT_CLAIMED;
	if (!any)
		return 0;
	kv_pause(c, kv_nameless_ns(c));
	err = read_slots(c, w->now);
	for (i = 0; i < c->g.client_count && !err; i++) {
		word = le64_get(w->now[i].client.state);
		if (i == c->kit.slot ||
		    state_of(&w->now[i]) != KIT_SLOT_CLAIMED ||
		    !is_same(&w->now[i], &w->before[i]))
			continue;
		err = kit_slot_move(&c->kit, KV_POINT_FENCE, i, word,
				    KIT_SLOT_FREE);
		if (err == -EAGAIN) /* it is alive after all */
			err = 0;
	}
	return err;
}

/* Only those stay in `before` whose connections are gone. */
static bool pick_gone(struct kv_replica *c, struct ward *w)
{
	bool any = false;
	uint32_t i;

	for (i = 0; i < c->g.client_count; i++) {
		struct kv_slot *s = &w->before[i];
		char conn[KIT_SLOT_NAME_MAX + 1];

		if (i != c->kit.slot && state_of(s) == KIT_SLOT_LIVE &&
		    kit_slot_name_get(&s->client, conn) &&
		    c->kit.remote.is_alive(c->kit.remote.ctx, conn) == 0)
			any = true;
		else if (state_of(s) == KIT_SLOT_FENCED)
			any = true;
		else
			memset(s, 0, sizeof(*s));
	}
	return any;
}

int kv_reap(struct kv_replica *c)
{
	struct ward w;
	int err = ward_init(c, &w);

	if (!err)
		err = read_slots(c, w.before);
	if (!err)
		err = free_claimed(c, &w);
	if (!err && pick_gone(c, &w))
		err = with_leases(c, &w, KV_REGIONS_ALL, true);
	ward_release(&w);
	return err;
}
