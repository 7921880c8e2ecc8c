/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The right to repair: a lease for each region of the words of locks, so that
 * what dead clients left in several regions is repaired at the same time by
 * several clients. Who needs more than one takes them in their order and renews
 * all of them, so nobody waits in a circle, and a long repair is not taken for
 * a dead one.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "kv_priv.h"

enum {
	RENEW_SHARE = 8, /* of the failure time */
};

static uint64_t lease_at(const struct kv_replica *c, uint32_t region)
{
	return kv_lease_at(&c->g, KV_LEASE_REGION) + 8ull * region;
}

static uint64_t my_lease(const struct kv_replica *c, uint64_t before)
{
	return kv_lease_word(c->kit.slot + 1, c->kit.epoch,
			     kv_lease_count(before) + 1);
}

static int lease_read(struct kv_replica *c, uint32_t region, uint64_t *word)
{
	int err = kit_read_now(&c->kit.main, lease_at(c, region),
			       &c->atom[KV_ATOM_LEASE], 8);

	if (!err)
		*word = c->atom[KV_ATOM_LEASE];
	return err;
}

/* The slot of who holds the lease; *is_same: it still has that slot. */
static int read_holder(struct kv_replica *c, uint64_t word, struct kv_slot *s,
		       bool *is_same)
{
	uint32_t slot = kv_lease_holder(word) - 1;
	int err;

	*is_same = false;
	if (slot >= c->g.client_count)
		return 0;
	err = kit_read_now(&c->kit.main, kit_slot_at(&c->kit, slot),
			   c->kit.stage, KV_SLOT_BYTES);
	if (err)
		return err;
	memcpy(s, c->kit.stage, sizeof(*s));
	*is_same = kit_slot_state(&s->client) != KIT_SLOT_FREE &&
		   (uint32_t)kit_slot_epoch(&s->client) == kv_lease_epoch(word);
	return 0;
}

/* The lease has not moved for long: its holder is dead, too. If another client
 * has its slot by now, it was fenced before. */
static int fence_holder(struct kv_replica *c, uint64_t word)
{
	struct kv_slot s;
	bool is_same;
	int err = read_holder(c, word, &s, &is_same);

	if (err || !is_same || kv_lease_holder(word) == c->kit.slot + 1)
		return err;
	return kv_fence(c, kv_lease_holder(word) - 1, &s);
}

/* Who had several leases need not be waited for at each. */
static int is_known_dead(struct kv_replica *c, uint64_t word, bool *is_dead)
{
	struct kv_slot s;
	bool is_same;
	int err = read_holder(c, word, &s, &is_same);

	*is_dead = !err &&
		   (!is_same || kit_slot_state(&s.client) == KIT_SLOT_FENCED);
	return err;
}

/* Until nobody has the lease, or its holder has not renewed it for twice the
 * failure time; *word is the last that was seen. */
static int watch(struct kv_replica *c, uint32_t region, uint64_t *word,
		 bool *is_dead)
{
	struct kit_watch w;
	uint64_t seen = 0;
	int err;

	*is_dead = false;
	kit_watch_start(&c->kit, &w);
	for (;;) {
		err = lease_read(c, region, word);
		if (err || !kv_lease_holder(*word))
			return err;
		if (*word != seen) {
			seen = *word;
			kit_watch_start(&c->kit, &w);
			err = is_known_dead(c, *word, is_dead);
		} else {
			*is_dead = kit_watch_is_late(&c->kit, &w,
						     2 * c->kit.failure_ns);
		}
		if (err || *is_dead)
			return err;
		err = kv_past_deadline(c);
		if (!err)
			err = kv_lease_renew(c);
		if (err)
			return err;
		kv_pause(c, KV_LEASE_POLL_NS);
	}
}

int kv_lease_watch(struct kv_replica *c, uint32_t region, bool *is_dead)
{
	uint64_t word;

	return watch(c, region, &word, is_dead);
}

static int take_one(struct kv_replica *c, uint32_t region)
{
	uint64_t word, old;
	bool is_dead;
	int err;

	do {
		err = watch(c, region, &word, &is_dead);
		if (!err && is_dead)
			err = fence_holder(c, word);
		if (err)
			return err;
		c->lease[region] = my_lease(c, word);
		err = kit_cas_now(&c->kit.main, KV_POINT_LEASE,
				  lease_at(c, region), word, c->lease[region],
				  &old);
	} while (!err && old != word);
	if (!err)
		c->leases |= 1u << region;
	return err;
}

int kv_leases_take(struct kv_replica *c, uint32_t regions)
{
	uint32_t region;
	int err = 0;

	ASSERT(!c->leases);
	c->lease_ns = kit_now_ns(&c->kit);
	for (region = 0; region < KV_REGIONS && !err; region++)
		if (regions & 1u << region)
			err = take_one(c, region);
	if (err)
		(void)!kv_leases_give(c); /* else their time ends by itself */
	return err;
}

/* Puts these words into the leases that are held. */
static int swap_all(struct kv_replica *c, const uint64_t to[KV_REGIONS])
{
	uint32_t i;
	int err;

	kit_begin(&c->kit);
	for (i = 0; i < KV_REGIONS; i++)
		if (c->leases & 1u << i)
			kit_cas(&c->kit.main, KV_POINT_LEASE, lease_at(c, i),
				c->lease[i], to[i],
				&c->atom[KV_ATOM_GROUP + i]);
	err = kit_run(&c->kit);
	for (i = 0; i < KV_REGIONS && !err; i++)
		if (c->leases & 1u << i &&
		    c->atom[KV_ATOM_GROUP + i] != c->lease[i])
			err = error_set(-ESTALE,
					"somebody else repairs the table");
	return err;
}

STATIC_ASSERT((int)KV_REGIONS <= (int)KV_GROUPS, "answers have room");

int kv_lease_renew(struct kv_replica *c)
{
	uint64_t to[KV_REGIONS] = {0};
	uint32_t i;
	int err;

	if (!c->leases ||
	    kit_now_ns(&c->kit) - c->lease_ns < c->kit.failure_ns / RENEW_SHARE)
		return 0;
	for (i = 0; i < KV_REGIONS; i++)
		to[i] = my_lease(c, c->lease[i]);
	c->lease_ns = kit_now_ns(&c->kit);
	err = swap_all(c, to);
	if (!err)
		memcpy(c->lease, to, sizeof(to));
	return err;
}

int kv_leases_give(struct kv_replica *c)
{
	uint64_t to[KV_REGIONS];
	uint32_t i;
	int err;

	for (i = 0; i < KV_REGIONS; i++)
		to[i] = kv_lease_word(0, 0, kv_lease_count(c->lease[i]));
	err = c->leases && !kit_stopped(&c->kit) ? swap_all(c, to) : 0;
	c->leases = 0;
	return err == -ESTALE ? 0 : err; /* it is another's, who goes on */
}
