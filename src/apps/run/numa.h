/* SPDX-License-Identifier: Apache-2.0 */
/* NUMA nodes of this machine, and from which one memory comes. By system calls:
 * three of them are no reason for a library. */
#ifndef AQ_RUN_NUMA_H
#define AQ_RUN_NUMA_H

#include "base/base.h"

/* How much memory a node has; -ENOENT: there is none of that number, or it has
 * no memory. */
int run_numa_bytes(uint32_t node, uint64_t *bytes) MUST_CHECK;
/* Whether this process may have memory of it (cpuset(7)). */
bool run_numa_is_allowed(uint32_t node);
/* Nodes with memory. */
unsigned run_numa_count(void);
/* Pages that this thread makes the kernel allocate come from the node from now
 * on, also for other processes (userfaultfd), and from another one only if it
 * has none left. -errno. */
int run_numa_prefer(uint32_t node) MUST_CHECK;
/* The same for whoever touches this memory, if it is shared. */
int run_numa_prefer_for(void *mem, size_t bytes, uint32_t node) MUST_CHECK;
/* The kernel's own balancing leaves the pages of this process, and of what it
 * executes and forks, on their nodes; where their user has chosen a policy of
 * memory, that stays. */
void run_numa_keep_off(void);

#endif
