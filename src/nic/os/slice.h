/* SPDX-License-Identifier: Apache-2.0 */
/* How long the kernel lets a thread run at a time. */
#ifndef AQ_SLICE_H
#define AQ_SLICE_H

#include "base/base.h"

/*
 * Makes the slices of the calling thread as short as possible, before it
 * sleeps, or as long as usual, when it has something to do. A thread that wakes
 * with a shorter slice than the running one runs at once (Linux 6.12 and later,
 * no privilege needed); otherwise it waits until the slice of a program that
 * spins is over. But a yield gives away only the rest of a slice: a thread that
 * polls keeps the usual slice, or it would have to yield thirty times until its
 * neighbour runs.
 */
void slice_ask(bool is_short);

/* The same, with a copy of the last request. */
static inline void slice_set(bool *now, bool is_short)
{
	if (LIKELY(*now == is_short))
		return;
	*now = is_short;
	slice_ask(is_short);
}

#endif
