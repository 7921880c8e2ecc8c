/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks on the wire. A request (RC_WALK) is a WALKETH and the first bytes of
 * the scratch pad, an answer (RC_WALK_ANSWER) an AETH, a WALKETH and the pad.
 * Both are one packet, and a walk has one packet number, as a READ of one
 * packet has.
 *
 * A switch may carry a walk on from node to node: UD_WALK_ON to the next one,
 * UD_WALK_BACK from there. Both have a WALKETH, an origin, which says what the
 * answer has to look like in the end, and the pad.
 */
#ifndef AQ_WALK_WIRE_H
#define AQ_WALK_WIRE_H

#include "base/base.h"
#include "base/bytes.h"

enum {
	WALK_WIRE_BYTES = 32,
	/* Of the path MTU, what is not left for the pad: a switch that carries
	 * a walk on to another node adds as much. */
	WALK_WIRE_OVERHEAD = 64,
	WALK_WIRE_ORIGIN = 64,
	/* No switch carries it on: it has come far enough, or was not to. */
	WALK_WIRE_HOPS_MAX = 255,
};

/* How a walk ended; 0 in a request. */
enum walk_wire_status {
	WALK_WIRE_DONE = 0,
	WALK_WIRE_MORE = 1,	  /* no iterations left */
	WALK_WIRE_ELSEWHERE = 2,  /* `at` is on another node */
	WALK_WIRE_FAULT = 3,	  /* no node can be at `at` */
	WALK_WIRE_FAIL = 4,	  /* the low byte of `at` is the code */
	WALK_WIRE_NO_PROGRAM = 5, /* not here */
	WALK_WIRE_NO_RIGHT = 6,	  /* a store without the right to write, or the
				   * key was taken back on the way */
	WALK_WIRE_STATUSES,
};

struct wire_walk_eth {
	be64 at; /* offset in the region */
	be64 program;
	be32 key;	/* request: the key; answer: number of the space */
	be32 left;	/* iterations that may still be made */
	be16 pad_bytes; /* of the answer; in a request, the most it may be */
	uint8_t status; /* enum walk_wire_status */
	uint8_t hops;	/* from node to node so far, at most HOPS_MAX */
	be32 took;	/* iterations made so far */
};
STATIC_ASSERT(sizeof(struct wire_walk_eth) == WALK_WIRE_BYTES, "WALKETH");

/* Of the first node's answer, what the last one's needs as well. Nodes send it
 * back as it came; its code is the switch's. */
struct wire_walk_origin {
	uint8_t src_ip[16];
	uint8_t dst_ip[16];
	uint8_t src_mac[6];
	uint8_t dst_mac[6];
	be32 dest_qpn;
	be32 psn;
	be32 syndrome_msn;
	be32 space;
	be32 code;
};
STATIC_ASSERT(sizeof(struct wire_walk_origin) == WALK_WIRE_ORIGIN, "origin");

/* The same in host form. */
struct wire_walk {
	uint64_t at;
	uint64_t program;
	uint32_t key;
	uint32_t left;
	uint32_t took;
	uint16_t pad_bytes;
	uint8_t status;
	uint8_t hops;
};

static inline struct wire_walk wire_walk_get(const struct wire_walk_eth *eth)
{
	return (struct wire_walk){
		.at = be64_get(eth->at),
		.program = be64_get(eth->program),
		.key = be32_get(eth->key),
		.left = be32_get(eth->left),
		.took = be32_get(eth->took),
		.pad_bytes = be16_get(eth->pad_bytes),
		.status = eth->status,
		.hops = eth->hops,
	};
}

static inline struct wire_walk_eth wire_walk_put(const struct wire_walk *walk)
{
	return (struct wire_walk_eth){
		.at = be64_put(walk->at),
		.program = be64_put(walk->program),
		.key = be32_put(walk->key),
		.left = be32_put(walk->left),
		.pad_bytes = be16_put(walk->pad_bytes),
		.status = walk->status,
		.hops = walk->hops,
		.took = be32_put(walk->took),
	};
}

#endif
