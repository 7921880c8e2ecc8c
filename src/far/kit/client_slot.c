/* SPDX-License-Identifier: Apache-2.0 */
/* A client's slot: how it is claimed and left, and how another client, by its
 * slot, is found to be gone or is ended. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "kit.h"

enum {
	CLAIM_ROUNDS = 4, /* the first one looks for free slots only */
};

static const struct kit_slot *staged(const struct kit_client *k, uint32_t i)
{
	return (const struct kit_slot *)(k->stage +
					 (size_t)i *
						 k->config.slots.slot_bytes);
}

int kit_slot_move(struct kit_client *k, int point, uint32_t slot, uint64_t from,
		  enum kit_slot_state to)
{
	uint64_t word = kit_slot_word(to, from >> KIT_SLOT_STATE_BITS);

	ASSERT(slot < k->config.slots.count);
	ASSERT(kit_slot_may_move(from, word));
	return kit_swap_now(&k->main, point, kit_slot_at(k, slot), from, word);
}

/* ---- taking one --------------------------------------------------------- */

int kit_slot_take(struct kit_client *k, uint32_t slot,
		  const struct kit_slot *seen)
{
	enum kit_slot_verdict verdict = KIT_SLOT_GO_ON;
	struct kit_slot_claim claim;
	struct kit_slot_cas cas;
	uint64_t old;
	int err = kit_slot_claim_begin(&claim, seen, k->remote.conn, &cas);

	ASSERT(!k->has_slot && slot < k->config.slots.count);
	while (!err && verdict == KIT_SLOT_GO_ON) {
		ASSERT(cas.offset || kit_slot_may_move(cas.compare, cas.swap));
		err = kit_cas_now(&k->main, k->config.points.claim,
				  kit_slot_at(k, slot) + cas.offset,
				  cas.compare, cas.swap, &old);
		if (!err)
			verdict = kit_slot_claim_next(&claim, old, &cas);
	}
	if (err)
		return err;
	if (verdict == KIT_SLOT_TAKEN)
		return -EAGAIN;
	k->slot = slot;
	k->epoch = (uint32_t)claim.epoch;
	k->has_slot = true;
	return 0;
}

/* A slot that stays CLAIMED for the failure time is taken back. If its client
 * is alive, its last step fails. */
static int take_back(struct kit_client *k, uint32_t slot, uint64_t word)
{
	int err;

	kit_pause(k, k->failure_ns);
	err = kit_slot_move(k, k->config.points.fence, slot, word,
			    KIT_SLOT_FREE);
	return err == -EAGAIN ? 0 : err;
}

/* One of some; with `evict` also of those who are gone. -EBUSY: look again. */
static int claim_of(struct kit_client *k, uint32_t first, uint32_t count,
		    bool evict)
{
	uint32_t start = (uint32_t)rng_below(&k->rng, count);
	int err = kit_read_now(&k->main, kit_slot_at(k, first), k->stage,
			       (uint64_t)count * k->config.slots.slot_bytes);

	for (uint32_t i = 0; !err && i < count; i++) {
		uint32_t at = (start + i) % count;
		struct kit_slot seen = *staged(k, at);
		bool gone = false;

		if (kit_slot_state(&seen) == KIT_SLOT_FREE) {
			err = kit_slot_take(k, first + at, &seen);
			return err == -EAGAIN ? -EBUSY : err;
		}
		if (!evict)
			continue;
		if (kit_slot_state(&seen) == KIT_SLOT_CLAIMED) {
			err = take_back(k, first + at, le64_get(seen.state));
			return err ? err : -EBUSY;
		}
		err = kit_slot_is_gone(k, first + at,
				       (uint32_t)kit_slot_epoch(&seen), &gone);
		if (!err && gone)
			return -EBUSY;
	}
	return err ? err : -EAGAIN;
}

