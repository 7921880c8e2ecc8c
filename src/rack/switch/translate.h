/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From virtual addresses of shared memory to memory nodes: one entry for each
 * node's arena, and entries for what was moved elsewhere, of which the smallest
 * counts (longest prefix).
 */
#ifndef AQ_SWITCH_TRANSLATE_H
#define AQ_SWITCH_TRANSLATE_H

#include "base/base.h"
#include "wire/coherence_wire.h"

enum {
	TRANSLATE_OUTLIERS = 8192,
};

struct translate_outlier {
	uint64_t va;
	uint64_t addr; /* of the node */
	uint8_t order; /* 1 << order bytes */
	uint8_t node;
};

struct translate {
	struct {
		uint64_t va, addr, size_bytes; /* of its arena; size 0: none */
	} node[COHERENCE_NODES];
	uint32_t node_end; /* nodes from here on have none */
	uint32_t outlier_count;
	uint64_t orders; /* that outliers have, one bit each */
	/* Sorted by address, then by size, small ones first. */
	struct translate_outlier *outliers;
};

int translate_init(struct translate *t) MUST_CHECK;
void translate_release(struct translate *t);
/* Nobody has anything. */
void translate_clear(struct translate *t);
/* -EEXIST: it is there, or another one has some of these addresses; -EINVAL.
 * Where programs see the arena, where it is in the node, and its size. */
int translate_node(struct translate *t, uint32_t node, uint64_t va,
		   uint64_t addr, uint64_t size_bytes) MUST_CHECK;
/* A node that was told in vain. */
void translate_forget(struct translate *t, uint32_t node);
/* A power of two of bytes, one page at least, is elsewhere. -EEXIST: it is an
 * outlier already; -ENOENT: no such node; -ENOSPC. */
int translate_outlier(struct translate *t, uint64_t va, uint64_t size_bytes,
		      uint32_t node, uint64_t addr) MUST_CHECK;
/* It is where it was before. */
void translate_remove(struct translate *t, uint64_t va, uint64_t size_bytes);
/* -EFAULT: nobody has it. */
int translate_find(const struct translate *t, uint64_t va, uint32_t *node,
		   uint64_t *addr) MUST_CHECK;

#endif
