/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk of a get: a program that a memory node executes, made for the
 * geometry of one replica. It looks at the first row of a key; if no entry
 * there has the key's hash and an extent, at the second; if one has, it goes to
 * the extent, where that is not too long; and last to the state of the replica,
 * if that is wanted. It judges nothing: the client looks at what it brings as
 * after READs in this order. That is both rows, or the row with the entry and
 * the extent: an answer takes longer the more it has.
 */
#ifndef AQ_KV_PROGRAM_H
#define AQ_KV_PROGRAM_H

#include "kv_layout.h"
#include "walk/build.h"

/* The pad, before a walk and after it. Behind it are a row, and the other row
 * or the extent. */
struct kv_pad {
	le64 hash;
	le64 second;   /* where the other row is; 0: there is none */
	le64 state_at; /* 0: it is not wanted */
	le64 state;
	le64 extent; /* where it is */
	le64 extent_bytes;
	uint8_t key_len;
	uint8_t rows;	    /* that it has looked at; the last is the one with
			     * the entry, if there is an extent */
	uint8_t has_extent; /* it has brought one */
	uint8_t has_state;
	/* A multiple of 16 is copied and summed in one go (wire/stamp.c). */
	uint8_t reserved[12];
};

STATIC_ASSERT(sizeof(struct kv_pad) == 64, "kv pad");

/* By the length of the extents that it brings: those of most values are short,
 * and a pad has room for the longest. */
enum kv_walk {
	KV_WALK_SHORT,
	KV_WALK_LONG,
	KV_WALKS
};

uint32_t kv_walk_extent_max(const struct kv_geometry *g, enum kv_walk walk);
uint32_t kv_pad_bytes(const struct kv_geometry *g, enum kv_walk walk);

/* The image lives as long as *build; destroy that. -EOPNOTSUPP with words: not
 * for a table without extents. */
int kv_program_make(const struct kv_geometry *g, enum kv_walk walk,
		    struct walk_build **build,
		    struct walk_image *image) MUST_CHECK;

#endif
