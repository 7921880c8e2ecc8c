/* SPDX-License-Identifier: Apache-2.0 */
/* Counts in how many places each frame is. */
#include "page_accounts.h"

enum {
	FRAMES_MAX = 64,
};

struct accounts {
	struct play_run *run;
	struct frame_pool *pool;
	uint64_t page_bytes;
	uint8_t seen[FRAMES_MAX];
};

static void mark(struct accounts *a, uint64_t frame, const char *where)
{
	uint64_t base = frame, i;

	if (!frame_pool_has(a->pool, frame)) {
		play_fail(a->run, "%s holds what is no frame", where);
		return;
	}
	/* Frames stand one behind the other; the lowest is the first. */
	while (frame_pool_has(a->pool, base - a->page_bytes))
		base -= a->page_bytes;
	i = (frame - base) / a->page_bytes;
	if (a->seen[i]++)
		play_fail(a->run, "frame %llu is in two places, one is %s",
			  (unsigned long long)i, where);
}

void page_accounts_check(struct play_run *r, struct frame_pool *pool,
			 struct frame_space *const *spaces, unsigned count,
			 unsigned pages, uint64_t page_bytes)
{
	struct accounts a = {.run = r, .pool = pool, .page_bytes = page_bytes};
	uint64_t frame;

	ASSERT(frame_pool_count(pool) <= FRAMES_MAX);
	for (unsigned i = 0; i < count; i++)
		for (unsigned k = 0; spaces[i] && k < pages; k++) {
			frame = frame_space_find(spaces[i], k);
			if (frame)
				mark(&a, frame, "a table");
		}
	while ((frame = frame_pool_pop(pool)) != 0)
		mark(&a, frame, "the queue");
	for (unsigned i = 0; i < frame_pool_count(pool); i++)
		if (!a.seen[i])
			play_fail(r, "frame %u is nowhere", i);
}
