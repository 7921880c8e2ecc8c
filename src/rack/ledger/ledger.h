/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a controller must not forget: rows of text by kind and key, changed in
 * transactions. Who changes them leads, and has a term; each new leader has a
 * larger one, and a transaction of an older term is refused, so who only thinks
 * that it leads changes nothing.
 *
 * There are three back ends: memory, for tests and the simulator, sqlite, and
 * etcd, which several controllers share. One thread at a time; calls may block
 * for as long as a disk or a network takes. What fails has words in
 * error_last().
 */
#ifndef AQ_LEDGER_H
#define AQ_LEDGER_H

#include "base/base.h"

enum {
	LEDGER_SCHEMA = 1,    /* of the rows; a newer one is refused */
	LEDGER_WHO_MAX = 256, /* address of a leader, with the NUL */
	LEDGER_KIND_MAX = 16, /* characters */
	LEDGER_KEY_MAX = 160,
	LEDGER_VALUE_MAX = 64 << 10,   /* bytes */
	LEDGER_CHANGES_MAX = 100,      /* of one transaction */
	LEDGER_COMMIT_BYTES = 1 << 20, /* of its values; etcd takes 1.5 MiB */
};

/* A row that says that rows are missing: see ledger_copy.h. */
#define LEDGER_HALF_KIND "load"
#define LEDGER_HALF_KEY	 "unfinished"

/* A transaction whose end is not known: it may have happened or not. Who gets
 * it must not go on from what it remembers; it reads all rows anew. */
#define LEDGER_UNKNOWN (-EINPROGRESS)

struct ledger_change {
	const char *kind;
	const char *key;
	const char *value; /* NULL: the row is deleted */
};

/* A row; other than 0 ends the reading, and is its result. */
typedef int (*ledger_row_fn)(void *user, const char *kind, const char *key,
			     const char *value);

struct ledger {
	const struct ledger_ops *ops;
	/* How long one leads without ledger_keep, on the ledger's own clock; 0:
	 * until it closes the ledger. */
	uint64_t lease_ns;
	/* After a ledger_lead that said -EBUSY: the rows are known to be as
	 * when they were last read. */
	bool is_unchanged;
};

struct ledger_ops {
	int (*lead)(struct ledger *l, const char *who, uint64_t *term);
	int (*keep)(struct ledger *l, uint64_t term);
	int (*leader)(struct ledger *l, char who[LEDGER_WHO_MAX]);
	int (*term)(struct ledger *l, uint64_t *term);
	int (*raise)(struct ledger *l, uint64_t term);
	int (*read)(struct ledger *l, ledger_row_fn each, void *user);
	int (*commit)(struct ledger *l, uint64_t term,
		      const struct ledger_change *change, unsigned count);
	void (*close)(struct ledger *l);
};

/* Becomes the leader, in a new term. -EBUSY: another one leads, see
 * ledger_leader. */
int ledger_lead(struct ledger *l, const char *who, uint64_t *term) MUST_CHECK;
/* Stays the leader; often, where leading is a lease. -ESTALE: another one leads
 * now. */
int ledger_keep(struct ledger *l, uint64_t term) MUST_CHECK;
/* Who leads, as it said itself. -ENOENT: nobody does, or it is not known. */
int ledger_leader(struct ledger *l, char who[LEDGER_WHO_MAX]) MUST_CHECK;
/* No term so far was larger than this one. */
int ledger_term(struct ledger *l, uint64_t *term) MUST_CHECK;
/* Terms that begin from now on are larger than this one, as they were in the
 * ledger that the rows come from: nodes remember them. -EBUSY: somebody leads.
 */
int ledger_raise(struct ledger *l, uint64_t term) MUST_CHECK;
/* All rows, in the order of kind and key. -EBADMSG: what is there is damaged.
 */
int ledger_read(struct ledger *l, ledger_row_fn each, void *user) MUST_CHECK;
/* All changes or none. -ESTALE: not in this term; -EINVAL: not in this shape;
 * LEDGER_UNKNOWN; all else: nothing has happened. */
int ledger_commit(struct ledger *l, uint64_t term,
		  const struct ledger_change *change,
		  unsigned count) MUST_CHECK;
void ledger_close(struct ledger *l); /* NULL is fine */

struct ledger_place {
	/* "sqlite:PATH", "etcd:URL,URL,..." or "memory" */
	const char *store;
	/* For etcd, all may be NULL: the rack whose rows they are; certificates
	 * to trust, and what is shown to an etcd that asks for one. */
	const char *rack;
	const char *ca, *cert, *key;
};

/* -EINVAL: it is none of them; and as the back end's own. */
int ledger_open(const struct ledger_place *place,
		struct ledger **out) MUST_CHECK;
/* The file that such a text names; NULL: none. */
const char *ledger_path(const char *text);

/*
 * A file that survives power failures (WAL, synchronous = FULL). -EBADMSG: it
 * is no ledger, or damaged; -EPROTONOSUPPORT: its schema is newer; -EACCES,
 * -ENOSPC, -EIO.
 */
int ledger_sqlite_open(const char *path, struct ledger **out) MUST_CHECK;

/*
 * Rows below aquifer/RACK/ in an etcd, by its JSON gateway; urls are http:// or
 * https:// with commas between them. It need not answer now. -EINVAL.
 */
int ledger_etcd_open(const char *urls, const struct ledger_place *place,
		     struct ledger **out) MUST_CHECK;

/* Whether the shape of a change is one that every back end takes: -EINVAL. */
int ledger_change_check(const struct ledger_change *c) MUST_CHECK;

#endif
