/* SPDX-License-Identifier: Apache-2.0 */
/* Makes, shares and rings bells; when to sleep is nic_thread.c's business. */
#include "bell.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cable_msg.h"
#include "pages.h"

static bool barrier_register(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED,
		       0, 0) == 0;
}

/* Maps the page for writing, then makes it read-only for everybody else. */
static int make_page(struct bell *b)
{
	int fd = pages_memfd("aquifer-bell", BELL_PAGE_BYTES);
	int err = 0;

	if (fd < 0)
		return fd;
	b->page = pages_map(fd, BELL_PAGE_BYTES, true);
	if (!b->page) {
		err = -errno;
		goto out_close;
	}
	b->page_fd = pages_open_read_only(fd, true);
	if (b->page_fd < 0) {
		err = b->page_fd;
		pages_free(b->page, BELL_PAGE_BYTES);
	}
out_close:
	close(fd);
	return err;
}

/* A mutex that peers never take: they look at its word. */
static void make_life(struct bell *b)
{
	pthread_mutexattr_t attr;

	if (pthread_mutexattr_init(&attr))
		return;
	if (pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) == 0 &&
	    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST) == 0)
		b->has_life = pthread_mutex_init(&b->page->life, &attr) == 0;
	pthread_mutexattr_destroy(&attr);
}

bool bell_live(struct bell *b)
{
	if (b->has_life && pthread_mutex_lock(&b->page->life))
		b->has_life = false;
	return b->has_life;
}

void bell_die(struct bell *b)
{
	if (b->has_life)
		pthread_mutex_unlock(&b->page->life);
}

int bell_init(struct bell *b)
{
	int err = make_page(b);

	if (err)
		return err;
	b->has_life = false;
	make_life(b);
	bell_next_epoch(b);
	bell_turn(b);
	b->has_barrier = barrier_register();
	return 0;
}

void bell_release(struct bell *b)
{
	pages_free(b->page, BELL_PAGE_BYTES);
	close(b->page_fd);
}

int bell_peer_init(struct bell_peer *p, int page_fd)
{
	int err = pages_check_sealed(page_fd, BELL_PAGE_BYTES);
	const struct bell_page *page;

	if (err)
		return err;
	page = pages_map(page_fd, BELL_PAGE_BYTES, false);
	if (!page)
		return -errno;
	*p = (struct bell_peer){.page = page};
	return 0;
}

void bell_peer_release(struct bell_peer *p)
{
	if (p->page)
		pages_free((void *)(uintptr_t)p->page, BELL_PAGE_BYTES);
	*p = (struct bell_peer){0};
}

void bell_send(int sock)
{
	struct cable_msg msg;

	cable_msg_init(&msg, CABLE_RING);
	/* A peer that is gone, or whose queue is full, needs no ring. */
	(void)!cable_msg_send(sock, &msg, NULL, 0);
}

void bell_sleep(struct bell *b, bool barrier)
{
	uint64_t sleeps =
		atomic_load_explicit(&b->page->sleeps, memory_order_relaxed);

	/* BELL-1: the store (a new number even if it was asleep: who rang for
	 * the last one rings again) ... */
	atomic_exchange_explicit(&b->page->sleeps, (sleeps + 1) | 1,
				 memory_order_seq_cst);
	/* ... and the barrier in all producers. */
	if (barrier && b->has_barrier)
		(void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED,
			      0, 0);
}
