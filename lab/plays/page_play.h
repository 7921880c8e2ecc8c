/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The play "page": clients store, load and invalidate pages by chains in a
 * node's NIC, over a network that loses, doubles and reorders, and in which
 * each request of a chain takes its time. The first client dies at a given
 * moment, or sends nonsense; the node takes back what it had, wherever its
 * chains stood. Then every frame must be in exactly one place, the queue or
 * one table, and what the others stored must be there.
 */
#ifndef AQ_SCENARIO_PAGE_PLAY_H
#define AQ_SCENARIO_PAGE_PLAY_H

#include "base/base.h"

#define PAGE_PLAY_COUNTS(X)                                     \
	X(stores, "pages stored, new ones and old ones")        \
	X(loads, "pages loaded and found right")                \
	X(invalidates, "pages given back")                      \
	X(nonsense, "messages of a client that lies")           \
	X(cut, "times that chains were stopped in the middle")  \
	X(broken, "chains that stopped by themselves")          \
	X(steps, "work requests executed by the node's chains") \
	X(lost, "frames lost by the network")                   \
	X(virtual_us, "virtual microseconds")

struct page_play_counts {
#define PAGE_PLAY_FIELD(name, help) uint64_t name;
	PAGE_PLAY_COUNTS(PAGE_PLAY_FIELD)
#undef PAGE_PLAY_FIELD
};

struct page_play_options {
	uint64_t seed;
	/* When the first client dies, after all have started; 0: never. */
	uint64_t kill_ns;
	/* And how much later the node notices. */
	uint64_t notice_ns;
	bool lies;   /* the first client sends nonsense instead */
	bool faults; /* of the network */
	bool scarce; /* there are fewer frames than pages are stored */
};

struct page_play_result {
	unsigned violations;
	char first[256];
	struct page_play_counts counts;
};

/* 0, or -errno if the play could not be set up. */
int page_play_run(const struct page_play_options *opt,
		  struct page_play_result *res) MUST_CHECK;

#endif
