/* SPDX-License-Identifier: Apache-2.0 */
/* Pages that go to another NUMA node of this machine, where the program has
 * them mapped all the time. The kernel moves none that somebody has pinned, nor
 * what several processes share. */
#include <errno.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>

#include "agent_priv.h"
#include "preload_raw.h"

static long move(const struct run_batch *b, uint32_t count, int node)
{
	int nodes[RUN_BATCH_PAGES], status[RUN_BATCH_PAGES];

	for (uint32_t i = 0; i < count; i++)
		nodes[i] = node;
	return raw(SYS_move_pages, 0, count, b->page, nodes, status,
		   MPOL_MF_MOVE);
}

/* What the call for moving says of each page is not complete if one of them
 * stayed; so it is asked where they are. */
static uint64_t look(const struct run_batch *b, uint32_t count, int node)
{
	int status[RUN_BATCH_PAGES];
	uint64_t elsewhere = 0;
	long err = raw(SYS_move_pages, 0, count, b->page, 0, status, 0);

	for (uint32_t i = 0; i < count; i++)
		if (err < 0 || status[i] != node)
			elsewhere |= 1ull << i;
	return elsewhere;
}

/* All pages with one call: whatever their number, it waits until all processors
 * have noticed (lru_cache_disable). */
void agent_demote(struct run_batch *b)
{
	uint32_t count = b->page_count;
	int node = (int)(b->to_node - 1);
	struct run_outcome r = {.failed = 0};
	long err;

	if (count > RUN_BATCH_PAGES)
		return; /* all have failed, as the pager has it */
	err = move(b, count, node);
	r.failed = look(b, count, node);
	/* So it will always be: a filter of system calls, or a node that this
	 * process may not use. */
	if (err == -EPERM || err == -EACCES || err == -ENOSYS || err == -ENODEV)
		r.refused = r.failed = agent_bits(0, count);
	b->out = r;
}
