/* SPDX-License-Identifier: Apache-2.0 */
/* Taking pages out: the thread that does, and its steps. */
#ifndef AQ_RUN_RECLAIM_PRIV_H
#define AQ_RUN_RECLAIM_PRIV_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/base.h"

struct pager;
struct space;

/* The thread that takes pages out. */
struct reclaim_thread {
	pthread_t thread;
	bool is_started;
	_Atomic int ends;
	/* RUN-K1: a thread with work for the reclaim thread adds to it; the
	 * reclaim thread sleeps on it. */
	_Atomic uint32_t kicks;
	_Atomic uint32_t is_asleep;
	_Atomic pid_t tid;
};

/* reclaim.c */
int run_reclaim_start(struct pager *p) MUST_CHECK;
void run_reclaim_stop(struct pager *p);
/* There is something to do: too much is resident. */
void run_reclaim_kick(struct pager *p);
/* Begins or collects batches and starts to store a few pages, for which it
 * drops the lock; false: nothing could be done. */
bool run_reclaim_turn(struct pager *p);
/* Whether turns are needed although there are no faults. */
bool run_reclaim_is_busy(const struct pager *p);
/* Sets the cores of the reclaim thread and the agents; call it after `cpu` or
 * the number of threads has changed. */
void run_reclaim_place(struct pager *p);
/* Faults come faster than pages leave: gives the agents time. */
void run_reclaim_wait(struct pager *p);
/* evict.c */
/* Collects and, where too much is resident, begins batches; true: something was
 * done. */
bool run_evict_step(struct pager *p);
/* Far memory was full, and too much is local: finds out whether it is still
 * full, even without faults, and not more often than it helps. */
void run_evict_try(struct pager *p);
/* Takes the results of ended batches; true if there were any. */
bool run_evict_collect(struct pager *p, struct space *s);

#endif
