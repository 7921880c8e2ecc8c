/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A key-value store on a hybrid log (the design of FASTER): an index in memory
 * points into a log whose tail is in memory and whose older part is far away,
 * on any struct hlog_device.
 *
 * Keys have 8 bytes, values up to HLOG_VALUE_BYTES_MAX. The newest part of the
 * tail is mutable: updates happen in place. The rest is read-only: an update
 * appends. Pages that leave memory were written to the device before.
 *
 * Threads: the key space is cut into shards, each with an index, a tail and a
 * part of the device of its own; a shard belongs to the thread that holds its
 * lock, and far reads happen without the lock. A session belongs to one thread.
 * Every open session must be polled from time to time, since pages that others
 * wait for may be on their way in its queue.
 *
 * Single operations are linearizable. After a crash every key has a value that
 * it had at the last hlog_sync() or later; the values of different keys may be
 * from different moments, because values in the mutable part change in place.
 *
 * The far log is not compacted: -ENOSPC once it is full of appends.
 */
#ifndef AQ_HLOG_H
#define AQ_HLOG_H

#include "base/base.h"
#include "hlog_device.h"
#include "hlog_limits.h"

struct hlog;
struct hlog_session;

/* Zero-initialise it; 0 stands for the default where there is one. */
struct hlog_options {
	struct hlog_device *device; /* stays the caller's, outlives the store */
	uint64_t local_bytes;	    /* of the log's tail in memory */
	uint64_t record_count;	    /* that are expected: sizes the index */
	uint32_t value_max;	    /* bytes of the largest value */
	uint32_t page_bytes;	    /* a power of two */
	uint32_t shard_count;	    /* a power of two */
	uint32_t mutable_percent;   /* of the tail, 1 to 100 */
};

/* What recovery found. */
struct hlog_recovery {
	uint64_t pages;
	uint64_t records;
	uint64_t tombstones;
	/* Shards whose log ends with a page that is damaged or torn. */
	uint32_t damaged_shards;
};

/* A new, empty store; the old contents of the device are lost. */
int hlog_create(const struct hlog_options *opt, struct hlog **out) MUST_CHECK;

/*
 * The store that lies on the device: reads its log and builds the index.
 * shard_count and page_bytes are the device's. -EBADMSG: there is none, or its
 * first block is damaged; -EPROTONOSUPPORT: another version; -EINVAL: a
 * different size. Damaged pages end their shard's log and are counted.
 */
int hlog_recover(const struct hlog_options *opt, struct hlog_recovery *found,
		 struct hlog **out) MUST_CHECK;

/* Sessions must be closed before. Does not write what is in memory. */
void hlog_destroy(struct hlog *store);

struct hlog_session_options {
	uint32_t depth; /* far reads under way; 0: HLOG_DEPTH_DEFAULT */
};

/* `opt` may be NULL. */
int hlog_session_open(struct hlog *store,
		      const struct hlog_session_options *opt,
		      struct hlog_session **out) MUST_CHECK;
/* Waits for what is under way, at most HLOG_DRAIN_MS, and drops results. */
void hlog_session_close(struct hlog_session *s);

enum hlog_kind {
	HLOG_READ,
	HLOG_RMW,
};

/* An operation that had to wait for the far log. */
struct hlog_done {
	uint64_t user;
	uint64_t key;
	enum hlog_kind kind;
	/* 0; -ENOENT (only reads); -EBADMSG: the log is damaged there; or what
	 * the device said. */
	int err;
	uint32_t value_bytes;
	const void *value; /* of a read; until the next call of hlog_poll */
};

/*
 * Operations return at once:
 *   0             done
 *   -ENOENT       no such key (only reads)
 *   -EINPROGRESS  hlog_poll will return it, with `user` (reads, RMW)
 *   -EAGAIN       too much is under way: call hlog_poll, then again
 *   -ENOSPC       the far log is full
 *   -EMSGSIZE     larger than value_max
 *   else          the device failed while a page was written
 */

/* Copies the value; *value_bytes is the buffer's size before and the value's
 * after. -ENOBUFS: the buffer is too small. */
int hlog_read(struct hlog_session *s, uint64_t key, void *value,
	      uint32_t *value_bytes, uint64_t user) MUST_CHECK;
int hlog_upsert(struct hlog_session *s, uint64_t key, const void *value,
		uint32_t value_bytes) MUST_CHECK;
int hlog_delete(struct hlog_session *s, uint64_t key) MUST_CHECK;

/*
 * Changes a value in place. A new one has `initial_bytes` zeros before the
 * first call. Runs under the shard's lock: must be short and must not use the
 * store. May run twice for one operation only if the first result was dropped.
 */
typedef void (*hlog_rmw_fn)(void *arg, void *value, uint32_t value_bytes);
int hlog_rmw(struct hlog_session *s, uint64_t key, uint32_t initial_bytes,
	     hlog_rmw_fn fn, void *arg, uint64_t user) MUST_CHECK;

/* Moves this session's requests on. Returns how many operations ended, at most
 * `max`, or -errno of the device. Never blocks. */
int hlog_poll(struct hlog_session *s, struct hlog_done *done,
	      unsigned max) MUST_CHECK;
/* Operations that hlog_poll still owes. */
uint32_t hlog_pending(const struct hlog_session *s);

/*
 * Everything that was done before is on the device when it returns 0. At most
 * HLOG_DRAIN_MS, then -ETIMEDOUT. -EBUSY: operations of this session are
 * pending. Other sessions must be polled meanwhile if they wrote.
 */
int hlog_sync(struct hlog_session *s) MUST_CHECK;

/* Counters of one session. */
struct hlog_stats {
	uint64_t near_reads; /* found in memory, absent ones too */
	uint64_t far_reads;  /* reads of the device */
	uint64_t in_place;
	uint64_t appends;
	uint64_t pages_written;
};

const struct hlog_stats *hlog_session_stats(const struct hlog_session *s);

/* Local bytes that give the tail `local_part` of `total_part` of a log with
 * this many records of that size: 5 of 18 and 5 of 24 in the paper. */
uint64_t hlog_local_bytes(uint64_t record_count, uint32_t value_bytes,
			  uint32_t local_part, uint32_t total_part);
/* The size of a device that holds this many records, appended once each. */
uint64_t hlog_device_bytes(uint64_t record_count, uint32_t value_bytes,
			   uint32_t page_bytes, uint32_t shard_count);

#endif
