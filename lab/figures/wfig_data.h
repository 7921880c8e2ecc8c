/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The three applications of the PULSE paper, as far as they are memory: their
 * linked structures, laid out over the pieces of a striped region, and requests
 * with the answers that they must have.
 *
 *   web    a hash table with chains; a request finds a key, on average in the
 *          48th node of its chain, and reads the object that it leads to
 *   range  a B+ tree whose keys came in random order; a request gathers the
 *          pairs of a range, over 25 nodes
 *   tsv    a B+ tree whose keys came in order of time; a request reduces a
 *          window to count, sum, minimum and maximum, over 38 to 227 nodes
 */
#ifndef AQ_FIGURES_WFIG_DATA_H
#define AQ_FIGURES_WFIG_DATA_H

#include <aquifer/walk_shape.h>

#include "sim/ycsb.h"
#include "walk/program.h"
#include "wfig_tree.h"

enum {
	WFIG_NODES_MAX = 4,
	WFIG_PAD_MAX = 4096,
	WFIG_WEB_CHAIN = 95, /* nodes; 48 are visited on average */
	WFIG_RANGE_VISITS = 25,
	WFIG_SCAN_PAIRS = 128, /* that fit into the pad of a range */
};

enum wfig_app {
	WFIG_WEB,
	WFIG_RANGE,
	WFIG_TSV,
	WFIG_APPS,
};

/* On which memory node a node of the structure is. */
enum wfig_place {
	WFIG_PARTITIONED, /* chains, and ranges of keys, stay together */
	WFIG_GRANULES,	  /* as allocated, in pieces that take turns */
	WFIG_RANDOM,
};

struct wfig_data_config {
	enum wfig_app app;
	enum wfig_place place;
	enum ycsb_dist dist;
	uint32_t nodes;	  /* of memory */
	uint32_t size;	  /* nodes of the structure */
	uint32_t visits;  /* tsv: of a request */
	uint32_t granule; /* bytes, a power of two; 0: as published */
	uint64_t seed;
};

struct wfig_data {
	struct wfig_data_config cfg;
	uint32_t shift;	      /* of stripes; 0: one piece */
	uint64_t piece_bytes; /* of each */
	uint8_t *piece[WFIG_NODES_MAX];
	struct aq_walk_shape shape;
	struct walk_program *program; /* as shipped */
	struct walk_program *counted; /* the same, see wfig_count.h */
	/* Web: appends a node to a chain; its pad is the node's offset. */
	struct walk_program *append, *append_counted;
	struct ycsb_keys keys;
	uint64_t *start; /* web: heads of chains; trees: the root alone */
	uint64_t *value; /* web: of keys */
	/* Trees: keys and values in order; sums of the values before. */
	uint64_t *sorted, *sum;
	uint64_t count; /* keys */
	uint64_t span;	/* keys of a range */
	uint32_t objects;
	uint64_t spare; /* web, one piece: from here on nodes may be added */
};

/* A request, and what it must bring. */
struct wfig_ask {
	uint64_t start;
	uint32_t send_bytes, pad_bytes;
	uint8_t pad[WFIG_PAD_MAX];
	uint64_t first, count, total; /* rank, pairs, their sum; web: value */
};

int wfig_data_create(const struct wfig_data_config *cfg,
		     struct wfig_data **out) MUST_CHECK;
void wfig_data_destroy(struct wfig_data *d);

void wfig_data_ask(const struct wfig_data *d, struct rng *r,
		   struct wfig_ask *ask);
/* Whether the pad has the answer. */
bool wfig_data_check(const struct wfig_data *d, const struct wfig_ask *ask,
		     const uint8_t *pad);

/* The memory node of an offset, and the byte of its piece. */
uint32_t wfig_data_node(const struct wfig_data *d, uint64_t offset,
			uint64_t *local);
/* The same of the object that a web request found. */
uint32_t wfig_data_object(const struct wfig_data *d, uint64_t value,
			  uint64_t *local);
/* Whether those bytes are that object's. */
bool wfig_data_object_is(const uint8_t *bytes, uint64_t value);

/* Opens d->program and the others; wfig_data_create does. */
int wfig_programs_open(struct wfig_data *d) MUST_CHECK;
/* Whether the program of that hash is one of these, which counts then; NULL: it
 * is not. */
const struct walk_program *wfig_data_program(const struct wfig_data *d,
					     uint64_t hash);

/* A node of a chain, to be added to the one that has the key; the same for a
 * key that no chain has. */
struct wfig_chain_node {
	uint64_t key, value, next;
};

uint64_t wfig_data_chain(const struct wfig_data *d, uint64_t key);

/* A request on the pieces themselves, without time. */
struct wfig_visit {
	uint64_t visits, crossings, cost;
	bool right;
	/* Called for every node before it is used; may be NULL. */
	void (*touch)(void *ctx, uint32_t node, uint64_t local);
	void *ctx;
};

void wfig_data_walk(const struct wfig_data *d, struct wfig_ask *ask,
		    struct wfig_visit *v);

const char *wfig_app_name(enum wfig_app app);

#endif
