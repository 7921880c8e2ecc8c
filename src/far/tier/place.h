/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a page goes: to the top node, to the slow one, or far away. Pure: the
 * caller counts pages, and moves them.
 *
 *	a page comes		with a ratio N:M, page k belongs on top if
 *				k mod (N + M) < N; without, every page does
 *	... its node is full	the other node, if that one has room; else its
 *				own, and the hand makes room there
 *	... for the first time	as that; while pages are promoted the caller
 *				lets top have a little more, and demotes
 *	a page leaves top	for the slow node while that has room, else far
 *	a page leaves slow	far
 */
#ifndef AQ_TIER_PLACE_H
#define AQ_TIER_PLACE_H

#include "base/base.h"

enum tier {
	TIER_TOP,
	TIER_SLOW,
	TIER_FAR,
	TIER_KINDS,
};

/* N of N + M pages belong on top. All zero: there is no ratio. */
struct tier_ratio {
	uint32_t top, slow;
};

/* What a node has of the caller's pages, and what it may have. */
struct tier_fill {
	uint64_t pages, limit_pages;
};

const char *tier_word(enum tier t);

static inline bool tier_fill_has_room(const struct tier_fill *f)
{
	return f->pages < f->limit_pages;
}

/* Whether a page belongs on top. */
bool tier_ratio_is_top(const struct tier_ratio *r, uint64_t page);
/* Where a page that comes goes: TIER_TOP or TIER_SLOW. */
enum tier tier_place(const struct tier_ratio *r, const struct tier_fill *top,
		     const struct tier_fill *slow, uint64_t page);
/* Where a page goes that leaves `from`. */
enum tier tier_demote(enum tier from, const struct tier_fill *slow);

#endif
