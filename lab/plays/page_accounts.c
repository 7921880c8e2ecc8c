/* SPDX-License-Identifier: Apache-2.0 */
/* Counts in how many places each page frame is. */
#include "page_accounts.h"

enum {
	PFRAMES_MAX = 64,
};

struct accounts {
	struct play_run *run;
	struct pframe_pool *pool;
	uint64_t page_bytes;
	uint8_t seen[PFRAMES_MAX];
};

static void mark(struct accounts *a, uint64_t pframe, const char *where)
{
	uint64_t base = pframe, i;

	if (!pframe_pool_has(a->pool, pframe)) {
		play_fail(a->run, "%s holds what is no page frame", where);
		return;
	}
	/* Page frames stand one behind the other; the lowest is the first. */
	while (pframe_pool_has(a->pool, base - a->page_bytes))
		base -= a->page_bytes;
	i = (pframe - base) / a->page_bytes;
	if (a->seen[i]++)
		play_fail(a->run, "page frame %llu is in two places, one is %s",
			  (unsigned long long)i, where);
}

void page_accounts_check(struct play_run *r, struct pframe_pool *pool,
			 struct pframe_space *const *spaces, unsigned count,
			 unsigned pages, uint64_t page_bytes)
{
	struct accounts a = {.run = r, .pool = pool, .page_bytes = page_bytes};
	uint64_t pframe;

	ASSERT(pframe_pool_count(pool) <= PFRAMES_MAX);
	for (unsigned i = 0; i < count; i++)
		for (unsigned k = 0; spaces[i] && k < pages; k++) {
			pframe = pframe_space_find(spaces[i], k);
			if (pframe)
				mark(&a, pframe, "a table");
		}
	while ((pframe = pframe_pool_pop(pool)) != 0)
		mark(&a, pframe, "the queue");
	for (unsigned i = 0; i < pframe_pool_count(pool); i++)
		if (!a.seen[i])
			play_fail(r, "page frame %u is nowhere", i);
}
