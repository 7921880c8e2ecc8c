/* SPDX-License-Identifier: Apache-2.0 */
/* The mender: a thread that asks the rack what would make others wait: for room
 * when there was none, and for lost nodes, whose copies it makes anew when they
 * are back or others can take their place. */
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "client/link.h"
#include "confine/confine.h"
#include "pager_priv.h"
#include "rights.h"

enum {
	MEND_PAGES = 4, /* at a time: faults wait that long */
	DRAIN_TRIES = 16,
};

#define PAUSE_NS 100000ull

#define LOOK_NS 1000000000l

/* Whether some node could take what the lost one had. Without the lock: a
 * machine that is gone answers late. */
static bool is_worth_it(struct far *f, const char *lost, uint32_t backends)
{
	struct client_host host[PAGE_NODES_MAX];
	int n = client_hosts(f->rack, host, PAGE_NODES_MAX);

	for (int i = 0; i < n; i++)
		if (strcmp(host[i].node, lost) == 0)
			return true;
	return n > 0 && (uint32_t)n >= backends;
}

/* With the lock: nothing is begun meanwhile, so soon nothing is under way. */
static bool drain(struct far *f, const struct far_store *store)
{
	for (unsigned i = 0; i < DRAIN_TRIES; i++) {
		if (page_pending(store->handle) == 0)
			return true;
		run_far_poll_locked(f);
		(void)sched_yield();
	}
	return false;
}

/* How many pages are left to do, or -errno. */
static int64_t mend_some(struct far *f, unsigned store)
{
	int64_t left = -EBUSY;

	lock_take(&f->lock);
	if (store >= f->store_count)
		left = 0;
	else if (drain(f, &f->store[store]))
		left = page_rebuild(f->store[store].handle, MEND_PAGES);
	lock_drop(&f->lock);
	return left;
}

static void nap(struct mender *m)
{
	struct timespec wait = {.tv_nsec = LOOK_NS - 1};

	(void)syscall(SYS_futex, &m->ends, FUTEX_WAIT_PRIVATE, 0, &wait, NULL,
		      0);
}

static void pause_ns(uint64_t ns)
{
	struct timespec t = {.tv_sec = (time_t)(ns / 1000000000),
			     .tv_nsec = (long)(ns % 1000000000)};

	(void)nanosleep(&t, NULL);
}

static bool ends(struct mender *m)
{
	return atomic_load_explicit(&m->ends, memory_order_relaxed);
}

/* True: every page has all its copies again, but for those that are lost. */
static bool mend_all(struct pager *p)
{
	for (unsigned i = 0; i < p->far.store_count; i++) {
		int64_t left;

		do {
			uint64_t start = clock_mono_ns();

			left = mend_some(&p->far, i);
			/* Those who wait for the lock have their turn. */
			pause_ns(u64_max(PAUSE_NS, clock_mono_ns() - start));
		} while ((left > 0 || left == -EBUSY) && !ends(&p->mender));
		if (left)
			return false;
	}
	return true;
}

static void look(struct pager *p)
{
	struct far *f = &p->far;
	char lost[sizeof(f->lost)];
	struct page_stats stats = {0};

	run_far_lost(f, false, lost, sizeof(lost));
	if (!lost[0])
		return;
	lock_take(&f->lock);
	if (f->store_count)
		page_store_stats(f->store[0].handle, &stats);
	lock_drop(&f->lock);
	if (!is_worth_it(f, lost, stats.nodes) || !mend_all(p))
		return;
	lock_take(&f->lock);
	f->lost[0] = '\0';
	lock_drop(&f->lock);
	(void)fprintf(stderr,
		      "aquifer: run: memory node %s is back, or another has "
		      "taken its place; new pages go there, and all others "
		      "that are left have %u cop%s again\n",
		      lost, f->copies, f->copies == 1 ? "y" : "ies");
}

/* The rack is full: is it still? */
static void look_for_room(struct pager *p)
{
	struct far *f = &p->far;
	struct client_host host[PAGE_NODES_MAX];
	uint32_t nodes;
	int n;

	if (!atomic_load_explicit(&f->wants_room, memory_order_relaxed))
		return;
	n = client_hosts(f->rack, host, PAGE_NODES_MAX);
	if (n > 0 && run_far_fit(host, (unsigned)n, f->copies ? f->copies : 1,
				 2 * RUN_STORE_PAGES_MIN,
				 &nodes) == 2 * RUN_STORE_PAGES_MIN)
		atomic_store_explicit(&f->may_grow, true, memory_order_relaxed);
}

static void *mender_main(void *arg)
{
	struct pager *p = arg;

	(void)prctl(PR_SET_NAME, "aquifer-mender");
	/* It cannot fail: it only gives up. */
	(void)!confine_thread(RUN_CAPS_NONE);
	while (!ends(&p->mender)) {
		look(p);
		look_for_room(p);
		nap(&p->mender);
	}
	return NULL;
}

int run_mender_start(struct pager *p)
{
	int err = pthread_create(&p->mender.thread, NULL, mender_main, p);

	p->mender.is_started = err == 0;
	return -err;
}

void run_mender_stop(struct pager *p)
{
	struct mender *m = &p->mender;

	if (!m->is_started)
		return;
	atomic_store_explicit(&m->ends, 1, memory_order_relaxed);
	(void)syscall(SYS_futex, &m->ends, FUTEX_WAKE_PRIVATE, 1, NULL, NULL,
		      0);
	(void)pthread_join(m->thread, NULL);
	m->is_started = false;
}
