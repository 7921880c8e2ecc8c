/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Indexes in far memory. Clients do everything with one-sided operations; the
 * memory node's processor takes no part. There are two kinds:
 *
 * AQ_INDEX_TREE	keys in order, with scans: a B+ tree. A read takes one
 *			round trip, a change two, once the client knows the
 *			inner nodes.
 * AQ_INDEX_VERSIONS	keys are numbers, in no order; a write appends a
 *			version to its key's list. A switch of the rack can
 *			speed this up when many write the same keys.
 *
 *	struct aq_index_options options = {.size_bytes = 64 << 20};
 *	struct aq_index *index;
 *	struct aq_index_client *c;
 *
 *	if (aq_index_create(rack, "orders", &options, &index) ||
 *	    aq_index_client_open(index, NULL, &c) ||
 *	    aq_index_put(c, "2024-05-17/0042", 15, "ann", 3) ||
 *	    aq_index_scan(c, &(struct aq_index_range){.from = "2024-05",
 *						      .from_len = 7,
 *						      .to = "2024-06",
 *						      .to_len = 7},
 *			  print_it, NULL))
 *		fprintf(stderr, "%s\n", aq_last_error());
 *
 * Keys of a tree are 1 to key_max bytes in the order of memcmp, the shorter
 * first. Numbers keep their order as eight bytes, the highest first:
 * aq_index_key_u64. That is also the form of the keys of AQ_INDEX_VERSIONS.
 *
 * Consistency: every operation on one key is linearizable. A scan is not a
 * snapshot, see aq_index_scan.
 *
 * Threads: an index may be shared between threads; a client belongs to one
 * thread at a time. Threads that use the same handle wait for each other's
 * locks inside the process and not at the node. Errors are as in
 * <aquifer/aquifer.h>, and:
 *	-ENOENT		there is no such key
 *	-ENOSPC		no memory is left
 *	-EMSGSIZE	the value is longer than the buffer, or than values
 *			may be
 *	-EINVAL		a key that cannot be
 *	-ETIMEDOUT	other clients were faster until the deadline; it is not
 *			known whether a write has happened or will
 *	-ESTALE		the connection broke, or this client was slow, taken
 *			for dead and fenced: it is not known whether the change
 *			was made. The next operation connects anew.
 *	-EOPNOTSUPP	indexes of this kind cannot do that
 *	-EDOM		a value that is no number
 *	-EBADMSG	the index is damaged
 */
#ifndef AQUIFER_INDEX_H
#define AQUIFER_INDEX_H

#include <aquifer/aquifer.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct aq_index;
struct aq_index_client;

enum {
	AQ_INDEX_NAME_MAX = 28, /* letters, digits, '-' and '_' */
	AQ_INDEX_KEY_MAX = 64,
	AQ_INDEX_VALUE_MAX = 3072,
};

enum aq_index_kind {
	AQ_INDEX_TREE,
	AQ_INDEX_VERSIONS,
};

enum aq_index_flags {
	/* Locks may lie in host memory where device memory is used up. */
	AQ_INDEX_HOST_LOCKS = 1u << 0,
	/* The switch replaces the atomics on a tree's locks: -EOPNOTSUPP
	 * without such a switch. */
	AQ_INDEX_SWITCH_LOCKS = 1u << 1,
};

/* Zero-initialise it; unset members have their default. */
struct aq_index_options {
	uint32_t kind;	     /* enum aq_index_kind */
	uint32_t flags;	     /* enum aq_index_flags */
	uint32_t value_max;  /* bytes; 0: 32, or 128 for versions */
	uint32_t clients;    /* at one time; 0: 256 */
	uint32_t failure_ms; /* a silent client is dead; 0: 1000 */
	const char *node;    /* NULL: the one with the most free memory */
	/* A tree. */
	uint32_t key_max;    /* bytes; 0: 32 */
	uint32_t node_bytes; /* of the tree's nodes, 256 to 16384; 0: 1024 */
	uint32_t locks;	     /* 0: one per node, up to 8192 */
	uint32_t reserved0;
	uint64_t size_bytes; /* 0: 64 MiB */
	/* Versions. */
	uint64_t keys;	   /* room for this many; required */
	uint64_t versions; /* at one time; 0: four per key, and some */
	uint64_t reserved[4];
};

