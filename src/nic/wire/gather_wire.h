/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gathering: the bytes of many places of a region in one walk, whose program is
 * a number that no image has to have. The pad of the request is a list of
 * places, the pad of the answer their bytes, in the same order, each beginning
 * at a multiple of eight. A walk counts its places as iterations.
 */
#ifndef AQ_GATHER_WIRE_H
#define AQ_GATHER_WIRE_H

#include "base/base.h"
#include "base/bytes.h"

/* Programs are named by hashes of their images. */
#define GATHER_WIRE_PROGRAM UINT64_C(0x6761746865720001)

enum {
	GATHER_WIRE_PLACES = 128, /* of one walk, at most */
	GATHER_WIRE_ALIGN = 8,
	GATHER_WIRE_AT_BITS = 48,
};

/* An offset in the region below 2^48, and 1 to 65535 bytes from there. */
struct gather_place {
	uint64_t at;
	uint32_t len_bytes;
};

static inline le64 gather_place_put(struct gather_place p)
{
	return le64_put(p.at | (uint64_t)p.len_bytes << GATHER_WIRE_AT_BITS);
}

static inline struct gather_place gather_place_get(le64 word)
{
	uint64_t v = le64_get(word);

	return (struct gather_place){
		.at = v & ((UINT64_C(1) << GATHER_WIRE_AT_BITS) - 1),
		.len_bytes = (uint32_t)(v >> GATHER_WIRE_AT_BITS),
	};
}

/* What a place takes of the answer. */
static inline uint32_t gather_place_room(uint32_t len_bytes)
{
	return (len_bytes + GATHER_WIRE_ALIGN - 1) &
	       ~(uint32_t)(GATHER_WIRE_ALIGN - 1);
}

#endif
