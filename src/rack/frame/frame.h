/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory node's half of paging: frames (pieces of memory of one size), the
 * queue of free ones, a translation table per client, and who works on them:
 * the NIC by chains of work requests, or the node's processor.
 *
 * The room knows verbs and nothing of tenants, HTTP or threads; memnode/ and
 * scenarios put it to use.
 *
 * The invariant: every frame is in exactly one place, the queue or one table,
 * except for the one frame that each unmapped-store or invalidate chain may
 * have in its hands; where a chain stopped says which that is.
 *
 * Threads: pool functions may be called by any thread, and run beside chains.
 * The rest belongs to one thread at a time, see the servers for theirs.
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

/* Addresses for so many bytes, rounded down to whole frames, and no frame yet.
 * `is_pinned`: registered memory must keep its pages, as with an RNIC. */
int frame_pool_reserve(uint64_t bytes, uint32_t frame_bytes, bool is_pinned,
		       struct frame_pool **out) MUST_CHECK;
/* Puts more frames into the queue, up to what is reserved; how many. */
uint64_t frame_pool_add(struct frame_pool *pool, uint64_t frames);
/* The reverse: those that are free now, the rest by later calls, also of 0, as
 * they become free. Their memory goes back to the machine. Takes long. */
void frame_pool_withdraw(struct frame_pool *pool, uint64_t frames);
/* With all its frames. Memory is taken as it is used. */
int frame_pool_create(uint64_t bytes, uint32_t frame_bytes,
		      struct frame_pool **out) MUST_CHECK;
/* No space uses it any more. */
void frame_pool_destroy(struct frame_pool *pool);
/* In circulation, also those to be withdrawn. */
uint64_t frame_pool_count(const struct frame_pool *pool);
/* To be withdrawn. */
uint64_t frame_pool_owed(const struct frame_pool *pool);
uint32_t frame_pool_frame_bytes(const struct frame_pool *pool);
/* Frames in the queue; exact while no chain runs. */
uint64_t frame_pool_free(const struct frame_pool *pool);

/* The address of a frame, or 0: there is none left. */
uint64_t frame_pool_pop(struct frame_pool *pool);
void frame_pool_push(struct frame_pool *pool, uint64_t frame);
bool frame_pool_has(const struct frame_pool *pool, uint64_t frame);

/* A chain took this place of the queue and found nothing there: whoever fills
 * it fills it in vain. frame_pool_mend brings such frames back; call it every
 * now and then. Returns how many places are still empty. */
void frame_pool_hole(struct frame_pool *pool, uint64_t place);
unsigned frame_pool_mend(struct frame_pool *pool);
/* A chain took this place to put the frame there, and did not come to it. */
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
	/* Frames are given out with keys of their own, never stored to by
	 * message. */
	bool is_pieces;
	/* The same, but what is given out is a part of memory that only this
	 * client has a key for and may map (frame_sparse.c); the frame stands
	 * for it and is not used. Frames are whole pages of the machine. */
	bool is_sparse;
};

/* Memory that such a space takes at most: its table, its list of keys, and the
 * places of the queue for as many frames as it has entries. */
uint64_t frame_space_bytes(const struct frame_space_options *options);

/*
 * A space is worked on by chains or by guests of a server, never by both: the
 * two do not know of each other's answers, and a frame must not go back while
 * one of them is still read from it.
 */
int frame_space_create(struct frame_pool *pool,
		       const struct frame_space_options *options,
		       struct frame_space **out) MUST_CHECK;
/* Ends its chains, if it still has some, and returns all frames to the queue.
 * Its other queue pairs are gone. */
void frame_space_destroy(struct frame_space *space);
/* Frames that it holds; from completion counters where chains work on it. */
uint64_t frame_space_used(const struct frame_space *space);
/* Whether that is more than its budget. */
bool frame_space_is_over(const struct frame_space *space);
bool frame_space_is_mapped(const struct frame_space *space, uint64_t index);

/* Memory that the client of a sparse space has touched; else 0. An honest one
 * has not touched more than it holds. */
uint64_t frame_space_touched_bytes(const struct frame_space *space);

/* What the node's processor does for a client. The frame's address or 0. */
uint64_t frame_space_find(const struct frame_space *space, uint64_t index);
/* Finds or takes one. -ENOSPC, -EDQUOT, -EINVAL. */
int frame_space_map(struct frame_space *space, uint64_t index,
		    uint64_t *frame) MUST_CHECK;

#endif
