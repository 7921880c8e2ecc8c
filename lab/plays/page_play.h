/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The play "page": clients store, load and invalidate pages by chains in a
 * node's NIC, over a network that loses, doubles and reorders, and with a delay
 * for each request of a chain. The first client dies at a given moment, or
 * sends nonsense; the node takes back what it had, wherever its chains stood.
 * Then every page frame must be in exactly one place, the queue or one table,
 * and what the others stored must be there.
 */
#ifndef AQ_PLAYS_PAGE_PLAY_H
#define AQ_PLAYS_PAGE_PLAY_H

#include "play.h"

#define PAGE_PLAY_COUNTS(X)                                           \
	X(stores, "pages stored, new ones and old ones")              \
	X(loads, "pages loaded and found right")                      \
	X(invalidates, "pages given back")                            \
	X(nonsense, "messages of a client that lies")                 \
	X(cut, "times that chains were stopped in the middle")        \
	X(broken, "chains that stopped by themselves")                \
	X(chain_steps, "work requests executed by the node's chains") \
	X(lost, "frames lost by the network")                         \
	X(virtual_us, "virtual microseconds")

PLAY_COUNTS(page_play_counts, PAGE_PLAY_COUNTS);

struct page_play_options {
	struct play_options common;
	/* When the first client dies, after all have started; 0: never. */
	uint64_t kill_ns;
	/* How much later the node notices. */
	uint64_t notice_ns;
	bool lies;   /* the first client sends nonsense instead */
	bool faults; /* of the network */
	bool scarce; /* there are fewer page frames than pages are stored */
};

extern const struct play page_play;

#endif
