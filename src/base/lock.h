/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock for short critical sections on the data path. Taking it free costs one
 * exchange, dropping it a store. A waiter yields while that is cheap, then
 * sleeps until it is woken: on two cores a lock that only spins costs a
 * scheduler slice whenever its holder is preempted, and with real-time
 * priorities it never ends; one that yields among strangers costs a slice of
 * each of them.
 */
#ifndef AQ_LOCK_H
#define AQ_LOCK_H

#include <pthread.h>
#include <stdatomic.h>

#include "base.h"

struct lock {
	atomic_uint held;
	atomic_uint sleepers; /* who wait to be woken */
#ifdef AQ_LOCK_HOLDER
	_Atomic pthread_t holder;
#endif
};

/* Sanitized builds remember who has the lock, for lock_assert_held. */
static inline void lock_note_holder(struct lock *l)
{
#ifdef AQ_LOCK_HOLDER
	atomic_store_explicit(&l->holder, pthread_self(), memory_order_relaxed);
#else
	(void)l;
#endif
}

/* At the entry of what must be called under the lock: that somebody has it, and
 * in sanitized builds that it is this thread. */
static inline void lock_assert_held(const struct lock *l)
{
	ASSERT(atomic_load_explicit(&l->held, memory_order_relaxed) != 0);
#ifdef AQ_LOCK_HOLDER
	ASSERT(pthread_equal(
		atomic_load_explicit(&l->holder, memory_order_relaxed),
		pthread_self()));
#endif
}

/* The same for a mutex of the default kind: that somebody has it. (libc notes
 * who, but by a number that it remembers, and a process made by clone() alone
 * remembers its parent's.) */
void lock_assert_mutex_held(pthread_mutex_t *mutex);

static inline void lock_init(struct lock *l)
{
	atomic_init(&l->held, 0);
	atomic_init(&l->sleepers, 0);
}

static inline bool lock_try(struct lock *l)
{
	/* LOCK-1: what the last holder did is seen by the next one. */
	if (atomic_load_explicit(&l->held, memory_order_relaxed) != 0 ||
	    atomic_exchange_explicit(&l->held, 1, memory_order_acquire) != 0)
		return false;
	lock_note_holder(l);
	return true;
}

void lock_take_slow(struct lock *l);
void lock_wake(struct lock *l);

static inline void lock_take(struct lock *l)
{
	/* LOCK-1, as in lock_try. */
	if (UNLIKELY(atomic_exchange_explicit(&l->held, 1,
					      memory_order_acquire)))
		lock_take_slow(l);
	lock_note_holder(l);
}

/*
 * The lock may be gone as soon as it is free, so whether
 * somebody sleeps is read before. Who goes to sleep in between is not woken by
 * this one and looks again by itself (NAP_NS in lock.c): a locked instruction
 * here would prevent it, at the price of all other times.
 */
static inline void lock_drop(struct lock *l)
{
	unsigned sleepers =
		atomic_load_explicit(&l->sleepers, memory_order_relaxed);

	/* LOCK-1: nobody takes it and misses what was done under it. */
	atomic_store_explicit(&l->held, 0, memory_order_release);
	if (UNLIKELY(sleepers))
		lock_wake(l);
}

#endif
