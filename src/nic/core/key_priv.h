/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of registered memory, the table that finds them, and the holes that a
 * program has unmapped under them. */
#ifndef AQ_NIC_KEY_PRIV_H
#define AQ_NIC_KEY_PRIV_H

#include "base/base.h"
#include "nic.h"

enum {
	KEY_HOLES = 8,	      /* separate holes of one key */
	KEYS_WITH_HOLES = 64, /* further keys with holes are refused whole */
};

/* Offsets in the region. */
struct key_hole {
	uint64_t from;
	uint64_t to;
};

/* See hole.c. */
struct key_holes {
	uint64_t length; /* of the region */
	uint32_t count;	 /* 0: not used */
	struct key_hole hole[KEY_HOLES];
};

/* What a key opens. Lives in its memory region or window. */
struct nic_key {
	uint32_t key; /* 24 random bits, then the 8-bit tag */
	uint32_t access;
	struct nic_pd *pd;
	struct nic_qp *qp; /* windows of type 2: the only user; else NULL */
	uint64_t iova;
	uint64_t length;
	uint8_t *host;		 /* where iova is in this process */
	struct key_holes *holes; /* NULL: none; else length is 0 */
	bool valid;
	bool is_window;
	bool is_watched; /* see nic_mr_attr */
	/* For walks: where it stands in a striped region, and where a window
	 * begins in what has that place. */
	struct nic_place place;
	uint64_t window_at;
};

struct key_slot {
	uint32_t index; /* key >> 8; 0 is never given out */
	struct nic_key *key;
};

struct key_table {
	struct key_slot *slots;
	uint32_t mask;
	uint32_t count;
	/*
	 * Grows whenever a key opens less than before, or other memory: a check
	 * that passed in the same epoch need not be repeated. Never 0.
	 */
	uint32_t epoch;
	uint32_t *retired; /* KEYS_RETIRED keys valid lately, by hash */
	struct key_holes holes[KEYS_WITH_HOLES];
};

enum key_verdict {
	KEY_OK,
	KEY_UNKNOWN,
	KEY_OTHER_PD,
	KEY_NO_ACCESS,
	KEY_OUT_OF_BOUNDS,
	KEY_GONE, /* the program has unmapped it */
};

int key_table_init(struct key_table *t) MUST_CHECK;
void key_table_release(struct key_table *t);
/* Gives `k` a random key and enters it. */
int key_insert(struct nic *nic, struct nic_key *k) MUST_CHECK;
void key_remove(struct nic *nic, struct nic_key *k);
/* Another random key; on failure the old one stands. */
int key_renew(struct nic *nic, struct nic_key *k) MUST_CHECK;
void key_count_denial(struct nic *nic, enum key_verdict v);
/* This value opens nothing from now on. */
void key_retire(struct key_table *t, uint32_t key);
/* Whether a peer need not have guessed this key: it is, or was lately,
 * valid. */
bool key_was_known(const struct key_table *t, uint32_t key);
/* hole.c */
void key_holes_forget(struct nic_key *k);
enum key_verdict key_holes_cover(const struct nic_key *k, uint64_t offset,
				 uint64_t len);

static inline void key_changed(struct key_table *t)
{
	if (++t->epoch == 0)
		t->epoch = 1;
}

/* The slot that holds `index`, or the free one where it would go. Indices are
 * random already and need no hashing. The table is never more than half full,
 * so the walk ends. */
static inline struct key_slot *key_slot_of(const struct key_table *t,
					   uint32_t index)
{
	uint32_t i = index & t->mask;

	while (t->slots[i].index != index && t->slots[i].index != 0)
		i = (i + 1) & t->mask;
	return &t->slots[i];
}

/* The entry with these upper 24 bits, whatever its tag and state. Index 0 is
 * that of free slots, which have no key. */
static inline struct nic_key *key_at(const struct key_table *t, uint32_t key)
{
	return key_slot_of(t, key >> 8)->key;
}

/* The valid key with this value; NULL: none. */
static inline struct nic_key *key_find(const struct key_table *t, uint32_t key)
{
	struct nic_key *k = key_at(t, key);

	return k && k->key == key && k->valid ? k : NULL;
}

#endif
