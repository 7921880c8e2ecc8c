/* SPDX-License-Identifier: Apache-2.0 */
/* What one process measures: the rack, raw requests to it, and page stores. */
#ifndef AQ_BENCH_PAGING_FAR_H
#define AQ_BENCH_PAGING_FAR_H

#include <sys/types.h>

#include "client/link.h"
#include "page/page_store.h"

struct hist;
struct ibv_mr;

enum {
	FAR_DEPTH = 64,
	FAR_BYTES = PAGE_BYTES,
};

struct paging_far {
	struct aq_rack *rack;
	struct aq_region *region;
	struct client_link *raw; /* to the region */
	struct ibv_mr *raw_mr;
	pid_t node;
	bool may_map;
	uint64_t pages;
	uint64_t next;	    /* page, in a fixed scattered order */
	struct hist *times; /* of single operations in this window */
	uint64_t begun_ns;
	uint8_t *buf; /* FAR_DEPTH pages */
};

/* Raw requests and static pages may be served by a mapping, or not. */
int far_open(struct paging_far *f, uint64_t pages, bool may_map)
	__attribute__((warn_unused_result));
void far_close(struct paging_far *f);
int far_store(struct paging_far *f, enum page_mode mode, unsigned without,
	      struct page_store **out) __attribute__((warn_unused_result));

/* One window: how many pages it moved and what that took. */
struct far_window {
	uint64_t ops;
	uint64_t wall_ns;
	uint64_t node_cpu_ns;
	uint64_t client_cpu_ns;
	/* Median time of one operation, where they come one at a time; a few
	 * that the scheduler delays do not change it. */
	uint64_t median_ns;
};

/* READs or WRITEs of a page, `depth` at a time, for that long. */
int far_raw(struct paging_far *f, enum page_kind kind, unsigned depth,
	    unsigned window_ms, struct far_window *out)
	__attribute__((warn_unused_result));
/* The same by a store; or, if `most` is not 0, for that many pages. */
int far_pages(struct paging_far *f, struct page_store *s, enum page_kind kind,
	      unsigned depth, unsigned window_ms, uint64_t most,
	      struct far_window *out) __attribute__((warn_unused_result));

#endif
