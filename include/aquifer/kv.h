/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A key-value table in far memory. Clients do everything with one-sided
 * operations; the memory node's processor takes no part.
 *
 *	struct aq_kv_options options = {.capacity = 1 << 20};
 *	struct aq_kv *kv;
 *	struct aq_kv_client *c;
 *	char buf[64];
 *	size_t len;
 *
 *	if (aq_kv_create(rack, "users", &options, &kv) ||
 *	    aq_kv_client_open(kv, NULL, &c) ||
 *	    aq_kv_put(c, "ann", 3, "42", 2, NULL) ||
 *	    aq_kv_get(c, "ann", 3, buf, sizeof(buf), &len))
 *		fprintf(stderr, "%s\n", aq_last_error());
 *
 * Keys have 1 to 250 bytes, values 0 bytes to 64 MiB; both are any bytes. Small
 * pairs lie inside the index and are read in one round trip; others lie in an
 * extent beside it and take two.
 *
 * Consistency: every operation on one key is linearizable, also over the loss
 * of a node where the table has two copies, and while it is resized. A scan is
 * not a snapshot, see aq_kv_scan.
 *
 * Threads: a table may be shared between threads; a client belongs to one
 * thread at a time. Errors are as in <aquifer/aquifer.h>, and:
 *	-ENOENT		there is no such key
 *	-EEXIST		there is one already (AQ_KV_NX)
 *	-ENOSPC		the index is full, or no memory is left for the value,
 *			and the table does not grow or has nowhere to
 *	-EMSGSIZE	the value is longer than the buffer
 *	-ETIMEDOUT	others held the key's locks for longer than the deadline
 *	-ESTALE		this client was slow, taken for dead and fenced: the
 *			operation was done entirely or not at all. The client
 *			has connected anew; the caller may try again.
 */
#ifndef AQUIFER_KV_H
#define AQUIFER_KV_H

#include <aquifer/aquifer.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct aq_kv;
struct aq_kv_client;

enum {
	AQ_KV_NAME_MAX = 28, /* letters, digits, '-' and '_' */
	AQ_KV_KEY_MAX = 250,
	AQ_KV_VALUE_MAX = 64 << 20,
};

/* ---- tables ------------------------------------------------------------- */

enum aq_kv_hash {
	/* The second row is near the first. */
	AQ_KV_HASH_DEPENDENT,
	/* Near the first, and where possible under the same 64 locks: fewer
	 * round trips for locks, but the table fills to less. */
	AQ_KV_HASH_BLOCK,
	/* The second row is anywhere. For comparisons. */
	AQ_KV_HASH_INDEPENDENT,
};

enum aq_kv_flags {
	/* Locks may lie in host memory where device memory is used up. */
	AQ_KV_HOST_LOCKS = 1u << 0,
	/* One 64-bit word per lock, as on NICs without masked atomics. */
	AQ_KV_WORD_LOCKS = 1u << 1,
	/* It keeps its size. Without this flag it grows by itself when it gets
	 * full, as long as a client is open; see docs/kv.md. */
	AQ_KV_FIXED = 1u << 2,
};

/* Zero-initialise it; unset members have their default. */
struct aq_kv_options {
	uint64_t capacity; /* entries of the index, at first; required */
	/* For values beside it; 0: 4 MiB for each shard, or 64 MiB in all with
	 * AQ_KV_FIXED. */
	uint64_t extent_bytes;
	uint32_t entry_bytes;	  /* 16 to 120, a multiple of 8; 0: 64 */
	uint32_t entries_per_row; /* 1 to 16; 0: 8 */
	uint32_t rows_per_lock;	  /* a power of two; 0: 16 */
	uint32_t clients;	  /* at one time; 0: 256 */
	uint32_t chunk_bytes;	  /* extents of one client; 0: 256 KiB */
	uint32_t hash;		  /* enum aq_kv_hash */
	uint32_t locality_milli;  /* f * 1000; 0: 2300 */
	uint32_t failure_ms;	  /* a silent client is dead; 0: 1000 */
	uint32_t flags;		  /* enum aq_kv_flags */
	uint32_t lock_max;	  /* physical locks; 0: 1048576 */
	const char *node;	  /* NULL: the one with the most free memory */
	uint64_t seed;		  /* of the hash; 0: random */
	/* Parts on different nodes, each with its share of the keys; 0: 1, and
	 * AQ_KV_ALL_NODES: as many as there are nodes. */
	uint32_t shards;
	uint32_t copies; /* of each, on different nodes: 1 or 2; 0: 1 */
	/* That it grows to by itself, all shards and copies; 0: what there is
	 * room for. */
	uint64_t max_bytes;
	uint64_t reserved[2];
};

