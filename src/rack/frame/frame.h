/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory node's half of paging: frames (pieces of memory of one size), the
 * queue of free ones, and a translation table per client. The NIC works on them
 * by chains of work requests, or the node's processor does.
 *
 * The room knows verbs and nothing of tenants, HTTP or threads; memnode/ and
 * plays use it.
 *
 * The invariant: every frame is in exactly one place, the queue or one table,
 * except for the one frame that each unmapped-store or invalidate chain may
 * hold; the step at which a chain stopped tells which frame that is.
 *
 * Threads: pool functions may be called by any thread, and run beside chains.
 * The rest belongs to one thread at a time; frame_server.h says what holds for
 * servers.
 */
#ifndef AQ_FRAME_H
#define AQ_FRAME_H

#include <infiniband/verbs.h>

#include "base/base.h"
#include "wire/page_wire.h"

/* ---- pools (frame_pool.c) ----------------------------------------------- */

struct frame_pool;

enum {
	FRAME_BYTES_MIN = 64,
	FRAME_BYTES_MAX = 1 << 20,
	FRAME_QUEUE_BYTES = 32, /* of the queue per frame, at most */
};

/* Reserves addresses for this many bytes, rounded down to whole frames, without
 * any frame yet. `is_pinned`: registered memory must keep its pages, as with an
 * RNIC. */
int frame_pool_reserve(uint64_t bytes, uint32_t frame_bytes, bool is_pinned,
		       struct frame_pool **out) MUST_CHECK;
/* Puts more frames into the queue, up to what is reserved; returns how many. */
uint64_t frame_pool_add(struct frame_pool *pool, uint64_t frames);
/* The reverse: withdraws frames that are free now, and the rest in later calls,
 * also with 0, as they become free. Their memory goes back to the machine. It
 * takes long. */
void frame_pool_withdraw(struct frame_pool *pool, uint64_t frames);
/* Makes a pool with all its frames. Memory is taken as it is used. */
int frame_pool_create(uint64_t bytes, uint32_t frame_bytes,
		      struct frame_pool **out) MUST_CHECK;
/* No space may use it any more. */
void frame_pool_destroy(struct frame_pool *pool);
/* Frames in circulation, including those to be withdrawn. */
uint64_t frame_pool_count(const struct frame_pool *pool);
/* Frames to be withdrawn. */
uint64_t frame_pool_owed(const struct frame_pool *pool);
uint32_t frame_pool_frame_bytes(const struct frame_pool *pool);
/* Frames in the queue; exact while no chain runs. */
uint64_t frame_pool_free(const struct frame_pool *pool);

/* The address of a frame, or 0: there is none left. */
uint64_t frame_pool_pop(struct frame_pool *pool);
void frame_pool_push(struct frame_pool *pool, uint64_t frame);
bool frame_pool_has(const struct frame_pool *pool, uint64_t frame);

/* A chain took this place of the queue and found nothing there, so a frame that
 * is put there later is lost. frame_pool_mend brings such frames back and
 * returns how many places are still empty; call it now and then. */
void frame_pool_hole(struct frame_pool *pool, uint64_t place);
unsigned frame_pool_mend(struct frame_pool *pool);
/* A chain took this place to put a frame there and stopped before it did. */
void frame_pool_fill(struct frame_pool *pool, uint64_t place, uint64_t frame);

/* ---- spaces (frame_space.c) --------------------------------------------- */

struct frame_chain;
struct frame_space;

enum {
	FRAME_DEPTH_MAX = 1024,
	FRAME_ENTRIES_MAX = 1 << 28,
};

struct frame_space_options {
	struct ibv_pd *pd;
	uint64_t entries; /* of the table */
	uint64_t budget;  /* frames at most; 0: as many as entries */
	uint32_t depth;	  /* messages under way per chain */
	/* Frames are given out with keys of their own; messages never store to
	 * them. */
	bool is_pieces;
	/* The same, but the client gets a part of memory that only it has a key
	 * for and may map (frame_sparse.c); the frame only counts for it and
	 * its memory is not used. Frames are whole pages of the machine. */
	bool is_sparse;
};

/* Memory that such a space takes at most: its table, its list of keys, and the
 * places of the queue for as many frames as it has entries. */
uint64_t frame_space_bytes(const struct frame_space_options *options);

/*
 * Chains or guests of a server work on a space, never both: the two do not know
 * of each other's answers, and a frame must not go back while an answer is
 * still read from it.
 */
int frame_space_create(struct frame_pool *pool,
		       const struct frame_space_options *options,
		       struct frame_space **out) MUST_CHECK;
/* Ends its chains, if it still has some, and returns all frames to the queue.
 * Its other queue pairs must be gone. */
void frame_space_destroy(struct frame_space *space);
/* Frames that the space holds; computed from completion counters where chains
 * work on it. */
uint64_t frame_space_used(const struct frame_space *space);
/* Whether it holds more frames than its budget. */
bool frame_space_is_over(const struct frame_space *space);
bool frame_space_is_mapped(const struct frame_space *space, uint64_t index);

/* Memory that the client of a sparse space has touched; else 0. An honest one
 * has not touched more than it holds. */
uint64_t frame_space_touched_bytes(const struct frame_space *space);

/* Looks an entry up for the node's processor. The frame's address or 0. */
uint64_t frame_space_find(const struct frame_space *space, uint64_t index);
/* Finds the entry's frame or takes one. -ENOSPC, -EDQUOT, -EINVAL. */
int frame_space_map(struct frame_space *space, uint64_t index,
		    uint64_t *frame) MUST_CHECK;

#endif
