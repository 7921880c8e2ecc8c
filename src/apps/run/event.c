/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What userfaultfd tells beside faults: memory that the program gives up,
 * unmaps or moves, and processes that it forks, by whatever call. The program
 * goes on when it has been read, except that pages which are given up go after
 * that.
 *
 * The kernel hands faults out first, but they are served last: who faulted
 * still waits, and may have come after the change. What changes the table waits
 * until no batch is under way, and no batch begins meanwhile; so the agent
 * needs to know nothing of it.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/relax.h"
#include "owner_priv.h"
#include "pager_priv.h"

/* ---- in order ------------------------------------------------------------ */

/* What it has not taken yet, it must not: once the change was read, something
 * else may be mapped there. */
static void tell_agent(struct space *s)
{
	if (s->channel) /* RUN-M1 */
		atomic_store_explicit(&s->channel->is_changing,
				      s->events.count > 0,
				      memory_order_seq_cst);
}

static void keep(struct pager *p, struct space *s, const struct uffd_msg *m)
{
	struct events *e = &s->events;

	if (e->count == e->room) {
		unsigned room = e->room ? 2 * e->room : 16;
		struct uffd_msg *msg = realloc(e->msg, room * sizeof(*msg));

		if (!msg) {
			run_owner_give_up(p, s, "no memory for its events");
			return;
		}
		e->msg = msg;
		e->room = room;
	}
	e->msg[e->count++] = *m;
	p->events++;
	tell_agent(s);
}

/* ---- one by one ---------------------------------------------------------- */

/* The pages of [start, end) that are in the range. */
static uint64_t clip(const struct space *s, uint64_t start, uint64_t end,
		     uint64_t *first)
{
	uint64_t from = u64_max(start, s->start);
	uint64_t to = u64_min(end, s->start + RUN_RANGE_BYTES);

	*first = (from - s->start) >> RUN_PAGE_SHIFT;
	return from < to ? (to - from) >> RUN_PAGE_SHIFT : 0;
}

static void take_fork(struct pager *p, struct space *s, int fd)
{
	int err;

	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	err = run_space_fork(p, s, fd);
	if (err)
		/* Kept open: the child then waits for ever for what is not
		 * there, which is not good, but it sees no zeros. */
		log_err("run", "no memory for the tables of a forked process");
}

static void act(struct pager *p, struct space *s, const struct uffd_msg *m)
{
	uint64_t first, pages;

	if (m->event == UFFD_EVENT_FORK) {
		take_fork(p, s, (int)m->arg.fork.ufd);
		return;
	}
	if (m->event == UFFD_EVENT_REMAP) {
		run_move(p, s, m->arg.remap.from, m->arg.remap.to,
			 m->arg.remap.len);
		return;
	}
	pages = clip(s, m->arg.remove.start, m->arg.remove.end, &first);
	if (m->event == UFFD_EVENT_REMOVE)
		run_space_discard(p, s, first, pages);
	else if (m->event == UFFD_EVENT_UNMAP)
		run_space_forget(p, s, first, pages);
}

/* In order, until one has to wait for a batch, or all of them. */
static void act_on(struct pager *p, struct space *s, bool all)
{
	struct events *e = &s->events;
	unsigned n = 0;

	/* More may be told meanwhile: to the end. */
	while (n < e->count && (all || !run_space_is_leaving(s))) {
		struct uffd_msg m = e->msg[n++];

		act(p, s, &m);
	}
	if (!n)
		return;
	memmove(e->msg, e->msg + n, (e->count - n) * sizeof(e->msg[0]));
	e->count -= n;
	p->events -= n;
	tell_agent(s);
}

bool run_events_settle(struct pager *p, struct space *s)
{
	act_on(p, s, false);
	return s->events.count == 0;
}

/* In a dying process nobody finishes a batch. A child that it forked before
 * must not lose its pages for that: it gets its table now. */
void run_events_end(struct pager *p, struct space *s)
{
	act_on(p, s, true);
	free(s->events.msg);
	s->events = (struct events){0};
}

/* ---- memory that is given up --------------------------------------------- */

/* Of pages that a batch covers, the agent's drop is told like the program's;
 * which was which is known when the batch has ended. */
static void count_removes(struct space *s, uint64_t page, uint64_t end)
{
	run_set_for_each (at, &s->pages.touched, page, end)
		if (s->pages.page[at].removes < 3)
			s->pages.page[at].removes++;
}

