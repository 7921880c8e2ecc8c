/* SPDX-License-Identifier: Apache-2.0 */
/* Scrambler, inter-frame gap, block lock and the settings of a link. */
#include "phy.h"

#include <errno.h>

#include "base/error.h"

enum {
	TAP_SHORT = 39,
	TAP_LONG = 58,
	LOCK_WINDOW = 64,
	LOCK_INVALID_MAX = 16,
};

int edm_phy_config_check(const struct edm_phy_config *c)
{
	if (c->start_align != 4 && c->start_align != 8)
		return error_set(-EINVAL,
				 "frames start at multiples of 4 or 8 "
				 "characters, not of %u",
				 c->start_align);
	if (c->start_align == 4 && c->map == WIRE_MAP_CLAUSE82)
		return error_set(-EINVAL,
				 "the clause 82 map uses the block types of "
				 "starts in lane 4 for memory: frames must "
				 "start at multiples of 8 characters");
	return 0;
}

uint64_t edm_descramble(struct edm_scrambler *s, uint64_t payload)
{
	uint64_t past = s->past;

	s->past = payload;
	return payload ^ (payload << TAP_SHORT | past >> (64 - TAP_SHORT)) ^
	       (payload << TAP_LONG | past >> (64 - TAP_LONG));
}

/* Bits 0-38 depend on the past alone; what they feed back then completes the
 * rest, because no bit is fed back twice within a word (2 * 39 > 64). */
uint64_t edm_scramble(struct edm_scrambler *s, uint64_t payload)
{
	uint64_t y = payload ^ s->past >> (64 - TAP_SHORT) ^
		     s->past >> (64 - TAP_LONG);

	y ^= y << TAP_SHORT ^ y << TAP_LONG;
	s->past = y;
	return y;
}

static uint64_t reverse(uint64_t v)
{
	uint64_t r = 0;

	for (unsigned i = 0; i < 64; i++)
		r |= (v >> i & 1) << (63 - i);
	return r;
}

struct edm_scrambler edm_scrambler_from_register(uint64_t reg)
{
	return (struct edm_scrambler){reverse(reg)};
}

uint64_t edm_scrambler_register(const struct edm_scrambler *s)
{
	return reverse(s->past) & ((UINT64_C(1) << TAP_LONG) - 1);
}

uint32_t edm_gap_next(const struct edm_gap *g, uint32_t lane)
{
	uint32_t shortest = EDM_GAP_BYTES - (lane + EDM_GAP_BYTES) % g->align;

	if (g->deficit + EDM_GAP_BYTES - shortest < g->align)
		return shortest;
	return shortest + g->align;
}

bool edm_gap_account(struct edm_gap *g, uint32_t gap_chars)
{
	uint32_t owed = g->deficit + EDM_GAP_BYTES;

	g->deficit = owed > gap_chars ? owed - gap_chars : 0;
	if (g->deficit < g->align)
		return true;
	g->deficit = g->align - 1;
	return false;
}

void edm_lock_feed(struct edm_lock *l, uint8_t sync)
{
	bool valid = sync == WIRE_SYNC_DATA || sync == WIRE_SYNC_CONTROL;

	l->seen++;
	l->invalid += !valid;
	if (!l->locked) {
		if (!valid)
			l->seen = l->invalid = 0;
		else if (l->seen == LOCK_WINDOW)
			*l = (struct edm_lock){.locked = true, .lost = l->lost};
		return;
	}
	if (l->invalid == LOCK_INVALID_MAX)
		*l = (struct edm_lock){.lost = l->lost + 1};
	else if (l->seen == LOCK_WINDOW)
		l->seen = l->invalid = 0;
}
