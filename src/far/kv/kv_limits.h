/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of this room; every queue, table, loop and retry has one. */
#ifndef AQ_KV_LIMITS_H
#define AQ_KV_LIMITS_H

#include "kv_layout.h"

enum {
	KV_DEPTH = 32, /* reads under way, unless told otherwise */
	KV_DEPTH_MAX = 1024,
	KV_CHANGES_MAX = 256, /* changes that wait for others to go with */
	KV_SEEN_WORDS = 16,   /* of bits that tell their keys */
	KV_LOOKS_MAX = 3,     /* two rows and the state */
	KV_LOOK_BATCH = 16,   /* gets whose loads are done together */
	KV_LEAN_FROM = 3,     /* reads under way that save requests */
	KV_COVERING_BYTES = 148,
	KV_CACHE_BYTES = 64 << 10,
	KV_CACHE_BYTES_MAX = 1 << 30,
	KV_LINE_ROWS_MAX = 64, /* rows of the cache that are kept together */
	KV_LINES_MIN = 20,     /* so that a whole path fits */

	/* Rows of a cuckoo path. Few paths are longer than 4, but with 7 the
	 * first insert of 10 million fails one per cent earlier. */
	KV_PATH_MAX = 14,
	KV_SEARCH_NODES = 1536, /* rows that a search looks at */
	KV_SPARE_ROWS = 4,	/* rows that an insert reads beside its guess */
	KV_WHOLE_FROM = 4,	/* tries, then all rows of its locks are read */
	KV_INSERT_TRIES = 64,	/* before the table counts as full */
	KV_FULL_TRIES = 6,	/* the same, without any path found */
	KV_TORN_TRIES =
		1000, /* reads of a torn row between looks at the time */
	/* Changes that go together. Of so many whose rows are READ, their rows
	 * and locks, and an intent, the locks and READs of as many more, and
	 * the state are one batch; rows that are loaded are no requests, so
	 * there more fit into one. */
	KV_MANY_READ_KEYS = 128,
	KV_MANY_KEYS = 256,
	KV_MANY_ROWS = 2 * KV_MANY_KEYS,
	KV_MANY_SKIP = 16, /* puts, after some that could not go together */
	KV_UNIT_BYTES = 128 << 20, /* values of a unit, before and after */

	KV_OP_BYTES = 4096, /* an extent that a read under way has room for */
	KV_ZERO_BYTES = 16 << 10, /* words of the longest run of chunks */

	KV_CLASS_MAX = 30,
	KV_RUN_OF = 4, /* extents above 1/4 of a chunk take whole chunks */

	/* Beside enum aq_kv_scan_flags: also what has expired; and with
	 * AQ_KV_SCAN_KEYS the values that stand in rows. */
	KV_SCAN_GRAVES = 1 << 16,
	KV_SCAN_INLINE = 1 << 17,
	/* Beside enum aq_kv_put_flags: any entry of the key stays as it is. */
	KV_OP_COPY = 1 << 16,
	KV_GRAVE_MS = KV_GONE_MS, /* the end of a key that was deleted */
	KV_DEADLINE_MS = 5000,
	KV_BACKOFF_NS_MIN = 500,
	KV_BACKOFF_NS_MAX = 200000,
	KV_ACQUIRE_SHARE = 4, /* of the failure time: to get all locks */
	KV_LEASE_POLL_NS = 20000,
	KV_TERM_SHARE = 10, /* of the failure time: to rely on a state */
	KV_TERM_NS_MIN = 1000000,
	KV_NAMELESS_NS_MIN = 500000000,
	KV_POLL_BATCH = 16, /* operations that are handed out at a time */
};

#endif
