/* SPDX-License-Identifier: Apache-2.0 */
/* What this room's files share. */
#ifndef AQ_FRAME_PRIV_H
#define AQ_FRAME_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "frame.h"

enum {
	FRAME_HOLES_MAX = 4096,
	FRAME_PLACE_BYTES = 8,
};

/*
 * The words that chains count up lie alone in their cache lines. They hold
 * addresses of places: the queue is as large as it is aligned, so adding to the
 * low bits alone wraps round.
 */
struct frame_queue {
	_Atomic uint64_t head CACHE_ALIGNED; /* next place to take from */
	_Atomic uint64_t tail CACHE_ALIGNED; /* next place to put to */
};

struct frame_pool {
	uint32_t frame_bytes;
	uint64_t count;
	uint8_t *frames;
	uint64_t frames_bytes;
	struct frame_queue *queue; /* a page, and the places behind it */
	uint8_t *queue_map;
	uint64_t queue_map_bytes;
	_Atomic uint64_t *places; /* frames' addresses, big-endian; 0: none */
	uint64_t places_bytes;	  /* a power of two */

	pthread_mutex_t lock; /* the holes */
	unsigned hole_count;
	uint64_t hole[FRAME_HOLES_MAX];
};

struct frame_space {
	struct frame_pool *pool;
	struct ibv_pd *pd;
	uint64_t entries;
	uint64_t budget;
	uint32_t depth;
	uint64_t used;		 /* by the processor's doing */
	_Atomic uint64_t *table; /* frames' addresses, big-endian; 0: none */
	uint64_t table_bytes;
	struct frame_chain *chain[PAGE_CHAIN_COUNT];
	/* Of chains that are gone: frames taken minus frames given back. */
	int64_t past_used;
};

/* Numbers in memory that work requests copy are big-endian. */
static inline uint64_t frame_swap(uint64_t v)
{
	return BYTES_BE64(v);
}

#endif