#define AQ_KV_ALL_NODES UINT32_MAX

/* -EEXIST, -ENOSPC, -EINVAL. The caller owns *kv. */
AQ_API int aq_kv_create(struct aq_rack *rack, const char *name,
			const struct aq_kv_options *options, struct aq_kv **kv);
AQ_API int aq_kv_open(struct aq_rack *rack, const char *name,
		      struct aq_kv **kv);
/* Its clients must be closed before. NULL is allowed. While this process makes
 * the table larger it waits for that, up to the rack's deadline; then others go
 * on with it. */
AQ_API void aq_kv_close(struct aq_kv *kv);
/* Deletes the table, for all clients. */
AQ_API int aq_kv_drop(struct aq_rack *rack, const char *name);

/* How a table is. */
enum aq_kv_condition {
	AQ_KV_WHOLE,
	AQ_KV_COPY_LOST, /* of some keys one copy of two is left */
	AQ_KV_PART_LOST, /* of some keys no copy answers */
	AQ_KV_DAMAGED,	 /* something of it was deleted, or is no table */
	AQ_KV_UNKNOWN,	 /* nodes answer, but their memory does not */
};

struct aq_kv_listed {
	const char *name;   /* until the call returns */
	uint32_t condition; /* enum aq_kv_condition */
	uint32_t shards;
	uint32_t copies;
	uint32_t generation;
	uint32_t shards_lost;	/* shards of which no copy answers */
	uint32_t shards_single; /* shards that have lost one of two copies */
	bool is_resizing;
	bool has_keys; /* else a part is lost, and nobody can count */
	bool grows;    /* by itself */
	uint8_t reserved0[5];
	uint64_t keys; /* as aq_kv_count */
	uint64_t capacity;
	uint64_t size_bytes; /* of its regions on nodes that answer */
	uint64_t max_bytes;  /* that it grows to; 0: any */
	uint64_t reserved[5];
};

/*
 * Calls `each` for all tables of the tenant, in the order of their names, until
 * it returns other than 0, which is returned. A table of which no node answers
 * at all is not known to anybody and is missing. This only looks: it takes no
 * client's place and changes nothing.
 */
typedef int (*aq_kv_listed_fn)(const struct aq_kv_listed *table, void *user);
AQ_API int aq_kv_each(struct aq_rack *rack, aq_kv_listed_fn each, void *user);
/* Whether a region of that name would be a table's, and which table's. */
AQ_API bool aq_kv_owns_region(const char *region,
			      char name[AQ_KV_NAME_MAX + 1]);

struct aq_kv_info {
	uint64_t rows;
	uint64_t capacity; /* rows * entries_per_row */
	uint64_t locks;
	uint64_t extent_bytes;
	uint64_t size_bytes; /* of all of it */
	uint32_t entries_per_row;
	uint32_t entry_bytes;
	uint32_t row_bytes;
	uint32_t rows_per_lock;
	uint32_t clients;
	uint32_t chunk_bytes;
	uint32_t hash;
	uint32_t locality_milli;
	uint32_t failure_ms;
	/* Key and value that fit into the index together. */
	uint32_t inline_bytes;
	bool masked_atomics;  /* else one 64-bit word per lock */
	bool locks_on_device; /* else in host memory */
	uint16_t reserved0;
	uint32_t shards;
	uint32_t copies;
	uint32_t generation; /* how often it was resized */
	bool grows;	     /* by itself */
	uint8_t reserved1[7];
	uint64_t max_bytes; /* that it grows to; 0: any */
	uint64_t reserved[3];
};
/* As it was when the table was opened. */
AQ_API void aq_kv_get_info(const struct aq_kv *kv, struct aq_kv_info *info);

/* ---- clients ------------------------------------------------------------ */

enum aq_kv_search {
	AQ_KV_SEARCH_BFS,
	AQ_KV_SEARCH_DFS, /* for comparisons */
};