int kit_slot_claim(struct kit_client *k)
{
	uint32_t count = k->config.slots.count;
	uint32_t at_once = KIT_STAGE_BYTES / k->config.slots.slot_bytes;
	int err = -EAGAIN;

	for (unsigned round = 0; round < CLAIM_ROUNDS; round++) {
		for (uint32_t at = 0; at < count; at += at_once) {
			uint32_t n = u32_min(at_once, count - at);

			do
				err = claim_of(k, at, n, round > 0);
			while (err == -EBUSY && !kit_is_late(k));
			if (err != -EAGAIN && err != -EBUSY)
				return err;
		}
	}
	return error_set(-EAGAIN, "%s has %u clients already", k->config.what,
			 count);
}

int kit_slot_rename(struct kit_client *k, const char *conn)
{
	le64 words[KIT_SLOT_NAME_WORDS];
	int err = kit_slot_name_put(conn, k->epoch, words);

	ASSERT(k->has_slot);
	if (err)
		return err;
	snprintf(k->remote.conn, sizeof(k->remote.conn), "%s", conn);
	memcpy(k->stage, words, sizeof(words));
	return kit_write_now(&k->main, k->config.points.claim,
			     kit_slot_at(k, k->slot) +
				     offsetof(struct kit_slot, name),
			     k->stage, sizeof(words));
}

int kit_slot_leave(struct kit_client *k, uint32_t slot, uint32_t epoch)
{
	if (k->has_slot && slot == k->slot && epoch == k->epoch)
		k->has_slot = false;
	return kit_slot_move(k, k->config.points.leave, slot,
			     kit_slot_word(KIT_SLOT_LIVE, epoch),
			     KIT_SLOT_FREE);
}

/* ---- other clients ------------------------------------------------------ */

/* Whether the client of that epoch still has the slot, which is then read.
 * -EBADMSG: the slot is LIVE without a name, so nobody could end its client. */
static int look_at(struct kit_client *k, uint32_t slot, uint32_t epoch,
		   char conn[KIT_SLOT_NAME_MAX + 1], bool *has_it)
{
	uint64_t mask = k->config.slots.epoch_mask;
	int err;

	*has_it = false;
	if (slot >= k->config.slots.count)
		return 0;
	err = kit_read_now(&k->main, kit_slot_at(k, slot), k->who,
			   k->config.slots.slot_bytes);
	if (err)
		return err;
	*has_it = kit_slot_state(k->who) == KIT_SLOT_LIVE &&
		  (kit_slot_epoch(k->who) & mask) == (epoch & mask);
	if (*has_it && !kit_slot_name_get(k->who, conn))
		return error_set(-EBADMSG, "slot %u of %s has no name", slot,
				 k->config.what);
	return 0;
}

static int fence(struct kit_client *k, uint32_t slot, const char *conn)
{
	uint32_t epoch = (uint32_t)kit_slot_epoch(k->who);
	int err = k->remote.fence(k->remote.ctx, conn);

	if (err)
		return err;
	k->fenced++;
	(void)kit_slot_leave(k, slot, epoch);
	return kit_stopped(k);
}

int kit_slot_fence(struct kit_client *k, uint32_t slot, uint32_t epoch)
{
	char conn[KIT_SLOT_NAME_MAX + 1];
	bool has_it;
	int err = look_at(k, slot, epoch, conn, &has_it);

	return err || !has_it ? err : fence(k, slot, conn);
}

int kit_slot_is_gone(struct kit_client *k, uint32_t slot, uint32_t epoch,
		     bool *gone)
{
	char conn[KIT_SLOT_NAME_MAX + 1];
	bool has_it;
	int err = look_at(k, slot, epoch, conn, &has_it);

	if (err)
		return err;
	*gone = !has_it;
	if (!has_it)
		return 0;
	err = k->remote.is_alive(k->remote.ctx, conn);
	if (err)
		return err < 0 ? err : 0;
	err = fence(k, slot, conn);
	*gone = !err;
	return err;
}
