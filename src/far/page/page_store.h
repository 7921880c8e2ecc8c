/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages in far memory: numbered pages that are stored, loaded and given back,
 * over one or several memory nodes.
 *
 *	struct page_store_options o = {.pages = 1 << 20};
 *	struct page_store *s;
 *
 *	page_store_open(rack, "swap", &o, &s);
 *	page_put(s, 17, buf);
 *	page_get(s, 17, buf);
 *
 * What is stored belongs to the store object: it ends with page_store_close or
 * with the process, and the nodes take all its pages back. So the store knows
 * from its own records which pages there are and what their checksums must be.
 *
 * Threads: a store belongs to one thread at a time. Blocking: only where it
 * says so. The calls of the data path make no system call, except that a
 * synchronous one yields while it waits.
 *
 * Errors of operations, in page_op.result or returned:
 *	-ENODATA	the page was never stored, or was invalidated: whether
 *			that means zeros is for the caller to say
 *	-EHOSTDOWN	the nodes that had the page, or should take it, are lost
 *	-EILSEQ		what came back is not what was stored (checksum), and
 *			no other copy is left
 *	-ENOSPC, -EDQUOT the nodes have no page left, or not for us
 *	-EREMOTEIO	the node refused the store; the log says why
 *	-ECONNRESET	the connection broke, and was made anew; not stored
 *	-ERANGE		no such page
 * A page whose last store failed stays failed (-EHOSTDOWN) until it is stored
 * or invalidated again; it is never reported as missing.
 */
#ifndef AQ_PAGE_STORE_H
#define AQ_PAGE_STORE_H

#include "base/base.h"

struct aq_rack;
struct page_store;

/* How the nodes find room for a page. */
enum page_mode {
	PAGE_STATIC,	 /* all of it from the start; one-sided */
	PAGE_DYNAMIC_1M, /* asked for in pieces of 1 MiB; one-sided */
	PAGE_DYNAMIC_4K, /* asked for page by page; one-sided */
	PAGE_TWO_SIDED,	 /* the node's processor answers every request */
	PAGE_CHAIN,	 /* the node's NIC does, by chains of work requests */
	/* Asked for page by page, in memory of the store's own that it may
	 * map: for nodes of the same host. */
	PAGE_SPARSE,
	/* Node by node: sparse where the node is on this host and its memory
	 * can be mapped, else static. */
	PAGE_AUTO,
	PAGE_MODE_COUNT,
};

/* "static", "dynamic-1m", "dynamic-4k", "two-sided", "chain", "sparse", "auto".
 */
const char *page_mode_name(enum page_mode mode);
/* -EINVAL, with words. */
int page_mode_parse(const char *text, enum page_mode *out) MUST_CHECK;

enum {
	PAGE_BYTES = 4096, /* unless told otherwise */
	PAGE_BYTES_MIN = 512,
	PAGE_BYTES_MAX = 1 << 20,
	PAGE_DEPTH = 64, /* operations under way, unless told otherwise */
	PAGE_DEPTH_MAX = 1024,
	PAGE_COPIES_MAX = 12,
	PAGE_NODES_MAX = 64,
	PAGE_PATIENCE_MAX_MS = 60000,
};

/* Zero-initialise it; unset members have their default. */
struct page_store_options {
	uint64_t pages;	     /* number of pages, from 0 on; at least 1 */
	uint32_t page_bytes; /* a power of two; 0: PAGE_BYTES */
	enum page_mode mode;
	/* Nodes to spread over; 0: all of the rack. At least as many as a page
	 * has copies. */
	uint32_t nodes;
	/* Copies of each page, on different nodes (0: 1): nothing is lost as
	 * long as one of them is left. */
	uint32_t copies;
	uint32_t depth;	      /* 0: PAGE_DEPTH */
	bool has_no_checksum; /* only for callers with their own */
	/* PAGE_CHAIN: optimisations to leave out (enum page_without), to
	 * measure what they are worth. */
	uint32_t chain_without;
	/* PAGE_STATIC, PAGE_AUTO: never maps a node's memory, although it is on
	 * this host: every page goes through the NICs. */
	bool is_unmapped;
	/* Time until a silent node is given up, unless the NIC or a heartbeat
	 * finds out earlier; 0: the rack's deadline. */
	uint32_t deadline_ms;
	/* Neither side gives a silent other side up sooner, for machines that
	 * may stall. A node that has ended is still noticed. At most
	 * PAGE_PATIENCE_MAX_MS; 0: the usual time. */
	uint32_t patience_ms;
	/* What `aquifer top` shows the store as (enum tally_kind), and under
	 * which name. */
	unsigned counted_as;	  /* 0: pages */
	const char *counted_name; /* NULL: the store's */
	/* Counts together with that store, which is closed later and used
	 * under the same lock. */
	struct page_store *counts_with;
};

