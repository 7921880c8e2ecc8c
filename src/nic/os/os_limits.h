/* SPDX-License-Identifier: Apache-2.0 */
/* The named limits of os/: how much, how many, how long. */
#ifndef AQ_OS_LIMITS_H
#define AQ_OS_LIMITS_H

#include "core/nic.h"

enum {
	/* One byte ring of a cable, one per direction; a power of two. */
	OS_RING_BYTES = 1 << 20,
	OS_RING_BYTES_MIN = 1 << 14,
	OS_RING_BYTES_MAX = 1 << 26,
	OS_FRAME_MAX = 6144, /* of a ring record; the NIC's are smaller */

	OS_SLOT_FIRST = 1, /* QPNs 0 and 1 are special: slot 0 is not used */
	OS_SLOT_COUNT = NIC_SLOT_COUNT,
	OS_BACKLOG = 1024, /* every slot of the rack may connect at once */
	OS_CABLE_MAX = 2 * NIC_SLOT_COUNT, /* two per peer, if they cross */
	OS_PENDING_MAX = 64,		   /* connected, not yet introduced */
	OS_PENDING_OTHER = 8,		   /* the same, of one other user */
	OS_RACK_NAME_MAX = 64,

	/* How much one turn moves before others get the lock. */
	OS_THREAD_BATCH = 64,
	OS_DRIVE_BATCH = 16,
	/* Turns between looks at the sockets while polling. They take less than
	 * OS_SOCKET_NS, unless others have most of the core: then peers ring
	 * all the time, and reading that would take a fifth of what is left. */
	OS_SOCKET_TURNS = 256,
	OS_MESSAGE_BATCH = 64, /* of one cable's socket */

	OS_GRANT_MAX = 4096,	  /* grants of one NIC */
	OS_DIRECT_WORDS = 1024,	  /* mappings handed out over one cable */
	OS_DIRECT_CACHE = 1 << 6, /* entries a path's table starts with */
	OS_DIRECT_CACHE_MAX = 1 << 16,
};

#define OS_IDLE_TURNS	  400	       /* idle turns before the sleep ... */
#define OS_IDLE_TURN_NS	  250ull       /* ... of this length */
#define OS_YIELD_LONG_NS  500000ull    /* another program needs this core */
#define OS_SLEEP_MAX_NS	  100000000ull /* when there is nothing to wait for */
#define OS_TICK_NS	  1000000ull   /* while an application drives the NIC */
#define OS_SOCKET_NS	  1000000ull   /* between looks while polling */
#define OS_NUDGE_NS	  30000ull     /* unread for this long: ring anyway */
#define OS_NUDGE_REST_NS  1000000ull   /* not more often than this */
#define OS_HELLO_NS	  2000000000ull /* time for an introduction to come */
#define OS_REACH_AGAIN_NS 1000000ull
#define OS_DIRECT_NO_NS	  1000000000ull /* how long a refusal is remembered */

#endif
