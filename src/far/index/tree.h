/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ordered index after Sherman (Wang, Lu and Shu, SIGMOD 2022): a B+ tree in
 * far memory that clients work on with one-sided operations only. Layout and
 * invariants are in tree_layout.h.
 *
 * A read is the READ of a leaf, to which the client's copies of inner nodes
 * lead; a change is lock and READ, then the entry and the unlocking. Clients of
 * one process wait for each other inside the process (struct tree_locals) and
 * hand locks on. Every step leaves a tree in which every key is found: a client
 * holds the lock of one node only, and the next client that meets an unfinished
 * change finishes it. A client that holds a lock and is silent for the failure
 * time is fenced, and its lock is taken over.
 *
 * Consistency: operations on one key are linearizable; a scan is not a
 * snapshot, see tree_scan. A client belongs to one thread at a time. Errors are
 * 0 or -errno with words, among them
 *	-ENOENT		there is no such key
 *	-ENOSPC		no memory for another node
 *	-EMSGSIZE	the value is longer than the buffer, or than values
 *			may be
 *	-ETIMEDOUT	others were faster until the deadline
 *	-ESTALE		the connection broke; a change has an unknown outcome.
 *			The next operation connects anew.
 *	-EBADMSG	the index is damaged
 */
#ifndef AQ_INDEX_TREE_H
#define AQ_INDEX_TREE_H

#include "base/base.h"
#include "kit/kit.h"
#include "tree_layout.h"
#include "tree_program.h"

struct tree_options {
	uint64_t size_bytes;  /* for nodes; 0: 64 MiB */
	uint32_t node_bytes;  /* 0: 1024 */
	uint32_t key_max;     /* bytes; 0: 32 */
	uint32_t value_max;   /* bytes; 0: 32 */
	uint32_t clients;     /* at one time; 0: 256 */
	uint32_t failure_ms;  /* a silent client is dead; 0: 1000 */
	uint32_t locks;	      /* 0: one per node, up to 8192 */
	uint32_t chunk_nodes; /* a client takes at a time; 0: by size */
};

/* A geometry from options; -EINVAL with words. */
int tree_geometry_make(const struct tree_options *o,
		       struct tree_geometry *g) MUST_CHECK;

/* Where a client may be stopped by a test: before the request is posted. */
#define TREE_POINTS(X)                                        \
	X(READ, "something is read")                          \
	X(LOCK, "a lock is taken")                            \
	X(UNLOCK, "and let go")                               \
	X(ENTRY, "an entry is written")                       \
	X(RIGHT, "the right half of a node is written")       \
	X(LEFT, "the left half is")                           \
	X(NODE, "another whole node is written")              \
	X(ROOT, "the root changes")                           \
	X(SLOT, "a client says who it is, or that it leaves") \
	X(CHUNK, "a chunk is taken or left")

enum tree_point {
#define TREE_POINT_ENUM(name, help) TREE_POINT_##name,
	TREE_POINTS(TREE_POINT_ENUM)
#undef TREE_POINT_ENUM
	TREE_POINT_COUNT
};

/* The locks as the clients of one process see them. */
struct tree_locals;
int tree_locals_create(const struct tree_geometry *g,
		       struct tree_locals **out) MUST_CHECK;
void tree_locals_destroy(struct tree_locals *l);

/* Who executes walks (tree_program.h) where the memory is. */
struct tree_walker {
	/* From that offset of the structure on, with the first send_bytes of
	 * the pad, whose rest is zero there. 0: it came to its end;
	 * -ECANCELED: it gave up; else -errno. The pad is as far as it got, and
	 * *trips is how often the node was asked. */
	int (*run)(void *ctx, enum tree_walk walk, uint64_t start, void *pad,
		   size_t pad_bytes, size_t send_bytes, uint32_t *trips);
	void *ctx;
};

struct tree_config {
	uint32_t deadline_ms; /* of one operation; 0: 5000 */
	uint32_t cache_nodes; /* inner nodes that are remembered; 0: 4096 */
	/* Shared by the process's clients of this index; NULL: there is one
	 * client. It must outlive the client. */
	struct tree_locals *locals;
	/* Without one everything is read; it must outlive the client. */
	const struct tree_walker *walker;
	bool walks_gets; /* every get is a walk, without copies of inner nodes
			  */
	bool no_cache;	 /* an operation begins without such copies */
	/* NULL: never. True stops the client for good. */
	bool (*crash)(void *ctx, int point);
	void *ctx;
};

struct tree_client;

/* Writes an empty index into zeroed memory. */
int tree_format(const struct kit_remote *remote,
		const struct tree_geometry *g) MUST_CHECK;
/* Reads the head of an index. */
int tree_probe(const struct kit_remote *remote,
	       struct tree_geometry *g) MUST_CHECK;
/* -EAGAIN: the index has no place for another client. */
int tree_client_create(const struct kit_remote *remote,
		       const struct tree_geometry *g,
		       const struct tree_config *config,
		       struct tree_client **out) MUST_CHECK;
