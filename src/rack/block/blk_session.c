/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of a block: which changes were executed, and what was answered. */
#include <errno.h>

#include "base/plant.h"
#include "blk.h"

uint32_t blk_session_room(uint64_t size_bytes)
{
	uint64_t n = size_bytes / (64 << 10);

	return (uint32_t)u64_min(u64_max(n, BLK_SESSIONS_MIN),
				 BLK_SESSIONS_MAX);
}

/* Ids are random, so their first bytes say where to look. */
static uint32_t hash(const struct blk_block *b, const uint8_t *id)
{
	uint32_t v;

	memcpy(&v, id, sizeof(v));
	return v % b->session_room;
}

int blk_session_find(struct blk_block *b, const uint8_t id[BLOCK_SESSION_BYTES],
		     bool make, uint32_t *out)
{
	uint32_t at = hash(b, id), unused = UINT32_MAX;

	for (uint32_t i = 0; i < b->session_room; i++) {
		const struct blk_session *s = &b->session[at];

		if (s->is_used && !memcmp(s->id, id, sizeof(s->id))) {
			*out = at;
			return 0;
		}
		if (!s->is_used && unused == UINT32_MAX)
			unused = at;
		at = at + 1 == b->session_room ? 0 : at + 1;
	}
	if (!make || unused == UINT32_MAX)
		return -EAGAIN;
	b->session[unused] = (struct blk_session){.is_used = true};
	memcpy(b->session[unused].id, id, BLOCK_SESSION_BYTES);
	b->session_count++;
	*out = unused;
	return 0;
}

void blk_session_acked(struct blk_block *b, struct blk_session *s,
		       uint64_t acked)
{
	if (PLANTED(blk_forget_early))
		acked++;
	s->acked = u64_max(s->acked, acked);
	while (s->count && s->done[s->first].sequence <= acked) {
		if (s->done[s->first].has_item)
			b->kind->forget(b, &s->done[s->first]);
		s->first = (s->first + 1) % BLK_ANSWERS;
		s->count--;
	}
}

const struct blk_done *blk_session_done(const struct blk_session *s,
					uint64_t sequence)
{
	for (uint32_t i = 0; i < s->count; i++) {
		const struct blk_done *d =
			&s->done[(s->first + i) % BLK_ANSWERS];

		if (d->sequence == sequence)
			return d;
	}
	return NULL;
}

void blk_session_keep(struct blk_session *s, const struct blk_done *done)
{
	ASSERT(s->count < BLK_ANSWERS && done->sequence > s->last);
	s->done[(s->first + s->count) % BLK_ANSWERS] = *done;
	s->count++;
	s->last = done->sequence;
}

void blk_session_keep_any(struct blk_session *s, const struct blk_done *done)
{
	uint32_t i;

	if (s->count == BLK_ANSWERS) {
		s->first = (s->first + 1) % BLK_ANSWERS;
		s->count--;
	}
	for (i = s->count; i; i--) {
		const struct blk_done *d =
			&s->done[(s->first + i - 1) % BLK_ANSWERS];

		if (d->sequence < done->sequence)
			break;
		s->done[(s->first + i) % BLK_ANSWERS] = *d;
	}
	s->done[(s->first + i) % BLK_ANSWERS] = *done;
	s->count++;
	s->last = u64_max(s->last, done->sequence);
}

void blk_give_back(struct blk_block *b, const uint8_t id[BLOCK_SESSION_BYTES])
{
	uint32_t at;

	if (blk_session_find(b, id, false, &at))
		return;
	b->session[at].returns = false;
	b->kind->leave(b, at);
}

void blk_leave(struct blk_block *b, const uint8_t id[BLOCK_SESSION_BYTES])
{
	uint32_t at;

	if (blk_session_find(b, id, false, &at))
		return;
	blk_session_acked(b, &b->session[at], UINT64_MAX);
	if (!PLANTED(parked_stay))
		b->kind->leave(b, at);
	b->session[at].is_used = false;
	b->session_count--;
}
