/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes that `bench walk` has in memory, the ready walks over them, and C
 * functions of the same meaning: one iteration each, called as a program's
 * run() is.
 */
#ifndef AQ_BENCH_WALK_NATIVE_H
#define AQ_BENCH_WALK_NATIVE_H

#include <aquifer/walk_shape.h>

#include "walk/program.h"

enum {
	WALK_TREE_KEYS = 9,   /* of a node, at most */
	WALK_ROW_BYTES = 240, /* a value in a leaf with one row */
	WALK_SCAN_ROWS = 16,  /* as many as a pad has room for */
};

struct walk_node {
	uint64_t key;
	uint64_t value;
	uint64_t next; /* offset of a node; 0: none */
};

/* Of a B+ tree. */
struct walk_tree_node {
	uint32_t is_leaf, count;
	uint64_t keys[WALK_TREE_KEYS], values[WALK_TREE_KEYS];
	uint64_t children[WALK_TREE_KEYS + 1], next;
};

/* A leaf that has one row; the inner nodes above it are as those above. */
struct walk_row {
	uint32_t is_leaf, count;
	uint64_t key;
	uint8_t value[WALK_ROW_BYTES];
	uint64_t next;
};

/* The pad of a find with a key and a value of 8 bytes. */
struct walk_find_pad {
	uint64_t found, state[2], key, value;
};

/* The pad of a scan over such leaves. */
struct walk_scan_pad {
	uint64_t found, more, low, high;
	struct {
		uint64_t key;
		uint8_t value[WALK_ROW_BYTES];
	} pairs[WALK_SCAN_ROWS];
};

extern const struct aq_walk_shape walk_list_shape;
extern const struct aq_walk_shape walk_tree_find_shape;
extern const struct aq_walk_shape walk_tree_reduce_shape;
extern const struct aq_walk_shape walk_row_scan_shape;

struct walk_end walk_native_find(const struct walk_program *program,
				 uint8_t *node, uint8_t *pad);
struct walk_end walk_native_tree(const struct walk_program *program,
				 uint8_t *node, uint8_t *pad);
struct walk_end walk_native_reduce(const struct walk_program *program,
				   uint8_t *node, uint8_t *pad);
struct walk_end walk_native_scan(const struct walk_program *program,
				 uint8_t *node, uint8_t *pad);

#endif
