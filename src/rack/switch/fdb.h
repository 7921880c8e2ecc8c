/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forwarding table: which port an address was last seen at. Each address
 * has TOR_FDB_WAYS places; when all are taken, the oldest learned entry is
 * replaced, so the table never grows and learning never fails.
 */
#ifndef AQ_TOR_FDB_H
#define AQ_TOR_FDB_H

#include "base/base.h"
#include "tor_limits.h"

enum fdb_kind {
	FDB_NONE,
	FDB_MAC,     /* learned */
	FDB_IP,	     /* learned; with the MAC beside it */
	FDB_CLAIM,   /* an IP address and a slot, set by the driver */
	FDB_CLAIMED, /* an IP address with claimed slots */
};

struct fdb_key {
	uint8_t addr[16];
	uint32_t slot; /* FDB_CLAIM only */
	uint32_t kind;
};
STATIC_ASSERT(sizeof(struct fdb_key) == 24, "no padding: keys are compared");

struct fdb_entry {
	struct fdb_key key;
	uint64_t seen_ns;
	uint16_t port;
	uint8_t mac[6]; /* FDB_IP */
	uint32_t uses;	/* FDB_CLAIMED: slots of it */
	uint32_t reserved;
};
STATIC_ASSERT(sizeof(struct fdb_entry) == 48, "layout of struct fdb_entry");

struct fdb {
	struct fdb_entry *entries;
	uint32_t buckets; /* a power of two, of TOR_FDB_WAYS places each */
};

int fdb_init(struct fdb *f, uint32_t entries) MUST_CHECK;
void fdb_release(struct fdb *f);

/* NULL: not known. Learned entries that are too old are still returned. */
struct fdb_entry *fdb_find(const struct fdb *f, const struct fdb_key *key);

/*
 * The entry of this key, made if there is none: then its kind is still FDB_NONE
 * or that of the entry that it replaces (*evicted). NULL: all places are
 * claims.
 */
struct fdb_entry *fdb_place(struct fdb *f, const struct fdb_key *key,
			    bool *evicted);

/* Forgets everything that leads to a port; NULL entries of claims, too. */
void fdb_forget_port(struct fdb *f, uint16_t port);

#endif
