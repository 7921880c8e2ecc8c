/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and places addresses; what to do with them is forward.c's business. */
#include "fdb.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int fdb_init(struct fdb *f, uint32_t entries)
{
	uint32_t buckets;

	if (entries < TOR_FDB_WAYS || entries > TOR_FDB_ENTRIES_MAX)
		return -EINVAL;
	buckets = u32_pow2_ceil(entries / TOR_FDB_WAYS);
	f->entries =
		calloc((size_t)buckets * TOR_FDB_WAYS, sizeof(*f->entries));
	if (!f->entries)
		return -ENOMEM;
	f->buckets = buckets;
	return 0;
}

void fdb_release(struct fdb *f)
{
	free(f->entries);
	f->entries = NULL;
}

/* Multiply and fold: good enough for addresses, and a few cycles. */
static struct fdb_entry *bucket(const struct fdb *f, const struct fdb_key *key)
{
	uint64_t w[3];
	uint64_t h;

	memcpy(w, key, sizeof(w));
	h = (w[0] ^ 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;
	h ^= h >> 32;
	h = (h ^ w[1]) * 0xc4ceb9fe1a85ec53ull;
	h ^= h >> 29;
	h = (h ^ w[2]) * 0x9e3779b97f4a7c15ull;
	h ^= h >> 32;
	return f->entries + (h & (f->buckets - 1)) * TOR_FDB_WAYS;
}

static bool same(const struct fdb_key *a, const struct fdb_key *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

struct fdb_entry *fdb_find(const struct fdb *f, const struct fdb_key *key)
{
	struct fdb_entry *e = bucket(f, key);

	for (unsigned i = 0; i < TOR_FDB_WAYS; i++)
		if (same(&e[i].key, key))
			return &e[i];
	return NULL;
}

static bool learned(const struct fdb_entry *e)
{
	return e->key.kind == FDB_MAC || e->key.kind == FDB_IP;
}

struct fdb_entry *fdb_place(struct fdb *f, const struct fdb_key *key,
			    bool *evicted)
{
	struct fdb_entry *e = bucket(f, key);
	struct fdb_entry *free_one = NULL;
	struct fdb_entry *oldest = NULL;

	*evicted = false;
	for (unsigned i = 0; i < TOR_FDB_WAYS; i++) {
		if (same(&e[i].key, key))
			return &e[i];
		if (e[i].key.kind == FDB_NONE)
			free_one = free_one ? free_one : &e[i];
		else if (learned(&e[i]) &&
			 (!oldest || e[i].seen_ns < oldest->seen_ns))
			oldest = &e[i];
	}
	if (!free_one) {
		if (!oldest)
			return NULL;
		*evicted = true;
		free_one = oldest;
	}
	*free_one = (struct fdb_entry){.key = *key};
	return free_one;
}

static void unclaim(struct fdb *f, const struct fdb_key *claim)
{
	struct fdb_key key = *claim;
	struct fdb_entry *e;

	key.kind = FDB_CLAIMED;
	key.slot = 0;
	e = fdb_find(f, &key);
	if (e && --e->uses == 0)
		*e = (struct fdb_entry){0};
}

void fdb_forget_port(struct fdb *f, uint16_t port)
{
	for (uint32_t i = 0; i < f->buckets * TOR_FDB_WAYS; i++) {
		struct fdb_entry *e = &f->entries[i];

		if (e->port != port || e->key.kind == FDB_NONE ||
		    e->key.kind == FDB_CLAIMED)
			continue;
		if (e->key.kind == FDB_CLAIM)
			unclaim(f, &e->key);
		*e = (struct fdb_entry){0};
	}
}
