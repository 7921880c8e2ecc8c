/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of the engine's process. */
#ifndef AQ_ENG_LIMITS_H
#define AQ_ENG_LIMITS_H

enum {
	ENG_NAME_MAX = 32,
	ENG_CLIENT_NAME_MAX = 63,
	ENG_SESSION_MAX = 256,
	ENG_CQ_DEPTH = 1 << 18,

	ENG_HEARTBEAT_MS = 1000,
	ENG_HEARTBEAT_MISSES = 5,
	ENG_HEARTBEAT_MAX = 1024,    /* sessions in one heartbeat */
	ENG_REQUESTS = 5000,	     /* a second, of one address */
	ENG_STRANGER_REQUESTS = 500, /* ... without the token */
	ENG_START_MS = 10000,	     /* from opening a session to its start */
	ENG_TICK_MS = 100,
	ENG_PAUSE_MS = 500,   /* between ticks; longer: we did not run */
	ENG_HELLO_MS = 1000,  /* between looks at the switch's counters */
	ENG_STRAY_MAX = 1024, /* sessions of the switch that are not ours */

	ENG_STEPS = 64,		/* between two looks for waiting requests */
	ENG_IDLE_YIELDS = 5000, /* before naps, with requests on the wire */
	ENG_NAP_NS = 50000,
	ENG_SLEEP_MAX_NS = 100000000,
};

#endif
