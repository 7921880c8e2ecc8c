/* SPDX-License-Identifier: Apache-2.0 */
/* The pager's loop: faults first, then pages that leave, then processes that
 * come and go. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "aquifer/aquifer.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/relax.h"
#include "broker.h"
#include "near.h"
#include "owner_priv.h"
#include "pager_priv.h"
#include "proc.h"
#include "rights.h"
#include "room_priv.h"

enum {
	WATCH_MAX = 64,
	BUSY_NS = 2000000, /* polled this long after the last progress */
};

int run_pager_watch(struct pager *p, int fd, void *who)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = who};

	return epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &e) == 0 ? 0 : -errno;
}

void run_pager_complain(struct pager *p, const struct space *s)
{
	char lost[sizeof(p->far.lost)];

	if (p->has_complained)
		return;
	run_far_lost(&p->far, true, lost, sizeof(lost));
	p->has_complained = true;
	if (lost[0])
		(void)fprintf(stderr,
			      "aquifer: run: memory node %s is lost, and pages "
			      "of process %d with it; accesses to them are "
			      "SIGBUS\n",
			      lost, (int)s->pid);
	else
		(void)fprintf(stderr,
			      "aquifer: run: pages of process %d did not come "
			      "back as they were stored; accesses to them are "
			      "SIGBUS\n",
			      (int)s->pid);
}

/* ---- events -------------------------------------------------------------- */

/* A handler on the core of the thread that faults answers in a quarter of the
 * time: no interrupt to another core, no wake-up of an idle one. */
static void follow(struct pager *p, const struct space *s, uint32_t tid)
{
	cpu_set_t set;
	int cpu;

	if (p->follow_count++ % RUN_FOLLOW_FAULTS || !s->pid)
		return;
	cpu = (int)run_proc_stat(s->pid, (pid_t)tid, 39);
	if (cpu < 0 || cpu == p->cpu || cpu >= CPU_SETSIZE)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) == 0) {
		p->cpu = cpu;
		run_reclaim_place(p);
	}
}

static void take_fault(struct pager *p, const struct fault *w)
{
	if (w->page != 0) {
		count(&p->stats->faults, 1);
		if (w->is_wp)
			count(&p->stats->write_waits, 1);
		follow(p, w->space, w->tid);
	}
	run_fault_serve(p, w);
}

/* The thread that faulted runs already, or will when we sleep. */
static void take_out(struct pager *p)
{
	(void)run_writeback_return(p);
	if (!p->threads.has_reclaim)
		(void)run_reclaim_turn(p);
	else if (run_policy_is_over(p, 0) || run_tiers_is_over(p))
		run_reclaim_kick(p);
}

/* Under the lock from the reading on: with it the kernel lets a fork go on, and
 * nothing may leave before the child has its table. */
static bool read_some(struct pager *p, struct space *s)
{
	struct fault w[RUN_EVENTS];
	int n;

	lock_take(&p->lock);
	n = run_events_read(p, s, w);
	for (int i = 0; i < n; i++)
		take_fault(p, &w[i]);
	if (n >= 0)
		take_out(p);
	lock_drop(&p->lock);
	return n >= 0;
}

/* A thread that was woken mostly runs before we do, and has often faulted again
 * by now: looking costs less than to be told. */
static void read_space(struct pager *p, struct space *s)
{
	for (unsigned i = 0; i < RUN_READS && read_some(p, s); i++)
		;
}

static bool is_attachment(const struct pager *p, const void *who)
{
	return (const char *)who >= (const char *)p->attachment &&
	       (const char *)who <
		       (const char *)(p->attachment + RUN_PENDING_HELLOS);
}

static void dispatch(struct pager *p, void *who)
{
	struct space *left = run_owner_space(who);

	if (!left && who != &p->listen && !is_attachment(p, who)) {
		read_space(p, who);
		return;
	}
	lock_take(&p->lock);
	if (left)
		run_owner_ended(p, left);
	else if (who == &p->listen)
		run_attach_accept(p);
	else
		run_attach_read(p, who);
	lock_drop(&p->lock);
}

/* ---- the loop ------------------------------------------------------------ */

/* Memory that was left is gone as soon as its agent is: looked for at once, but
 * not for ever. */
static bool is_parting(const struct pager *p, uint64_t now_ns)
{
	return p->left_ns && now_ns - p->left_ns < RUN_PARTING_MS * 1000000ull;
}

/* A fault that waits for a batch to end is worth polling; but a stopped process
 * does not answer: no reason to spin. */
static int timeout_ms(const struct pager *p)
{
	if (p->waiting_count > 0 || p->events > 0)
		return clock_mono_ns() - p->progress_ns < BUSY_NS ? 0 : 1;
	if (is_parting(p, clock_mono_ns()))
		return 1;
	return !p->threads.has_reclaim && run_reclaim_is_busy(p) ? 1
								 : RUN_SWEEP_MS;
}

static void serve_waiting(struct pager *p)
{
	unsigned before = p->waiting_count + p->events;

	if (!before)
		return;
	lock_take(&p->lock);
	for (struct space *s = p->spaces; s; s = s->next) {
		(void)run_evict_collect(p, s);
		(void)run_events_settle(p, s);
	}
	run_fault_retry(p);
	lock_drop(&p->lock);
	if (p->waiting_count + p->events < before)
		p->progress_ns = clock_mono_ns();
}

static void look_around(struct pager *p, uint64_t now_ns)
{
	uint64_t evicted =
		atomic_load_explicit(&p->stats->evicted, memory_order_relaxed);

	if (p->cpu >= 0 &&
	    run_threads_look(&p->threads, now_ns, evicted, &p->cpus, p->cpu))
		run_reclaim_place(p);
}