/*
 * Makes room on the nodes, whose lists show it under `name` (as of regions).
 * Blocks. -ENOSPC, -EDQUOT, -EHOSTDOWN, -EINVAL; -EOPNOTSUPP: a node or a NIC
 * does not have the mode.
 */
int page_store_open(struct aq_rack *rack, const char *name,
		    const struct page_store_options *options,
		    struct page_store **out) MUST_CHECK;
/* Forgets what is under way and gives all pages back. Before the rack is
 * closed. NULL is allowed. */
void page_store_close(struct page_store *store);

/*
 * The bytes of pages that such a store would find room for on the nodes now;
 * those that it has already are not counted. A node that gives pages out one by
 * one gives a store half of what it has left, so that another one finds room,
 * too.
 */
int page_rack_room(struct aq_rack *rack,
		   const struct page_store_options *options,
		   uint64_t *bytes) MUST_CHECK;

/* As the store uses them, defaults filled in. */
const struct page_store_options *page_store_options(
	const struct page_store *store);

/*
 * Buffers within [addr, addr + bytes) need no copy from now on. At most
 * PAGE_BUFFERS_MAX ranges; they must stay mapped until the store is closed.
 */
enum {
	PAGE_BUFFERS_MAX = 16
};
int page_register(struct page_store *store, void *addr,
		  size_t bytes) MUST_CHECK;

/* ---- asynchronous ------------------------------------------------------- */

enum page_kind {
	PAGE_LOAD,	 /* fills buf */
	PAGE_STORE,	 /* from buf */
	PAGE_INVALIDATE, /* the page's room returns to the node's pool */
};

/*
 * One operation. The caller owns it and its buffer, and leaves both alone from
 * page_submit until page_poll returns it. After a failed load the buffer's
 * contents mean nothing.
 */
struct page_op {
	enum page_kind kind;
	int result; /* out: 0 or -errno */
	uint64_t page;
	void *buf; /* page_bytes; unused for PAGE_INVALIDATE */
	void *cookie;
	/* The store's: */
	struct page_op *next;
};

/*
 * Starts the first of ops[0..n-1] and returns how many, 1 to n; -EAGAIN when
 * `depth` are under way already. Never blocks. Operations on one page are
 * executed in the order they were submitted; others in any.
 */
int page_submit(struct page_store *store, struct page_op *const ops[],
		unsigned n) MUST_CHECK;
/* Looks once; returns how many operations ended, at most max. Never blocks. */
int page_poll(struct page_store *store, struct page_op *done[],
	      unsigned max) MUST_CHECK;
/* Operations under way, including ended ones that were not polled. */
unsigned page_pending(const struct page_store *store);

/* ---- synchronous -------------------------------------------------------- */

/* They may be mixed with asynchronous operations, whose ends they keep for
 * page_poll. */
int page_get(struct page_store *store, uint64_t page, void *buf) MUST_CHECK;
int page_put(struct page_store *store, uint64_t page,
	     const void *buf) MUST_CHECK;
int page_drop(struct page_store *store, uint64_t page) MUST_CHECK;

/* ---- state -------------------------------------------------------------- */

/* Whether it was stored (successfully or not) and not invalidated since. */
bool page_is_stored(const struct page_store *store, uint64_t page);
/* Whether it is stored whole on nodes that are not lost, as far as is known. */
bool page_is_there(struct page_store *store, uint64_t page);

struct page_stats {
	uint64_t loads;
	uint64_t stores;
	uint64_t invalidates;
	uint64_t failed;
	uint64_t bytes_in;  /* of pages, from the nodes */
	uint64_t bytes_out; /* to them */
	uint64_t repaired;  /* loads that needed another copy */
	uint64_t damaged;   /* copies with a wrong checksum */
	uint64_t rebuilt;   /* copies */
	/* Now: */
	uint64_t used_pages;	  /* stored */
	uint64_t allocated_bytes; /* what the nodes hold for us */
	uint32_t nodes;
	uint32_t nodes_lost;
};
void page_store_stats(struct page_store *store, struct page_stats *out);
/* The name of a node that is lost; NULL: none is. */
const char *page_lost_node(const struct page_store *store);
/* Gives up nodes that the heartbeat knows to be gone; without this call that
 * happens at the next store or load. */
void page_notice(struct page_store *store);
/* Another store has found out that the node is lost: this one gives it up, too,
 * and does not wait for its answers. */
void page_lose_node(struct page_store *store, const char *node);
/* The name of a node that has owed an answer for longer than that, or NULL. */
const char *page_silent_node(struct page_store *store, uint32_t ms);

/*
 * After a node was lost: connects to it again, if it was restarted, or to
 * another of the rack, and makes the missing copies of at most max_pages pages
 * anew. Returns how many pages are still to do (0: all copies are there),
 * -EHOSTDOWN: no node takes them, -EBUSY: operations are under way. Blocks for
 * a few round trips per page.
 */
int64_t page_rebuild(struct page_store *store, uint64_t max_pages) MUST_CHECK;

#endif
