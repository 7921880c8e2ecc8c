/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the agent's files share. Pages leave in one of two ways:
 *
 *   move	the kernel takes them out of the program, whole and at once, and
 *		gives them to the agent (agent_move.c). It refuses those that a
 *		device may still write to.
 *   copy	what the kernel does not move, and where it cannot move at all:
 *		the pager keeps writers away, the agent copies and then drops
 *		(agent_copy.c).
 *
 * The agent calls nothing of libc, see agent.c.
 */
#ifndef AQ_PRELOAD_AGENT_PRIV_H
#define AQ_PRELOAD_AGENT_PRIV_H

#include "preload.h"

enum {
	AGENT_SLICE = 8, /* pages, some 6 us */
};

struct agent {
	struct preload *p;
	long pid;
	/* Descriptors in a table of the agent's own; -errno: there is none. */
	long mem_fd;	/* the process's memory */
	long status_fd; /* what it has pinned, among others */
	long move_fd;	/* a userfaultfd for the staging area alone */
	uint8_t *staging;
	bool can_batch;	     /* process_madvise takes what we give it */
	bool has_locked;     /* the program locked memory: page by page */
	unsigned rush;	     /* slices until it yields again */
	long guardian;	     /* the process that adopted it */
	uint32_t heartbeats; /* of the pager, last seen */
	unsigned silent;
};

static inline uint64_t agent_bits(uint32_t first, uint32_t n)
{
	return (n < 64 ? (1ull << n) - 1 : ~0ull) << first;
}

/* Pages of the batch from `first` on that are in the mask and whose addresses
 * follow each other; at least 1, at most to `count`. */
static inline uint32_t agent_run(const struct run_batch *b, uint64_t mask,
				 uint32_t first, uint32_t count)
{
	uint32_t n = 1;

	while (first + n < count && mask >> (first + n) & 1 &&
	       b->page[first + n] ==
		       b->page[first] + (uint64_t)n * RUN_PAGE_BYTES)
		n++;
	return n;
}

/* Between slices: lets another thread run on this core. */
void agent_yield(struct agent *a);
/* True: the page is zeros; else its hash. */
bool agent_look(const uint8_t *page, struct run_hash *hash);
/* Copies the pages of the mask to the buffer and drops them. They must be
 * protected from writes. stretches: how many there are, where the mask has all
 * pages of the batch; else 0. */
void agent_copy(struct agent *a, uint8_t *buffer, struct run_batch *b,
		uint64_t mask, uint32_t stretches, struct run_outcome *r);

/* Whether the kernel lets a process drop many pieces with one call (6.15). */
bool agent_can_batch(void);

/* Makes the staging area; without it, move_fd stays negative. */
void agent_move_open(struct agent *a);
/* Moves the batch's pages to the buffer; returns those whose mapping the kernel
 * does not move from (read-only, locked): they are as they were. */
uint64_t agent_move(struct agent *a, uint8_t *buffer, struct run_batch *b,
		    uint32_t count, struct run_outcome *r) MUST_CHECK;

/* Has the kernel move the batch's pages to another NUMA node. */
void agent_demote(struct run_batch *b);

#endif
