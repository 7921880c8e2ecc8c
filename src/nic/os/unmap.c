/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registered memory that is unmapped: a userfaultfd on its pages, in a mode
 * that catches no fault, tells of munmap, mremap and mmap over them. Whoever
 * unmaps waits until the event was read, which is done with the host's lock
 * held; so the keys know before anything else can be mapped there.
 *
 * A thread of its own reads, and does not allocate or free, because what it is
 * told of may happen inside an allocator, or in a thread that holds the host's
 * lock. That one is not waited for longer than LOCK_WAIT_NS.
 */
#include "unmap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "fault_guard.h"
#include "os_priv.h"

enum {
	/* Each may split a mapping in three, and a process may have 65,530. */
	RANGES_MAX = 4096,
	EVENTS = 16, /* read at a time */
	LOCK_TRIES = 1000,
	LOCK_PAUSE_NS = 20000,
	/* To end the watching costs 0.1 us for each page that is there. Larger
	 * ranges stay watched when their region ends. */
	UNWATCH_BYTES_MAX = 4 << 20,
	/* Of later kernels. */
	FEATURE_SHARED = 1 << 12, /* memory that is not anonymous */
	FEATURE_ANY = 1 << 15,	  /* files, too */
	FEATURES = UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP |
		   UFFD_FEATURE_PAGEFAULT_FLAG_WP,
};

/* ---- ranges ------------------------------------------------------------- */

