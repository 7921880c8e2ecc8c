/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the kernel for the shortest slice, or for the usual one. */
#include "slice.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLICE_NS 100000ull

/* struct sched_attr, which libc does not have. */
struct slice_attr {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns; /* 0: what everybody has */
	uint64_t deadline_ns;
	uint64_t period_ns;
};

void slice_ask(bool is_short)
{
	struct slice_attr attr = {.size = sizeof(attr)};

	/* Read each time: somebody may have changed its nice value. */
	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) < 0 ||
	    attr.policy != SCHED_OTHER)
		return;
	attr.flags = 0;
	attr.runtime_ns = is_short ? SLICE_NS : 0;
	/* Where it is refused or unknown, things are as they were. */
	(void)syscall(SYS_sched_setattr, 0, &attr, 0);
}
