/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of a library in an application's process. */
#ifndef AQ_BASE_THREAD_H
#define AQ_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>

#include "base.h"

/* 0 or -errno. The new thread blocks all signals but those of faults, because
 * the application's own threads shall get its signals. */
MUST_CHECK static inline int thread_start(pthread_t *thread,
					  void *(*run)(void *), void *arg)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

#endif
