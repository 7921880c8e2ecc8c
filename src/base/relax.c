/* SPDX-License-Identifier: Apache-2.0 */
/* Yields while that is cheap, else naps. */
#include "relax.h"

#include <sched.h>

#include "clock.h"

#define LONG_YIELD_NS 500000ull
#define SPAN_MIN_NS   20000000ull
#define SPAN_MAX_NS   1000000000ull
#define NAP_NS	      20000

/* The core that a thread is on, and who else is there, are its own. */
static _Thread_local struct relax own;

/* Once may be the host's doing, which takes guests' cores away: then it is
 * tried again soon. Strangers who are still there are believed for longer. */
static void note_long_yield(struct relax *r, uint64_t at_ns)
{
	bool again = at_ns < r->crowded_until_ns + 2 * r->span_ns;

	r->span_ns = again ? u64_min(4 * r->span_ns, SPAN_MAX_NS) : SPAN_MIN_NS;
	r->crowded_until_ns = at_ns + r->span_ns;
}

void relax_rest(struct relax *r)
{
	static const struct timespec nap = {.tv_nsec = NAP_NS};
	uint64_t before_ns = clock_mono_ns(), after_ns;

	if (before_ns < r->crowded_until_ns) {
		(void)nanosleep(&nap, NULL);
		return;
	}
	(void)sched_yield();
	after_ns = clock_mono_ns();
	if (UNLIKELY(after_ns - before_ns > LONG_YIELD_NS))
		note_long_yield(r, after_ns);
}

void relax_briefly(void)
{
	relax_rest(&own);
}

bool relax_is_crowded(void)
{
	return own.crowded_until_ns && clock_mono_ns() < own.crowded_until_ns;
}
