/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of plain connections, and who owns which of these. */
#include "plain_priv.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "listener_priv.h"

enum {
	EVENTS = 64, /* at a time */
};

/* ---- who owns a line ------------------------------------------------------
 */

/* Whether the thread may go on with a line of which it was told. */
static bool is_ours(struct line *l)
{
	enum line_state was = LINE_SERVED;

	/* PLAIN-1: what its owner has done to it is seen by who gets it back;
	 * or the owner sees that it was called. */
	return !atomic_compare_exchange_strong_explicit(
		       &l->state, &was, LINE_CALLED, memory_order_acq_rel,
		       memory_order_acquire) &&
	       was == LINE_READS;
}

static void wake(const struct plain *p)
{
	const uint64_t one = 1;
	ssize_t n = write(p->wake_fd, &one, sizeof(one));

	ASSERT(n == sizeof(one)); /* the thread empties it */
}

static void give(struct line *l)
{
	struct plain *p = l->plain;

	pthread_mutex_lock(&p->lock);
	list_append(&p->back, &l->back);
	pthread_mutex_unlock(&p->lock);
	wake(p);
}

/* The reply is written. From here on the line may be gone. */
static void give_back(struct line *l)
{
	enum line_state was = LINE_SERVED;

	/* PLAIN-1: its thread sees all that was done to it; or it was called,
	 * and stays its owner's until the thread is told. */
	if (l->late || l->early || l->closes || l->reads_on ||
	    !atomic_compare_exchange_strong_explicit(
		    &l->state, &was, LINE_READS, memory_order_acq_rel,
		    memory_order_relaxed))
		give(l);
}

void plain_later(struct line *l)
{
	/* Its thread does not take it up for an event meanwhile. */
	atomic_store_explicit(&l->state, LINE_CALLED, memory_order_relaxed);
	give(l);
}

void plain_finish(struct ctl_exchange *e)
{
	struct line *l = e->line;

	line_reply(l);
	give_back(l);
}

/* ---- a thread ------------------------------------------------------------ */

/* Those that were given back; whether the thread goes on. */
static bool take_back(struct plain *p)
{
	struct list back;
	uint64_t woken;
	bool ends;

	(void)!read(p->wake_fd, &woken, sizeof(woken));
	list_init(&back);
	pthread_mutex_lock(&p->lock);
	list_take(&p->back, &back);
	ends = p->ends;
	pthread_mutex_unlock(&p->lock);
	while (!list_is_empty(&back)) {
		struct line *l = container_of(back.next, struct line, back);

		list_remove(&l->back);
		/* The lock was let go by who gave it back. */
		atomic_store_explicit(&l->state, LINE_READS,
				      memory_order_relaxed);
		line_go_on(l, true);
	}
	return !ends;
}

static void *run(void *arg)
{
	struct plain *p = arg;
	struct epoll_event event[EVENTS];
	bool goes_on = true;

	while (goes_on) {
		int n = epoll_wait(p->epoll_fd, event, EVENTS, -1);
		bool is_woken = false;

		for (int i = 0; i < n; i++) {
			struct line *l = event[i].data.ptr;

			if (!l)
				is_woken = true;
			else if (is_ours(l))
				line_go_on(l, event[i].events &
						      ~(uint32_t)EPOLLIN);
		}
		/* Last: lines end here, and none has an event any more. */
		if (is_woken)
			goes_on = take_back(p);
	}
	return NULL;
}

/* ---- life ---------------------------------------------------------------- */

int plain_add(struct plain *p, int fd, struct caller *caller)
{
	struct line *l = calloc(1, sizeof(*l));
	struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET,
				    .data.ptr = l};
	int err = 0;

	if (!l)
		return -ENOMEM;
	l->plain = p;
	l->fd = fd;
	l->caller = caller;
	list_init(&l->back);
	pthread_mutex_lock(&p->lock);
	list_append(&p->lines, &l->link);
	if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
		err = -errno;
		list_remove(&l->link);
	}
	/* The thread may have it already, but cannot free it before this. */
	pthread_mutex_unlock(&p->lock);
	if (err)
		free(l);
	return err;
}

static int start(struct plain *p)
{
	struct epoll_event event = {.events = EPOLLIN};
	sigset_t all, before;
	int err;

	p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (p->wake_fd < 0 || p->epoll_fd < 0 ||
	    epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, p->wake_fd, &event) < 0)
		return error_set(-errno, "no descriptor is left: %s",
				 strerror(errno));
	/* Signals are for the daemon's own thread. */
	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&p->thread, NULL, run, p);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		return error_set(-err, "no thread for the HTTP server: %s",
				 strerror(err));
	(void)pthread_setname_np(p->thread, "aq-plain"); /* for people */
	p->has_thread = true;
	return 0;
}

int plain_open(struct listener *listener, struct plain **out)
{
	struct plain *p = calloc(1, sizeof(*p));

	if (!p)
		return error_set(-ENOMEM, "no memory for the HTTP server");
	p->listener = listener;
	p->epoll_fd = p->wake_fd = -1;
	pthread_mutex_init(&p->lock, NULL);
	list_init(&p->lines);
	list_init(&p->back);
	*out = p;
	return start(p);
}

void plain_close(struct plain *p)
{
	if (!p)
		return;
	if (p->has_thread) {
		pthread_mutex_lock(&p->lock);
		p->ends = true;
		pthread_mutex_unlock(&p->lock);
		wake(p);
		(void)pthread_join(p->thread, NULL);
	}
	while (!list_is_empty(&p->lines))
		line_end(container_of(p->lines.next, struct line, link));
	if (p->wake_fd >= 0)
		(void)close(p->wake_fd); /* an eventfd */
	if (p->epoll_fd >= 0)
		(void)close(p->epoll_fd);
	pthread_mutex_destroy(&p->lock);
	free(p);
}
