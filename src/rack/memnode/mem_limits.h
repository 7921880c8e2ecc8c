/* SPDX-License-Identifier: Apache-2.0 */
/* The named limits of a memory node. */
#ifndef AQ_MEM_LIMITS_H
#define AQ_MEM_LIMITS_H

enum {
	MEM_NODE_NAME_MAX = 32, /* characters, as the others */
	MEM_TENANT_NAME_MAX = 32,
	MEM_REGION_NAME_MAX = 63,
	MEM_PART_NAME_MAX = 79, /* of what a region is a part of */
	MEM_CLIENT_NAME_MAX = 63,

	MEM_TENANT_MAX = 256,
	MEM_TENANT_TOKENS = 8, /* of a tenant of a rack with a controller */
	MEM_TOKEN_DAYS_MAX = 366,
	MEM_NAMES_TOLD = 400,  /* to the controller, in one beat */
	MEM_REGION_MAX = 4000, /* the NIC has 4096 grants */
	MEM_CONN_MAX = 8192,   /* the NIC has 16384 queue pairs */
	MEM_GRANT_PER_CONN = 1024,
	MEM_SESSION_MAX = 8192,
	MEM_FINALS = 8,	      /* connections of a session that have ended */
	MEM_PFRAME_SIZES = 8, /* page sizes in use at a time */
	/* The queue of one size has a sixteenth of the pool at most: small
	 * pages cannot have all of it. */
	MEM_QUEUE_PART = 16,
	MEM_PAGE_COUNT_MAX = 1 << 28, /* of one space */
	MEM_PAGE_DEPTH_MAX = 1024,
	/* Bytes that a client of sparse memory may touch beyond what it was
	 * given before its connection ends. */
	MEM_SPARSE_SLACK = 64 << 10,
	MEM_SESSION_CHARS = 32,

	/* Walks: defaults of the settings, and limits of one connection. */
	MEM_WALK_ITERATIONS = 256,
	MEM_WALK_LONGEST = 1024,
	MEM_WALK_PROGRAMS = 1024,
	MEM_WALK_DEPTH_MAX = 128,
	MEM_WALK_TURN_COST = 4096, /* about, before frames are looked at */
	MEM_WALK_TURN_LEAST = 8,   /* iterations, however long they are */

	MEM_MOVE_REGIONS = 4, /* that move together */
	MEM_MOVE_MS_MAX = 60000,
	MEM_GIVEN_MAX = 256,   /* regions that moved away, and whither */
	MEM_TAKEN_MS = 600000, /* it is said of a move that it ended here */
	MEM_GIVEN_MS = 60000,  /* a name waits for its region's new place */

	MEM_REGION_ID_MAX = 65535,
	MEM_OFFSET_BITS = 48,

	MEM_HEARTBEAT_MS = 1000,
	MEM_HEARTBEAT_MISSES = 5,
	MEM_HEARTBEAT_MAX = 1024,    /* connections in one heartbeat */
	MEM_PATIENCE_MAX_MS = 60000, /* with the silence of one client */
	MEM_TICK_MS = 250,	     /* between looks for dead clients */
	MEM_PAUSE_MS = 1000,	     /* ... a longer gap: we did not run */
	MEM_BIND_MS = 1000,
	MEM_PAGE_YIELDS = 1000, /* without a request, before it sleeps */
	MEM_PAGE_SLEEP_MS = 100,
	MEM_SESSION_KEEP_S = 600,  /* after its last connection */
	MEM_SESSION_UNUSED_S = 30, /* if it never executed anything */
	MEM_ENDS_AT_ONCE = 64, /* of connections, under one hold of the lock */

	MEM_SWITCH_LOOK_MS = 500, /* between checks for a restarted switch */
	MEM_SHARED_LOOK_MS = 100, /* while somebody waits for this node */
	MEM_LATE_MAX = 256,	  /* ends that a switch could not be told */
	MEM_LATE_BYTES = 256,

	MEM_GRANT_MS = 3000,	 /* a request waits for an allowance */
	MEM_GRANT_LOOK_MS = 100, /* and looks whether it is there */
	MEM_REQUESTS = 20000,	 /* of HTTP in a second, that tenants share */
	MEM_STRANGER_REQUESTS = 500, /* ... of an address without a token */
	MEM_BODY_SMALL = 8 << 10,    /* bytes of most requests' bodies */

	MEM_STATE_FILE_MAX = 1 << 20, /* bytes */
	MEM_DRAIN_MS = 5000,
};

#endif
