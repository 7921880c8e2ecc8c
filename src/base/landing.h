/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a thread goes on when memory that it touches is gone: registered memory
 * that the program has unmapped, or a peer's that was truncated. What touches
 * it is called through landing_call, which a fault in the named range makes
 * return at once. The signal handler for that is in os/fault_guard.c; without
 * one, as in the simulator, a fault is what it always is.
 *
 * It takes some twenty instructions and no system call, so that every copy may
 * have it.
 */
#ifndef AQ_LANDING_H
#define AQ_LANDING_H

#include <stdatomic.h>

#include "base.h"

struct landing {
	/* Faults from here to before `end` are ours; end 0: none. */
	_Atomic uintptr_t start;
	_Atomic uintptr_t end;
	uintptr_t sp;  /* of landing_call */
	int64_t trust; /* calls until the thread's signals are looked at */
	/* While there is a range, faults in this one are ours, too. */
	_Atomic uintptr_t other_start;
	_Atomic uintptr_t other_end;
	uintptr_t at; /* of the last fault */
#if !defined(__x86_64__)
	void *back[5];
#endif
};

/* Each thread its own. The initial-exec model lets a signal handler reach it
 * without a call that may allocate. */
extern __thread struct landing landing
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* What looks after the signal handler; called by each thread now and then. Set
 * by os/fault_guard.c, before there is a thread that works. */
extern void (*landing_looks)(void) __attribute__((visibility("hidden")));

/* Does the work; returns something that is not 0. A fault leaves it where it
 * is: it must hold nothing that has to be given back. */
typedef size_t landing_work(void *a, const void *b, uintptr_t c);

/* work(a, b, c), where `start` to `end` may be gone. 0: it is. */
size_t landing_call(void *a, const void *b, uintptr_t c, landing_work *work,
		    uintptr_t start, uintptr_t end)
	__attribute__((visibility("hidden")));

/* For work between two such memories: the second, before; and nothing, after.
 */
static inline void landing_other(const void *start, size_t len_bytes)
{
	atomic_store_explicit(&landing.other_start, (uintptr_t)start,
			      memory_order_relaxed);
	atomic_store_explicit(&landing.other_end, (uintptr_t)start + len_bytes,
			      memory_order_relaxed);
}

/* Was the last fault in this one? */
static inline bool landing_hit(const void *start, size_t len_bytes)
{
	return landing.at - (uintptr_t)start < len_bytes;
}

/* In the signal handler, with its third argument: true if the fault is ours.
 * Then it must return; the thread goes on behind its landing_call. */
bool landing_take(uintptr_t at, void *context);

#endif
