/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that turns the events of rdma_cm into states of sockets, so that
 * connections are made while nobody calls, and reads the UDP sockets. */
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/log.h"
#include "base/thread.h"
#include "rs_priv.h"

static struct {
	pthread_mutex_t mutex;
	struct rdma_event_channel *channel;
	int epoll_fd;
} service = {.mutex = PTHREAD_MUTEX_INITIALIZER, .epoll_fd = -1};

#define CM_EVENTS UINT64_MAX /* no socket has this number */

static void handle(struct rdma_cm_event *event)
{
	struct rsock *done;

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		rs_accept_request(event->listen_id->context, event);
		return;
	}
	done = rs_connect_event(event);
	(void)rdma_ack_cm_event(event); /* it is one of ours */
	/* Not before: who is destroyed waits for the acknowledgement. */
	if (done)
		rs_put(done);
}

static void datagrams(int socket)
{
	struct rsock *rs = rs_get(socket);

	if (!rs)
		return; /* closed since */
	if (rs->dgram)
		rs_dgram_udp(rs);
	rs_leave(rs);
}

static void *thread_main(void *arg)
{
	struct rdma_event_channel *channel = arg;
	struct rdma_cm_event *event;
	struct epoll_event ready;

	for (;;) {
		int n = epoll_wait(service.epoll_fd, &ready, 1, -1);

		if (n < 0 && errno != EINTR) {
			log_err("rsocket", "no events any more: %s",
				strerror(errno));
			return NULL;
		}
		if (n <= 0)
			continue;
		if (ready.data.u64 != CM_EVENTS)
			datagrams((int)ready.data.u64);
		else if (!rdma_get_cm_event(channel, &event))
			handle(event);
	}
}

static int watch(int fd, uint64_t what)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = what};

	return epoll_ctl(service.epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno
								       : 0;
}

static int run(struct rdma_event_channel *channel)
{
	pthread_t thread;
	int err = thread_start(&thread, thread_main, channel);

	if (err)
		return err;
	(void)pthread_setname_np(thread, "aq-rsocket");
	(void)pthread_detach(thread);
	return 0;
}

/* With the mutex. */
static int start(void)
{
	struct rdma_event_channel *channel;
	int err;

	if (service.channel)
		return 0;
	channel = rdma_create_event_channel();
	if (!channel)
		return -errno;
	service.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	err = service.epoll_fd < 0 ? -errno : watch(channel->fd, CM_EVENTS);
	if (!err)
		err = run(channel);
	if (!err) {
		service.channel = channel;
		return 0;
	}
	if (service.epoll_fd >= 0)
		close(service.epoll_fd);
	service.epoll_fd = -1;
	rdma_destroy_event_channel(channel);
	return err;
}

struct rdma_event_channel *rs_service_channel(void)
{
	int err;

	pthread_mutex_lock(&service.mutex);
	err = start();
	pthread_mutex_unlock(&service.mutex);
	if (err)
		errno = -err;
	return err ? NULL : service.channel;
}

int rs_service_watch(int fd, int socket)
{
	int err;

	pthread_mutex_lock(&service.mutex);
	err = start();
	pthread_mutex_unlock(&service.mutex);
	return err ? err : watch(fd, (uint64_t)socket);
}

/* In the child of a fork: the thread is not here, and the channel is the
 * parent's. */
void rs_service_abandon(void)
{
	pthread_mutex_init(&service.mutex, NULL);
	if (service.channel)
		rdma_destroy_event_channel(service.channel);
	service.channel = NULL;
	if (service.epoll_fd >= 0)
		close(service.epoll_fd);
	service.epoll_fd = -1;
}
