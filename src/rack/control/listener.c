/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One listening socket: the thread that accepts, watches over deadlines, sends
 * what was delayed, and sees who hung up while his request is held; and who
 * reads and writes: the thread of plain.c for a unix socket, libmicrohttpd's
 * two for TCP.
 */
#include "listener_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "plain_priv.h"

enum {
	LOOK_MS = 500,	/* between looks for those that are late */
	PAUSE_MS = 100, /* when no descriptor is left */
	BURST = 64,	/* that are accepted between two looks */
	EVENTS = 64,	/* at a time */
	/* In the place of a held request's number, which is larger. */
	WATCH_WAKE = 0,
	WATCH_LISTEN = 1,
};

/* ---- connections --------------------------------------------------------- */

static void on_connection(void *cls, struct MHD_Connection *connection,
			  void **context,
			  enum MHD_ConnectionNotificationCode code)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
		connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct listener *listener = cls;

	if (code != MHD_CONNECTION_NOTIFY_STARTED) {
		if (*context)
			callers_leave(&listener->callers, *context);
		return;
	}
	*context = info ? callers_link(&listener->callers, info->connect_fd)
			: NULL;
	info = MHD_get_connection_info(connection,
				       MHD_CONNECTION_INFO_GNUTLS_SESSION);
	if (listener->tls && info)
		tls_begin(listener->tls, info->tls_session);
}

static int admit(struct listener *listener, int fd)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	struct caller *c;
	int err = callers_admit(&listener->callers, fd, clock_mono_ns(), &c);

	if (err || getpeername(fd, (struct sockaddr *)&ss, &len) < 0) {
		if (!err)
			callers_leave(&listener->callers, c);
		(void)close(fd); /* nothing was said */
		return err ? err : -errno;
	}
	if (listener->plain) {
		err = plain_add(listener->plain, fd, c);
		if (err) {
			callers_leave(&listener->callers, c);
			(void)close(fd); /* nothing was said */
		}
		return err;
	}
	/* It closes the descriptor also when it fails. */
	if (MHD_add_connection(listener->daemon, fd, (struct sockaddr *)&ss,
			       len) == MHD_YES)
		return 0;
	if (!c->is_linked)
		callers_leave(&listener->callers, c);
	return -EAGAIN;
}

/* False: no descriptor is left, and asking again at once would not help. */
static bool accept_some(struct listener *listener)
{
	for (unsigned i = 0; i < BURST; i++) {
		int fd = accept4(listener->listen_fd, NULL, NULL,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			if (admit(listener, fd))
				log_info_limited(&listener->limit,
						 clock_mono_ns(), "control",
						 "a connection is refused: all "
						 "places are taken");
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
		    errno == ENOMEM) {
			log_warn_limited(&listener->limit, clock_mono_ns(),
					 "control",
					 "cannot accept a connection: %s",
					 strerror(errno));
			(void)callers_spare(
				&listener->callers); /* or we wait */
			return false;
		}
		if (errno != EINTR && errno != ECONNABORTED)
			break; /* nobody is there */
	}
	return true;
}

/* ---- the thread ---------------------------------------------------------- */

void listener_wake(struct listener *listener)
{
	const uint64_t one = 1;
	ssize_t n = write(listener->wake_fd, &one, sizeof(one));

	ASSERT(n == sizeof(one)); /* the thread empties it */
}

/* Adds a descriptor, or changes whether it is listened to. */
static int watch(struct listener *listener, int op, int fd, uint64_t what,
		 bool is_on)
{
	struct epoll_event event = {.events = is_on ? EPOLLIN : 0,
				    .data.u64 = what};

	return epoll_ctl(listener->watch_fd, op, fd, &event) < 0 ? -errno : 0;
}

static void set_accepting(struct listener *listener, bool is_on)
{
	int err = watch(listener, EPOLL_CTL_MOD, listener->listen_fd,
			WATCH_LISTEN, is_on);

	ASSERT(err == 0); /* it was added */
}

/* Looks at all that depends on time; returns until when to sleep. */
static int look(struct listener *listener, uint64_t *look_ns)
{
	uint64_t at_ns = clock_mono_ns();
	int wait_ms = held_send_due(listener, at_ns);

	if (at_ns - *look_ns > LOOK_MS * 1000000ull) {
		*look_ns = at_ns;
		callers_tick(&listener->callers, at_ns);
	}
	/* HTTP-1: a request that came before this is seen by workers_look, and
	 * whoever submits after it wakes this thread. */
	atomic_store_explicit(&listener->is_set, false, memory_order_seq_cst);
	if (workers_look(&listener->workers, at_ns))
		wait_ms = WORKER_WAIT_MS;
	return wait_ms < 0 || wait_ms > LOOK_MS ? LOOK_MS : wait_ms;
}

