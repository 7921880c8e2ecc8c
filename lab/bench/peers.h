/* SPDX-License-Identifier: Apache-2.0 */
/* The things measured by code of this program: ourselves and two peers. */
#ifndef AQ_BENCH_PEERS_H
#define AQ_BENCH_PEERS_H

#include "side.h"

/* Round trip of a raw ring in shared memory; no parameter. */
extern const struct side_ops ring_peer_ops;

/* memcpy of blocks of a local buffer; parameter: uint32_t block bytes. */
extern const struct side_ops copy_peer_ops;

/* READs by verbs. */
struct ours_param {
	uint32_t block; /* bytes of one READ */
	uint32_t depth; /* outstanding, over all queue pairs */
	uint32_t qp_count;
	bool direct;	     /* remote memory that the direct port may map */
	bool caller_time;    /* times of post and poll alone, not of the READ */
	uint8_t ack_timeout; /* as verbs count it; 0: 67 ms */
	bool auth;	     /* packets carry a MAC */
};

extern const struct side_ops ours_ops; /* parameter: struct ours_param */

#endif
