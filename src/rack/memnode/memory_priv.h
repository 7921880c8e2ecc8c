/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a region, which takes long to make and to give back: these are
 * called without the node's lock. */
#ifndef AQ_MEM_MEMORY_PRIV_H
#define AQ_MEM_MEMORY_PRIV_H

#include "mem_priv.h"

enum {
	DEVICE_LOG_ALIGN = 6,
	DEVICE_ALIGN = 1 << DEVICE_LOG_ALIGN,
};

struct memory {
	void *addr;
	struct ibv_mr *mr;
	uint64_t size_bytes;
	bool from_aqdv;
	bool is_spilled; /* it lies in the spill tier */
	struct ibv_dm *dm;
	bool can_bind; /* windows */
};

int memory_make(struct mem_node *node, struct ibv_pd *pd, uint64_t size_bytes,
		struct memory *out) MUST_CHECK;
/* The same, of which others can only read; its pages are touched. */
int memory_make_readable(struct mem_node *node, struct ibv_pd *pd,
			 uint64_t size_bytes, struct memory *out) MUST_CHECK;
/* Its first half, without a key, and its second one, which gives the memory
 * back if it fails. */
int memory_prepare(struct mem_node *node, uint64_t size_bytes,
		   struct memory *out) MUST_CHECK;
int memory_enter_readable(struct mem_node *node, struct ibv_pd *pd,
			  struct memory *m, struct memory *out) MUST_CHECK;
/* The same in the spill tier. */
int memory_make_spilled(struct mem_node *node, struct ibv_pd *pd,
			uint64_t size_bytes, struct memory *out) MUST_CHECK;
/* The same as the first; a page takes memory once it is touched. */
int memory_make_sparse(struct mem_node *node, struct ibv_pd *pd,
		       uint64_t size_bytes, struct memory *out) MUST_CHECK;
/* Whole pages of it are zeros again. */
void memory_scrub(const struct memory *m, uint64_t at, uint64_t bytes);
/* The NIC's own memory: atomics on it need not cross the bus. Its addresses
 * start at 0, and it cannot be mapped. */
int memory_make_device(struct mem_node *node, struct ibv_pd *pd,
		       uint64_t size_bytes, struct memory *out) MUST_CHECK;
/* Another key of the same memory, in place of m->mr or beside it: with all
 * rights, or only to read. */
int memory_register(struct ibv_pd *pd, const struct memory *m, bool only_read,
		    struct ibv_mr **out) MUST_CHECK;
/* Its key ends. */
void memory_close(struct memory *m);
/* After its key has ended: whatever a peer stored by a mapping is seen here, or
 * the peer finds that its mapping was taken back. May take milliseconds. */
void memory_settle(const struct memory *m);
/* Frees the memory and ends its key, if that has not ended yet. */
void memory_free(struct mem_node *node, struct memory *m);

#endif
