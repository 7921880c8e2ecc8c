/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the reclaim thread works: judged by what faults wait for, and tried
 * again. */
#include "pager_threads.h"

enum {
	/* That left since the last look: a core that rests while little leaves
	 * says nothing about the time when much does. */
	TAKE_PAGES = 2048,
	LEAVE_PAGES = 256,
	TRIAL_LOOKS = 4,
};

#define WAITED_TOO_LONG_NS 10000000ull /* of the 100 ms between looks */
#define PENALTY_MIN_NS	   1000000000ull
#define PENALTY_MAX_NS	   64000000000ull

void run_threads_init(struct pager_threads *c, unsigned threads)
{
	*c = (struct pager_threads){.has_reclaim = threads == 2,
				    .is_fixed = threads != 0};
}

static bool take_reclaim(struct pager_threads *c, uint64_t pages)
{
	c->has_reclaim = true;
	c->alone_pages = pages;
	c->trial_pages = 0;
	c->trial_looks = TRIAL_LOOKS;
	return true;
}

static bool leave_reclaim(struct pager_threads *c, uint64_t now_ns)
{
	c->has_reclaim = false;
	c->penalty_ns = u64_min(u64_max(2 * c->penalty_ns, PENALTY_MIN_NS),
				PENALTY_MAX_NS);
	c->retry_ns = now_ns + c->penalty_ns;
	return true;
}

bool run_threads_waited(struct pager_threads *c, uint64_t now_ns,
			uint64_t waited_ns)
{
	if (!c->has_reclaim || c->is_fixed)
		return false;
	c->waited_ns += waited_ns;
	return c->waited_ns >= WAITED_TOO_LONG_NS && leave_reclaim(c, now_ns);
}

/* Whether the trial ends, and less has left than without the reclaim thread. */
static bool has_failed(struct pager_threads *c, uint64_t pages)
{
	if (!c->trial_looks)
		return false;
	c->trial_pages += pages;
	return --c->trial_looks == 0 &&
	       c->trial_pages < TRIAL_LOOKS * c->alone_pages;
}

bool run_threads_judge(struct pager_threads *c, uint64_t now_ns,
		       uint64_t evicted, bool is_busy)
{
	uint64_t pages = evicted - c->evicted;

	c->evicted = evicted;
	c->waited_ns = 0;
	if (c->is_fixed)
		return false;
	if (c->has_reclaim)
		return ((is_busy && pages >= LEAVE_PAGES) ||
			has_failed(c, pages)) &&
		       leave_reclaim(c, now_ns);
	return !is_busy && pages >= TAKE_PAGES && now_ns >= c->retry_ns &&
	       take_reclaim(c, pages);
}

bool run_threads_look(struct pager_threads *c, uint64_t now_ns,
		      uint64_t evicted, const cpu_set_t *set, int ours)
{
	return run_threads_judge(c, now_ns, evicted,
				 run_cores_are_busy(&c->cores, now_ns, set,
						    ours, !c->has_reclaim));
}
