/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the switch waits awake. Alone on a core a yield costs 0.2 us; beside
 * a thread that spins it costs that thread's slice, 4 ms, and being woken from
 * sleep (30 us) is better.
 */
#include "patience.h"

#include <sched.h>

#include "os/os_limits.h"

enum {
	LONG_WEIGHT = 8, /* short yields that excuse a long one */
	CROWDED_SCORE = 3 * LONG_WEIGHT - 1,
	CROWDED_IDLES = 64,
};

#define CROWDED_MIN_NS 50000000ull
#define CROWDED_MAX_NS 1000000000ull

bool patience_is_over(const struct patience *p, uint32_t idle, uint64_t now_ns)
{
	return idle > (now_ns < p->crowded_until_ns
			       ? u32_min(CROWDED_IDLES, p->yields)
			       : p->yields);
}

void patience_yield(struct patience *p, struct env *env, uint64_t now_ns)
{
	uint64_t after_ns;

	if (now_ns < p->crowded_until_ns)
		return;
	sched_yield();
	after_ns = env_now_ns(env);
	if (LIKELY(after_ns - now_ns < OS_YIELD_LONG_NS)) {
		p->score -= p->score > 0;
		return;
	}
	/* Once may be chance; who shares our core takes it each time. */
	p->score += LONG_WEIGHT;
	if (p->score < CROWDED_SCORE)
		return;
	p->score = 0;
	if (now_ns < p->crowded_until_ns + 2 * p->span_ns)
		p->span_ns = u64_min(2 * p->span_ns, CROWDED_MAX_NS);
	else
		p->span_ns = CROWDED_MIN_NS;
	p->crowded_until_ns = after_ns + p->span_ns;
}

void patience_init(struct patience *p, uint32_t yields)
{
	*p = (struct patience){.yields = yields};
}
