/* SPDX-License-Identifier: Apache-2.0 */
/* The reclaim thread takes pages out, beside the thread that serves faults: it
 * has the agents fill writeback buffers, and stores what is in them. */
#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/relax.h"
#include "pager_priv.h"

enum {
	/* An agent that does not answer for so long (a stopped program) is
	 * looked at once per SLEEP_NS only. */
	BUSY_NS = 2000000,
	SLEEP_NS = 1000000,
	IDLE_NS = 100000000,
	/* How long a fault waits for room; and once that was in vain (a stopped
	 * program lets go of nothing), until something leaves again. */
	ROOM_NS = 200000000,
	STUCK_NS = 20000000,
};
/* The same while a node has pages of ours to store: it may wait for a core of
 * its own, and then the limit is worth more than the wait. */
#define STORE_NS 2000000000ull

bool run_reclaim_turn(struct pager *p)
{
	bool any = run_evict_step(p);
	unsigned told;

	any |= run_writeback_store(p);
	told = run_far_drop_step(&p->far, !any);
	count(&p->stats->given_back, told);
	return any || told;
}

bool run_reclaim_is_busy(const struct pager *p)
{
	if (p->writeback.storing_count > 0 || run_far_is_dropping(&p->far))
		return true;
	for (const struct space *s = p->spaces; s; s = s->next)
		if (run_space_is_leaving(s))
			return true;
	return false;
}

static uint64_t more_ns(const struct pager *p)
{
	return p->writeback.storing_count && !p->is_stuck ? STORE_NS : 0;
}

static void wait_until(struct pager *p, uint64_t end)
{
	while (run_policy_must_wait(p, true)) {
		/* Agents wait for us, too. */
		run_events_meanwhile(p);
		/* Not only waiting: its core may be taken by others. */
		if (run_reclaim_turn(p) || run_writeback_return(p))
			continue;
		if (!run_batches_pages(p) && !run_writeback_is_storing(p))
			return; /* nothing can leave: over the limit, then */
		if (clock_mono_ns() > end + more_ns(p)) {
			p->is_stuck = true;
			return;
		}
		run_reclaim_kick(p);
		lock_drop(&p->lock);
		relax_briefly();
		lock_take(&p->lock);
	}
}

void run_reclaim_wait(struct pager *p)
{
	uint64_t start, now;

	if (!run_policy_must_wait(p, false))
		return;
	start = clock_mono_ns();
	wait_until(p, start + (p->is_stuck ? STUCK_NS : ROOM_NS));
	now = clock_mono_ns();
	if (run_threads_waited(&p->threads, now, now - start))
		run_reclaim_place(p);
}

static void reclaim_sleep(struct reclaim_thread *o, uint32_t seen, long ns)
{
	struct timespec wait = {.tv_nsec = ns};

	/* RUN-K1: who kicks adds first and then looks at is_asleep. The two do
	 * not both miss the other's: it does not sleep over a kick. */
	atomic_store_explicit(&o->is_asleep, 1, memory_order_seq_cst);
	if (atomic_load_explicit(&o->kicks, memory_order_seq_cst) == seen)
		(void)syscall(SYS_futex, &o->kicks, FUTEX_WAIT_PRIVATE, seen,
			      &wait, NULL, 0);
	atomic_store_explicit(&o->is_asleep, 0, memory_order_relaxed);
}

static void *reclaim_main(void *arg)
{
	struct pager *p = arg;
	struct reclaim_thread *o = &p->reclaim;
	uint64_t progress_ns = clock_mono_ns();

	(void)prctl(PR_SET_NAME, "aquifer-reclaim");
	atomic_store_explicit(&o->tid, (pid_t)syscall(SYS_gettid),
			      memory_order_relaxed);
	while (!atomic_load_explicit(&o->ends, memory_order_relaxed)) {
		uint32_t seen =
			atomic_load_explicit(&o->kicks, memory_order_relaxed);
		bool any, is_busy;

		lock_take(&p->lock);
		any = p->threads.has_reclaim && run_reclaim_turn(p);
		is_busy = p->threads.has_reclaim && run_reclaim_is_busy(p);
		lock_drop(&p->lock);
		if (any)
			progress_ns = clock_mono_ns();
		else if (!is_busy)
			reclaim_sleep(o, seen, IDLE_NS);
		else if (clock_mono_ns() - progress_ns < BUSY_NS)
			relax_briefly();
		else
			reclaim_sleep(o, seen, SLEEP_NS);
	}
	return NULL;
}

void run_reclaim_kick(struct pager *p)
{
	struct reclaim_thread *o = &p->reclaim;

	/* RUN-K1 */
	(void)atomic_fetch_add_explicit(&o->kicks, 1, memory_order_seq_cst);
	/* RUN-K1. Once is enough: it may be long until the reclaim thread runs
	 * and says that it is awake. */
	if (atomic_load_explicit(&o->is_asleep, memory_order_seq_cst) &&
	    atomic_exchange_explicit(&o->is_asleep, 0, memory_order_relaxed))
		(void)syscall(SYS_futex, &o->kicks, FUTEX_WAKE_PRIVATE, 1, NULL,
			      NULL, 0);
}

void run_reclaim_place(struct pager *p)
{
	cpu_set_t set = p->cpus;
	pid_t tid = atomic_load_explicit(&p->reclaim.tid, memory_order_relaxed);
	uint32_t hint = (uint32_t)p->cpu + 1;

	if (p->cpu < 0)
		return;
	CPU_CLR(p->cpu, &set);
	/* It only runs better for it: a failure does not matter. */
	if (tid && CPU_COUNT(&set) > 0)
		(void)sched_setaffinity(tid, sizeof(set), &set);
	if (!p->threads.has_reclaim)
		hint |= RUN_HINT_HERE;
	for (struct space *s = p->spaces; s; s = s->next)
		if (s->channel)
			atomic_store_explicit(&s->channel->core_hint, hint,
					      memory_order_relaxed);
}

int run_reclaim_start(struct pager *p)
{
	int err = pthread_create(&p->reclaim.thread, NULL, reclaim_main, p);

	p->reclaim.is_started = err == 0;
	return -err;
}

void run_reclaim_stop(struct pager *p)
{
	if (!p->reclaim.is_started)
		return;
	atomic_store_explicit(&p->reclaim.ends, 1, memory_order_relaxed);
	run_reclaim_kick(p);
	(void)pthread_join(p->reclaim.thread, NULL);
	p->reclaim.is_started = false;
}
