/* SPDX-License-Identifier: Apache-2.0 */
/* The porter: a thread that takes pages out, beside the one that serves faults.
 * It has the agents empty the programs' memory, and carries trays away. */
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/relax.h"
#include "confine/confine.h"
#include "pager_priv.h"
#include "rights.h"

enum {
	/* An agent that does not answer for so long (a stopped program) is
	 * looked at once per SLEEP_NS only. */
	BUSY_NS = 2000000,
	SLEEP_NS = 1000000,
	IDLE_NS = 100000000,
};

bool run_porter_turn(struct pager *p)
{
	bool any = run_evict_step(p);

	return run_trays_carry(p) || any;
}

bool run_porter_is_busy(const struct pager *p)
{
	return p->trays.carried_count > 0 || run_evict_leaving(p) > 0;
}

static void porter_sleep(struct porter *o, uint32_t seen, long ns)
{
	struct timespec wait = {.tv_nsec = ns};

	atomic_store_explicit(&o->is_asleep, 1, memory_order_seq_cst);
	/* Who kicks adds first and then looks at is_asleep; both sequentially
	 * consistent, so one of us sees the other. */
	if (atomic_load_explicit(&o->kicks, memory_order_seq_cst) == seen)
		(void)syscall(SYS_futex, &o->kicks, FUTEX_WAIT_PRIVATE, seen,
			      &wait, NULL, 0);
	atomic_store_explicit(&o->is_asleep, 0, memory_order_relaxed);
}

static void *porter_main(void *arg)
{
	struct pager *p = arg;
	struct porter *o = &p->porter;
	uint64_t progress_ns = run_pager_now_ns();

	(void)prctl(PR_SET_NAME, "aquifer-porter");
	/* It cannot fail: it only gives up. */
	(void)!confine_thread(RUN_CAPS_PORTER);
	atomic_store_explicit(&o->tid, (pid_t)syscall(SYS_gettid),
			      memory_order_relaxed);
	while (!atomic_load_explicit(&o->ends, memory_order_relaxed)) {
		uint32_t seen =
			atomic_load_explicit(&o->kicks, memory_order_relaxed);
		bool any, is_busy;

		lock_take(&p->lock);
		any = p->crew.has_porter && run_porter_turn(p);
		is_busy = p->crew.has_porter && run_porter_is_busy(p);
		lock_drop(&p->lock);
		if (any)
			progress_ns = run_pager_now_ns();
		else if (!is_busy)
			porter_sleep(o, seen, IDLE_NS);
		else if (run_pager_now_ns() - progress_ns < BUSY_NS)
			relax_briefly();
		else
			porter_sleep(o, seen, SLEEP_NS);
	}
	return NULL;
}

void run_porter_kick(struct pager *p)
{
	struct porter *o = &p->porter;

	/* K1 */
	(void)atomic_fetch_add_explicit(&o->kicks, 1, memory_order_seq_cst);
	/* Once is enough: it may be long until the porter runs and says that it
	 * is awake. */
	if (atomic_load_explicit(&o->is_asleep, memory_order_seq_cst) &&
	    atomic_exchange_explicit(&o->is_asleep, 0, memory_order_relaxed))
		(void)syscall(SYS_futex, &o->kicks, FUTEX_WAKE_PRIVATE, 1, NULL,
			      NULL, 0);
}

void run_porter_place(struct pager *p)
{
	cpu_set_t set = p->cpus;
	pid_t tid = atomic_load_explicit(&p->porter.tid, memory_order_relaxed);
	uint32_t hint = (uint32_t)p->cpu + 1;

	if (p->cpu < 0)
		return;
	CPU_CLR(p->cpu, &set);
	/* It only runs better for it: a failure does not matter. */
	if (tid && CPU_COUNT(&set) > 0)
		(void)sched_setaffinity(tid, sizeof(set), &set);
	if (!p->crew.has_porter)
		hint |= RUN_HINT_HERE;
	for (struct space *s = p->spaces; s; s = s->next)
		if (s->channel)
			atomic_store_explicit(&s->channel->core_hint, hint,
					      memory_order_relaxed);
}

int run_porter_start(struct pager *p)
{
	int err = pthread_create(&p->porter.thread, NULL, porter_main, p);

	p->porter.is_started = err == 0;
	return -err;
}

void run_porter_stop(struct pager *p)
{
	if (!p->porter.is_started)
		return;
	atomic_store_explicit(&p->porter.ends, 1, memory_order_relaxed);
	run_porter_kick(p);
	(void)pthread_join(p->porter.thread, NULL);
	p->porter.is_started = false;
}
