/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of this room; every queue, table, loop and retry has one. */
#ifndef AQ_OFFLOAD_LIMITS_H
#define AQ_OFFLOAD_LIMITS_H

enum {
	/* What an application gets when it does not choose. */
	OFFLOAD_ENTRIES = 1024,
	OFFLOAD_DATA_BYTES = 1 << 20,

	OFFLOAD_SESSIONS_MAX = 1024, /* application threads of one engine */

	/* Work requests of one session: towards the application, and towards
	 * each memory node, reads and writes apart. */
	OFFLOAD_RING_DEPTH = 256,
	OFFLOAD_NODE_DEPTH = 256,
	OFFLOAD_POST_MAX = 32,	       /* posted at one go */
	OFFLOAD_GATHERS = 16,	       /* under way at a node */
	OFFLOAD_PART_BYTES = 64 << 10, /* of one work request */
	OFFLOAD_CQE_MAX = 64,	       /* taken at one go */
	OFFLOAD_RED_SLOTS = 8,	       /* publications under way */

	OFFLOAD_QUANTUM_BYTES = 32 << 10, /* of a session's turn */
	/* Requests of one kind after which the other is not expected. */
	OFFLOAD_MIXED = 1024,
	OFFLOAD_REQUEST_COST = 64, /* bytes that a request counts for */
	OFFLOAD_BATCH = 32,
	OFFLOAD_FLUSH_NS = 10000,
	OFFLOAD_PROBE_MIN_NS = 1000,
	OFFLOAD_AHEAD_MIN = 4, /* requests fetched with a probe, unseen */
	OFFLOAD_AHEAD_MAX = 128,
	OFFLOAD_AHEAD_GAP_NS = 8000,   /* not for quiet applications */
	OFFLOAD_PROBE_BUSY_NS = 20000, /* while requests are under way */
	OFFLOAD_PROBE_IDLE_NS = 200000,
	OFFLOAD_PROBE_SLOW_NS = 1000000,
	OFFLOAD_PROBE_MAX_NS = 10000000,
};

#endif
