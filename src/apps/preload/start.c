/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning of a process: attach, hand the range to the allocator, and be
 * there at every fork. */
#include <errno.h>
#include <mimalloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload.h"

struct preload preload;

enum {
	/* Freed memory is given back after this long: each time costs a word
	 * to the pager. */
	DECOMMIT_DELAY_MS = 200,
	CANNOT_RUN = 126, /* as of shells */
};

static void complain(const char *what, int err)
{
	const char *why = strerrorname_np(-err);
	char line[320];
	int n = snprintf(line, sizeof(line), "aquifer run: %s: %s\n", what,
			 why ? why : "?");

	(void)!write(STDERR_FILENO, line,
		     n < (int)sizeof(line) ? (size_t)n : sizeof(line) - 1);
}

/* No limit that is not kept (--strict). */
static void end_if_strict(int err)
{
	if (!preload.is_strict)
		return;
	complain(err == -EPERM || err == -EACCES
			 ? "--strict: far memory needs root or CAP_SYS_PTRACE "
			   "for 'aquifer run' and, for another user's "
			   "program, /dev/userfaultfd; this process ends"
			 : "--strict: this process ends",
		 err);
	_exit(CANNOT_RUN);
}

/* Nobody may be in a call while the process is copied. */
static void fork_prepare(void)
{
	if (!preload_is_far())
		return;
	preload_spin_lock(&preload.maps_lock);
	preload_spin_lock(&preload.is_busy);
}

static void fork_parent(void)
{
	if (!preload_is_far())
		return;
	preload_spin_unlock(&preload.is_busy);
	preload_spin_unlock(&preload.maps_lock);
}

static void fork_child(void)
{
	int saved = errno;
	int err;

	if (!preload_is_far())
		return;
	fork_parent();
	/* Locks are not inherited. */
	atomic_store_explicit(&preload.locks_future, 0, memory_order_relaxed);
	/* Without an agent the pager still serves it, but cannot take pages
	 * away: correct, only not within its bounds. */
	err = preload_attach_forked();
	if (err) {
		complain("a forked process keeps its memory local", err);
		end_if_strict(err);
	} else {
		preload_robust_keep();
	}
	errno = saved;
}

static void give_heap(void)
{
	mi_option_set(mi_option_limit_os_alloc, 1);
	mi_option_set(mi_option_eager_commit, 1);
	mi_option_set(mi_option_decommit_delay, DECOMMIT_DELAY_MS);
	if (!mi_manage_os_memory(preload.range + RUN_HEAP_OFFSET,
				 RUN_HEAP_BYTES, true, false, true, -1)) {
		mi_option_set(mi_option_limit_os_alloc, 0);
		complain("the allocator refuses far memory", -ENOMEM);
	}
}

static void start_once(void)
{
	const char *env = getenv(RUN_ENV);
	int err = env ? preload_attach(env) : -ENOENT;

	if (err) {
		if (env) {
			complain("this process has local memory only", err);
			end_if_strict(err);
		}
		/* RUN-S1 */
		atomic_store_explicit(&preload.state, PRELOAD_LOCAL,
				      memory_order_release);
		return;
	}
	give_heap();
	/* RUN-S1: no thread that sees it finds the range without its heap. */
	atomic_store_explicit(&preload.state, PRELOAD_FAR,
			      memory_order_release);
}

void preload_start(void)
{
	int expected = PRELOAD_NEW;

	/* RUN-S1 */
	if (atomic_compare_exchange_strong_explicit(
		    &preload.state, &expected, PRELOAD_STARTING,
		    memory_order_acquire, memory_order_acquire)) {
		start_once();
		return;
	}
	/* RUN-S1. Who starts allocates nothing: it is another thread. */
	while (atomic_load_explicit(&preload.state, memory_order_acquire) ==
	       PRELOAD_STARTING)
		(void)sched_yield();
}

__attribute__((constructor)) static void constructor(void)
{
	preload_start();
	preload_direct_start();
	/* Handlers, not a fork of our own: libc's daemon() and forkpty() call
	 * them too. */
	(void)pthread_atfork(fork_prepare, fork_parent, fork_child);
}
