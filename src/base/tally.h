/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one client of something in far memory did: a table, an index, a disk, a
 * run, an asynchronous context, or regions as such. A tally lies in a counter
 * file (counter.h); its client alone writes it, with plain stores, and pays for
 * no lock, no system call and no line that others write. Readers are other
 * processes, which take nothing that is in the file for granted.
 */
#ifndef AQ_TALLY_H
#define AQ_TALLY_H

#include "counter.h"

/* Clients as people know them. */
enum tally_kind {
	TALLY_REGION, /* aq_read, aq_write and atomics */
	TALLY_KV,
	TALLY_INDEX,
	TALLY_REDIS, /* a gateway */
	TALLY_NBD,
	TALLY_RUN,
	TALLY_PAGES, /* other users of pages */
	TALLY_ASYNC,
	TALLY_OTHER, /* a reader meets a kind that it does not know */
	TALLY_KIND_COUNT,
};

const char *tally_kind_name(enum tally_kind kind);

enum tally_count {
	TALLY_READS,
	TALLY_WRITES,
	TALLY_ATOMICS, /* changes that depend on what was there */
	TALLY_DELETES,
	TALLY_SCANS,
	TALLY_READ_BYTES,
	TALLY_WRITE_BYTES,
	TALLY_ERRORS,
	TALLY_COUNT,
};

/* The counts from here on are no operations that were done. */
enum {
	TALLY_OPERATIONS = TALLY_READ_BYTES
};

const char *tally_count_name(enum tally_count what);

/* As it lies in the file. */
struct tally {
	struct hist latency; /* of operations, in ns */
	uint64_t count[TALLY_COUNT];
	char kind[COUNTER_TEXT_MAX];
	char object[COUNTER_TEXT_MAX]; /* the table, index, disk or run */
	char tenant[COUNTER_TEXT_MAX]; /* as the node called it */
};
STATIC_ASSERT(TALLY_COUNT * sizeof(uint64_t) == CACHE_LINE, "one line");

enum {
	/* Of a counter file; one of them is a histogram. */
	TALLY_ENTRIES = TALLY_COUNT + 4,
	TALLY_FILE_MAX = 64, /* that a reader takes from one file */
};

/* ---- the client ---------------------------------------------------------- */

/* `number` tells tallies of one file apart. NULL: no memory. */
struct tally *tally_create(struct counter_file *file, unsigned number,
			   enum tally_kind kind, const char *object,
			   const char *tenant) MUST_CHECK;

static inline void tally_done(struct tally *t, enum tally_count what)
{
	t->count[what]++;
}

static inline void tally_done_bytes(struct tally *t, enum tally_count what,
				    uint64_t bytes)
{
	t->count[what]++;
	t->count[what == TALLY_READS ? TALLY_READ_BYTES : TALLY_WRITE_BYTES] +=
		bytes;
}

/*
 * Many operations under way at a time, of which one is timed: that costs no
 * clock reading per operation. What it took counts for all that ended since
 * the one before.
 */
struct tally_probe {
	const void *what; /* the operation; NULL: none is timed */
	uint64_t start_ns;
	uint64_t ended; /* since the last one */
};

static inline bool tally_probe_is_idle(const struct tally_probe *p)
{
	return !p->what;
}

static inline void tally_probe_start(struct tally_probe *p, const void *what,
				     uint64_t now_ns)
{
	p->what = what;
	p->start_ns = now_ns;
}

static inline void tally_probe_end(struct tally_probe *p, struct tally *t,
				   uint64_t now_ns)
{
	hist_record_many(&t->latency, now_ns - p->start_ns, p->ended);
	p->what = NULL;
	p->ended = 0;
}

/* ---- readers ------------------------------------------------------------- */

struct tally_view {
	unsigned number;
	enum tally_kind kind;
	char object[COUNTER_TEXT_MAX];
	char tenant[COUNTER_TEXT_MAX];
	uint64_t count[TALLY_COUNT];
	const struct hist *latency; /* the snapshot's; may be NULL */
};

/* The next tally of the file; *cursor starts at 0. */
bool tally_next(const struct counter_snapshot *s, unsigned *cursor,
		struct tally_view *out);

#endif