/* -EEXIST, -ENOSPC, -EINVAL. The caller owns *index. */
AQ_API int aq_index_create(struct aq_rack *rack, const char *name,
			   const struct aq_index_options *options,
			   struct aq_index **index);
AQ_API int aq_index_open(struct aq_rack *rack, const char *name,
			 struct aq_index **index);
/* Its clients must be closed before. NULL is allowed. */
AQ_API void aq_index_close(struct aq_index *index);
/* Deletes the index, for all clients. */
AQ_API int aq_index_drop(struct aq_rack *rack, const char *name);

/* How an index is. */
enum aq_index_condition {
	AQ_INDEX_WHOLE,
	AQ_INDEX_DAMAGED, /* something of it was deleted, or is no index */
	AQ_INDEX_UNKNOWN, /* its node answers, but the memory does not */
};

struct aq_index_listed {
	const char *name;   /* until the call returns */
	uint32_t kind;	    /* enum aq_index_kind */
	uint32_t condition; /* enum aq_index_condition */
	bool has_keys;	    /* else nobody has counted: it is large */
	/* The tree is large: keys is what its memory would hold if all of it
	 * were like its beginning. */
	bool is_estimate;
	uint8_t reserved0[6];
	uint64_t keys;
	uint64_t size_bytes; /* of its regions */
	uint64_t reserved[6];
};

/*
 * Calls `each` for all indexes of the tenant, in the order of their names,
 * until it returns other than 0, which is returned. An index whose node does
 * not answer is not known to anybody and is missing. Up to 8192 keys are
 * counted.
 */
typedef int (*aq_index_listed_fn)(const struct aq_index_listed *index,
				  void *user);
AQ_API int aq_index_each(struct aq_rack *rack, aq_index_listed_fn each,
			 void *user);
/* Whether a region of that name would be an index's, and which one's. */
AQ_API bool aq_index_owns_region(const char *region,
				 char name[AQ_INDEX_NAME_MAX + 1]);

struct aq_index_info {
	uint32_t kind; /* enum aq_index_kind */
	uint32_t key_max;
	uint32_t value_max;
	uint32_t node_bytes;
	uint32_t entries_per_leaf;
	uint32_t entries_per_inner; /* node */
	uint32_t clients;
	uint32_t failure_ms;
	uint32_t locks;
	bool locks_on_device; /* else in host memory */
	bool locks_at_switch; /* which replaces their atomics */
	uint8_t reserved0[2];
	uint64_t nodes; /* of a tree; of versions: versions */
	uint64_t size_bytes;
	uint64_t keys; /* of versions: that there is room for */
	uint64_t reserved[3];
};
AQ_API void aq_index_get_info(const struct aq_index *index,
			      struct aq_index_info *info);

/* ---- clients ------------------------------------------------------------ */

enum aq_index_client_flags {
	/* A tree: every get is a walk from the root to the leaf, which the
	 * memory node executes: one round trip without knowing any inner node.
	 * For clients that read a few keys of a large index. What the node does
	 * not execute is read. */
	AQ_INDEX_WALK = 1u << 0,
	/* A tree: nothing is remembered from one operation to the next. */
	AQ_INDEX_NO_CACHE = 1u << 1,
};

/* Zero-initialise it; unset members have their default. */
struct aq_index_client_options {
	uint32_t deadline_ms; /* of one operation; 0: the rack's */
	/* Inner nodes of a tree, or keys' places, that are remembered. */
	uint32_t cache; /* 0: 4096 */
	uint32_t flags; /* enum aq_index_client_flags */
	uint32_t reserved0;
	uint64_t reserved[3];
};

/* `options` may be NULL. -EAGAIN: the index has no place for another client. */
AQ_API int aq_index_client_open(struct aq_index *index,
				const struct aq_index_client_options *options,
				struct aq_index_client **c);
/* NULL is allowed. */
AQ_API void aq_index_client_close(struct aq_index_client *c);

/* ---- operations --------------------------------------------------------- */

/* A number as a key: numbers and their keys have the same order. */
static inline void aq_index_key_u64(uint64_t number, uint8_t key[8])
{
	for (int i = 0; i < 8; i++)
		key[i] = (uint8_t)(number >> (56 - 8 * i));
}

/*
 * Copies the value. *len is its length, also with -EMSGSIZE, when as much was
 * copied as fits. `buf` may be NULL when buf_bytes is 0.
 */
