/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory node's half of paging: page frames (pieces of memory of one size),
 * the queue of free ones, and a translation table per client. The NIC works on
 * them by chains of work requests, or the node's processor does.
 *
 * The room knows verbs and nothing of tenants, HTTP or threads; memnode/ and
 * the laboratory use it.
 *
 * The invariant: every page frame is in exactly one place, the queue or one
 * table, except for the one page frame that each unmapped-store or invalidate
 * chain may hold; the step at which it stopped tells which.
 *
 * Threads: pool functions may be called by any thread, and run beside chains.
 * The rest belongs to one thread at a time; pframe_server.h says what holds for
 * servers.
 */
#ifndef AQ_PFRAME_H
#define AQ_PFRAME_H

#include <infiniband/verbs.h>

#include "base/base.h"
#include "wire/page_wire.h"

/* ---- pools (pframe_pool.c) ---------------------------------------------- */

struct pframe_pool;

enum {
	PFRAME_BYTES_MIN = 64,
	PFRAME_BYTES_MAX = 1 << 20,
	PFRAME_QUEUE_BYTES = 32, /* of the queue per page frame, at most */
};

/* Reserves addresses for this many bytes, rounded down to whole page frames,
 * without any page frame yet. `is_pinned`: registered memory must keep its
 * pages, as with an RNIC. */
int pframe_pool_reserve(uint64_t bytes, uint32_t pframe_bytes, bool is_pinned,
			struct pframe_pool **out) MUST_CHECK;
/* All its page frames, and sparse memory of its spaces, lie on that NUMA node;
 * called before there are any. -errno with words. */
int pframe_pool_bind(struct pframe_pool *pool, uint32_t node) MUST_CHECK;
/* Puts more page frames into the queue, as reserved; returns how many. */
uint64_t pframe_pool_add(struct pframe_pool *pool, uint64_t pframes);
/* The reverse: withdraws page frames that are free now, the rest in later
 * calls, also with 0, as they become free. Their memory goes back. It takes
 * long. */
void pframe_pool_withdraw(struct pframe_pool *pool, uint64_t pframes);
/* Makes a pool with all its page frames. Memory is taken as it is used. */
int pframe_pool_create(uint64_t bytes, uint32_t pframe_bytes,
		       struct pframe_pool **out) MUST_CHECK;
/* No space may use it any more. */
void pframe_pool_destroy(struct pframe_pool *pool);
/* Frames in circulation, including those to be withdrawn. */
uint64_t pframe_pool_count(const struct pframe_pool *pool);
/* Frames to be withdrawn. */
uint64_t pframe_pool_owed(const struct pframe_pool *pool);
uint32_t pframe_pool_each_bytes(const struct pframe_pool *pool);
/* Page frames in the queue; exact while no chain runs. */
uint64_t pframe_pool_free(const struct pframe_pool *pool);

/* The address of a page frame, or 0: there is none left. */
uint64_t pframe_pool_pop(struct pframe_pool *pool);
void pframe_pool_push(struct pframe_pool *pool, uint64_t pframe);
bool pframe_pool_has(const struct pframe_pool *pool, uint64_t pframe);

/* A chain took this place of the queue and found nothing there, so a page frame
 * that is put there later is lost. pframe_pool_mend brings such page frames
 * back and returns how many places are still empty; call it now and then. */
void pframe_pool_hole(struct pframe_pool *pool, uint64_t place);
unsigned pframe_pool_mend(struct pframe_pool *pool);
/* A chain took this place for a page frame and stopped before putting it
 * there. */
void pframe_pool_fill(struct pframe_pool *pool, uint64_t place,
		      uint64_t pframe);

/* ---- spaces (pframe_space.c) -------------------------------------------- */

struct pframe_chain;
struct pframe_space;

enum {
	PFRAME_DEPTH_MAX = 1024,
	PFRAME_ENTRIES_MAX = 1 << 28,
};

struct pframe_space_options {
	struct ibv_pd *pd;
	uint64_t entries; /* of the table */
	uint64_t budget;  /* page frames at most; 0: as many as entries */
	uint32_t depth;	  /* messages under way per chain */
	/* Page frames are given out with keys of their own; messages never
	 * store to them. */
	bool is_pieces;
	/* The same, but the client gets a part of memory that only it has a key
	 * for and may map (pframe_sparse.c); the page frame only counts for it
	 * and its memory is not used. Page frames are whole pages of the
	 * machine. */
	bool is_sparse;
};

/* Memory that such a space takes at most: its table, its list of keys, and the
 * places of the queue for as many page frames as it has entries. */
uint64_t pframe_space_bytes(const struct pframe_space_options *options);

/*
 * Chains or guests of a server work on a space, never both: the two do not know
 * of each other's answers, and a page frame must not go back while an answer is
 * still read from it.
 */
int pframe_space_create(struct pframe_pool *pool,
			const struct pframe_space_options *options,
			struct pframe_space **out) MUST_CHECK;
/* Ends its chains, if it still has some, and returns all page frames to the
 * queue. Its other queue pairs must be gone. */
void pframe_space_destroy(struct pframe_space *space);
/* Page frames that the space holds; computed from completion counters where
 * chains work on it. */
uint64_t pframe_space_used(const struct pframe_space *space);
/* Whether it holds more frames than its budget. */
bool pframe_space_is_over(const struct pframe_space *space);
bool pframe_space_is_mapped(const struct pframe_space *space, uint64_t index);

/* Memory that the client of a sparse space has touched; else 0. An honest one
 * has not touched more than it holds. */
uint64_t pframe_space_touched_bytes(const struct pframe_space *space);

/* Looks an entry up for the node's processor. The page frame's address or 0. */
uint64_t pframe_space_find(const struct pframe_space *space, uint64_t index);
/* Finds the entry's frame or takes one. -ENOSPC, -EDQUOT, -EINVAL. */
int pframe_space_map(struct pframe_space *space, uint64_t index,
		     uint64_t *pframe) MUST_CHECK;

#endif
