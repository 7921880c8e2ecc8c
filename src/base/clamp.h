/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offsets that no processor can get wrong. A check is a branch, and processors
 * compute ahead of branches; where strangers choose the offset, what is loaded
 * then must not be anything else than what they may read.
 */
#ifndef AQ_CLAMP_H
#define AQ_CLAMP_H

#include "base.h"

/* The compiler must take this value for an unknown one. */
static inline uint64_t clamp_hide(uint64_t value)
{
	__asm__("" : "+r"(value));
	return value;
}

/* `offset`, if `len` from there lies within `room`, else 0, without a branch.
 * It does not stand for the check, which has to be made as well. */
static inline uint64_t clamp_offset(uint64_t offset, uint64_t len,
				    uint64_t room)
{
	uint64_t shorter = -(uint64_t)(clamp_hide(len) <= room);
	uint64_t last = (room - len) & shorter;
	uint64_t inside = -(uint64_t)(clamp_hide(offset) <= last);

	return offset & inside & shorter;
}

#endif
