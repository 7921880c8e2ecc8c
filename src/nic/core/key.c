/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of keys. A key is 24 bits from the env's random source and an 8-bit
 * tag; the 24 bits index an open-addressing table, so a lookup is one or two
 * cache lines and a guess hits with the density of live keys, not with 1/256.
 */
#include <errno.h>
#include <stdlib.h>

#include "qp_priv.h"

enum {
	TABLE_START = 1024,
	INSERT_TRIES = 64, /* random indices until a free one is found */
	KEYS_RETIRED = 8192,
};

int key_table_init(struct key_table *t)
{
	t->slots = calloc(TABLE_START, sizeof(*t->slots));
	t->retired = calloc(KEYS_RETIRED, sizeof(*t->retired));
	if (!t->slots || !t->retired) {
		key_table_release(t);
		return -ENOMEM;
	}
	t->mask = TABLE_START - 1;
	t->count = 0;
	t->epoch = 1;
	return 0;
}

void key_table_release(struct key_table *t)
{
	free(t->slots);
	free(t->retired);
	t->slots = NULL;
	t->retired = NULL;
}

/* The 24 bits are random. */
static uint32_t *retired_place(const struct key_table *t, uint32_t key)
{
	return &t->retired[(key >> 8 ^ key) & (KEYS_RETIRED - 1)];
}

void key_retire(struct key_table *t, uint32_t key)
{
	*retired_place(t, key) = key;
}

bool key_was_known(const struct key_table *t, uint32_t key)
{
	const struct nic_key *k = key_at(t, key);

	return (k && k->key == key) || (key && *retired_place(t, key) == key);
}

static int grow(struct key_table *t)
{
	struct key_table bigger = *t;
	uint32_t i;

	bigger.mask = t->mask * 2 + 1;
	bigger.slots = calloc(bigger.mask + 1u, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (i = 0; i <= t->mask; i++)
		if (t->slots[i].index)
			*key_slot_of(&bigger, t->slots[i].index) = t->slots[i];
	free(t->slots);
	*t = bigger;
	return 0;
}

int key_insert(struct nic *nic, struct nic_key *k)
{
	struct key_table *t = &nic->keys;
	unsigned tries;

	if (t->count >= NIC_MR_MAX)
		return -ENOMEM;
	if (t->count * 2 > t->mask) {
		int err = grow(t);

		if (err)
			return err;
	}
	for (tries = 0; tries < INSERT_TRIES; tries++) {
		struct key_slot *slot;
		uint32_t random;

		env_random(nic->env, &random, sizeof(random));
		/* In a list of receive buffers this one means its end. */
		if ((random >> 8) == 0 || random == WQE_INVALID_LKEY)
			continue;
		slot = key_slot_of(t, random >> 8);
		if (slot->index)
			continue;
		slot->index = random >> 8;
		slot->key = k;
		k->key = random;
		t->count++;
		return 0;
	}
	return -EAGAIN;
}

static void remove_index(struct key_table *t, uint32_t index)
{
	uint32_t i = (uint32_t)(key_slot_of(t, index) - t->slots);
	uint32_t next = i;

	ASSERT(t->slots[i].index == index);
	/* Close the gap: what follows and would still be found from the hole
	 * moves into it. */
	for (;;) {
		uint32_t home;

		next = (next + 1) & t->mask;
		if (t->slots[next].index == 0)
			break;
		home = t->slots[next].index & t->mask;
		if (((next - home) & t->mask) >= ((next - i) & t->mask)) {
			t->slots[i] = t->slots[next];
			i = next;
		}
	}
	t->slots[i] = (struct key_slot){0};
	t->count--;
	key_changed(t);
}

void key_remove(struct nic *nic, struct nic_key *k)
{
	key_holes_forget(k);
	key_retire(&nic->keys, k->key);
	remove_index(&nic->keys, k->key >> 8);
}

int key_renew(struct nic *nic, struct nic_key *k)
{
	uint32_t old = k->key;
	int err = key_insert(nic, k);

	if (!err) {
		key_retire(&nic->keys, old);
		remove_index(&nic->keys, old >> 8);
	}
	return err;
}

void key_count_denial(struct nic *nic, enum key_verdict v)
{
	static const enum nic_counter counter[] = {
		[KEY_UNKNOWN] = NIC_C_deny_key,
		[KEY_OTHER_PD] = NIC_C_deny_pd,
		[KEY_NO_ACCESS] = NIC_C_deny_access,
		[KEY_OUT_OF_BOUNDS] = NIC_C_deny_bounds,
		[KEY_GONE] = NIC_C_deny_unmapped,
	};

	ASSERT(v != KEY_OK);
	count(nic, counter[v]);
}

int nic_direct_grant(struct nic *nic, uint32_t qpn, uint32_t peer_qpn,
		     uint32_t rkey, struct nic_mr_attr *attr)
{
	struct nic_qp *qp = qp_find(nic, qpn);
	const struct nic_key *k = key_find(&nic->keys, rkey);

	/* One answer for all: who asks must not learn which part was right.
	 * Without a connection of its own nobody learns anything. */
	if (!qp || qp->type != IBV_QPT_RC || qp->dest_qpn != peer_qpn ||
	    (qp->state != IBV_QPS_RTR && qp->state != IBV_QPS_RTS))
		return -EACCES;
	if (guess_is_blocked(nic, qp->out.dst_ip, peer_qpn))
		return -EAGAIN;
	if (!k || k->pd != qp->pd) {
		if (k || !key_was_known(&nic->keys, rkey))
			guess_failure(nic, qp->out.dst_ip, peer_qpn);
		return -EACCES;
	}
	if (k->is_window || k->holes)
		return -EACCES;
	*attr = (struct nic_mr_attr){
		.addr = k->host,
		.length = k->length,
		.iova = k->iova,
		.access = (int)(k->access & qp->access),
		.is_watched = k->is_watched,
	};
	qp->is_reached = true;
	return 0;
}
