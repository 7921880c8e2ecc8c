/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a NUMA node that is chosen. By system calls: libraries that
 * other programs link carry this, and libnuma has far more than they need.
 */
#ifndef AQ_NODE_BIND_H
#define AQ_NODE_BIND_H

#include "base.h"

enum {
	NODE_BIND_MAX = 1023, /* the largest number of a node */
};

/* Whole pages at `memory` come from that node, whoever touches them first, also
 * another process if the memory is shared; those that exist are moved. 0 or
 * -errno: -EIO, some could not be moved; -EINVAL, there is no such node. */
int node_bind_memory(void *memory, uint64_t bytes, uint32_t node) MUST_CHECK;
/* Pages that the calling thread makes the kernel allocate come from that node,
 * until node_bind_thread_end. 0 or -errno. */
int node_bind_thread(uint32_t node) MUST_CHECK;
void node_bind_thread_end(void);

/* The same, but where the node has no memory left, another one's is taken. */
int node_prefer_memory(void *memory, uint64_t bytes, uint32_t node) MUST_CHECK;
int node_prefer_thread(uint32_t node) MUST_CHECK;

/* Whether this process may have memory of it (cpuset(7)). */
bool node_is_allowed(uint32_t node);
/* The kernel's own balancing leaves the pages of this process, and of what it
 * executes and forks, on their nodes; where their user has chosen a policy of
 * memory, that stays. */
void node_balance_off(void);

#endif
