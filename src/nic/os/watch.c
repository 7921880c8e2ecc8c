/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets of frames in the epoll set. */
#include "watch.h"

#include <errno.h>
#include <sys/epoll.h>

int watch_open(struct watch *w, struct env_path *path, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = w};

	*w = (struct watch){.path = path, .fd = fd, .armed = true};
	if (epoll_ctl(path->host->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return -errno;
	return 0;
}

void watch_start(struct watch *w)
{
	struct os_host *h = w->path->host;

	if (w->polled || h->polled_count == ARRAY_LEN(h->polled))
		return;
	w->polled = true;
	atomic_store_explicit(&h->has_net, true, memory_order_relaxed);
	host_poll_add(h, w->path);
}

void watch_event(struct watch *w)
{
	watch_start(w);
	watch_arm(w, false);
}

void watch_arm(struct watch *w, bool on)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = w};

	if (!w->polled || w->armed == on)
		return;
	if (epoll_ctl(w->path->host->epoll_fd,
		      on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, w->fd, &ev) == 0)
		w->armed = on;
}
