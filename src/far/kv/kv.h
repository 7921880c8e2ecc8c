/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of <aquifer/kv.h> for other rooms: clients over memory that they
 * have connected to themselves, and the search for cuckoo paths.
 */
#ifndef AQ_KV_H
#define AQ_KV_H

#include <aquifer/kv.h>

#include <stdatomic.h>

#include "base/base.h"
#include "kit/kit.h"
#include "kv_layout.h"
#include "kv_limits.h"

/* ---- cuckoo paths ------------------------------------------------------- */

struct kv_step {
	uint64_t row;
	int entry; /* -1: a free one, not known which */
};

/* The new entry goes to step 0, the entry that was there to step 1, and so on;
 * the last step is free. */
struct kv_path {
	unsigned count;
	struct kv_step step[KV_PATH_MAX];
};

/* What a search may look at. */
struct kv_view {
	/* The row's bytes. NULL with *usable: the row is not known and counts
	 * as having a free entry; NULL without: it must not be used. */
	const uint8_t *(*row)(void *ctx, uint64_t row, bool *usable);
	void *ctx;
};

struct kv_search;
struct kv_search *kv_search_create(void);
void kv_search_destroy(struct kv_search *s);
/* The shortest path (BFS), or any (DFS). -ENOENT: none was found. */
int kv_search_run(struct kv_search *s, const struct kv_geometry *g,
		  const struct kv_view *view, const struct kv_place *place,
		  enum aq_kv_search how, struct kv_path *path) MUST_CHECK;
/* After a breadth-first search that found a path: other rows that may have room
 * and that entries of its rows could move to. Returns how many. */
unsigned kv_search_spares(const struct kv_search *s,
			  const struct kv_geometry *g,
			  const struct kv_view *view, uint64_t *row,
			  unsigned max);

/* ---- clients ------------------------------------------------------------ */

/* Where a client may be stopped by a test: before the request is posted. */
enum kv_point {
	KV_POINT_INTENT,
	KV_POINT_EXTENT,
	KV_POINT_MAP,
	KV_POINT_LOCK,
	KV_POINT_READ,
	KV_POINT_ROW,
	KV_POINT_ROW_TAIL, /* between entry and CRC, with split writes */
	KV_POINT_FREE,
	KV_POINT_UNLOCK,
	KV_POINT_IDLE,
	KV_POINT_LEASE,
	KV_POINT_FENCE,
	KV_POINT_MEND,
	KV_POINT_STATE,	  /* of a replica: roles and phases */
	KV_POINT_REPLICA, /* one is made or dropped */
	KV_POINT_COUNT,
};

const char *kv_point_name(enum kv_point point);

/* What a client has found out about its table that others should see to. */
enum kv_wish_kind {
	KV_WISH_ROWS,	 /* the index gets full */
	KV_WISH_EXTENTS, /* the memory for values gets full */
	KV_WISH_COPY,	 /* a copy is lost */
	KV_WISH_END,	 /* a resize was begun */
};

struct kv_wish {
	enum kv_wish_kind kind;
	uint32_t generation; /* of the table it was seen in */
	uint64_t bytes;	     /* EXTENTS: of a value that found no place; or 0 */
};

struct kv_client_config {
	struct aq_kv_client_options options;
	/* NULL: nobody sees to anything. It may be told the same again and
	 * again. 0, or why it cannot be done now, with words. */
	int (*wish)(void *ctx, const struct kv_wish *wish);
	void *wish_ctx;
	/* NULL: never. When it is true a resize ends between two steps, with
	 * -ECANCELED; others can go on with it. */
	const atomic_bool *stop;
	/* NULL: the time of day. */
	uint64_t (*now_ms)(void *ctx);
	/* NULL: never. True stops the client for good: it posts what comes
	 * before this request and nothing any more. */
	bool (*crash)(void *ctx, int point);
	void *ctx;
	/* Entry and CRC are two WRITEs, as where rows are wider than a packet;
	 * then a client can die between them. */
	bool split_writes;
	/* Inserts always read all rows of their locks, as published; else only
	 * those that the first guess needs. */
	bool whole_locks;
	uint64_t rng_seed; /* of back-offs; 0: any */
	/* Where operations are counted, or NULL; it outlives the client. */
	struct tally *tally;
};

/* Writes an empty replica into zeroed memory. */
int kv_format(const struct kit_remote *remote, const struct kv_geometry *g,
	      uint64_t state) MUST_CHECK;
/* Reads the head of a table of avail_bytes. */
int kv_probe(const struct kit_remote *remote, uint64_t avail_bytes,
	     struct kv_geometry *g) MUST_CHECK;
/* A client of a table of one replica. */
int kv_client_create(const struct kit_remote *remote,
		     const struct kv_geometry *g,
		     const struct kv_client_config *config,
		     struct aq_kv_client **out) MUST_CHECK;

/* Which replica. */
struct kv_id {
	uint32_t name; /* of its generation, 16 bits */
	uint32_t shard;
	uint32_t copy;
};

typedef void (*kv_id_fn)(void *user, const struct kv_id *id);

/* Where the replicas of a table are. Errors: -ENOENT, there is no such replica;
 * -EHOSTDOWN, its node does not answer. */
struct kv_world {
	void *ctx;
	/* Calls `each` for the replicas on nodes that answer. */
	int (*list)(void *ctx, kv_id_fn each, void *user);
	/* Connects; the remote is the caller's to close. */
	int (*open)(void *ctx, const struct kv_id *id,
		    struct kit_remote *remote);
	/* Makes one, in this state. The copies of one shard are on different
	 * nodes: else -ENOSPC. */
	int (*make)(void *ctx, const struct kv_id *id,
		    const struct kv_geometry *g, uint64_t state);
	int (*drop)(void *ctx, const struct kv_id *id);
	/* How many nodes answer, or -errno. */
	int (*nodes)(void *ctx);
};

/* A client of a table of any replicas. */
int kv_client_open(const struct kv_world *world,
		   const struct kv_client_config *config,
		   struct aq_kv_client **out) MUST_CHECK;
/* Makes the replicas of a new table, or of a next generation, one after the
 * other. *made, or NULL: how many there are, also after an error. */
int kv_replicas_make(const struct kv_world *world, const struct kv_geometry *g,
		     enum kv_phase phase, uint32_t *made) MUST_CHECK;
/* Takes back the first `made` of them. */
void kv_replicas_drop(const struct kv_world *world, const struct kv_geometry *g,
		      uint32_t made);
/* After a crash it leaves everything as it is; else it leaves its slots. */
void kv_client_destroy(struct aq_kv_client *c);
bool kv_client_is_crashed(const struct aq_kv_client *c);
/* Empties its cache of the index. For comparisons. */
void kv_client_forget(struct aq_kv_client *c);
/* A geometry from options; -EINVAL with words. */
int kv_geometry_make(const struct aq_kv_options *o,
		     struct kv_geometry *g) MUST_CHECK;

#endif
