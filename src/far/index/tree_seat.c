/* SPDX-License-Identifier: Apache-2.0 */
/* A client's slot: who it is, by which connection, and how it is ended. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "tree_priv.h"

enum {
	AT_ONCE = TREE_STAGE_BYTES / TREE_SLOT_BYTES,
	CLAIM_ROUNDS = 4,
	EPOCH_MASK = 0xffffff,
};

static int try_claim(struct tree_client *c, uint32_t slot,
		     const struct tree_slot *s)
{
	enum slot_verdict verdict = SLOT_GO_ON;
	struct slot_claim claim;
	struct slot_cas cas;
	uint64_t old;
	int err = slot_claim_begin(&claim, s, c->port.conn, &cas);

	while (!err && verdict == SLOT_GO_ON) {
		err = tree_cas_now(c, TREE_POINT_SLOT,
				   tree_slot_at(slot) + cas.offset, cas.compare,
				   cas.swap, &old);
		if (!err)
			verdict = slot_claim_next(&claim, old, &cas);
	}
	if (err)
		return err;
	if (verdict == SLOT_TAKEN)
		return -EAGAIN;
	c->slot = slot;
	c->epoch = (uint32_t)claim.epoch;
	c->has_slot = true;
	return 0;
}

/* A slot that stays CLAIMED for the failure time is taken back. If its client
 * is alive, its last step fails. */
static int unclaim(struct tree_client *c, uint32_t slot, uint64_t word)
{
	uint64_t old;

	trip_pause(&c->trip, c->failure_ns);
	return tree_cas_now(
		c, TREE_POINT_SLOT, tree_slot_at(slot), word,
		tree_slot_word(TREE_SLOT_FREE, (uint32_t)(word >> 8)), &old);
}

/* One of some; with `evict` also of those who are gone. -EBUSY: look again. */
static int claim_of(struct tree_client *c, uint32_t first, uint32_t count,
		    bool evict)
{
	const struct tree_slot *s = (const struct tree_slot *)c->stage;
	uint32_t start = (uint32_t)rng_below(&c->rng, count);
	int err = tree_read_now(c, tree_slot_at(first), c->stage,
				count * TREE_SLOT_BYTES);

	for (uint32_t i = 0; !err && i < count; i++) {
		uint32_t k = (start + i) % count;
		uint64_t word = le64_get(s[k].state);
		bool gone = false;

		if ((word & 0xff) == TREE_SLOT_FREE) {
			struct tree_slot seen = s[k];

			err = try_claim(c, first + k, &seen);
			return err == -EAGAIN ? -EBUSY : err;
		}
		if (!evict)
			continue;
		if ((word & 0xff) == TREE_SLOT_CLAIMED) {
			err = unclaim(c, first + k, word);
			return err ? err : -EBUSY;
		}
		err = tree_seat_is_gone(c, first + k, (uint32_t)(word >> 8),
					&gone);
		if (!err && gone)
			return -EBUSY;
	}
	return err ? err : -EAGAIN;
}

int tree_seat_claim(struct tree_client *c)
{
	int err = -EAGAIN;

	for (unsigned round = 0; round < CLAIM_ROUNDS; round++) {
		for (uint32_t at = 0; at < c->g.client_count; at += AT_ONCE) {
			uint32_t n = u32_min(AT_ONCE, c->g.client_count - at);

			do {
				err = claim_of(c, at, n, round > 0);
			} while (err == -EBUSY && !tree_is_late(c));
			if (err != -EAGAIN && err != -EBUSY)
				return err;
		}
	}
	return error_set(-EAGAIN, "the index has %u clients already",
			 c->g.client_count);
}

void tree_seat_leave(struct tree_client *c, uint32_t slot, uint32_t epoch)
{
	uint64_t old;

	/* Whoever needs the slot finds out by itself when this fails. */
	(void)!tree_cas_now(c, TREE_POINT_SLOT, tree_slot_at(slot),
			    tree_slot_word(TREE_SLOT_LIVE, epoch),
			    tree_slot_word(TREE_SLOT_FREE, epoch), &old);
}

/* The slot's connection, and its epoch, if that client still has the slot.
 * -EBADMSG: it is LIVE without a name, so nobody could end its client. */
static int slot_conn(struct tree_client *c, uint32_t slot, uint32_t *epoch,
		     char conn[SLOT_NAME_MAX + 1], bool *has_it)
{
	struct tree_slot *s = (struct tree_slot *)c->stage;
	uint64_t word;
	int err;

	*has_it = false;
	if (slot >= c->g.client_count)
		return 0;
	err = tree_read_now(c, tree_slot_at(slot), s, sizeof(*s));
	if (err)
		return err;
	word = le64_get(s->state);
	*has_it = (word & 0xff) == TREE_SLOT_LIVE &&
		  ((uint32_t)(word >> 8) & EPOCH_MASK) == (*epoch & EPOCH_MASK);
	*epoch = (uint32_t)(word >> 8);
	if (*has_it && !slot_name_get(s, conn))
		return error_set(-EBADMSG, "slot %u of the index has no name",
				 slot);
	return 0;
}

static int fence(struct tree_client *c, uint32_t slot, uint32_t epoch,
		 const char *conn)
{
	int err = c->port.fence(c->port.ctx, conn);

	if (err)
		return err;
	c->stats.fenced++;
	tree_seat_leave(c, slot, epoch);
	return c->trip.is_broken    ? -ESTALE
	       : c->trip.is_crashed ? -ESHUTDOWN
				    : 0;
}

int tree_seat_fence(struct tree_client *c, uint32_t slot, uint32_t epoch)
{
	char conn[SLOT_NAME_MAX + 1];
	bool has_it;
	int err = slot_conn(c, slot, &epoch, conn, &has_it);

	return err || !has_it ? err : fence(c, slot, epoch, conn);
}

int tree_seat_is_gone(struct tree_client *c, uint32_t slot, uint32_t epoch,
		      bool *gone)
{
	char conn[SLOT_NAME_MAX + 1];
	bool has_it;
	int err = slot_conn(c, slot, &epoch, conn, &has_it);

	if (err)
		return err;
	*gone = !has_it;
	if (!has_it)
		return 0;
	err = c->port.is_alive(c->port.ctx, conn);
	if (err)
		return err < 0 ? err : 0;
	err = fence(c, slot, epoch, conn);
	*gone = !err;
	return err;
}
