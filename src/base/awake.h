/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Since when a process that looks regularly has done so without a pause. A
 * process that was stopped, or got no processor for some seconds, has not yet
 * read what its peers sent meanwhile, so that time must not count against them.
 */
#ifndef AQ_AWAKE_H
#define AQ_AWAKE_H

#include "base.h"

/* Zero-initialised. */
struct awake {
	uint64_t looked_ns;
	uint64_t since_ns;
};

/* Call it at each look. More than `pause_ns` since the last look is a pause. */
static inline void awake_look(struct awake *a, uint64_t now_ns,
			      uint64_t pause_ns)
{
	if (now_ns - a->looked_ns > pause_ns)
		a->since_ns = now_ns;
	a->looked_ns = now_ns;
}

#endif
