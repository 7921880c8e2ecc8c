/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that a block is, as one row of bytes, for a new member of its chain: the
 * block itself, its sessions with their answers, its tables, its last events,
 * and the memory that is in use. Both ends run the same release on machines
 * alike; what does not fit is refused.
 */
#ifndef AQ_BLK_STATE_H
#define AQ_BLK_STATE_H

#include "blk.h"

enum {
	BLK_STATE_PARTS = 7,
};

struct blk_state_part {
	uint8_t *at;
	uint64_t bytes;
};

struct blk_state {
	struct blk_block head; /* without pointers */
	unsigned count;
	struct blk_state_part part[BLK_STATE_PARTS];
};

/* Of the block as it is; returns the bytes of all. It is good until the block
 * changes. */
uint64_t blk_state_begin(struct blk_state *s, struct blk_block *b);
/* The bytes from there on, up to `most`, as far as they lie together. */
const uint8_t *blk_state_at(const struct blk_state *s, uint64_t offset,
			    uint32_t most, uint32_t *bytes);

/* The other end: what comes goes into a block of which nothing was used yet.
 * Bytes come in their order. -EBADMSG: it is of another kind or size. */
int blk_state_take(struct blk_state *s, struct blk_block *b, uint64_t offset,
		   const uint8_t *data, uint32_t bytes) MUST_CHECK;
/* All is there, `total` bytes. -EBADMSG: it is not whole. */
int blk_state_end(struct blk_state *s, struct blk_block *b,
		  uint64_t total) MUST_CHECK;

#endif