static void *run(void *arg)
{
	struct listener *listener = arg;
	struct epoll_event events[EVENTS];
	bool may_accept = true;
	uint64_t look_ns = 0, woken;
	int n, wait_ms = 0;

	for (;;) {
		if (!may_accept && wait_ms > PAUSE_MS)
			wait_ms = PAUSE_MS;
		n = epoll_wait(listener->watch_fd, events, EVENTS, wait_ms);
		if (!may_accept)
			set_accepting(listener, true);
		may_accept = true;
		for (int i = 0; i < n; i++) {
			uint64_t what = events[i].data.u64;

			if (what == WATCH_WAKE)
				(void)!read(listener->wake_fd, &woken,
					    sizeof(woken));
			else if (what == WATCH_LISTEN)
				may_accept = accept_some(listener);
			else
				held_hang_up(listener, what);
		}
		/* HTTP-2: it was set before the wake-up. */
		if (atomic_load_explicit(&listener->ends, memory_order_acquire))
			return NULL;
		if (!may_accept)
			set_accepting(listener, false);
		wait_ms = look(listener, &look_ns);
	}
}

/* ---- life ---------------------------------------------------------------- */

static int start_daemon(struct listener *listener)
{
	unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD |
			 MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
			 MHD_USE_NO_LISTEN_SOCKET;
	struct MHD_OptionItem tls[] = {
		{MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)tls_retrieve},
		{MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)CTL_SERVER_TLS},
		{MHD_OPTION_END, 0, NULL},
	};
	static struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};

	listener->daemon = MHD_start_daemon(
		flags | (listener->tls ? MHD_USE_TLS : 0), 0, NULL, NULL,
		listener_request, listener, MHD_OPTION_EXTERNAL_LOGGER,
		listener_log, NULL, MHD_OPTION_CONNECTION_LIMIT,
		listener->callers.room, MHD_OPTION_THREAD_POOL_SIZE,
		(unsigned)CTL_SERVER_THREADS, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned)CTL_SERVER_IDLE_S, MHD_OPTION_THREAD_STACK_SIZE,
		(size_t)CTL_SERVER_STACK_BYTES,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)CTL_SERVER_MEMORY_BYTES, MHD_OPTION_NOTIFY_COMPLETED,
		listener_completed, listener, MHD_OPTION_NOTIFY_CONNECTION,
		on_connection, listener, MHD_OPTION_UNESCAPE_CALLBACK,
		listener_keep_escapes, NULL, MHD_OPTION_ARRAY,
		listener->tls ? tls : none, MHD_OPTION_END);
	return listener->daemon
		       ? 0
		       : error_set(-EIO, "cannot start the HTTP server");
}

static int start_thread(struct listener *listener)
{
	int err;

	listener->wake_fd = eventfd(0, EFD_CLOEXEC);
	listener->watch_fd = epoll_create1(EPOLL_CLOEXEC);
	if (listener->wake_fd < 0 || listener->watch_fd < 0)
		return error_set(-errno, "no descriptor is left: %s",
				 strerror(errno));
	err = watch(listener, EPOLL_CTL_ADD, listener->wake_fd, WATCH_WAKE,
		    true);
	if (!err)
		err = watch(listener, EPOLL_CTL_ADD, listener->listen_fd,
			    WATCH_LISTEN, true);
	if (!err)
		err = -pthread_create(&listener->thread, NULL, run, listener);
	if (err)
		return error_set(err, "no thread for the HTTP server: %s",
				 strerror(-err));
	(void)pthread_setname_np(listener->thread, "aq-accept");
	listener->has_thread = true;
	return 0;
}

int listener_open(struct listener *listener, int fd, unsigned connections,
		  struct tls *tls)
{
	int err = callers_init(&listener->callers, connections);

	listener->listen_fd = fd;
	listener->wake_fd = listener->watch_fd = -1;
	listener->tls = tls;
	strangers_init(&listener->strangers);
	workers_init(&listener->workers, listener_handle);
	list_init(&listener->delayed);
	pthread_mutex_init(&listener->lock, NULL);
	listener->is_open = true;
	listener->held =
		calloc(listener->callers.room, sizeof(*listener->held));
	if (err || !listener->held)
		return error_set(-ENOMEM, "no memory for connections");
	err = listener->is_local ? plain_open(listener, &listener->plain)
				 : start_daemon(listener);
	return err ? err : start_thread(listener);
}

void listener_quiesce(struct listener *listener)
{
	if (!listener->is_open || listener->listen_fd < 0)
		return;
	if (listener->has_thread) {
		/* HTTP-2: whoever is woken sees it. */
		atomic_store_explicit(&listener->ends, true,
				      memory_order_release);
		listener_wake(listener);
		(void)pthread_join(listener->thread, NULL);
	}
	(void)close(listener->listen_fd); /* nothing is lost */
	listener->listen_fd = -1;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		(void)close(fd); /* an eventfd, an epoll */
}

void listener_close(struct listener *listener)
{
	if (!listener->is_open)
		return;
	listener_quiesce(listener);
	/* Neither can stop while somebody has a request. */
	held_end(listener);
	workers_stop(&listener->workers);
	if (listener->daemon)
		MHD_stop_daemon(listener->daemon);
	plain_close(listener->plain);
	workers_destroy(&listener->workers);
	close_fd(listener->wake_fd);
	close_fd(listener->watch_fd);
	callers_destroy(&listener->callers);
	strangers_destroy(&listener->strangers);
	pthread_mutex_destroy(&listener->lock);
	free(listener->held);
	listener->is_open = false;
}
