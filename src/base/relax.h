/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread does between two looks at something that another thread or
 * process will do. Alone on its core, or together with that other one, it
 * yields, which takes 0.2 us, and the other runs at once. On a core that is
 * crowded, that is, shared with unrelated programs, a yield costs a slice of
 * each of them, 60 ms and more beside sixteen that spin, and the scheduler
 * gives the thread no credit for it. A thread that sleeps gets credit: the
 * kernel runs it soon after it wakes. So after a yield that took long, naps
 * replace yields for a while.
 */
#ifndef AQ_RELAX_H
#define AQ_RELAX_H

#include "base.h"

struct relax {
	uint64_t crowded_until_ns; /* naps instead of yields until then */
	uint64_t span_ns;	   /* length of the last crowded span */
};

/* One rest, short or not. A nap ends after some 80 us. */
void relax_rest(struct relax *r);
/* The same with the state of the calling thread. */
void relax_briefly(void);

/* Whether the calling thread's core is crowded. If its event can end a sleeping
 * call, the thread should then sleep in that call. */
bool relax_is_crowded(void);

#endif
