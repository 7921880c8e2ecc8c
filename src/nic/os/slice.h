/* SPDX-License-Identifier: Apache-2.0 */
/* How long the kernel lets a thread run at a time. */
#ifndef AQ_SLICE_H
#define AQ_SLICE_H

#include "base/base.h"

/*
 * Makes slices of the calling thread as short as can be, before it sleeps, or
 * what everybody has, when it has something to do. A thread that wakes
 * with a shorter slice than the one that runs is let in at once (Linux 6.12 and
 * later, no privilege needed); otherwise it waits out the slice of a program
 * that spins. But a yield gives away the rest of a slice, and so next to
 * nothing with a short one: who polls keeps the usual slice, or it would have
 * to yield thirty times until its neighbour runs.
 */
void slice_ask(bool is_short);

/* The same, with what was asked for last. */
static inline void slice_set(bool *now, bool is_short)
{
	if (LIKELY(*now == is_short))
		return;
	*now = is_short;
	slice_ask(is_short);
}

#endif
