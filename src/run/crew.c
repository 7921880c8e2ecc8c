/* SPDX-License-Identifier: Apache-2.0 */
#include "crew.h"

enum {
	/* That left since the last look: cores that rest while little leaves
	 * say nothing about the time when much does. */
	LOOK_PAGES = 2048,
};

#define WAITED_TOO_LONG_NS 10000000ull /* of the 100 ms between looks */
#define PENALTY_MIN_NS	   1000000000ull
#define PENALTY_MAX_NS	   64000000000ull

bool run_crew_waited(struct crew *c, uint64_t now_ns, uint64_t waited_ns)
{
	if (!c->has_porter)
		return false;
	c->waited_ns += waited_ns;
	if (c->waited_ns < WAITED_TOO_LONG_NS)
		return false;
	c->has_porter = false;
	c->penalty_ns = u64_min(u64_max(2 * c->penalty_ns, PENALTY_MIN_NS),
				PENALTY_MAX_NS);
	c->retry_ns = now_ns + c->penalty_ns;
	return true;
}

bool run_crew_judge(struct crew *c, uint64_t now_ns, uint64_t evicted,
		    bool is_busy)
{
	bool had_porter = c->has_porter;
	bool says_much = evicted - c->evicted >= LOOK_PAGES;

	c->evicted = evicted;
	c->waited_ns = 0;
	if (says_much)
		c->has_porter =
			!is_busy && (had_porter || now_ns >= c->retry_ns);
	return c->has_porter != had_porter;
}

bool run_crew_look(struct crew *c, uint64_t now_ns, uint64_t evicted,
		   const cpu_set_t *set, int ours)
{
	return run_crew_judge(
		c, now_ns, evicted,
		run_cores_are_busy(&c->cores, set, ours, !c->has_porter));
}
