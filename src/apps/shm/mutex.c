/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutexes that machines cannot share. Robust, recursive, error-checking and
 * priority-inheriting ones know their owner by the number that one kernel gave
 * to a thread; another machine has the same numbers for other threads.
 */
#include <errno.h>
#include <pthread.h>

#include "shm.h"

SHM_EXPORT int pthread_mutex_init(pthread_mutex_t *m,
				  const pthread_mutexattr_t *attr);

static bool has_owner(const pthread_mutexattr_t *attr)
{
	int type = PTHREAD_MUTEX_NORMAL, robust = PTHREAD_MUTEX_STALLED;
	int protocol = PTHREAD_PRIO_NONE;

	(void)pthread_mutexattr_gettype(attr, &type);
	(void)pthread_mutexattr_getrobust(attr, &robust);
	(void)pthread_mutexattr_getprotocol(attr, &protocol);
	return type == PTHREAD_MUTEX_RECURSIVE ||
	       type == PTHREAD_MUTEX_ERRORCHECK ||
	       robust != PTHREAD_MUTEX_STALLED || protocol != PTHREAD_PRIO_NONE;
}

int pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attr)
{
	SHM_NEXT(next, pthread_mutex_init, "pthread_mutex_init");

	if (attr && shm_is_on() && shm_owns(m) && has_owner(attr))
		return ENOTSUP;
	return next ? next(m, attr) : ENOSYS;
}
