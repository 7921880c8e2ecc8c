/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holes in regions: what the program has unmapped under a live key. What it
 * maps there later is none of the key's business, so the addresses are never
 * touched again by it. A key with holes says that its length is 0, so that who
 * checks one without pays nothing.
 */
#include "nic_priv.h"

/* The pool is small: whoever unmaps registered memory does so once. */
static struct key_holes *holes_get(struct key_table *t)
{
	for (unsigned i = 0; i < ARRAY_LEN(t->holes); i++)
		if (t->holes[i].count == 0)
			return &t->holes[i];
	return NULL;
}

static void hole_add(struct key_holes *h, uint64_t from, uint64_t to)
{
	struct key_hole *last = &h->hole[KEY_HOLES - 1];

	if (h->count < KEY_HOLES) {
		h->hole[h->count++] = (struct key_hole){from, to};
		return;
	}
	/* Too many to tell apart: what lies between is lost, too. */
	last->from = u64_min(last->from, from);
	last->to = u64_max(last->to, to);
}

static void make_hole(struct nic *nic, struct nic_key *k, uintptr_t start,
		      uintptr_t end)
{
	uintptr_t host = (uintptr_t)k->host;
	uint64_t length = k->holes ? k->holes->length : k->length;

	if (!k->valid || end <= host || start >= host + length)
		return;
	if (!k->holes) {
		k->holes = holes_get(&nic->keys);
		if (!k->holes) {
			k->valid = false; /* all of it, then */
			return;
		}
		k->holes->length = length;
		k->length = 0;
	}
	hole_add(k->holes, start > host ? start - host : 0,
		 u64_min(end - host, length));
}

void nic_memory_gone(struct nic *nic, const void *addr, size_t len_bytes)
{
	const struct key_table *t = &nic->keys;
	uintptr_t start = (uintptr_t)addr;

	for (uint32_t i = 0; i <= t->mask; i++)
		if (t->slots[i].key)
			make_hole(nic, t->slots[i].key, start,
				  start + len_bytes);
	key_changed(&nic->keys);
}

void key_holes_forget(struct nic_key *k)
{
	if (k->holes)
		k->holes->count = 0;
	k->holes = NULL;
}

COLD enum key_verdict key_holes_cover(const struct nic_key *k, uint64_t offset,
				      uint64_t len)
{
	const struct key_holes *h = k->holes;

	if (offset > h->length || len > h->length - offset)
		return KEY_OUT_OF_BOUNDS;
	for (uint32_t i = 0; i < h->count; i++)
		if (offset < h->hole[i].to && offset + len > h->hole[i].from)
			return KEY_GONE;
	return KEY_OK;
}
