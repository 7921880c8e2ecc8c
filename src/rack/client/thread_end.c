/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a thread, which ends what the thread has in all racks.
 *
 * A thread may end while another one closes a rack. Which of the two destroys
 * the thread's context is decided under one lock of the process, because it has
 * to live longer than both: a destructor of the rack's own key may be about to
 * run when the key is deleted, and nobody could wait for it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "client_priv.h"

/* What a thread has, in the order in which it used the racks. */
struct thread_contexts {
	struct list contexts; /* by client_thread.sibling */
	pid_t process;	      /* that the contexts belong to */
};

static struct {
	pthread_mutex_t lock; /* all lists of contexts, and aq_rack.ending */
	pthread_cond_t ended; /* a context is gone */
	pthread_key_t key;    /* this thread's struct thread_contexts */
	int err;	      /* why there is no key */
} ends = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.ended = PTHREAD_COND_INITIALIZER,
};
static pthread_once_t ends_once = PTHREAD_ONCE_INIT;

/* In a child the contexts are the parent's, as their racks are. */
static void end_thread(void *arg)
{
	struct thread_contexts *own = arg;

	if (own->process != getpid()) {
		free(own);
		return;
	}
	pthread_mutex_lock(&ends.lock);
	while (!list_is_empty(&own->contexts)) {
		struct client_thread *t = container_of(
			own->contexts.next, struct client_thread, sibling);
		struct aq_rack *rack = t->rack;

		list_remove(&t->sibling);
		rack->ending++;
		pthread_mutex_unlock(&ends.lock);
		client_thread_destroy(t);
		pthread_mutex_lock(&ends.lock);
		rack->ending--;
		pthread_cond_broadcast(&ends.ended);
	}
	pthread_mutex_unlock(&ends.lock);
	free(own);
}

static void before_fork(void)
{
	pthread_mutex_lock(&ends.lock);
}

static void parent_after_fork(void)
{
	pthread_mutex_unlock(&ends.lock);
}

static void child_after_fork(void)
{
	pthread_mutex_init(&ends.lock, NULL);
	pthread_cond_init(&ends.ended, NULL);
}

static void start(void)
{
	ends.err = pthread_key_create(&ends.key, end_thread);
	if (!ends.err)
		ends.err = pthread_atfork(before_fork, parent_after_fork,
					  child_after_fork);
}

int client_thread_watch_end(struct client_thread *t)
{
	struct thread_contexts *own;
	int err;

	pthread_once(&ends_once, start);
	if (ends.err)
		return error_set(-ends.err, "the ends of threads cannot be "
					    "watched in this process");
	own = pthread_getspecific(ends.key);
	if (!own) {
		own = calloc(1, sizeof(*own));
		err = own ? pthread_setspecific(ends.key, own) : ENOMEM;
		if (err) {
			free(own);
			return error_set(-err,
					 "no memory for a thread's context");
		}
	}
	if (own->process != getpid()) {
		own->process = getpid();
		list_init(&own->contexts);
	}
	pthread_mutex_lock(&ends.lock);
	list_append(&own->contexts, &t->sibling);
	pthread_mutex_unlock(&ends.lock);
	return 0;
}

void client_threads_take(struct aq_rack *rack, struct list *threads)
{
	struct list *link;

	pthread_mutex_lock(&ends.lock);
	while (rack->ending)
		pthread_cond_wait(&ends.ended, &ends.lock);
	/* Nobody uses the rack any more, and no thread that ends has begun with
	 * it: its list needs no lock of its own. */
	list_take(&rack->threads, threads);
	for (link = threads->next; link != threads; link = link->next)
		list_remove(&container_of(link, struct client_thread, link)
				     ->sibling);
	pthread_mutex_unlock(&ends.lock);
}
