/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sleeping until a socket has something for a thread. A sleeper waits for the
 * socket's completion channel and for a descriptor of its own thread. Whoever
 * takes completions wakes all sleepers of the socket, because what it took may
 * be what another one waits for, and the channel no longer says so.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "rs_priv.h"

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;
static _Thread_local int own_fd = -1;

uint64_t rs_deadline(uint64_t timeout_ns)
{
	return timeout_ns == RS_FOREVER ? RS_FOREVER
					: clock_mono_ns() + timeout_ns;
}

bool rs_may_wait(const struct rsock *rs, int flags)
{
	return !rs->nonblocking && !(flags & MSG_DONTWAIT);
}

/* ---- the thread's descriptor --------------------------------------------- */

static void thread_ends(void *value)
{
	close((int)(intptr_t)value - 1);
	own_fd = -1;
}

static void make_key(void)
{
	has_key = pthread_key_create(&key, thread_ends) == 0;
	if (!has_key)
		log_warn("rsocket", "descriptors of threads are not closed");
}

int rs_sleeper_fd(void)
{
	if (own_fd >= 0)
		return own_fd;
	own_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (own_fd < 0)
		return -1;
	pthread_once(&key_once, make_key);
	/* Without it the descriptor stays until the process ends. */
	if (has_key)
		(void)pthread_setspecific(key, (void *)(intptr_t)(own_fd + 1));
	return own_fd;
}

void rs_sleeper_drain(int fd)
{
	uint64_t n;

	(void)!read(fd, &n, sizeof(n)); /* empty is as good */
}

/* In the child of a fork: the descriptor is the parent's, too. */
void rs_sleepers_abandon(void)
{
	if (own_fd < 0)
		return;
	close(own_fd);
	own_fd = -1;
	if (has_key)
		(void)pthread_setspecific(key, NULL);
}

void rs_kick(struct rsock *rs)
{
	uint64_t one = 1;

	for (struct list *n = rs->sleepers.next; n != &rs->sleepers;
	     n = n->next) {
		struct rs_sleeper *s = container_of(n, struct rs_sleeper, node);

		/* Full means that it is awake anyway. */
		(void)!write(s->fd, &one, sizeof(one));
	}
}

/* ---- waiting ------------------------------------------------------------- */

static int sleep_once(struct rsock *rs, uint64_t deadline_ns)
{
	struct rs_sleeper sleeper = {.fd = rs_sleeper_fd()};
	struct pollfd fds[2] = {{.fd = sleeper.fd, .events = POLLIN},
				{.fd = rs_wait_fd(rs), .events = POLLIN}};
	struct timespec ts, *timeout = NULL;
	uint64_t now_ns = clock_mono_ns();
	int err = 0;

	if (sleeper.fd < 0)
		return -errno;
	if (deadline_ns != RS_FOREVER) {
		uint64_t left = deadline_ns > now_ns ? deadline_ns - now_ns : 0;

		ts.tv_sec = (time_t)(left / 1000000000ull);
		ts.tv_nsec = (long)(left % 1000000000ull);
		timeout = &ts;
	}
	list_append(&rs->sleepers, &sleeper.node);
	pthread_mutex_unlock(&rs->lock);
	if (ppoll(fds, fds[1].fd < 0 ? 1 : 2, timeout, NULL) < 0)
		err = -errno;
	pthread_mutex_lock(&rs->lock);
	list_remove(&sleeper.node);
	rs_sleeper_drain(sleeper.fd);
	return err;
}

int rs_wait(struct rsock *rs, bool (*ready)(struct rsock *rs),
	    uint64_t deadline_ns)
{
	uint64_t spin_ns = clock_mono_ns() + RS_SPIN_US * 1000ull;
	int err;

	for (;;) {
		bool moved = rs_progress(rs);
		uint64_t now_ns;

		if (ready(rs))
			return 0;
		if (rs->closed)
			return -EBADF;
		now_ns = clock_mono_ns();
		if (now_ns >= deadline_ns)
			return -ETIMEDOUT;
		if (moved || now_ns < spin_ns) {
			/* Others may want the socket. */
			pthread_mutex_unlock(&rs->lock);
			pthread_mutex_lock(&rs->lock);
			continue;
		}
		rs_arm(rs);
		/* What came before it was armed gives no sign. */
		if (rs_progress(rs))
			continue;
		err = sleep_once(rs, deadline_ns);
		if (err)
			return err;
	}
}
