/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that the pager shares with one process: its channel and its
 * buffers.
 *
 * Each process has a share of its own, and a forked child loses its parent's
 * with the fork. So no other process sees what a process puts into buffers, not
 * even a child of the same program that gave up rights which the process still
 * has. The pager makes the memory and seals its size, so no process can
 * truncate it while the pager uses it.
 *
 * All shares have room for all buffers, but memory only where they were used:
 * of one buffer, one share at a time.
 */
#ifndef AQ_RUN_SHARE_H
#define AQ_RUN_SHARE_H

#include "run_channel.h"

/* Counted: by its space, and by buffers that still have bytes there. All under
 * the pager's lock. */
struct share {
	unsigned refs;
	uint8_t *mem;
	size_t bytes;
};

/* Makes a share with one reference, and the process's descriptor, for the
 * caller. */
int run_share_create(uint32_t buffer_count, struct share **out,
		     int *fd) MUST_CHECK;
/* Its memory is to come from that NUMA node. */
void run_share_set_node(struct share *s, uint32_t node);
struct share *run_share_get(struct share *s);
void run_share_put(struct share *s); /* NULL is allowed */

/* Gives the memory of a buffer back; its bytes are zeros. */
void run_share_clear(struct share *s, uint32_t buffer);

static inline struct run_channel *run_share_channel(const struct share *s)
{
	return (struct run_channel *)(void *)s->mem;
}

static inline uint8_t *run_share_page(const struct share *s,
				      uint32_t buffer_page)
{
	return s->mem + RUN_CHANNEL_BYTES +
	       (size_t)buffer_page * RUN_PAGE_BYTES;
}

#endif