/* The first that ends behind `at`. */
static uint32_t find(const struct unmap *u, uintptr_t at)
{
	uint32_t low = 0, high = u->count;

	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (u->ranges[mid].end > at)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static void insert(struct unmap *u, uint32_t i, struct unmap_range r)
{
	memmove(&u->ranges[i + 1], &u->ranges[i],
		(u->count - i) * sizeof(u->ranges[0]));
	u->ranges[i] = r;
	u->count++;
}

static void cut(struct unmap *u, uint32_t i)
{
	u->count--;
	memmove(&u->ranges[i], &u->ranges[i + 1],
		(u->count - i) * sizeof(u->ranges[0]));
}

/* No range reaches across `at` any more. */
static void split(struct unmap *u, uintptr_t at)
{
	uint32_t i = find(u, at);
	struct unmap_range upper;

	if (i == u->count || u->ranges[i].start >= at)
		return;
	upper = u->ranges[i];
	upper.start = at;
	u->ranges[i].end = at;
	insert(u, i + 1, upper);
}

/* One more user of all of it. */
static void use(struct unmap *u, uintptr_t start, uintptr_t end)
{
	uint32_t i = find(u, start);

	while (start < end) {
		struct unmap_range r = {
			.start = start, .end = end, .born = u->births};

		if (i == u->count || u->ranges[i].start > start) {
			if (i < u->count)
				r.end = u64_min(end, u->ranges[i].start);
			insert(u, i, r);
		}
		u->ranges[i].users++;
		start = u->ranges[i++].end;
	}
}

/* The kernel forgets it by itself. */
static void gone(struct unmap *u, uintptr_t start, uintptr_t end)
{
	uint32_t i;

	if (u->count + 2 > RANGES_MAX)
		return; /* what is too much is harmless */
	split(u, start);
	split(u, end);
	for (i = find(u, start); i < u->count && u->ranges[i].start < end;)
		cut(u, i);
}

/* ---- the thread --------------------------------------------------------- */

static bool lock_briefly(struct lock *lock)
{
	static const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};

	for (unsigned i = 0; i < LOCK_TRIES; i++) {
		if (lock_try(lock))
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

/* Reads some events; whoever caused them goes on from here. What was moved
 * elsewhere is watched there, which nobody has asked for. */
static unsigned read_events(int fd, struct uffdio_range *away)
{
	struct uffd_msg msg;
	unsigned n = 0;

	while (n < EVENTS && read(fd, &msg, sizeof(msg)) == sizeof(msg)) {
		if (msg.event == UFFD_EVENT_REMAP) {
			struct uffdio_range to = {
				.start = msg.arg.remap.to,
				.len = msg.arg.remap.len,
			};

			(void)ioctl(fd, UFFDIO_UNREGISTER, &to);
			away[n++] = (struct uffdio_range){
				.start = msg.arg.remap.from,
				.len = msg.arg.remap.len,
			};
		} else if (msg.event == UFFD_EVENT_UNMAP) {
			away[n++] = (struct uffdio_range){
				.start = msg.arg.remove.start,
				.len = msg.arg.remove.end -
				       msg.arg.remove.start,
			};
		}
	}
	return n;
}

static void handle(struct os_host *h)
{
	struct unmap *u = &h->unmap;
	struct lock *lock = &h->base.lock;
	struct uffdio_range away[EVENTS];
	bool locked = lock_briefly(lock);
	unsigned n;

	/* Peers that reach must have ended before whoever unmaps goes on. Who
	 * has the lock for so long is mostly the one that unmaps: then none of
	 * them begins any more, at least. */
	if (locked)
		reach_revoke(h);
	else
		reach_bar(h);
	n = read_events(u->fd, away);
	if (!locked) {
		lock_take(lock);
		reach_revoke(h);
		reach_unbar(h);
	}
	for (unsigned i = 0; i < n; i++)
		nic_memory_gone(h->base.nic, (void *)(uintptr_t)away[i].start,
				away[i].len);
	lock_drop(lock);
	pthread_mutex_lock(&u->mutex);
	for (unsigned i = 0; i < n; i++)
		gone(u, away[i].start, away[i].start + away[i].len);
	pthread_mutex_unlock(&u->mutex);
}

static void *unmap_main(void *arg)
{
	struct os_host *h = arg;
	struct pollfd fds[2] = {
		{.fd = h->unmap.fd, .events = POLLIN},
		{.fd = h->unmap.stop_fd, .events = POLLIN},
	};

	(void)pthread_setname_np(pthread_self(), "aq-unmap");
	for (;;) {
		if (poll(fds, ARRAY_LEN(fds), -1) < 0 && errno != EINTR)
			return NULL;
		if (fds[1].revents || (fds[0].revents & ~POLLIN))
			return NULL;
		if (fds[0].revents & POLLIN)
			handle(h);
	}
}

/* ---- life --------------------------------------------------------------- */

static int open_fd(void)
{
	static const uint64_t features[] = {
		FEATURES | FEATURE_ANY, FEATURES | FEATURE_SHARED, FEATURES};

	for (unsigned i = 0; i < ARRAY_LEN(features); i++) {
		struct uffdio_api api = {.api = UFFD_API,
					 .features = features[i]};
		int fd = (int)syscall(SYS_userfaultfd,
				      O_CLOEXEC | O_NONBLOCK |
					      UFFD_USER_MODE_ONLY);

		if (fd < 0)
			return -errno;
		if (ioctl(fd, UFFDIO_API, &api) == 0)
			return fd;
		close(fd);
	}
	return -EOPNOTSUPP;
}

static void close_all(struct unmap *u)
{
	if (u->fd >= 0)
		close(u->fd);
	if (u->stop_fd >= 0)
		close(u->stop_fd);
	free(u->ranges);
	u->ranges = NULL;
	u->fd = u->stop_fd = -1;
	u->count = 0;
}

/* With the first region. Where it fails, it is not tried again. */
static void start(struct os_host *h)
{
	struct unmap *u = &h->unmap;

	u->tried = true;
	u->fd = open_fd();
	if (u->fd < 0)
		return;
	u->stop_fd = eventfd(0, EFD_CLOEXEC);
	u->ranges = calloc(RANGES_MAX, sizeof(u->ranges[0]));
	if (u->stop_fd < 0 || !u->ranges) {
		close_all(u);
		return;
	}
	if (thread_start(&u->thread, unmap_main, h))
		close_all(u);
}

void unmap_init(struct unmap *u)
{
	*u = (struct unmap){.fd = -1, .stop_fd = -1};
	pthread_mutex_init(&u->mutex, NULL);
}

void unmap_release(struct unmap *u)
{
	static const uint64_t one = 1;

	if (u->fd >= 0) {
		ssize_t n = write(u->stop_fd, &one, sizeof(one));

		ASSERT(n == sizeof(one)); /* an empty eventfd takes it */
		pthread_join(u->thread, NULL);
	}
	close_all(u);
}

void unmap_forget(struct unmap *u)
{
	pthread_mutex_init(&u->mutex, NULL);
	u->tried = true;
	close_all(u);
}

/* ---- what is watched ---------------------------------------------------- */

static struct uffdio_range pages_of(const void *addr, size_t len_bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = (uintptr_t)addr & ~(page - 1);

	return (struct uffdio_range){
		.start = from,
		.len = align_up((uintptr_t)addr + len_bytes, page) - from,
	};
}

uint64_t unmap_watch(struct nic_host *host, const void *addr, size_t len_bytes)
{
	struct os_host *h = host_of(host);
	struct unmap *u = &h->unmap;
	struct uffdio_register reg = {.range = pages_of(addr, len_bytes),
				      .mode = UFFDIO_REGISTER_MODE_WP};
	uintptr_t from = reg.range.start, to = from + reg.range.len;
	uint64_t since = 0;

	/* A program mostly has its handlers before it registers memory, and
	 * not always before it opens the NIC. */
	(void)!fault_guard_install();
	if (!h->cfg.watch_unmap || grant_has(host, addr))
		return 0;
	pthread_mutex_lock(&u->mutex);
	if (!u->tried)
		start(h);
	/* At most one more between any two, and two that are split. */
	if (u->fd >= 0 &&
	    u->count + (find(u, to) - find(u, from)) + 4 <= RANGES_MAX &&
	    ioctl(u->fd, UFFDIO_REGISTER, &reg) == 0) {
		since = ++u->births;
		split(u, from);
		split(u, to);
		use(u, from, to);
	}
	pthread_mutex_unlock(&u->mutex);
	return since;
}

void unmap_unwatch(struct nic_host *host, const void *addr, size_t len_bytes,
		   uint64_t since)
{
	struct unmap *u = &host_of(host)->unmap;
	struct uffdio_range r = pages_of(addr, len_bytes);
	uintptr_t end = r.start + r.len;
	uint32_t i;

	pthread_mutex_lock(&u->mutex);
	if (u->fd >= 0 && u->count + 2 <= RANGES_MAX) {
		split(u, r.start);
		split(u, end);
		i = find(u, r.start);
		while (i < u->count && u->ranges[i].start < end) {
			struct unmap_range *e = &u->ranges[i];

			r = (struct uffdio_range){.start = e->start,
						  .len = e->end - e->start};
			/* Younger ones are of memory that came later. */
			if (e->born > since || e->users == 0 || --e->users ||
			    r.len > UNWATCH_BYTES_MAX) {
				i++;
				continue;
			}
			(void)ioctl(u->fd, UFFDIO_UNREGISTER, &r);
			cut(u, i);
		}
	}
	pthread_mutex_unlock(&u->mutex);
}
