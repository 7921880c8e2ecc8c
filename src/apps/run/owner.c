/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process whose memory a space is. Its agent shares the memory and would
 * keep it after the process has left it, by its end or by executing another
 * program. The kernel tells of the first (a pidfd). The second shows when the
 * other program attaches, or else, by its stack, when it is looked for. (Not by
 * reading the process's memory: it may be far, and our own faults would wait
 * for us.)
 */
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "broker.h"
#include "owner_priv.h"
#include "pager_priv.h"

/* For the supervisor, who kills it if the pager dies. */
static void publish(struct pager *p, struct space *s)
{
	for (unsigned i = 0; i < RUN_PIDS_MAX; i++) {
		if (atomic_load_explicit(&p->shared->pid[i],
					 memory_order_relaxed))
			continue;
		atomic_store_explicit(&p->shared->pid[i], s->pid,
				      memory_order_relaxed);
		s->pid_place = i;
		return;
	}
}

static void forget_pidfd(struct pager *p, struct space *s)
{
	if (s->pidfd < 0)
		return;
	(void)epoll_ctl(p->epoll, EPOLL_CTL_DEL, s->pidfd, NULL);
	(void)close(s->pidfd);
	s->pidfd = -1;
}

void run_owner_wake(struct run_channel *c)
{
	/* RUN-P2 */
	if (atomic_load_explicit(&c->is_asleep, memory_order_seq_cst))
		(void)syscall(SYS_futex, &c->posted, FUTEX_WAKE, 1, NULL, NULL,
			      0);
}

static void leave(struct pager *p, struct space *s)
{
	struct run_channel *c = s->channel;

	p->left_ns = clock_mono_ns();
	if (s->is_left || !c)
		return;
	s->is_left = true;
	/* RUN-P2 */
	atomic_store_explicit(&c->quits, 1, memory_order_seq_cst);
	run_owner_wake(c);
}

void run_owner_set(struct pager *p, struct space *s, pid_t pid)
{
	/* It has attached before: then that memory is no longer its own. */
	for (struct space *old = p->spaces; old; old = old->next)
		if (old != s && old->pid == pid)
			leave(p, old);
	s->pid = pid;
	s->stack = run_broker_stack(p->broker, pid);
	publish(p, s);
	s->pidfd = run_broker_owner(p->broker, pid);
	if (s->pidfd >= 0 &&
	    run_pager_watch(p, s->pidfd, run_owner_who(s)) == 0)
		return;
	/* It has ended already, or there is no descriptor left: looked for. */
	forget_pidfd(p, s);
}

void run_owner_release(struct pager *p, struct space *s)
{
	forget_pidfd(p, s);
	if (s->pid_place < RUN_PIDS_MAX)
		atomic_store_explicit(&p->shared->pid[s->pid_place], 0,
				      memory_order_relaxed);
	s->pid_place = RUN_PIDS_MAX;
}

void run_owner_ended(struct pager *p, struct space *s)
{
	run_owner_release(p, s);
	leave(p, s);
}

/* What cannot be told is taken for yes: then the end tells. Where an address
 * space has its first stack is random, and stays. */
static bool has_memory(const struct pager *p, const struct space *s)
{
	uint64_t stack = run_broker_stack(p->broker, s->pid);

	return !stack || !s->stack || stack == s->stack;
}

/* The agent was killed, and a batch that it had is lost with it: the process
 * would wait for ever. */
static bool is_bereft(const struct pager *p, const struct space *s)
{
	struct run_channel *c = s->channel;

	return atomic_load_explicit(&c->had_agent, memory_order_relaxed) &&
	       !atomic_load_explicit(&c->agent_tid, memory_order_relaxed) &&
	       has_memory(p, s);
}

static void kill_owner(const struct pager *p, struct space *s)
{
	(void)fprintf(
		stderr,
		"aquifer: run: the agent of process %d was killed; killing "
		"the process\n",
		(int)s->pid);
	run_broker_kill(p->broker, s->pid, SIGKILL);
	s->is_killed = true;
}

void run_owner_give_up(struct pager *p, struct space *s, const char *why)
{
	log_err("run", "process %d is killed: %s", (int)s->pid, why);
	s->is_dead = true;
	if (s->pid)
		run_broker_kill(p->broker, s->pid, SIGKILL);
}

void run_owner_look(struct pager *p, struct space *s, bool is_thorough)
{
	struct run_channel *c = s->channel;

	if (!c || s->is_left || s->is_dead)
		return;
	(void)atomic_fetch_add_explicit(&c->heartbeats, 1,
					memory_order_relaxed);
	if (is_thorough && !has_memory(p, s))
		leave(p, s);
	else if (!s->is_killed && is_bereft(p, s))
		kill_owner(p, s);
}
