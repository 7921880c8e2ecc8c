/* SPDX-License-Identifier: Apache-2.0 */
/* NUMA nodes of this machine that have memory. */
#ifndef AQ_RUN_NUMA_H
#define AQ_RUN_NUMA_H

#include "base/base.h"

/* How much memory a node has; -ENOENT: there is none of that number, or it has
 * no memory. */
int run_numa_bytes(uint32_t node, uint64_t *bytes) MUST_CHECK;
/* Nodes with memory. */
unsigned run_numa_count(void);

#endif