enum aq_kv_client_flags {
	/* Reads are loads where the table is on this machine. Changes go
	 * through the NIC, because a fenced client must change nothing. */
	AQ_KV_DIRECT_READS = 1u << 0,
	/* `aquifer top` shows it as a gateway for clients of Redis. */
	AQ_KV_IS_REDIS = 1u << 1,
	/* aq_kv_get is a walk that the memory node executes: a value that does
	 * not fit into its entry comes in one round trip instead of two, if it
	 * has up to about 2 KiB. What the node does not execute is read. */
	AQ_KV_WALK = 1u << 2,
};

/* Zero-initialise it; unset members have their default. */
struct aq_kv_client_options {
	uint32_t depth;		 /* reads under way at most; 0: 32 */
	uint32_t covering_bytes; /* 0: 148, and two rows at least */
	uint32_t cache_bytes;	 /* of the index, for inserts; 0: 64 KiB */
	uint32_t search;	 /* enum aq_kv_search */
	uint32_t deadline_ms;	 /* of one operation; 0: the rack's */
	uint32_t flags;		 /* enum aq_kv_client_flags */
	uint64_t reserved[4];
};

/* `options` may be NULL. -EAGAIN: the table has no place for another client. */
AQ_API int aq_kv_client_open(struct aq_kv *kv,
			     const struct aq_kv_client_options *options,
			     struct aq_kv_client **c);
/* Operations that were submitted and not polled are forgotten. */
AQ_API void aq_kv_client_close(struct aq_kv_client *c);

/* ---- operations on one key ---------------------------------------------- */

/*
 * Copies the value. *len is its length, also with -EMSGSIZE, when as much was
 * copied as fits. `buf` may be NULL when buf_bytes is 0.
 */
AQ_API int aq_kv_get(struct aq_kv_client *c, const void *key, size_t key_len,
		     void *buf, size_t buf_bytes, size_t *len);

enum aq_kv_put_flags {
	AQ_KV_NX = 1u << 0,	  /* only if there is none: -EEXIST */
	AQ_KV_XX = 1u << 1,	  /* only if there is one: -ENOENT */
	AQ_KV_KEEP_TTL = 1u << 2, /* keep the key's expiry */
};

struct aq_kv_put_options {
	uint32_t flags; /* enum aq_kv_put_flags */
	uint32_t reserved;
	/* Milliseconds since 1970 at which the key ends; 0: never. */
	uint64_t expire_at_ms;
};

/* `options` may be NULL. */
AQ_API int aq_kv_put(struct aq_kv_client *c, const void *key, size_t key_len,
		     const void *value, size_t value_len,
		     const struct aq_kv_put_options *options);
AQ_API int aq_kv_del(struct aq_kv_client *c, const void *key, size_t key_len);

/* Replaces the value if it is `expected`; *swapped says whether it was. The
 * time to live stays. -ENOENT. */
AQ_API int aq_kv_cas(struct aq_kv_client *c, const void *key, size_t key_len,
		     const void *expected, size_t expected_len,
		     const void *desired, size_t desired_len, bool *swapped);

/* The value as a decimal number, as in Redis; a missing key is 0. -EINVAL: it
 * is no number; -ERANGE: the result has no 64 bits. The time to live stays. */
AQ_API int aq_kv_incr(struct aq_kv_client *c, const void *key, size_t key_len,
		      int64_t add, int64_t *result);

/* *expire_at_ms is 0 for a key without an end. */
AQ_API int aq_kv_expiry(struct aq_kv_client *c, const void *key, size_t key_len,
			uint64_t *expire_at_ms);
AQ_API int aq_kv_expire(struct aq_kv_client *c, const void *key, size_t key_len,
			uint64_t expire_at_ms);

/*
 * Any change of one key, under its locks. `fn` sees the value and says what
 * becomes of it; it may be called several times, must be quick and must not
 * call this library. A value other than 0 that it returns ends the operation
 * without a change and is returned.
 */
enum aq_kv_verdict {
	AQ_KV_KEEP,
	AQ_KV_STORE,
	AQ_KV_DELETE,
};

struct aq_kv_change {
	/* In: what there is. value is NULL when there is none. */
	const void *value;
	size_t value_len;
	uint64_t expire_at_ms;
	/* Out, for AQ_KV_STORE: lives until the operation returns. The expiry
	 * is taken from expire_at_ms. */
	enum aq_kv_verdict verdict;
	const void *new_value;
	size_t new_value_len;
};

typedef int (*aq_kv_change_fn)(struct aq_kv_change *change, void *user);
AQ_API int aq_kv_modify(struct aq_kv_client *c, const void *key, size_t key_len,
			aq_kv_change_fn fn, void *user);

