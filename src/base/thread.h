/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of a library in somebody else's process. */
#ifndef AQ_BASE_THREAD_H
#define AQ_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>

#include "base.h"

/* 0 or -errno. Signals are the application's, and its threads shall get them;
 * faults stay with who causes them. */
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
