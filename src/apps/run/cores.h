/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a core is free for a thread beside the one that serves faults. */
#ifndef AQ_RUN_CORES_H
#define AQ_RUN_CORES_H

#include <sched.h>

#include "base/base.h"

struct cores {
	uint64_t idle[CPU_SETSIZE]; /* ticks, when it was last looked at */
	uint64_t looked_ns;
};

/* Whether all of `set` but `ours` have been busy since the last call. `was` is
 * the last result, which is returned again unless the change is clear. */
bool run_cores_are_busy(struct cores *c, uint64_t now_ns, const cpu_set_t *set,
			int ours, bool was);
/* The part for tests: decides by the text of /proc/stat and elapsed ticks. */
bool run_cores_judge(struct cores *c, const char *stat, uint64_t ticks,
		     const cpu_set_t *set, int ours, bool was);

#endif