/* After a crash it leaves everything as it is; otherwise it leaves its slot. */
void tree_client_destroy(struct tree_client *c);
bool tree_client_is_crashed(const struct tree_client *c);

/* *len is the value's length, also with -EMSGSIZE, when as much was copied as
 * fits. */
int tree_get(struct tree_client *c, const void *key, size_t key_len, void *buf,
	     size_t buf_bytes, size_t *len) MUST_CHECK;
int tree_put(struct tree_client *c, const void *key, size_t key_len,
	     const void *value, size_t len) MUST_CHECK;
int tree_del(struct tree_client *c, const void *key, size_t key_len) MUST_CHECK;

/* What to scan: keys in [from, to). */
struct tree_range {
	const void *from; /* NULL with a length of 0: from the first */
	size_t from_len;
	const void *to; /* NULL: to the last */
	size_t to_len;
	bool is_after; /* without `from` itself */
};

/*
 * Calls `each` in the order of keys; stops when it returns other than 0, which
 * is returned. Each pair existed at some moment of the scan, and no key that
 * existed all the time is missing. Key and value live for the call.
 */
typedef int (*tree_pair_fn)(void *user, const void *key, size_t key_len,
			    const void *value, size_t len);
int tree_scan(struct tree_client *c, const struct tree_range *range,
	      tree_pair_fn each, void *user) MUST_CHECK;

/* What numbers there are in a range, or only how many keys. */
struct tree_reduced {
	uint64_t count;
	uint64_t sum; /* of 128 bits, in two's complement */
	uint64_t sum_high;
	int64_t min, max; /* 0 if there are none */
};

/*
 * Adds up the values of a range, or only counts its keys, by a walk as far as
 * one leads, and else by a scan; what is said of scans is true of it. A value
 * is a number if it has TREE_NUMBER_BYTES; -EDOM: one has not.
 */
int tree_reduce(struct tree_client *c, const struct tree_range *range,
		bool only_count, struct tree_reduced *out) MUST_CHECK;

#define TREE_STATS(X)                                           \
	X(gets, "reads")                                        \
	X(puts, "writes")                                       \
	X(deletes, "deletes")                                   \
	X(scans, "scans")                                       \
	X(get_trips, "round trips of reads")                    \
	X(put_trips, "and of writes")                           \
	X(delete_trips, "and of deletes")                       \
	X(scan_trips, "and of scans")                           \
	X(walks, "walks on the memory node")                    \
	X(walks_short, "of them, those that READs went on for") \
	X(leaves, "leaves that scans have read")                \
	X(torn, "nodes read while they changed")                \
	X(rights, "steps to the right")                         \
	X(restarts, "ways that began again at the root")        \
	X(inner_reads, "inner nodes read")                      \
	X(splits, "nodes split")                                \
	X(grown, "levels added")                                \
	X(helped, "separators put in for others")               \
	X(pruned, "empty leaves removed")                       \
	X(locks, "locks taken")                                 \
	X(lock_fails, "tries that found one held")              \
	X(handed, "locks that another client here left for us") \
	X(taken_over, "locks of the dead")                      \
	X(fenced, "silent clients that this one fenced")        \
	X(mended, "nodes of the dead put in order")             \
	X(lost, "entries in them that were half written")       \
	X(chunks, "chunks taken")                               \
	X(adopted, "of them, those that others had")            \
	X(reclaimed, "nodes in them that nothing led to")       \
	X(reconnects, "connections made anew")

struct tree_stats {
#define TREE_STAT_FIELD(name, help) uint64_t name;
	TREE_STATS(TREE_STAT_FIELD)
#undef TREE_STAT_FIELD
};

const struct tree_stats *tree_client_stats(struct tree_client *c);

/* What is wrong with an index. In an index in use, changes under way may be. */
struct tree_report {
	uint64_t keys;
	uint64_t levels;
	uint64_t leaves;
	uint64_t inner;
	uint64_t dead;	       /* empty leaves, not taken out yet */
	uint64_t bad_nodes;    /* torn, or not what a pointer says */
	uint64_t bad_entries;  /* out of their node's range, or twice */
	uint64_t bad_links;    /* ranges that do not join */
	uint64_t bad_children; /* pointers that do not lead to the key's node */
	uint64_t unnamed;      /* nodes not in a parent yet; harmless */
	uint64_t stale;	       /* first entries of a leaf that went; harmless */
	uint64_t locks_held;
	uint64_t clients;
	uint64_t chunks;
	uint64_t chunks_taken;
};

/* Nodes of chunks that clients have taken, in use or not. */
int tree_nodes_taken(struct tree_client *c, uint64_t *nodes) MUST_CHECK;

int tree_check(struct tree_client *c, struct tree_report *r) MUST_CHECK;
static inline bool tree_report_is_bad(const struct tree_report *r)
{
	return r->bad_nodes || r->bad_entries || r->bad_links ||
	       r->bad_children;
}

#endif
