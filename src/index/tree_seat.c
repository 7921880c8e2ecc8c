/* SPDX-License-Identifier: Apache-2.0 */
/* A client's slot: who it is, by which connection, and how it is ended. */
#include <errno.h>
#include <string.h>

#include "error.h"
#include "tree_priv.h"

enum {
	AT_ONCE = TREE_STAGE_BYTES / TREE_SLOT_BYTES,
	CLAIM_ROUNDS = 4,
	EPOCH_MASK = 0xffffff,
};

static int try_claim(struct tree_client *c, uint32_t slot, uint64_t word)
{
	uint32_t epoch = (uint32_t)(word >> 8) + 1;
	uint64_t old;
	int err = tree_cas_now(c, TREE_POINT_SLOT, tree_slot_at(slot), word,
			       tree_slot_word(TREE_SLOT_LIVE, epoch), &old);

	if (err)
		return err;
	if (old != word)
		return -EAGAIN;
	memset(c->stage, 0, TREE_CONN_BYTES);
	memcpy(c->stage, c->port.conn, strnlen(c->port.conn, TREE_CONN_BYTES));
	trip_begin(&c->trip);
	trip_write(&c->trip, TREE_POINT_SLOT, &c->main,
		   tree_slot_at(slot) + offsetof(struct tree_slot, conn),
		   c->stage, TREE_CONN_BYTES);
	err = trip_run(&c->trip);
	if (err)
		return err;
	c->slot = slot;
	c->epoch = epoch;
	c->has_slot = true;
	return 0;
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
			err = try_claim(c, first + k, word);
			return err == -EAGAIN ? -EBUSY : err;
		}
		if (!evict)
			continue;
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

/* The slot's connection, and its epoch, if that client still has the slot. */
static int slot_conn(struct tree_client *c, uint32_t slot, uint32_t *epoch,
		     char conn[TREE_CONN_BYTES + 1], bool *has_it)
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
	memset(conn, 0, TREE_CONN_BYTES + 1);
	memcpy(conn, s->conn, TREE_CONN_BYTES);
	word = le64_get(s->state);
	*has_it = (word & 0xff) == TREE_SLOT_LIVE &&
		  ((uint32_t)(word >> 8) & EPOCH_MASK) == (*epoch & EPOCH_MASK);
	*epoch = (uint32_t)(word >> 8);
	return 0;
}

static int fence(struct tree_client *c, uint32_t slot, uint32_t epoch,
		 const char *conn)
{
	/* Who has no connection yet has not done anything. */
	int err = conn[0] ? c->port.fence(c->port.ctx, conn) : 0;

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
	char conn[TREE_CONN_BYTES + 1];
	bool has_it;
	int err = slot_conn(c, slot, &epoch, conn, &has_it);

	return err || !has_it ? err : fence(c, slot, epoch, conn);
}

int tree_seat_is_gone(struct tree_client *c, uint32_t slot, uint32_t epoch,
		      bool *gone)
{
	char conn[TREE_CONN_BYTES + 1];
	bool has_it;
	int err = slot_conn(c, slot, &epoch, conn, &has_it);

	if (err)
		return err;
	*gone = !has_it;
	/* One that has a slot and did not say who it is yet is given time. */
	if (!has_it || !conn[0])
		return 0;
	err = c->port.is_alive(c->port.ctx, conn);
	if (err)
		return err < 0 ? err : 0;
	err = fence(c, slot, epoch, conn);
	*gone = !err;
	return err;
}