/* ---- several keys as one unit ------------------------------------------- */

struct aq_kv_key {
	const void *key;
	size_t key_len;
};

/*
 * Any change of several different keys of one shard, under the locks of all of
 * them: at once, or not at all. `fn` is as above and sees an array with what
 * there is of each key, in the order of `keys`; its verdicts count together.
 * What is kept is looked at together with the rest, so a unit that keeps
 * everything is a consistent look.
 *
 * No client sees one of the changes and after that another key as it was
 * before, whatever it reads with; a client that dies in the middle has changed
 * all of them or none. (A table with two copies that loses the first while such
 * a client is dead: docs/kv.md.)
 *
 *	-EXDEV	the keys are not of one shard; nothing was done
 *	-E2BIG	more than AQ_KV_UNIT_KEYS keys, more words of locks than an
 *		operation may hold (64, so 64 keys always fit), or values of
 *		more than 128 MiB; nothing was done
 *	-EINVAL	no key, or one of them twice
 */
enum {
	AQ_KV_UNIT_KEYS = 128,
};

typedef int (*aq_kv_unit_fn)(struct aq_kv_change *changes, void *user);
AQ_API int aq_kv_unit(struct aq_kv_client *c, const struct aq_kv_key *keys,
		      size_t count, aq_kv_unit_fn fn, void *user);

/* ---- several at once ---------------------------------------------------- */

enum aq_kv_kind {
	AQ_KV_OP_GET,
	AQ_KV_OP_PUT,
	AQ_KV_OP_DEL,
	AQ_KV_OP_MODIFY, /* as aq_kv_modify */
};

/*
 * One operation of a batch. The caller owns it and all it points to until it is
 * done. `reserved` is the client's while it is under way.
 */
struct aq_kv_op {
	uint32_t kind;	/* enum aq_kv_kind */
	uint32_t flags; /* PUT: enum aq_kv_put_flags */
	const void *key;
	size_t key_len;
	void *value; /* GET: the buffer; PUT: the value, which is only read */
	size_t value_len;      /* GET: of the buffer */
	uint64_t expire_at_ms; /* PUT */
	void *user;
	/* Set when it is done. */
	int err;
	size_t len; /* GET: of the value */
	/* MODIFY: the function, and what it is called with. */
	aq_kv_change_fn fn;
	void *fn_user;
	uint64_t reserved[8];
};

/*
 * Starts operations; aq_kv_poll tells which are done. Operations of one client
 * on one key take effect in the order in which they were submitted. Up to
 * `depth` are under way together; submit returns -EAGAIN when that many are,
 * and then poll must be called first. Reads are sent at once. Changes wait for
 * poll, which carries them out together: no lock is held while the application
 * has the thread.
 */
AQ_API int aq_kv_submit(struct aq_kv_client *c, struct aq_kv_op *op);
/* Fills in at most `max` operations that are done, and returns how many.
 * wait: for at least one, if any is under way. */
AQ_API int aq_kv_poll(struct aq_kv_client *c, struct aq_kv_op **done,
		      unsigned max, bool wait);
/* Submits all and waits for all; 0, or the first failure of the transport,
 * after which none of them is under way any more. Each has its own `err`.
 * -EBUSY: others, which were submitted before, are not polled yet. */
AQ_API int aq_kv_batch(struct aq_kv_client *c, struct aq_kv_op *ops,
		       size_t count);

/* ---- the whole table ---------------------------------------------------- */

struct aq_kv_item {
	const void *key;
	size_t key_len;
	const void *value; /* NULL with AQ_KV_SCAN_KEYS */
	size_t value_len;
	uint64_t expire_at_ms;
};

enum aq_kv_scan_flags {
	AQ_KV_SCAN_KEYS = 1u << 0,    /* values are not read */
	AQ_KV_SCAN_EXPIRED = 1u << 1, /* those that have expired, too */
};

/*
 * Calls `each` for about `rows` rows of the index from *cursor on, and moves
 * *cursor; it is 0 at the start and again at the end. A key that is there all
 * the time is seen at least once unless an insert moves it meanwhile, and may
 * be seen twice. Stops when `each` returns other than 0, which is returned.
 */
typedef int (*aq_kv_item_fn)(const struct aq_kv_item *item, void *user);
AQ_API int aq_kv_scan(struct aq_kv_client *c, uint64_t *cursor, uint64_t rows,
		      unsigned flags, aq_kv_item_fn each, void *user);

