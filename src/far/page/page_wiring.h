/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a page store reaches its nodes, for callers that bring their own:
 * page_rack.c has that of a real rack, the laboratory that of a simulated one.
 */
#ifndef AQ_PAGE_WIRING_H
#define AQ_PAGE_WIRING_H

#include "page_store.h"

struct client_link;

enum {
	GRANT_LINKS_MAX = 5,
};

/* How much the dynamic modes ask for at a time. */
static inline uint32_t page_piece_bytes(enum page_mode mode,
					uint32_t page_bytes)
{
	return mode == PAGE_DYNAMIC_1M ? 1u << 20 : page_bytes;
}

/* What a backend asks a node for. */
struct page_wish {
	enum page_mode mode;
	uint64_t index_count; /* copies that the node shall be able to keep */
	uint32_t page_bytes;
	uint32_t depth;	  /* jobs under way */
	unsigned without; /* of the chains' optimisations */
	bool is_unmapped; /* the region must not be mapped */
	uint32_t patience_ms;
	const char *name;
};

/* What a node gives: links, addresses and keys; zeros where not used. */
struct page_grant {
	enum page_mode mode; /* what PAGE_AUTO became at this node */
	struct client_link
		*link[GRANT_LINKS_MAX]; /* the first is used by all */
	uint64_t addr;
	uint32_t rkey;
	char node_name[40];
	/* As asked for, to make a link anew. */
	uint32_t node;
	uint32_t depth;
	unsigned without;
	uint32_t patience_ms;
};

/* Why a node has stopped stores of unmapped pages. */
struct page_stop {
	bool is_full;  /* it has no page frame left */
	char text[80]; /* "": it did not stop them */
};

/* Access to the nodes: those of a rack, or of a test or play. */
struct page_wiring {
	/* -EHOSTDOWN: not this node, perhaps another. */
	int (*open)(void *ctx, uint32_t node, const struct page_wish *wish,
		    struct page_grant *out);
	void (*close)(void *ctx, struct page_grant *grant);
	uint32_t (*node_count)(void *ctx);
	/* Bytes that the node holds for the backend. */
	uint64_t (*used_bytes)(void *ctx, const struct page_grant *grant);
	/* Makes a new link in place of grant->link[at], which has ended. */
	int (*renew)(void *ctx, struct page_grant *grant, unsigned at);
	/* Ends grant->link[at], the chain that takes page frames. When none of
	 * its requests is executed any more, writes to mapped[] whether the
	 * page of each index is mapped (0 or 1), and why it had stopped. */
	int (*settle)(void *ctx, const struct page_grant *grant, unsigned at,
		      const uint64_t *index, unsigned count, uint8_t *mapped,
		      struct page_stop *stop);
	/* Whether the node has ended a link; may be NULL. */
	bool (*is_ended)(void *ctx, const struct page_grant *grant,
			 unsigned at);
	/* Whether a heartbeat has failed; may be NULL. */
	bool (*is_lost)(void *ctx, const struct page_grant *grant);
	void *ctx;
};

/* Takes the wiring over: its ctx is what `close` gets last, with a NULL
 * grant. */
int page_store_create(const char *name, const struct page_store_options *o,
		      const struct page_wiring *wiring,
		      struct page_store **out) MUST_CHECK;

/* Sends that a link of calls must have room for when `depth` calls are under
 * way: an answer may come before the acknowledgement of its call, and the next
 * call is made at once. */
#define PAGE_CALL_SENDS(depth) (4 * (depth) + 64)

#endif
