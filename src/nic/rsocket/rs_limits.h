/* SPDX-License-Identifier: Apache-2.0 */
/* The named limits of rsocket/. */
#ifndef AQ_RS_LIMITS_H
#define AQ_RS_LIMITS_H

enum {
	RS_SLOTS = 2, /* buffers of ours that the peer knows at a time */
	RS_IOMAP_MAX = 128,
	RS_QUEUE_MIN = 16, /* messages under way, each direction */
	RS_QUEUE_DEFAULT = 384,
	RS_QUEUE_MAX = 8192,
	RS_CTRL_QUEUE = 8, /* entries of both queues that data cannot have */
	RS_INLINE_DEFAULT = 64,
	RS_INLINE_MIN = 24, /* an entry of the peer's tables */
	RS_INLINE_MAX = 512,
	RS_BUF_MIN = 4096,
	RS_BUF_DEFAULT = 1 << 17,
	RS_BUF_MAX = 1 << 28,
	RS_MESSAGE_MAX = 1 << 16, /* so that copying and sending overlap */
	RS_DEFERRED_MAX = 1024,	  /* requests beyond a listener's backlog */
	RS_BACKLOG_MAX = 1024,
	RS_WCS = 16, /* completions taken at a time */
	/* How long a thread polls before it sleeps. A thread that polls moves
	 * the frames itself; a round trip through two sleeping NIC threads
	 * takes 40 to 90 us. */
	RS_SPIN_US = 100,
	RS_RESOLVE_MS = 2000,
	RS_EXIT_MS = 2000, /* for the last messages of a process that ends */
	RS_CLOSE_MS = 10000,
	RS_FD_MAX = 1 << 20,
};

#endif