static void take_remove(struct pager *p, struct space *s,
			const struct uffd_msg *m)
{
	uint64_t at,
		pages = clip(s, m->arg.remove.start, m->arg.remove.end, &at);
	uint64_t end = at + pages;

	while (at < end) {
		struct uffd_msg part = *m;
		uint64_t to = end;

		if (run_batch_span(s, at, &to)) {
			count_removes(s, at, to);
		} else if (s->events.count) {
			part.arg.remove.start = run_space_addr(s, at);
			part.arg.remove.end = run_space_addr(s, to);
			keep(p, s, &part);
		} else {
			run_space_discard(p, s, at, to - at);
		}
		at = to;
	}
}

/* ---- reading ------------------------------------------------------------- */

static struct fault to_fault(struct space *s, const struct uffd_msg *m)
{
	return (struct fault){
		.space = s,
		.page = (m->arg.pagefault.address - s->start) >> RUN_PAGE_SHIFT,
		.tid = m->arg.pagefault.feat.ptid,
		.is_wp = m->arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WP};
}

static bool is_moving(const struct space *s)
{
	/* RUN-M1, RUN-M2 */
	return atomic_load_explicit(&s->channel->is_moving,
				    memory_order_seq_cst);
}

/* A move takes microseconds, but its agent may wait for a core, or be stopped.
 * After the first time in vain the pager is not kept from other work. */
static bool await_move(struct space *s)
{
	struct timespec nap = {.tv_nsec = RUN_MOVE_NAP_US * 1000};
	uint64_t end = 0;

	if (s->is_slow && is_moving(s))
		(void)nanosleep(&nap, NULL);
	while (is_moving(s)) {
		uint64_t now = clock_mono_ns();

		if (!end)
			end = now + RUN_MOVE_MS * 1000000ull;
		if (s->is_slow || now > end)
			return false;
		relax_briefly();
	}
	return true;
}

/*
 * A thread that changes mappings goes on when the pager has read of it, and may
 * map something else to the same place, from which the agent would then move
 * it. So the agent is kept from moving while the pager reads, and afterwards if
 * there was a change. False: the agent still moves, so nothing may be read; the
 * thread waits, and the descriptor stays readable.
 */
static bool hold_agent(struct space *s)
{
	if (!s->channel)
		return true;
	/* RUN-M1 */
	atomic_store_explicit(&s->channel->is_changing, 1,
			      memory_order_seq_cst);
	s->is_slow = !await_move(s);
	if (s->is_slow)
		tell_agent(s);
	return !s->is_slow;
}

/* The number of faults among what was read; -1: nothing was read. */
static int read_messages(struct pager *p, struct space *s,
			 struct fault w[RUN_EVENTS])
{
	struct uffd_msg m[RUN_EVENTS];
	int faults = 0;
	ssize_t n;

	if (p->waiting_count + RUN_EVENTS > RUN_WAITING_MAX)
		return -1;
	if (!hold_agent(s))
		return -1;
	n = read(s->uffd, m, sizeof(m));
	if (n <= 0)
		n = 0;
	for (ssize_t i = 0; i < n / (ssize_t)sizeof(m[0]); i++) {
		if (m[i].event == UFFD_EVENT_PAGEFAULT)
			w[faults++] = to_fault(s, &m[i]);
		else if (m[i].event == UFFD_EVENT_REMOVE)
			take_remove(p, s, &m[i]);
		else
			keep(p, s, &m[i]);
	}
	tell_agent(s);
	return n ? faults : -1;
}

int run_events_read(struct pager *p, struct space *s,
		    struct fault w[RUN_EVENTS])
{
	int n = read_messages(p, s, w);

	if (n >= 0)
		(void)run_events_settle(p, s);
	return n;
}

void run_events_note(struct pager *p, struct space *s)
{
	struct fault w[RUN_EVENTS];
	int n = read_messages(p, s, w);

	for (int i = 0; i < n; i++) {
		if (run_fault_is_agents(&w[i]))
			run_fault_serve(p, &w[i]);
		else
			run_fault_later(p, &w[i]);
	}
}

void run_events_meanwhile(struct pager *p)
{
	for (struct space *s = p->spaces; s; s = s->next)
		if (run_space_is_leaving(s))
			run_events_note(p, s);
}
