/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `bench walk` measures: lookups in chains of 48 nodes, 256 bytes apart
 * and scattered over more memory than caches have, by every way there is.
 */
#ifndef AQ_BENCH_WALK_BENCH_H
#define AQ_BENCH_WALK_BENCH_H

#include <aquifer/walk.h>

#include "bench.h"
#include "walk_native.h"

enum {
	WALK_CHAIN = 48,       /* nodes of a chain */
	WALK_NODE_BYTES = 256, /* from node to node */
	WALK_DEPTH = 16,       /* lookups under way */
	WALK_FLOOD = 64,       /* walks that hold others up */
	WALK_FIRST = 4096,     /* offset of the first node: 0 is no pointer */
	WALK_CROSS_NODES = 9,  /* of a chain that changes memory nodes */
};

#define WALK_REGION	  "walk48"
#define WALK_CROSS_REGION "walk9"
#define WALK_INDEX	  "walk119"

/* The structure; made before the measured processes, which inherit it. */
struct walk_list {
	uint8_t *memory; /* a copy in this process, for servers of messages */
	uint64_t bytes;
	uint64_t nodes; /* a power of two */
	uint64_t chains;
};

/* A bijection of 0 to count - 1, and back; count is a power of two. Neighbours
 * get far apart. */
uint64_t walk_scatter(uint64_t count, uint64_t number);
uint64_t walk_gather(uint64_t count, uint64_t place);

/* Where node `number` of all chains is; neighbours are far apart. */
uint64_t walk_list_at(const struct walk_list *l, uint64_t number);
int walk_list_make(struct walk_list *l, uint64_t megabytes) MUST_CHECK;
/* The same in two steps, for memory that the caller brings. */
void walk_list_size(struct walk_list *l, uint64_t megabytes);
void walk_list_fill(struct walk_list *l);
void walk_list_free(struct walk_list *l);

/* One lookup: the last key of a chain. */
struct walk_query {
	uint64_t start;
	uint64_t key;
	uint64_t value; /* that must be found */
};

struct walk_query walk_list_query(const struct walk_list *l, uint64_t draw);

enum walk_way {
	WALK_WAY_NODE,	   /* on the memory node */
	WALK_WAY_READS,	   /* a READ for each node */
	WALK_WAY_RPC,	   /* messages to a server in C */
	WALK_WAY_PREFETCH, /* one that interleaves and prefetches */
};

struct walk_param {
	const struct walk_list *list;
	enum walk_way way;
	uint32_t depth;
	bool is_beside; /* others keep WALK_FLOOD long walks under way */
	/* Lookups in chains that change memory nodes with each of their nodes:
	 * AQ_WALK_CROSS_*; 0: those of `list`. */
	uint32_t cross;
};

/* The region of such chains. */
int walk_cross_write(struct aq_rack *rack) MUST_CHECK;
struct walk_query walk_cross_query(uint64_t draw);

/* Measures `once`, which returns 0, -errno, or -EBADMSG for a wrong answer, one
 * at a time. */
int walk_bench_each(struct side *s, uint64_t window_ns,
		    int (*once)(const struct side *s),
		    struct side_result *out) MUST_CHECK;

/* An ordered index, filled in order, so that its leaves are full. */
enum walk_index_way {
	WALK_INDEX_GET,	       /* a walk, with nothing remembered */
	WALK_INDEX_GET_READS,  /* READs from the root on */
	WALK_INDEX_REDUCE,     /* one answer for WALK_INDEX_LEAVES leaves */
	WALK_INDEX_REDUCE_SCAN /* the same by the client */
};

enum {
	WALK_INDEX_LEAVES = 119,
};

struct walk_index_param {
	enum walk_index_way way;
};

/* Makes and fills it; with 31,000 keys it has five levels. */
int walk_index_fill(struct aq_rack *rack, uint64_t keys) MUST_CHECK;
extern const struct side_ops walk_index_ops;

/* A table whose values, of 512 bytes, are in extents. */
struct walk_kv_param {
	bool is_walk; /* else two round trips */
};

int walk_kv_fill(struct aq_rack *rack) MUST_CHECK;
extern const struct side_ops walk_kv_ops;

extern const struct side_ops walk_far_ops;    /* of the memory node */
extern const struct side_ops walk_rpc_ops;    /* of a server */
extern const struct side_ops walk_beside_ops; /* READs beside walks */

/* Whole applications: walks, beside the same program on far pages. */
int walk_bench_paged(struct bench *b, uint64_t megabytes) MUST_CHECK;

/* The engine in this process: many workspaces beside one. */
int walk_bench_engine(struct bench *b, const struct walk_list *l) MUST_CHECK;

#endif
