/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of a store. */
#ifndef AQ_HLOG_LIMITS_H
#define AQ_HLOG_LIMITS_H

enum {
	HLOG_SHARDS_DEFAULT = 8,
	HLOG_SHARDS_MAX = 256,
	HLOG_PAGE_BYTES_DEFAULT = 64 << 10,
	HLOG_PAGE_BYTES_MIN = 4096,
	HLOG_PAGE_BYTES_MAX = 1 << 20,
	HLOG_MUTABLE_PERCENT_DEFAULT = 90,
	HLOG_PFRAMES_MIN = 4, /* pages in memory, of one shard */
	/* A reference counts a record's size in 8-byte words with ten bits. */
	HLOG_RECORD_BYTES_MAX = 1023 * 8,
	HLOG_VALUE_BYTES_MAX = HLOG_RECORD_BYTES_MAX - 24,
	HLOG_SUPER_BYTES = 4096,  /* before the first page */
	HLOG_DEPTH_DEFAULT = 256, /* far reads under way, of one session */
	HLOG_DEPTH_MAX = 4096,
	HLOG_WRITES_MAX = 16,	/* pages under way, of one session */
	HLOG_POLL_BATCH = 64,	/* completions taken at once */
	HLOG_DRAIN_MS = 10000,	/* to write what is left, in all */
	HLOG_READ_CHUNK = 8192, /* of a page, during recovery */
};

#endif
