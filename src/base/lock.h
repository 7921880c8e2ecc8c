/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock for short critical sections on the data path. Taking a free lock costs
 * one exchange, dropping it a store. A waiter yields while that is cheap, then
 * sleeps until it is woken: on two cores a lock that only spins costs a
 * scheduler slice whenever its holder is preempted, and with real-time
 * priorities it never ends; a waiter that yields while other programs share the
 * core costs a slice of each of them.
 */
#ifndef AQ_LOCK_H
#define AQ_LOCK_H

#include <pthread.h>
#include <stdatomic.h>

#include "base.h"

struct lock {
	atomic_uint held;
	atomic_uint sleepers; /* threads that wait to be woken */
#ifdef AQ_LOCK_HOLDER
	_Atomic pthread_t holder;
#endif
};

/* Sanitized builds remember which thread has the lock, for lock_assert_held. */
static inline void lock_note_holder(struct lock *l)
{
#ifdef AQ_LOCK_HOLDER
	atomic_store_explicit(&l->holder, pthread_self(), memory_order_relaxed);
#else
	(void)l;
#endif
}

/* Call it at the entry of a function that needs the lock: it asserts that a
 * thread has the lock, and in sanitized builds that it is this one. */
static inline void lock_assert_held(const struct lock *l)
{
	ASSERT(atomic_load_explicit(&l->held, memory_order_relaxed) != 0);
#ifdef AQ_LOCK_HOLDER
	ASSERT(pthread_equal(
		atomic_load_explicit(&l->holder, memory_order_relaxed),
		pthread_self()));
#endif
}

/* The same for a mutex of the default kind: it asserts that a thread has it.
 * (libc notes the owner, but by a cached thread number, and a process made by
 * clone() alone has its parent's.) */
void lock_assert_mutex_held(pthread_mutex_t *mutex);

static inline void lock_init(struct lock *l)
{
	atomic_init(&l->held, 0);
	atomic_init(&l->sleepers, 0);
}

static inline bool lock_try(struct lock *l)
{
	/* LOCK-1: the next holder sees what the last one did. */
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
 * The lock's memory may be freed as soon as the lock is free, so `sleepers` is
 * read before. A thread that goes to sleep in between is not woken by this call
 * and looks again by itself (NAP_NS in lock.c). A locked instruction here would
 * prevent that, at a cost for every other call.
 */
static inline void lock_drop(struct lock *l)
{
	unsigned sleepers =
		atomic_load_explicit(&l->sleepers, memory_order_relaxed);

	/* LOCK-1: the next holder never misses what was done under it. */
	atomic_store_explicit(&l->held, 0, memory_order_release);
	if (UNLIKELY(sleepers))
		lock_wake(l);
}

#endif