static void sweep(struct pager *p)
{
	uint64_t now = clock_mono_ns();
	bool is_due = now - p->sweep_ns >= RUN_SWEEP_MS * 1000000ull;

	if (!is_due && !is_parting(p, now))
		return;
	lock_take(&p->lock);
	run_spaces_sweep(p, !is_due);
	if (is_due) {
		p->sweep_ns = now;
		(void)run_writeback_return(p);
		run_room_settle(p);
		run_evict_try(p);
		run_attach_sweep(p);
		look_around(p, now);
		run_near_look(p, now);
		if (p->tiers.is_on)
			run_tiers_show(p);
	}
	lock_drop(&p->lock);
}

static void tidy(struct pager *p)
{
	lock_take(&p->lock);
	(void)run_reclaim_turn(p);
	lock_drop(&p->lock);
}

/* Where it must not wait it polls; among strangers it sleeps as briefly as can
 * be instead, and a fault ends that. */
static int look(const struct pager *p, struct epoll_event e[WATCH_MAX],
		int wait_ms)
{
	static const struct timespec nap = {.tv_nsec = 50000};
	int n;

	if (wait_ms == 0 && relax_is_crowded())
		return epoll_pwait2(p->epoll, e, WATCH_MAX, &nap, NULL);
	n = epoll_wait(p->epoll, e, WATCH_MAX, wait_ms);
	if (n <= 0 && wait_ms == 0)
		relax_briefly();
	return n;
}

static void loop(struct pager *p, pid_t supervisor)
{
	struct epoll_event e[WATCH_MAX];

	for (;;) {
		int wait = timeout_ms(p);
		int n = look(p, e, wait);

		for (int i = 0; i < n; i++)
			dispatch(p, e[i].data.ptr);
		if (n > 0)
			p->progress_ns = clock_mono_ns();
		serve_waiting(p);
		if (n <= 0 && !p->threads.has_reclaim)
			tidy(p);
		sweep(p);
		run_sample_tick(p);
		if (!p->spaces &&
		    (getppid() != supervisor ||
		     atomic_load_explicit(&p->shared->ends_when_idle,
					  memory_order_relaxed)))
			return;
	}
}

/* ---- beginning and end --------------------------------------------------- */

static int size_up(struct pager *p)
{
	uint32_t buffers = run_policy_init(&p->policy, p->options.local_bytes >>
							       RUN_PAGE_SHIFT);
	int samples = run_tiers_open(p, buffers);

	p->keep_pages = p->policy.limit_pages / 2;
	overflow_init(&p->overflow, p->policy.limit_pages,
		      p->options.overflow_bytes == UINT64_MAX
			      ? OVERFLOW_NO_LIMIT
			      : p->options.overflow_bytes >> RUN_PAGE_SHIFT);
	return samples < 0 ? samples
			   : run_writeback_open(p, buffers, (uint32_t)samples);
}

static int open_far(struct pager *p)
{
	int err = run_far_open(&p->far, &p->options, p->scratch,
			       RUN_SCRATCH_BYTES);

	if (err)
		(void)snprintf(p->shared->text, sizeof(p->shared->text), "%s",
			       aq_last_error());
	else
		run_room_say(p);
	return err;
}

/* Before the first thread, so that none has more; what needs more is open, or
 * the broker does it. */
static int give_up_rights(struct pager *p)
{
	int err = run_attach_open(p);

	if (!err)
		err = run_broker_start(p->start, &p->broker);
	if (err)
		return err;
	err = run_confine(p->options.rack);
	if (err)
		(void)snprintf(p->shared->text, sizeof(p->shared->text), "%s",
			       aq_last_error());
	return err;
}

static int pager_open(struct pager *p)
{
	int err = size_up(p);

	p->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (p->epoll < 0)
		return -errno;
	p->scratch = aligned_alloc(RUN_PAGE_BYTES, RUN_SCRATCH_BYTES);
	if (err || !p->scratch)
		return -ENOMEM;
	err = give_up_rights(p);
	/* Buffers are not registered: they come and go with their processes.
	 * What leaves them costs one copy more, outside the pager's lock. */
	if (!err)
		err = open_far(p);
	if (!err)
		err = run_mender_start(p);
	return err ? err : run_reclaim_start(p);
}

int run_pager_run(const struct run_start *start)
{
	struct run_shared *shared = start->shared;
	struct pager *p = calloc(1, sizeof(*p));
	int err = -ENOMEM;

	if (p) {
		p->options = *start->options;
		p->start = start;
		p->shared = shared;
		p->stats = &shared->stats;
		p->cpu = p->broker = -1;
		p->self = getpid();
		run_threads_init(&p->threads, p->options.threads);
		lock_init(&p->lock);
		(void)sched_getaffinity(0, sizeof(p->cpus), &p->cpus);
		err = pager_open(p);
	}
	/* RUN-R1: who sees it never sees half of `text`. */
	atomic_store_explicit(&shared->ready, err ? err : 1,
			      memory_order_release);
	if (!err)
		loop(p, start->supervisor);
	if (p) {
		run_reclaim_stop(p);
		run_mender_stop(p);
		run_far_drop_end(&p->far);
		run_far_close(&p->far);
		run_writeback_close(p);
		run_tiers_close(p);
		free(p->scratch);
	}
	if (p && p->broker >= 0)
		run_broker_remove_place(p->broker);
	free(p);
	return err;
}
