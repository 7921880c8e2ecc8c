/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A B+ tree with the nodes of the PULSE paper's code: 256 bytes, up to 9 keys
 * and 10 children. It is made by inserting keys one after the other, so the
 * numbers of its nodes say in which order memory was allocated for them.
 */
#ifndef AQ_FIGURES_WFIG_TREE_H
#define AQ_FIGURES_WFIG_TREE_H

#include "base/base.h"

enum {
	WFIG_TREE_KEYS = 9,
	WFIG_TREE_LEVELS = 16, /* at most */
};

struct wfig_node {
	uint64_t is_leaf;
	uint64_t count;
	struct {
		uint64_t key, value;
	} entry[WFIG_TREE_KEYS];
	/* Number of the node + 1, until they are placed. */
	uint64_t child[WFIG_TREE_KEYS + 1];
	uint64_t next, prev;
};

STATIC_ASSERT(sizeof(struct wfig_node) == 256, "node");

struct wfig_tree {
	struct wfig_node *node;
	uint32_t count, size;
	uint32_t root; /* number of its node */
	uint32_t levels;
};

/* Room for `size` nodes, of which one, an empty leaf, is used. -ENOMEM. */
int wfig_tree_create(struct wfig_tree *t, uint32_t size) MUST_CHECK;
void wfig_tree_release(struct wfig_tree *t);
/* A key that is not there yet. False: the nodes may not be enough; nothing was
 * changed. */
bool wfig_tree_insert(struct wfig_tree *t, uint64_t key, uint64_t value);
/* The leaf with the smallest keys. */
uint32_t wfig_tree_first(const struct wfig_tree *t);

#endif
