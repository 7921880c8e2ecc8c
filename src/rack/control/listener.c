/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One listening socket: the thread that accepts and watches over deadlines, and
 * libmicrohttpd, which has a thread for each connection that it is given.
 */
#include "listener_priv.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

enum {
	LOOK_MS = 500,	/* between looks for those that are late */
	PAUSE_MS = 100, /* when no descriptor is left */
	BURST = 64,	/* that are accepted between two looks */
};

/* ---- connections --------------------------------------------------------- */

static void on_connection(void *cls, struct MHD_Connection *connection,
			  void **context,
			  enum MHD_ConnectionNotificationCode code)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
		connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct listener *listener = cls;

	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		*context = info ? callers_link(&listener->callers,
					       info->connect_fd)
				: NULL;
	else if (*context)
		callers_leave(&listener->callers, *context);
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

static void *run(void *arg)
{
	struct listener *listener = arg;
	struct pollfd fds[] = {{.fd = listener->wake_fd, .events = POLLIN},
			       {.fd = listener->listen_fd, .events = POLLIN}};
	uint64_t look_ns = 0;
	bool may_accept = true;

	for (;;) {
		uint64_t at_ns;

		fds[1].revents = 0;
		(void)poll(fds, may_accept ? 2 : 1,
			   may_accept ? LOOK_MS : PAUSE_MS);
		if (fds[0].revents)
			return NULL;
		may_accept = !fds[1].revents || accept_some(listener);
		at_ns = clock_mono_ns();
		if (at_ns - look_ns > LOOK_MS * 1000000ull) {
			look_ns = at_ns;
			callers_tick(&listener->callers, at_ns);
		}
	}
}

/* ---- life ---------------------------------------------------------------- */

static int start_daemon(struct listener *listener, const char *cert,
			const char *key)
{
	unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD |
			 MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL |
			 MHD_USE_ITC | MHD_USE_ERROR_LOG |
			 MHD_USE_NO_LISTEN_SOCKET;
	struct MHD_OptionItem tls[] = {
		{MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)cert},
		{MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)key},
		{MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)CTL_SERVER_TLS},
		{MHD_OPTION_END, 0, NULL},
	};
	static struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};

	listener->daemon = MHD_start_daemon(
		flags | (listener->is_secure ? MHD_USE_TLS : 0), 0, NULL, NULL,
		listener_request, listener, MHD_OPTION_EXTERNAL_LOGGER,
		listener_log, NULL, MHD_OPTION_CONNECTION_LIMIT,
		listener->callers.room, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned)CTL_SERVER_IDLE_S, MHD_OPTION_THREAD_STACK_SIZE,
		(size_t)CTL_SERVER_STACK_BYTES,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)CTL_SERVER_MEMORY_BYTES, MHD_OPTION_NOTIFY_COMPLETED,
		listener_completed, listener, MHD_OPTION_NOTIFY_CONNECTION,
		on_connection, listener, MHD_OPTION_UNESCAPE_CALLBACK,
		listener_keep_escapes, NULL, MHD_OPTION_ARRAY,
		listener->is_secure ? tls : none, MHD_OPTION_END);
	if (listener->daemon)
		return 0;
	if (listener->is_secure)
		return error_set(-EINVAL, "cannot start the TLS server: are "
					  "--tls-cert and --tls-key PEM files "
					  "that belong together?");
	return error_set(-EIO, "cannot start the HTTP server");
}

static int start_thread(struct listener *listener)
{
	int err;

	listener->wake_fd = eventfd(0, EFD_CLOEXEC);
	if (listener->wake_fd < 0)
		return error_set(-errno, "no descriptor is left: %s",
				 strerror(errno));
	err = pthread_create(&listener->thread, NULL, run, listener);
	if (err)
		return error_set(-err, "no thread for the HTTP server: %s",
				 strerror(err));
	(void)pthread_setname_np(listener->thread, "aq-accept");
	listener->has_thread = true;
	return 0;
}

int listener_open(struct listener *listener, int fd, unsigned connections,
		  const char *cert, const char *key)
{
	pthread_condattr_t attr;
	int err = callers_init(&listener->callers, connections);

	listener->listen_fd = fd;
	listener->wake_fd = -1;
	listener->is_secure = cert != NULL;
	strangers_init(&listener->strangers);
	pthread_mutex_init(&listener->lock, NULL);
	pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC); /* it exists */
	pthread_cond_init(&listener->stop, &attr);
	pthread_condattr_destroy(&attr);
	listener->is_open = true;
	if (err)
		return error_set(err, "no memory for connections");
	err = start_daemon(listener, cert, key);
	return err ? err : start_thread(listener);
}

void listener_quiesce(struct listener *listener)
{
	const uint64_t one = 1;

	if (!listener->is_open || listener->listen_fd < 0)
		return;
	if (listener->has_thread) {
		/* One write to a counter that is 0 cannot fail. */
		ssize_t n = write(listener->wake_fd, &one, sizeof(one));

		ASSERT(n == sizeof(one));
		(void)pthread_join(listener->thread, NULL);
	}
	(void)close(listener->listen_fd); /* nothing is lost */
	listener->listen_fd = -1;
}

void listener_close(struct listener *listener)
{
	if (!listener->is_open)
		return;
	listener_quiesce(listener);
	pthread_mutex_lock(&listener->lock);
	listener->stops = true;
	pthread_cond_broadcast(&listener->stop);
	pthread_mutex_unlock(&listener->lock);
	if (listener->daemon)
		MHD_stop_daemon(listener->daemon);
	if (listener->wake_fd >= 0)
		(void)close(listener->wake_fd); /* an eventfd */
	callers_destroy(&listener->callers);
	strangers_destroy(&listener->strangers);
	pthread_cond_destroy(&listener->stop);
	pthread_mutex_destroy(&listener->lock);
	listener->is_open = false;
}
