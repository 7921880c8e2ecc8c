/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dispatch rule: a node computes for a walk while it would wait for memory
 * anyway. A node's processor is shared by all its clients, so walks that
 * compute for longer than WALK_ETA of the time of their loads run at their
 * client.
 */
#ifndef AQ_WALK_RULE_H
#define AQ_WALK_RULE_H

#include <stdbool.h>

#define WALK_ETA 0.75

static inline bool walk_rule_offloads(double compute_ns, double load_ns)
{
	return compute_ns <= WALK_ETA * load_ns;
}

#endif
