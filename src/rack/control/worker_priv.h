/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that run the handlers of one listener, so that a handler that takes
 * long (memory to be cleared, a switch to be asked) holds up no other
 * connection. A few are always there; more are started while requests wait
 * longer than WORKER_WAIT_MS, and end when there is nothing to do for them. One
 * party has half of them at most.
 */
#ifndef AQ_CTL_WORKER_PRIV_H
#define AQ_CTL_WORKER_PRIV_H

#include <pthread.h>

#include "base/base.h"
#include "base/list.h"
#include "caller_priv.h"

enum {
	WORKERS_MAX = 128,
	WORKERS_FEW = 4, /* are started without a wait, and stay */
	WORKER_WAIT_MS = 5,
	WORKER_IDLE_MS = 10000,
};

struct ctl_exchange;
struct workers;

struct worker {
	enum {
		WORKER_NONE,
		WORKER_RUNS,
		WORKER_ENDED /* to be joined */
	} state;
	pthread_t thread;
	struct workers *workers;
	bool is_busy;
	struct caller_key key; /* of whom it works for */
};

struct workers {
	void (*run)(struct ctl_exchange *e); /* takes it over */
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct list queue;
	unsigned queue_count;
	unsigned count;	     /* of threads */
	unsigned idle_count; /* of those, also when work was found for it */
	bool stops;
	struct worker worker[WORKERS_MAX];
};

void workers_init(struct workers *w, void (*run)(struct ctl_exchange *e));
/* Suspends its connection and takes it over. False: the server ends, or there
 * is no thread. *waits says that no thread is free for it: the caller sees to
 * it that workers_look is called soon. */
bool workers_submit(struct workers *w, struct ctl_exchange *e,
		    bool *waits) MUST_CHECK;
/* Starts a thread where requests wait for too long; whether some wait. */
bool workers_look(struct workers *w, uint64_t now_ns);
/* What waits is done first. Takes nothing from here on. */
void workers_stop(struct workers *w);
/* After that, when nobody can submit any more. */
void workers_destroy(struct workers *w);

#endif
