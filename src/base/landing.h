/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a thread goes on when memory that it touches is gone: registered memory
 * that the program has unmapped, or a peer's that was truncated. Code that
 * touches such memory is called through landing_call, which returns at once on
 * a fault in the given range. The signal handler for that is in
 * os/fault_guard.c; without it, as in the simulator, a fault has its usual
 * effect.
 *
 * It takes some twenty instructions and no system call, so every copy can
 * afford it.
 */
#ifndef AQ_LANDING_H
#define AQ_LANDING_H

#include <stdatomic.h>

#include "base.h"

struct landing {
	/* Faults in [start, end) are ours; end 0: none are. */
	_Atomic uintptr_t start;
	_Atomic uintptr_t end;
	uintptr_t sp;  /* of landing_call */
	int64_t trust; /* calls until the thread's signals are looked at */
	/* While there is a range, faults in this second one are ours, too. */
	_Atomic uintptr_t other_start;
	_Atomic uintptr_t other_end;
	uintptr_t at; /* of the last fault */
#if !defined(__x86_64__)
	void *back[5];
#endif
};

/* Each thread has its own. The initial-exec model lets a signal handler reach
 * it without a call that may allocate. */
extern __thread struct landing landing
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* What looks after the signal handler; called by each thread now and then. Set
 * by os/fault_guard.c, before there is a thread that works. */
extern void (*landing_looks)(void) __attribute__((visibility("hidden")));

/* Does the work and returns a value other than 0. A fault abandons it midway,
 * so it must hold nothing that has to be given back. */
typedef size_t landing_work(void *a, const void *b, uintptr_t c);

/* Calls work(a, b, c), which touches [start, end). 0: that memory is gone. */
size_t landing_call(void *a, const void *b, uintptr_t c, landing_work *work,
		    uintptr_t start, uintptr_t end)
	__attribute__((visibility("hidden")));

/* Inside work: from here on it touches this range, and not the one before. */
static inline void landing_move(const void *start, size_t len_bytes)
{
	atomic_store_explicit(&landing.start, (uintptr_t)start,
			      memory_order_relaxed);
	atomic_store_explicit(&landing.end, (uintptr_t)start + len_bytes,
			      memory_order_relaxed);
}

/* For work between two such ranges: names the second before, none after it. */
static inline void landing_other(const void *start, size_t len_bytes)
{
	atomic_store_explicit(&landing.other_start, (uintptr_t)start,
			      memory_order_relaxed);
	atomic_store_explicit(&landing.other_end, (uintptr_t)start + len_bytes,
			      memory_order_relaxed);
}

/* Was the last fault in this range? */
static inline bool landing_hit(const void *start, size_t len_bytes)
{
	return landing.at - (uintptr_t)start < len_bytes;
}

/* Call it in the signal handler, with the handler's third argument. True: the
 * fault is ours, and the handler must return; the thread then continues. */
bool landing_take(uintptr_t at, void *context);

#endif
