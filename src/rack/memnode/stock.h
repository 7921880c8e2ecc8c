/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for blocks that come next: its pages are there, so that whoever waits
 * for a block does not wait for the kernel to clear new ones. It is what was
 * freed and no peer has ever had mapped; what lacks to as much of each size as
 * was taken in its busiest second is made by a thread, within a limit and when
 * no block has been taken for a moment. After a minute without a new block all
 * of it goes back. It is nobody's and is charged to nobody, but it never takes
 * room from those who want some: then it goes back first.
 */
#ifndef AQ_MEM_STOCK_H
#define AQ_MEM_STOCK_H

#include "memory_priv.h"

struct mem_stock;

enum {
	STOCK_POOL_PART = 8,  /* of the pool, at most */
	STOCK_FRESH_PART = 2, /* of that is made: there is room for what comes
			       * back */
	STOCK_QUIET_MS = 100, /* since the last block was taken */
	STOCK_IDLE_S = 60,
};

/* `limit_bytes` 0: there never is any. */
int mem_stock_create(struct mem_node *node, uint64_t limit_bytes,
		     struct mem_stock **out) MUST_CHECK;
/* Its thread ends; without the lock, as the next. NULL is nothing. */
void mem_stock_stop(struct mem_stock *s);
/* Before the NIC is closed. */
void mem_stock_destroy(struct mem_stock *s);

/* With the node's lock, from here on. */

/* A block of that size is about to be made: true, its memory is there, without
 * a key; the caller clears what *is_used. */
bool mem_stock_take(struct mem_stock *s, uint64_t size_bytes,
		    struct memory *out, bool *is_used);
/* Memory of a block that was freed; its key has ended. True: it is the stock's
 * now, which clears it. */
bool mem_stock_give(struct mem_stock *s, const struct memory *m);
/* Before so many bytes are taken from the pool: they are not the stock's. */
void mem_stock_yield(struct mem_stock *s, uint64_t bytes);
/* What lies there; not what is on its way. */
uint64_t mem_stock_bytes(const struct mem_stock *s);

#endif
