/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state that the API has no handle for, and the thread that serves it:
 * messages, connections to leases, timers. The child of a fork starts anew;
 * what it inherited of identifiers is of no use, as with the kernel's rdma_cm.
 */
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "base/thread.h"
#include "cm_priv.h"

enum {
	EVENTS_PER_TURN = 16,
};

struct cm cm = {
	.mutex = PTHREAD_MUTEX_INITIALIZER,
	.acked = PTHREAD_COND_INITIALIZER,
	.sockets = {.dir_fd = -1},
	.epoll_fd = -1,
	.wake_fd = -1,
	.ids = {&cm.ids, &cm.ids},
	.socks = {&cm.socks, &cm.socks},
};

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

void cm_lock(void)
{
	pthread_mutex_lock(&cm.mutex);
}

void cm_unlock(void)
{
	pthread_mutex_unlock(&cm.mutex);
}

/* ---- fork --------------------------------------------------------------- */

static void child_after_fork(void)
{
	/* Closed here, they stay open in the parent; the inherited ones would
	 * keep its leases and the signs of its life. */
	for (struct list *n = cm.ids.next; n != &cm.ids; n = n->next) {
		struct cm_id *id = container_of(n, struct cm_id, ids);

		if (id->lease_fd >= 0)
			close(id->lease_fd);
		id->lease_fd = -1;
		id->asked = NULL;
		id->device = NULL;
	}
	cm_peers_abandon();
	close(cm.epoll_fd);
	close(cm.wake_fd);
	rack_sockets_close(&cm.sockets);
	cm = (struct cm){
		.sockets = {.dir_fd = -1},
		.epoll_fd = -1,
		.wake_fd = -1,
		.ids = {&cm.ids, &cm.ids},
		.socks = {&cm.socks, &cm.socks},
	};
	pthread_mutex_init(&cm.mutex, NULL);
	pthread_cond_init(&cm.acked, NULL);
}

static void watch_forks(void)
{
	int err = pthread_atfork(cm_lock, cm_unlock, child_after_fork);

	if (err)
		log_warn("cm", "forks are not watched: error %d", err);
}

/* Fork locks in the reverse order of registration: verbs, whose locks are taken
 * after ours, must be registered before us. */
void cm_watch_forks(void)
{
	pthread_once(&fork_once, watch_forks);
}

/* ---- what the thread waits for ------------------------------------------ */

static void wake(void)
{
	uint64_t one = 1;

	/* Full means that it is awake anyway. */
	(void)!write(cm.wake_fd, &one, sizeof(one));
}

int cm_watch_add(struct cm_watch *w)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = w};

	return epoll_ctl(cm.epoll_fd, EPOLL_CTL_ADD, w->fd, &ev) < 0 ? -errno
								     : 0;
}

/* The thread fetches one event at a time and handles it under the mutex, so
 * nothing points to *w afterwards. */
void cm_watch_remove(struct cm_watch *w)
{
	(void)epoll_ctl(cm.epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
}

void cm_timer_set(struct timer *t, uint64_t deadline_ns)
{
	if (deadline_ns == UINT64_MAX) {
		timer_cancel(&cm.wheel, t);
		return;
	}
	timer_set(&cm.wheel, t, deadline_ns);
	if (deadline_ns < cm.wake_ns)
		wake();
}

static void drain(void)
{
	uint64_t n;

	(void)!read(cm.wake_fd, &n, sizeof(n));
}

/* How long to sleep, in milliseconds; the mutex is held. */
static int next_timeout(void)
{
	uint64_t now_ns = clock_mono_ns();
	uint64_t next_ns;

	timer_wheel_advance(&cm.wheel, now_ns);
	next_ns = timer_wheel_next_ns(&cm.wheel);
	cm.wake_ns = next_ns;
	if (next_ns == UINT64_MAX)
		return -1;
	return next_ns <= now_ns ? 0 : (int)((next_ns - now_ns) / 1000000 + 1);
}

static void *thread_main(void *arg)
{
	struct epoll_event ev;
	int timeout, n;

	cm_lock();
	for (;;) {
		timeout = next_timeout();
		cm_unlock();
		n = epoll_wait(cm.epoll_fd, &ev, 1, timeout);
		cm_lock();
		if (n <= 0)
			continue;
		if (!ev.data.ptr) {
			drain();
			continue;
		}
		/* It may have been removed since; ask again, now that nobody
		 * can remove it. */
		for (int i = 0; i < EVENTS_PER_TURN; i++) {
			struct cm_watch *w;

			n = epoll_wait(cm.epoll_fd, &ev, 1, 0);
			if (n <= 0)
				break;
			w = ev.data.ptr;
			if (w)
				w->ready(w);
			else
				drain();
		}
	}
	return NULL;
}

static int start_thread(void)
{
	pthread_t thread;
	int err = thread_start(&thread, thread_main, NULL);

	if (err)
		return err;
	(void)pthread_setname_np(thread, "aq-cm");
	(void)pthread_detach(thread);
	return 0;
}

static int read_config(void)
{
	struct config *c;
	int err = config_open(NULL, &c);

	if (err)
		return err;
	cm.probe_ns = config_int(c, "nic", "cm_keepalive_ms") * 1000000 /
		      (CM_PROBES + 1);
	err = rack_sockets_open(config_string(c, "rack", "name"), &cm.sockets);
	config_destroy(c);
	return err;
}

int cm_start(void)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int err;

	if (cm.running)
		return 0;
	err = read_config();
	if (err)
		return err;
	cm.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	cm.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (cm.epoll_fd < 0 || cm.wake_fd < 0 ||
	    epoll_ctl(cm.epoll_fd, EPOLL_CTL_ADD, cm.wake_fd, &ev) < 0) {
		err = -errno;
		goto err_close;
	}
	timer_wheel_init(&cm.wheel, clock_mono_ns());
	cm.wake_ns = UINT64_MAX;
	err = start_thread();
	if (err)
		goto err_close;
	cm.running = true;
	return 0;

err_close:
	if (cm.epoll_fd >= 0)
		close(cm.epoll_fd);
	if (cm.wake_fd >= 0)
		close(cm.wake_fd);
	cm.epoll_fd = cm.wake_fd = -1;
	rack_sockets_close(&cm.sockets);
	return err;
}
