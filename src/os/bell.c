/* SPDX-License-Identifier: Apache-2.0 */
/* Makes, shares and rings bells; when to sleep is engine.c's business. */
#include "bell.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pages.h"

static bool barrier_register(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED,
		       0, 0) == 0;
}

int bell_init(struct bell *b)
{
	int err;

	b->page_fd = pages_memfd("aquifer-bell", BELL_PAGE_BYTES);
	if (b->page_fd < 0)
		return b->page_fd;
	err = pages_seal_size(b->page_fd);
	if (err)
		goto err_close_page;
	b->page = pages_map(b->page_fd, BELL_PAGE_BYTES, true);
	if (!b->page) {
		err = -errno;
		goto err_close_page;
	}
	b->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (b->event_fd < 0) {
		err = -errno;
		goto err_unmap;
	}
	b->has_barrier = barrier_register();
	return 0;

err_unmap:
	pages_free(b->page, BELL_PAGE_BYTES);
err_close_page:
	close(b->page_fd);
	return err;
}

void bell_release(struct bell *b)
{
	close(b->event_fd);
	pages_free(b->page, BELL_PAGE_BYTES);
	close(b->page_fd);
}

/* A peer must not make us write into a descriptor of its choice. */
static bool is_eventfd(int fd)
{
	char link[64], target[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	return strcmp(target, "anon_inode:[eventfd]") == 0;
}

int bell_peer_init(struct bell_peer *p, int page_fd, int event_fd)
{
	struct bell_page *page;
	int err = pages_check_sealed(page_fd, BELL_PAGE_BYTES);

	if (err)
		return err;
	if (!is_eventfd(event_fd))
		return -EBADMSG;
	page = pages_map(page_fd, BELL_PAGE_BYTES, true);
	if (!page)
		return -errno;
	close(page_fd);
	*p = (struct bell_peer){.page = page, .event_fd = event_fd};
	return 0;
}

void bell_peer_release(struct bell_peer *p)
{
	if (!p->page)
		return;
	pages_free(p->page, BELL_PAGE_BYTES);
	close(p->event_fd);
	*p = (struct bell_peer){.event_fd = -1};
}

void bell_kick(int event_fd)
{
	static const uint64_t one = 1;
	/* It can only fail because the counter is full: awake already. */
	ssize_t n = write(event_fd, &one, sizeof(one));

	(void)n;
}

void bell_drain(struct bell *b)
{
	uint64_t count;
	ssize_t n = read(b->event_fd, &count, sizeof(count));

	(void)n; /* nothing in it is fine */
}

bool bell_ring_slow(struct bell_peer *p)
{
	/* Several producers may see it; one of them writes. */
	if (atomic_exchange_explicit(&p->page->asleep, 0,
				     memory_order_seq_cst) != 1)
		return false;
	bell_kick(p->event_fd);
	return true;
}

void bell_sleep(struct bell *b, bool barrier)
{
	/* B1: the store ... */
	atomic_exchange_explicit(&b->page->asleep, 1, memory_order_seq_cst);
	/* ... and the barrier in all producers. */
	if (barrier && b->has_barrier)
		(void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED,
			      0, 0);
}
