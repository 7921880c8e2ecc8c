/* SPDX-License-Identifier: Apache-2.0 */
/* The slow half of the data path lock: somebody else holds it, or sleeps. */
#include "lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "relax.h"

enum {
	YIELDS = 200, /* about the length of the longest critical section */
};

/* Unless it is woken. lock_drop reads `sleepers` without an order of its own,
 * so LOCK-2 may miss it, and then the nap ends the wait. */
#define NAP_NS 1000000ull

/* Until the lock is dropped, or for a nap. */
static void sleep_on(struct lock *l)
{
	static const struct timespec nap = {.tv_nsec = NAP_NS};

	/* LOCK-2, with the kernel's look at `held` in the futex call: it must
	 * not be older than the announcement that somebody sleeps. */
	atomic_fetch_add_explicit(&l->sleepers, 1, memory_order_seq_cst);
	(void)syscall(SYS_futex, &l->held, FUTEX_WAIT_PRIVATE, 1, &nap, NULL,
		      0);
	atomic_fetch_sub_explicit(&l->sleepers, 1, memory_order_relaxed);
}

void lock_take_slow(struct lock *l)
{
	unsigned tries = 0;

	while (!lock_try(l)) {
		/* A real-time thread that yields never lets an ordinary holder
		 * on its core run; sleeping does. */
		if (++tries < YIELDS && !relax_is_crowded())
			relax_briefly();
		else
			sleep_on(l);
	}
}

void lock_wake(struct lock *l)
{
	(void)syscall(SYS_futex, &l->held, FUTEX_WAKE_PRIVATE, 1, NULL, NULL,
		      0);
}

void lock_assert_mutex_held(pthread_mutex_t *mutex)
{
	ASSERT(pthread_mutex_trylock(mutex) == EBUSY);
}
