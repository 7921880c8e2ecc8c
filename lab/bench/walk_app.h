/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The applications of `bench walk`: what they have in memory, and one operation
 * as a program does it that has this memory.
 *
 * WEB looks a name up in a hash chain of 48 nodes and copies the object of 8
 * KiB that it finds; names are drawn by Zipf 0.99. TSV has a B+ tree of twelve
 * streams of values and asks for count, sum, minimum and maximum over a window
 * of 38, 65, 119 or 227 leaves. Streams grow side by side, so neighbouring
 * leaves of one stream are twelve nodes apart.
 *
 * RANGE scans, as YCSB-E does: it has a B+ tree of rows, 8 bytes of key and 240
 * of value, whose keys came in any order, and takes 16 rows from a key on that
 * is drawn by Zipf 0.99. A pad has room for no more. A leaf has one row, so of
 * 512 MiB this visits 25 nodes: eight levels above the leaves, 16 of these, and
 * the one behind them, whose key is too large. There are no inserts: none of
 * the ready walks splits a node.
 */
#ifndef AQ_BENCH_WALK_APP_H
#define AQ_BENCH_WALK_APP_H

#include "base/rng.h"
#include "sim/ycsb.h"
#include "walk_bench.h"

enum walk_app_kind {
	WALK_APP_WEB,
	WALK_APP_TSV,
	WALK_APP_RANGE,
	WALK_APP_KINDS,
};

#define WALK_APP_REGION "walkapp"

enum {
	WALK_OBJECT_BYTES = 8192,
	WALK_TREE_LEVELS = 16, /* at most */
};

/* How a tree came to be; see walk_tree.c. */
struct walk_tree_kind {
	uint32_t node_bytes, streams, leaf_keys, children;
	uint32_t part, leaves;
	bool is_scattered; /* neighbouring leaves are anywhere */
};

extern const struct walk_tree_kind walk_tree_streams; /* TSV */
extern const struct walk_tree_kind walk_tree_rows;    /* RANGE */

/* A tree in memory. Level 0 has the leaves, in the order of their keys. */
struct walk_tree {
	const struct walk_tree_kind *kind;
	uint8_t *memory;
	uint64_t leaves_per_stream;
	uint64_t count[WALK_TREE_LEVELS]; /* of nodes */
	uint64_t first[WALK_TREE_LEVELS]; /* place of the first one */
	unsigned levels;
};

struct walk_app {
	enum walk_app_kind kind;
	uint8_t *memory; /* NULL: it has none here */
	uint64_t bytes;
	struct walk_list list;	/* WEB; objects come after the nodes */
	struct ycsb_keys names; /* WEB; RANGE: first keys of scans */
	struct walk_tree tree;	/* TSV, RANGE */
};

/* What one operation asks for, and what it must be told. */
struct walk_app_query {
	uint64_t start;	     /* pointer of the first node */
	uint64_t value;	     /* WEB: of the name */
	uint64_t count, sum; /* TSV; RANGE: rows, and of all their words */
	union {
		struct walk_find_pad find;
		struct aq_walk_reduce reduce;
		struct walk_scan_pad scan;
	} pad;
};

/* Sizes only. 0 or -errno. */
int walk_app_init(struct walk_app *a, enum walk_app_kind kind,
		  uint64_t megabytes) MUST_CHECK;
/* Memory of this process, with everything in it. 0 or -errno. */
int walk_app_map(struct walk_app *a) MUST_CHECK;
const struct aq_walk_shape *walk_app_shape(const struct walk_app *a);
uint32_t walk_app_pad_bytes(const struct walk_app *a);

void walk_app_draw(const struct walk_app *a, struct rng *r,
		   struct walk_app_query *q);
/* The walk in this process. */
void walk_app_follow(const struct walk_app *a, struct walk_app_query *q);
/* Whether the pad has what must be there. */
bool walk_app_found(const struct walk_app *a, const struct walk_app_query *q);
/* Where the object is that a lookup found; checks a copy of it. */
uint64_t walk_app_object_at(const struct walk_app *a,
			    const struct walk_app_query *q);
bool walk_app_object_is(const struct walk_app_query *q,
			const uint8_t object[WALK_OBJECT_BYTES]);

/* ---- the tree (walk_tree.c) ---------------------------------------------- */

/* As many nodes as fit, behind WALK_FIRST. -EINVAL. */
int walk_tree_size(struct walk_tree *t, const struct walk_tree_kind *kind,
		   uint64_t megabytes) MUST_CHECK;
void walk_tree_fill(struct walk_tree *t);
uint64_t walk_tree_root(const struct walk_tree *t);
/* A reduction over a random window of leaves. */
void walk_tree_window(const struct walk_tree *t, struct rng *r,
		      struct walk_app_query *q);
/* A scan of rows from that one on, and whether the pad has them. */
void walk_tree_scan(const struct walk_tree *t, uint64_t first,
		    struct walk_app_query *q);
bool walk_tree_scanned(const struct walk_app_query *q);

#endif
