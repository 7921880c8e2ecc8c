/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of this room; every queue, table, loop and retry has one. */
#ifndef AQ_CLIENT_LIMITS_H
#define AQ_CLIENT_LIMITS_H

#include "base/piece_name.h"

enum {
	CLIENT_CLOSED_KEPT = 32, /* region handles kept after closing */
	CLIENT_NODE_MAX = PIECE_COUNT_MAX, /* memory nodes of a rack */
	CLIENT_NODE_NAME_MAX = 33,	   /* with the NUL, as the others */
	CLIENT_CONTROL_MAX = 5,
	CLIENT_ADDRESS_MAX = 256,
	CLIENT_PEER_MAX = 46, /* an IP address in words, with the NUL */
	CLIENT_TOKEN_MAX = 65,
	CLIENT_TENANT_NAME_MAX = 33,
	CLIENT_ID_MAX = 65, /* a connection's or grant's name, from a node */
	CLIENT_REGION_NAME_MAX = PIECE_REGION_MAX,
	CLIENT_PIECE_NAME_MAX = PIECE_NAME_MAX,
	CLIENT_REGION_MAX = 4096, /* open region handles of a rack */
	CLIENT_PATH_MAX = 192,

	CLIENT_STRIPE_SHIFT_MIN = PIECE_SHIFT_MIN,
	CLIENT_STRIPE_SHIFT_MAX = PIECE_SHIFT_MAX,
	CLIENT_STRIPE_SHIFT = 16, /* the default: 64 KiB */

	/* Each thread stages its transfers in this much registered memory. */
	CLIENT_SLOT_COUNT = 4,
	CLIENT_SLOT_BYTES = 64 << 10,

	CLIENT_DEADLINE_MS = 5000,
	CLIENT_DEADLINE_MS_MAX = 3600 * 1000,
	CLIENT_HEARTBEAT_MS = 1000,	   /* until a node says otherwise */
	CLIENT_HEARTBEAT_TIMEOUT_MS = 800, /* of one heartbeat */
	CLIENT_HEARTBEAT_IDS = 512,	   /* connections in one request */
	CLIENT_KEEP_MS = 100,		   /* between ticks of keepalives */
	/* Of an operation, each but the first after a refresh: a region that
	 * has moved may be met by a connection that has ended, too. */
	CLIENT_ATTEMPTS = 4,

	/* The longest answers that are read, in bytes: one object, a list. */
	CLIENT_REPLY_MAX = 64 << 10,
	CLIENT_LIST_MAX = 16 << 20,

	CLIENT_IDLE_YIELDS = 2000, /* of a wait, before it naps */
	CLIENT_NAP_NS = 50000,

	/* Tallies of a rack handle: of its threads, and of clients of tables,
	 * indexes and so on. Further ones are not shown. */
	CLIENT_TALLIES = 32,
};

#endif
