/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes that have memory: EDM's four messages executed against bytes, at the
 * times of a simulated fabric. RREQ takes bytes of another node's memory, which
 * RRES brings; WREQ brings bytes there, chunk by chunk as they arrive; RMWREQ
 * is executed at the memory's NIC, all of it at one instant, and RRES brings
 * what was there before. Any fabric of this room can be below.
 *
 * A node's requests to one other node take effect in their order where they
 * touch the same bytes: a request would overtake a write that waits for its
 * grant, so it is held until the write has left, and a write is held until
 * earlier reads of its bytes were answered. Nothing else is promised.
 *
 * One thread. Completions are polled.
 */
#ifndef AQ_EDM_MEMORY_H
#define AQ_EDM_MEMORY_H

#include "edm_config.h"

enum edm_modify {
	EDM_COMPARE_SWAP, /* arg[0]: what must be there, arg[1]: what then is */
	EDM_FETCH_ADD,	  /* arg[0] */
	EDM_SWAP,	  /* arg[0] */
};

struct edm_request {
	enum edm_op op;
	uint16_t src, dst; /* who asks, whose memory */
	uint64_t local;	   /* where bytes come from or go to, at src */
	uint64_t remote;   /* at dst */
	uint32_t bytes;	   /* of an RMW: 8 */
	enum edm_modify modify;
	uint64_t arg[2];
	uint64_t tag; /* the caller's */
};

struct edm_completion {
	uint64_t tag;
	uint64_t start_ps, end_ps;
	uint64_t value; /* of an RMW: what was there */
	bool null;	/* the memory did not answer, or a write was lost */
};

struct edm_memory;

/* All nodes of the configuration, each with that much memory, zeroed. A write
 * completes when its last byte is in memory, which only a simulation can see:
 * EDM acknowledges nothing. */
int edm_memory_create(const struct edm_config *c, uint64_t bytes,
		      struct edm_memory **out) MUST_CHECK;
void edm_memory_destroy(struct edm_memory *m);
uint8_t *edm_memory_at(struct edm_memory *m, uint16_t node);
uint64_t edm_memory_now_ps(const struct edm_memory *m);

/* -ERANGE: no such node or bytes, or the word of an RMW is not aligned.
 * -EAGAIN: 256 messages between these nodes are under way, as many as ids. */
int edm_memory_post(struct edm_memory *m,
		    const struct edm_request *r) MUST_CHECK;
/* The next completion, running the fabric until there is one, or until time
 * until_ps, when it is false. */
bool edm_memory_poll(struct edm_memory *m, uint64_t until_ps,
		     struct edm_completion *out) MUST_CHECK;
/* Requests that were held because of earlier ones. */
uint64_t edm_memory_held(const struct edm_memory *m);

#endif
