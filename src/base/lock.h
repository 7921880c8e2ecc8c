/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock for short critical sections on the data path. Taking it free costs one
 * exchange. A waiter yields, then sleeps briefly: on two cores a lock that only
 * spins costs a scheduler slice whenever its holder is preempted, and with
 * real-time priorities it never ends.
 */
#ifndef AQ_LOCK_H
#define AQ_LOCK_H

#include <stdatomic.h>

#include "base.h"

struct lock {
	atomic_uint held;
};

static inline void lock_init(struct lock *l)
{
	atomic_init(&l->held, 0);
}

/* L0, acquires what the holder released in L1. */
static inline bool lock_try(struct lock *l)
{
	return atomic_load_explicit(&l->held, memory_order_relaxed) == 0 &&
	       atomic_exchange_explicit(&l->held, 1, memory_order_acquire) == 0;
}

void lock_take_slow(struct lock *l);

static inline void lock_take(struct lock *l)
{
	if (UNLIKELY(atomic_exchange_explicit(&l->held, 1,
					      memory_order_acquire)))
		lock_take_slow(l);
}

/* L1, pairs with L0. */
static inline void lock_drop(struct lock *l)
{
	atomic_store_explicit(&l->held, 0, memory_order_release);
}

#endif