AQ_API int aq_index_get(struct aq_index_client *c, const void *key,
			size_t key_len, void *buf, size_t buf_bytes,
			size_t *len);
AQ_API int aq_index_put(struct aq_index_client *c, const void *key,
			size_t key_len, const void *value, size_t value_len);
/* -ENOENT: there was none; AQ_INDEX_VERSIONS cannot tell, and says 0. */
AQ_API int aq_index_del(struct aq_index_client *c, const void *key,
			size_t key_len);

/* Zero-initialise it: everything. */
struct aq_index_range {
	const void *from; /* the first, if it is there */
	size_t from_len;
	const void *to; /* before this one; NULL: to the end */
	size_t to_len;
	bool is_after; /* leave `from` out, to go on where a scan ended */
	uint8_t reserved[7];
};

/*
 * Calls `each` in the order of keys; stops when it returns other than 0, which
 * is returned. Each pair existed at some moment of the scan, and no key that
 * existed all the time is missing. Key and value live for the call, in which no
 * other call of this client may be made. Versions have no order: all of them
 * are given in any, and a range is -EOPNOTSUPP.
 */
typedef int (*aq_index_pair_fn)(void *user, const void *key, size_t key_len,
				const void *value, size_t value_len);
AQ_API int aq_index_scan(struct aq_index_client *c,
			 const struct aq_index_range *range,
			 aq_index_pair_fn each, void *user);

enum aq_index_reduce_flags {
	/* Only count the keys: values may be anything. */
	AQ_INDEX_COUNT = 1u << 0,
};

/* What is in a range. */
struct aq_index_reduced {
	uint64_t count; /* of keys */
	/* Of values; 0 if there are none, or with AQ_INDEX_COUNT. */
	int64_t sum, min, max;
	bool sum_is_cut; /* it needs more than 64 bits, and has the low ones */
	uint8_t reserved0[7];
	uint64_t reserved[4];
};

/*
 * Count, sum, minimum and maximum of the values in a range of a tree. Numbers
 * are values of eight bytes: signed, the lowest byte first; another value in
 * the range is -EDOM. The memory node adds them up and sends one answer; where
 * it does not, or finds the tree being changed, the client reads the rest.
 * Either way it is what a scan of the range at this time would give.
 * AQ_INDEX_VERSIONS: -EOPNOTSUPP.
 */
AQ_API int aq_index_reduce(struct aq_index_client *c,
			   const struct aq_index_range *range, uint32_t flags,
			   struct aq_index_reduced *reduced);

/* What this client did, since it was opened. */
struct aq_index_stats {
	uint64_t gets, puts, deletes, scans;
	/* Round trips; of versions all together in get_trips. */
	uint64_t get_trips, put_trips, delete_trips, scan_trips;
	uint64_t leaves_scanned;
	uint64_t torn; /* reads of nodes that changed meanwhile */
	uint64_t splits;
	uint64_t lock_fails; /* tries that found a lock held */
	uint64_t handed;     /* locks handed over by a client of this process */
	uint64_t fenced;     /* clients that this one fenced */
	uint64_t mended;     /* nodes of dead clients repaired */
	uint64_t reconnects;
	uint64_t walks;	      /* that the memory node executed */
	uint64_t walks_short; /* of them, those that READs went on for */
	uint64_t reserved[6];
};
AQ_API void aq_index_client_stats(const struct aq_index_client *c,
				  struct aq_index_stats *stats);

struct aq_index_report {
	uint64_t keys;
	uint64_t levels, leaves, inner_nodes; /* of a tree */
	uint64_t versions;		      /* that entries lead to */
	uint64_t bad_nodes;   /* torn, or not what a pointer says */
	uint64_t bad_entries; /* out of place, or twice */
	uint64_t bad_links;   /* nodes that do not join, or join in a circle */
	uint64_t unfinished;  /* harmless: the next client ends it */
	uint64_t locks_held;
	uint64_t clients;
	uint64_t chunks, chunks_taken; /* of memory */
	uint64_t reserved[8];
};

/* Reads everything and verifies every invariant. On an index in use, changes
 * under way may be reported as bad. Returns 0 also when the index is bad. */
AQ_API int aq_index_check(struct aq_index_client *c,
			  struct aq_index_report *report);

#ifdef __cplusplus
}
#endif

#endif
