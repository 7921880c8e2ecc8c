/* SPDX-License-Identifier: Apache-2.0 */
/* The slow half of the data path lock: somebody else holds it. */
#include "lock.h"

#include <sched.h>
#include <time.h>

enum {
	YIELDS = 200, /* about the length of the longest critical section */
};

void lock_take_slow(struct lock *l)
{
	static const struct timespec nap = {.tv_nsec = 20000};
	unsigned tries = 0;

	while (!lock_try(l)) {
		/* A real-time thread that yields never lets an ordinary holder
		 * on its core run; sleeping does. */
		if (++tries < YIELDS)
			sched_yield();
		else
			nanosleep(&nap, NULL);
	}
}
