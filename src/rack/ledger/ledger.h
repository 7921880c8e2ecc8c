/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a controller must not forget: rows of text by kind and key, changed in
 * transactions. Who changes them leads, and has a term; each new leader has a
 * larger one, and a transaction of an older term is refused, so who only thinks
 * that it leads changes nothing.
 *
 * There are two back ends: memory, for tests and the simulator, and sqlite. One
 * thread at a time; calls may block for as long as a disk takes. What fails has
 * words in error_last().
 */
#ifndef AQ_LEDGER_H
#define AQ_LEDGER_H

#include "base/base.h"

enum {
	LEDGER_SCHEMA = 1,    /* of the rows; a newer one is refused */
	LEDGER_WHO_MAX = 256, /* address of a leader, with the NUL */
	LEDGER_KIND_MAX = 16, /* characters */
	LEDGER_KEY_MAX = 160,
	LEDGER_VALUE_MAX = 64 << 10, /* bytes */
	LEDGER_CHANGES_MAX = 100,    /* of one transaction */
};

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
};

struct ledger_ops {
	int (*lead)(struct ledger *l, const char *who, uint64_t *term);
	int (*keep)(struct ledger *l, uint64_t term);
	int (*leader)(struct ledger *l, char who[LEDGER_WHO_MAX]);
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
/* All rows, in the order of kind and key. -EBADMSG: what is there is damaged.
 */
int ledger_read(struct ledger *l, ledger_row_fn each, void *user) MUST_CHECK;
/* All changes or none. -ESTALE: not in this term; -EINVAL: not in this shape;
 * LEDGER_UNKNOWN; all else: nothing has happened. */
int ledger_commit(struct ledger *l, uint64_t term,
		  const struct ledger_change *change,
		  unsigned count) MUST_CHECK;
void ledger_close(struct ledger *l); /* NULL is fine */

/* "sqlite:PATH" or "memory". -EINVAL: it is none of them; and as the back end's
 * own. */
int ledger_open(const char *text, struct ledger **out) MUST_CHECK;
/* The file that such a text names; NULL: none. */
const char *ledger_path(const char *text);

/*
 * A file that survives power failures (WAL, synchronous = FULL). -EBADMSG: it
 * is no ledger, or damaged; -EPROTONOSUPPORT: its schema is newer; -EACCES,
 * -ENOSPC, -EIO.
 */
int ledger_sqlite_open(const char *path, struct ledger **out) MUST_CHECK;

/* Whether the shape of a change is one that every back end takes: -EINVAL. */
int ledger_change_check(const struct ledger_change *c) MUST_CHECK;

#endif
