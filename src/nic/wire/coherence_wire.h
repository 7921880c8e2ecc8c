/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coherent shared memory on the wire (docs/mind.md). A page is 4 KiB. Between a
 * machine and the switch there are RC connections:
 *
 *  lanes    a get: READ of one whole page at its virtual address, with the
 *	     domain's key to read or to write. One at a time on a lane.
 *  talk     give-backs: WRITE of one whole page with the domain's key to give;
 *	     FIN, EVICT, CLEAN: SEND of a record. From the switch: SEND of an
 *	     INVAL or LOST record.
 *
 * A get that cannot be granted is told by a LOST record, which names its lane
 * and serial; the READ is answered after that record was received, with bytes
 * that mean nothing, so that the connection lives on.
 *
 * Every number is big-endian. Records of another version are refused.
 */
#ifndef AQ_WIRE_COHERENCE_WIRE_H
#define AQ_WIRE_COHERENCE_WIRE_H

#include "base/base.h"
#include "base/bytes.h"

enum {
	COHERENCE_VERSION = 1,
	COHERENCE_PAGE_SHIFT = 12,
	COHERENCE_PAGE_BYTES = 1 << COHERENCE_PAGE_SHIFT,
	COHERENCE_LANES = 16,
	COHERENCE_NODES = 64,
	COHERENCE_NODE_SHIFT = 40, /* addresses of one memory node */
	COHERENCE_RECORD_BYTES = 64,
	COHERENCE_INVAL_BYTES = COHERENCE_RECORD_BYTES + 4 * COHERENCE_LANES,
};

/* The address of a memory node's arena, the same for all machines. */
#define COHERENCE_BASE 0x200000000000ull
/* Where unmodified programs have shared memory (apps/shm/shm.h): arenas of node
 * 0, one behind the other. */
#define COHERENCE_WINDOW 0x100000000000ull

static inline uint64_t coherence_arena(uint32_t node)
{
	return COHERENCE_BASE + ((uint64_t)node << COHERENCE_NODE_SHIFT);
}

enum coherence_kind {
	COHERENCE_INVAL = 1,
	COHERENCE_LOST,
	COHERENCE_FIN,
	COHERENCE_EVICT,
	COHERENCE_CLEAN,
};

/* Why a get was not granted. */
enum coherence_why {
	COHERENCE_WHY_LOST = 1, /* its owner died with stores */
	COHERENCE_WHY_RIGHT,	/* the domain may not */
	COHERENCE_WHY_NODE,	/* the memory node does not answer */
};

/* All records begin so; what a kind does not have is 0. */
struct coherence_record {
	uint8_t version;
	uint8_t kind;
	uint8_t to;   /* INVAL: what may be kept; LOST: enum coherence_why */
	uint8_t lane; /* LOST */
	be32 term;    /* INVAL, FIN, CLEAN */
	be32 seq;     /* INVAL, FIN */
	be32 count;   /* pages: INVAL, FIN, EVICT, LOST */
	be64 page;
	be64 target; /* INVAL */
	be32 serial; /* LOST: of the get on its lane */
	uint8_t zero[28];
};
STATIC_ASSERT(sizeof(struct coherence_record) == COHERENCE_RECORD_BYTES,
	      "record");

struct coherence_inval {
	struct coherence_record record;
	be32 granted[COHERENCE_LANES];
};
STATIC_ASSERT(sizeof(struct coherence_inval) == COHERENCE_INVAL_BYTES, "inval");

#endif
