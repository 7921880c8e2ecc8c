/* SPDX-License-Identifier: Apache-2.0 */
/* The named limits of switch/: how much, how many, how long. */
#ifndef AQ_TOR_LIMITS_H
#define AQ_TOR_LIMITS_H

enum {
	TOR_PORT_MAX = 1024,
	TOR_PORT_NAME_MAX = 32,
	TOR_PROGRAM_MAX = 16,
	TOR_OWN_MAX = 4, /* addresses of programs' own ends */
	TOR_END_BUCKETS = 1024,
	TOR_DEPTH_MAX = 4, /* programs that feed packets to each other */

	/* Frames up to this size can be held, copied and changed; larger ones
	 * (of an interface that joins segments) are only forwarded. */
	TOR_FRAME_MAX = 6144,

	TOR_FDB_ENTRIES = 1 << 14,
	TOR_FDB_ENTRIES_MAX = 1 << 22,
	TOR_FDB_WAYS = 8, /* places an address may have */

	TOR_FLOWS = 256,    /* kinds of packets whose port is remembered */
	TOR_TABLE_MAX = 16, /* tables that one program declares */

	TOR_FAULT_RULES = 16,
	TOR_FAULT_HELD = 512, /* frames delayed at a time */
	TOR_FAULT_PATTERN_MAX = 256,
};

/* A switch that did nothing for this long was perhaps not running. */
#define TOR_PAUSE_NS 500000000ull

/* A learned address that was silent for this long is not used any more. */
#define TOR_FDB_AGE_NS 300000000000ull

#endif
