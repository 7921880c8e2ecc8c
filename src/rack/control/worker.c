/* SPDX-License-Identifier: Apache-2.0 */
/* Threads for handlers. */
#include "worker_priv.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "ctl_server.h"
#include "exchange_priv.h"

void workers_init(struct workers *w, void (*run)(struct ctl_exchange *e))
{
	pthread_condattr_t attr;

	*w = (struct workers){.run = run};
	list_init(&w->queue);
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC); /* it exists */
	pthread_cond_init(&w->work, &attr);
	pthread_condattr_destroy(&attr);
}

/* ---- which comes next ---------------------------------------------------- */

static struct ctl_exchange *exchange_of(struct list *l)
{
	return container_of(l, struct ctl_exchange, link);
}

static bool has_its_share(const struct workers *w, const struct caller_key *key)
{
	unsigned n = 0;

	for (unsigned i = 0; i < WORKERS_MAX; i++)
		n += w->worker[i].is_busy &&
		     caller_key_equal(&w->worker[i].key, key);
	return n >= WORKERS_MAX / 2;
}

/* The first in the queue whose party does not have its share of threads; NULL:
 * none. */
static struct ctl_exchange *pick(const struct workers *w)
{
	const struct caller_key *full = NULL;

	for (struct list *l = w->queue.next; l != &w->queue; l = l->next) {
		struct ctl_exchange *e = exchange_of(l);
		const struct caller_key *key = &e->caller->key;

		if (full && caller_key_equal(full, key))
			continue;
		if (w->stops || !has_its_share(w, key))
			return e;
		full = key;
	}
	return NULL;
}

/* ---- a thread ------------------------------------------------------------ */

/* Whether nothing came for long. */
static bool wait_for_work(struct workers *w)
{
	const struct timespec until =
		clock_timespec(clock_mono_ns() + WORKER_IDLE_MS * 1000000ull);
	int err;

	w->idle_count++;
	err = pthread_cond_timedwait(&w->work, &w->lock, &until);
	w->idle_count--;
	return err == ETIMEDOUT;
}

/* What to do next; NULL: this thread is not needed any more. Who submits counts
 * on a thread until it has let the lock go, also on one whose wait has just
 * ended: so it looks once more before it ends. */
static struct ctl_exchange *next(struct workers *w)
{
	struct ctl_exchange *e = pick(w);
	bool was_long = false;

	while (!e && !(was_long && w->count > WORKERS_FEW)) {
		if (w->stops && list_is_empty(&w->queue))
			return NULL;
		was_long = wait_for_work(w);
		e = pick(w);
	}
	return e;
}

static void *work(void *arg)
{
	struct worker *self = arg;
	struct workers *w = self->workers;
	struct ctl_exchange *e;

	pthread_mutex_lock(&w->lock);
	for (e = next(w); e; e = next(w)) {
		list_remove(&e->link);
		w->queue_count--;
		self->key = e->caller->key;
		self->is_busy = true;
		pthread_mutex_unlock(&w->lock);
		w->run(e);
		pthread_mutex_lock(&w->lock);
		self->is_busy = false;
	}
	w->count--;
	self->state = WORKER_ENDED;
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static void start(struct workers *w)
{
	pthread_attr_t attr;
	struct worker *free = NULL;
	int err;

	for (unsigned i = 0; i < WORKERS_MAX && !free; i++)
		if (w->worker[i].state != WORKER_RUNS)
			free = &w->worker[i];
	if (!free)
		return;
	if (free->state == WORKER_ENDED)
		(void)pthread_join(free->thread, NULL); /* it has returned */
	*free = (struct worker){.state = WORKER_RUNS, .workers = w};
	pthread_attr_init(&attr);
	/* The default would be just as well, only larger. */
	(void)pthread_attr_setstacksize(&attr, CTL_SERVER_STACK_BYTES);
	err = pthread_create(&free->thread, &attr, work, free);
	pthread_attr_destroy(&attr);
	if (err) {
		free->state = WORKER_NONE;
		log_warn("control", "no thread for a request");
		return;
	}
	(void)pthread_setname_np(free->thread, "aq-http"); /* for people */
	w->count++;
}

/* ---- for the listener ---------------------------------------------------- */

bool workers_submit(struct workers *w, struct ctl_exchange *e, bool *waits)
{
	bool taken;

	pthread_mutex_lock(&w->lock);
	if (!w->stops && w->queue_count >= w->idle_count &&
	    w->count < WORKERS_FEW)
		start(w);
	taken = !w->stops && w->count;
	if (taken) {
		e->since_ns = clock_mono_ns();
		exchange_suspend(e);
		list_append(&w->queue, &e->link);
		*waits = ++w->queue_count > w->idle_count;
		pthread_cond_signal(&w->work);
	}
	pthread_mutex_unlock(&w->lock);
	return taken;
}

bool workers_look(struct workers *w, uint64_t now_ns)
{
	const struct ctl_exchange *first;
	bool waits;

	pthread_mutex_lock(&w->lock);
	waits = !list_is_empty(&w->queue);
	first = waits ? exchange_of(w->queue.next) : NULL;
	if (first && now_ns > first->since_ns + WORKER_WAIT_MS * 1000000ull) {
		if (w->queue_count > w->idle_count && w->count < WORKERS_MAX)
			start(w);
		/* Who was woken for it may have been about to end. */
		pthread_cond_signal(&w->work);
	}
	pthread_mutex_unlock(&w->lock);
	return waits;
}

void workers_stop(struct workers *w)
{
	pthread_mutex_lock(&w->lock);
	w->stops = true;
	pthread_cond_broadcast(&w->work);
	for (unsigned i = 0; i < WORKERS_MAX; i++) {
		if (w->worker[i].state == WORKER_NONE)
			continue;
		/* None is started any more, so the thread stays what it is. */
		pthread_mutex_unlock(&w->lock);
		(void)pthread_join(w->worker[i].thread, NULL);
		pthread_mutex_lock(&w->lock);
	}
	pthread_mutex_unlock(&w->lock);
}

void workers_destroy(struct workers *w)
{
	pthread_cond_destroy(&w->work);
	pthread_mutex_destroy(&w->lock);
}
