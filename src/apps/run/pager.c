/* SPDX-License-Identifier: Apache-2.0 */
/* The pager's loop: faults first, then pages that leave, then processes that
 * come and go. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "aquifer/aquifer.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/relax.h"
#include "confine/confine.h"
#include "near.h"
#include "pager_priv.h"
#include "place.h"
#include "rights.h"

enum {
	WATCH_MAX = 64,
	BUSY_NS = 2000000, /* polled this long after the last progress */
};

uint64_t run_pager_now_ns(void)
{
	return clock_mono_ns();
}

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
	run_far_ever_lost(&p->far, lost, sizeof(lost));
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

/* ---- events ------------------------------------------------------------- */

/* A handler on the core of the thread that faults answers in a quarter of the
 * time: no interrupt to another core, no wake-up of an idle one. */
static void follow(struct pager *p, const struct space *s, uint32_t tid)
{
	char path[64], text[512];
	const char *at;
	cpu_set_t set;
	ssize_t n;
	int fd, cpu;

	if (p->follow_count++ % RUN_FOLLOW_FAULTS || !s->pid)
		return;
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%u/stat", (int)s->pid,
		       tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	text[n < 0 ? 0 : n] = '\0';
	at = strrchr(text, ')');
	/* The processor is field 39; the first after ')' is field 3. */
	for (int field = 2; at && field < 39; field++)
		at = strchr(at + 1, ' ');
	cpu = at ? atoi(at + 1) : -1;
	if (cpu < 0 || cpu == p->cpu || cpu >= CPU_SETSIZE)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) == 0) {
		p->cpu = cpu;
		run_porter_place(p);
	}
}

static void take_fault(struct pager *p, const struct waiting *w)
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
	(void)run_trays_return(p);
	if (!p->crew.has_porter)
		(void)run_porter_turn(p);
	else if (run_evict_is_due(p))
		run_porter_kick(p);
}

/* Under the lock from the reading on: with it the kernel lets a fork go on, and
 * nothing may leave before the child has its table. */
static bool read_some(struct pager *p, struct space *s)
{
	struct waiting w[RUN_EVENTS];
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

static bool is_caller(const struct pager *p, const void *who)
{
	return (const char *)who >= (const char *)p->caller &&
	       (const char *)who <
		       (const char *)(p->caller + RUN_PENDING_HELLOS);
}

static void dispatch(struct pager *p, void *who)
{
	struct space *left = run_owner_space(who);

	if (!left && who != &p->listen && !is_caller(p, who)) {
		read_space(p, who);
		return;
	}
	lock_take(&p->lock);
	if (left)
		run_owner_ended(p, left);
	else if (who == &p->listen)
		run_door_accept(p);
	else
		run_door_read(p, who);
	lock_drop(&p->lock);
}

/* ---- the loop ----------------------------------------------------------- */

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
		return run_pager_now_ns() - p->progress_ns < BUSY_NS ? 0 : 1;
	if (is_parting(p, run_pager_now_ns()))
		return 1;
	return !p->crew.has_porter && run_porter_is_busy(p) ? 1 : RUN_SWEEP_MS;
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
		p->progress_ns = run_pager_now_ns();
}

static void look_around(struct pager *p, uint64_t now_ns)
{
	uint64_t evicted =
		atomic_load_explicit(&p->stats->evicted, memory_order_relaxed);

	if (p->cpu >= 0 &&
	    run_crew_look(&p->crew, now_ns, evicted, &p->cpus, p->cpu))
		run_porter_place(p);
}

static void sweep(struct pager *p)
{
	uint64_t now = run_pager_now_ns();
	bool is_due = now - p->sweep_ns >= RUN_SWEEP_MS * 1000000ull;

	if (!is_due && !is_parting(p, now))
		return;
	lock_take(&p->lock);
	run_spaces_sweep(p, !is_due);
	if (is_due) {
		p->sweep_ns = now;
		(void)run_trays_return(p);
		run_room_settle(p);
		run_evict_try(p);
		run_door_sweep(p);
		look_around(p, now);
		run_near_look(p, now);
	}
	lock_drop(&p->lock);
}

static void tidy(struct pager *p)
{
	lock_take(&p->lock);
	(void)run_porter_turn(p);
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

static void loop(struct pager *p, pid_t keeper)
{
	struct epoll_event e[WATCH_MAX];

	for (;;) {
		int wait = timeout_ms(p);
		int n = look(p, e, wait);

		for (int i = 0; i < n; i++)
			dispatch(p, e[i].data.ptr);
		if (n > 0)
			p->progress_ns = run_pager_now_ns();
		serve_waiting(p);
		if (n <= 0 && !p->crew.has_porter)
			tidy(p);
		sweep(p);
		if (!p->spaces &&
		    (getppid() != keeper ||
		     atomic_load_explicit(&p->shared->ends_when_idle,
					  memory_order_relaxed)))
			return;
	}
}

/* ---- beginning and end -------------------------------------------------- */

static void size_up(struct pager *p, uint32_t *trays)
{
	uint64_t pages = p->options.local_bytes >> RUN_PAGE_SHIFT;
	uint64_t n = pages / RUN_TRAY_PART / RUN_BATCH_PAGES;

	n = u64_max(RUN_TRAYS_MIN, u64_min(n, RUN_TRAYS_MAX));
	*trays = (uint32_t)n;
	/* Whatever may be over the limit for a moment is within the bytes. */
	p->slack_pages = u64_min(RUN_SLACK_PAGES, pages / RUN_SLACK_PART);
	p->limit_pages = pages - n * RUN_BATCH_PAGES - p->slack_pages;
	p->keep_pages = p->limit_pages / 2;
	overflow_init(&p->overflow, p->limit_pages,
		      p->options.overflow_bytes == UINT64_MAX
			      ? OVERFLOW_NO_LIMIT
			      : p->options.overflow_bytes >> RUN_PAGE_SHIFT);
}

static int open_far(void *arg)
{
	struct pager *p = arg;
	int err = run_far_open(&p->far, &p->options, p->scratch,
			       (size_t)(RUN_PREFETCH_MAX + 1) * RUN_PAGE_BYTES);

	if (err)
		(void)snprintf(p->shared->text, sizeof(p->shared->text), "%s",
			       aq_last_error());
	else
		run_room_say(p);
	return err;
}

static int pager_open(struct pager *p)
{
	uint32_t trays;
	int err;

	size_up(p, &trays);
	p->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (p->epoll < 0)
		return -errno;
	err = run_trays_open(p, trays);
	if (err)
		return err;
	/* Trays are not registered: they come and go with their processes. What
	 * leaves them costs one copy more, outside the pager's lock. */
	err = run_confined(RUN_CAPS_OPEN, open_far, p);
	if (!err)
		err = confine_thread(RUN_CAPS_PAGER);
	if (!err)
		err = run_door_open(p);
	if (!err)
		err = run_mender_start(p);
	return err ? err : run_porter_start(p);
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
		p->cpu = -1;
		p->self = getpid();
		run_crew_init(&p->crew, p->options.threads);
		lock_init(&p->lock);
		(void)sched_getaffinity(0, sizeof(p->cpus), &p->cpus);
		err = pager_open(p);
	}
	/* Pairs with the keeper's acquire: `text` is written. */
	atomic_store_explicit(&shared->ready, err ? err : 1,
			      memory_order_release);
	if (!err)
		loop(p, start->keeper);
	if (p) {
		run_porter_stop(p);
		run_mender_stop(p);
		run_far_close(&p->far);
		run_trays_close(p);
	}
	free(p);
	/* The keeper may have been killed. */
	run_place_remove(start->place);
	return err;
}
