/* SPDX-License-Identifier: Apache-2.0 */
/* Which node a page goes to, when it comes and when it leaves. */
#include "place.h"

const char *tier_word(enum tier t)
{
	static const char *const words[TIER_KINDS] = {"top", "slow", "far"};

	ASSERT(t < TIER_KINDS);
	return words[t];
}

bool tier_ratio_is_top(const struct tier_ratio *r, uint64_t page)
{
	uint64_t round = (uint64_t)r->top + r->slow;

	return round == 0 || page % round < r->top;
}

enum tier tier_place(const struct tier_ratio *r, const struct tier_fill *top,
		     const struct tier_fill *slow, uint64_t page)
{
	bool on_top = tier_ratio_is_top(r, page);

	if (on_top)
		return tier_fill_has_room(top) || !tier_fill_has_room(slow)
			       ? TIER_TOP
			       : TIER_SLOW;
	return tier_fill_has_room(slow) || !tier_fill_has_room(top) ? TIER_SLOW
								    : TIER_TOP;
}

enum tier tier_demote(enum tier from, const struct tier_fill *slow)
{
	return from == TIER_TOP && tier_fill_has_room(slow) ? TIER_SLOW
							    : TIER_FAR;
}