/* How many keys there are, with expired ones that no client has met since. It
 * takes one round trip for each shard. During a resize it is an estimate. */
AQ_API int aq_kv_count(struct aq_kv_client *c, uint64_t *count);

/* What this client did, since it was opened. */
struct aq_kv_stats {
	uint64_t gets, gets_missed, puts, inserts, updates, deletes;
	uint64_t get_trips, insert_trips, update_trips, delete_trips;
	uint64_t reads_torn;	   /* rows that had to be read again */
	uint64_t lock_tries;	   /* masked CAS, or CAS */
	uint64_t lock_fails;	   /* tries that found a lock held */
	uint64_t lock_sets;	   /* sets of locks that were acquired */
	uint64_t lock_sets_single; /* sets acquired with one masked CAS */
	uint64_t searches_second;  /* the first path was not valid any more */
	uint64_t searches_failed;  /* no path was found under the locks */
	uint64_t repairs;	   /* locks of dead clients given back */
	uint64_t fenced;	   /* clients that this one fenced */
	uint64_t was_fenced;
	uint64_t extents_collected;
	uint64_t rows_mended; /* by this client, after others died */
	uint64_t doubles_mended;
	uint64_t entries_lost; /* half written when their writer died */
	uint64_t room_waits;   /* changes that waited until the table grew */
	uint64_t walks;	       /* gets that the memory node executed */
	uint64_t reserved[3];
};
AQ_API void aq_kv_client_stats(const struct aq_kv_client *c,
			       struct aq_kv_stats *stats);

struct aq_kv_report {
	uint64_t rows, used, expired, inline_entries, extent_entries;
	uint64_t bad_rows;    /* CRC */
	uint64_t bad_entries; /* half written, or not in one of its rows */
	uint64_t duplicates;
	uint64_t locks_held;	 /* on a table in use, some are for a moment */
	uint64_t bad_extents;	 /* not what their entries say */
	uint64_t leaked_extents; /* that no entry points to */
	uint64_t shared_extents; /* that two entries point to */
	uint64_t count_error;	 /* of aq_kv_count */
	uint64_t clients;
	uint64_t reserved[8];
};

/* Looks for clients whose connections are gone, and repairs what they left
 * behind. Other clients also repair such remains where they meet them. */
AQ_API int aq_kv_repair(struct aq_kv_client *c);

/* How the replicas of a table are; see aquifer-kv(1). */
struct aq_kv_health {
	uint32_t generation;
	uint32_t shards;
	uint32_t copies;	/* copies that each shard should have */
	uint32_t shards_lost;	/* shards of which no copy answers */
	uint32_t shards_single; /* shards that have lost one of two copies */
	bool is_growing;	/* a resize has begun and not ended */
	uint8_t reserved0[3];
	uint64_t capacity;
	uint64_t reserved[4];
};
AQ_API int aq_kv_get_health(struct aq_kv_client *c,
			    struct aq_kv_health *health);

/*
 * Makes the table larger, or smaller, or gives it other shards and copies,
 * while others use it: the next generation is made beside, changes go there,
 * all keys are copied, and the old one is dropped. Readers never wait; changes
 * wait once, for about an eighth of the table's failure time. This is also how
 * a table that has lost a copy gets another. Of `options` only capacity,
 * extent_bytes, shards and copies count; 0: as it is. If another client has
 * begun a resize and left it, this call ends that one before it follows
 * `options`. -EBUSY: another client is resizing now.
 */
AQ_API int aq_kv_resize(struct aq_kv_client *c,
			const struct aq_kv_options *options);

/*
 * Makes the copies anew that were lost, if there are nodes for them, and ends a
 * resize that another client has begun and left. *healed says whether there was
 * something to do. Clients that are open do this by themselves after a while.
 * -EHOSTDOWN: of some keys no copy is left; -ENOSPC: there is no node, or no
 * room, for another copy; -EBUSY: another client is at it.
 */
AQ_API int aq_kv_heal(struct aq_kv_client *c, bool *healed);

/* Reads everything and verifies every invariant. On a table in use, changes
 * under way may be reported as bad. Returns 0 also when the table is bad. */
AQ_API int aq_kv_check(struct aq_kv_client *c, struct aq_kv_report *report);

#ifdef __cplusplus
}
#endif

#endif
