/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of the pager. */
#ifndef AQ_RUN_LIMITS_H
#define AQ_RUN_LIMITS_H

enum {
	RUN_STORES_MAX = 64,
	RUN_STORE_PAGES = 4096, /* of the first store: 16 MiB */
	RUN_STORE_PART = 4,	/* later stores: a quarter of what there is */
	RUN_STORE_PAGES_MAX = 1 << 20,
	RUN_STORE_PAGES_MIN = 256,
	RUN_STORING_MAX = 4, /* buffers that are being stored */
	RUN_STORE_BATCH = 4, /* stored in one turn: a fault waits that long */
	RUN_WAITING_MAX = 65536, /* faults that wait for something */
	RUN_EVENTS = 16,	 /* read at a time */
	RUN_READS = 16,		 /* of one space, before others are looked at */
	RUN_PREFETCH_MAX = 64,
	RUN_ZERO_WINDOW_MAX = 64,
	RUN_PENDING_HELLOS = 64,
	/* An attachment may take longer only as long as no other process waits
	 * for its place: before and after it has shown the token. */
	RUN_HELLO_MS = 2000,
	RUN_ATTACH_MS = 30000,
	RUN_ANCESTORS_MAX = 256, /* between a process and the supervisor */
	RUN_SWEEP_MS = 100,	 /* between looks for processes that ended */
	RUN_PARTING_MS = 50,	 /* of constant looking after one has ended */
	RUN_LOOKS = 16,	  /* processes asked what they execute, each time */
	RUN_MOVE_MS = 20, /* that the pager waits for a move of an agent, */
	RUN_MOVE_NAP_US = 100, /* and from then on, until it has ended */
	RUN_FOLLOW_FAULTS = 128,
};

#endif
