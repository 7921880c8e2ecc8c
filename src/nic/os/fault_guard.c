/* SPDX-License-Identifier: Apache-2.0 */
/* Guarded access to memory that can be taken away under us. */
#include "fault_guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "base/atomic_op.h"
#include "base/landing.h"
#include "base/live.h"

enum {
	WORD = 8,
	SMALL_BYTES = 256, /* up to here memcpy is not worth its call */
};

enum {
	SIGNALS = 2,
	/* How often a program may take a signal from us until it keeps it. */
	TURNS = 8,
};

/* Process-wide by nature: our handlers, and who was there before each of them,
 * which never changes while the handler can run. Guarded by the mutex. */
static struct guarded {
	int sig;
	unsigned count;
	struct sigaction before[TURNS];
} guarded[SIGNALS] = {{.sig = SIGSEGV}, {.sig = SIGBUS}};
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void pass_on(const struct sigaction *before, int sig, siginfo_t *info,
		    void *context)
{
	if (before->sa_flags & SA_RESETHAND)
		signal(sig, SIG_DFL);
	if (before->sa_flags & SA_SIGINFO) {
		before->sa_sigaction(sig, info, context);
		return;
	}
	if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN) {
		before->sa_handler(sig);
		return;
	}
	if (before->sa_handler == SIG_IGN && info->si_code <= 0)
		return;
	/* The default: the instruction faults again and ends the process with
	 * the core where it belongs; a signal that was sent is sent again. */
	signal(sig, SIG_DFL);
	if (info->si_code <= 0)
		raise(sig);
}

static void on_fault(unsigned turn, int sig, siginfo_t *info, void *context)
{
	if (info->si_code > 0 &&
	    landing_take((uintptr_t)info->si_addr, context))
		return;
	pass_on(&guarded[sig == SIGBUS].before[turn], sig, info, context);
}

/* One for each turn: a handler of the program's that hands on to the one of
 * ours that it has found does not come back to itself. */
#define HANDLER(n)                                                        \
	static void on_fault_##n(int sig, siginfo_t *info, void *context) \
	{                                                                 \
		on_fault(n, sig, info, context);                          \
	}
HANDLER(0)
HANDLER(1)
HANDLER(2)
HANDLER(3)
HANDLER(4)
HANDLER(5)
HANDLER(6)
HANDLER(7)
static void (*const handler[TURNS])(int, siginfo_t *, void *) = {
	on_fault_0, on_fault_1, on_fault_2, on_fault_3,
	on_fault_4, on_fault_5, on_fault_6, on_fault_7,
};

static int guard(struct guarded *g)
{
	struct sigaction now, ours = {.sa_flags = SA_SIGINFO | SA_ONSTACK};

	if (sigaction(g->sig, NULL, &now) < 0)
		return -errno;
	if (g->count == TURNS ||
	    (g->count && now.sa_sigaction == handler[g->count - 1]))
		return 0;
	g->before[g->count] = now;
	ours.sa_sigaction = handler[g->count];
	ours.sa_mask = now.sa_mask;
	ours.sa_flags |= now.sa_flags & SA_NODEFER;
	/* Counted first: a child that was forked in between would take this
	 * handler for the program's, and hand on from it to itself. */
	g->count++;
	if (sigaction(g->sig, &ours, NULL) == 0)
		return 0;
	g->count--;
	return -errno;
}

/* Whether the signals are ours. Not waited for: whoever has the mutex sees to
 * it. */
static void look(void)
{
	if (pthread_mutex_trylock(&mutex) != 0)
		return;
	for (unsigned i = 0; i < SIGNALS; i++)
		(void)!guard(&guarded[i]);
	pthread_mutex_unlock(&mutex);
}

/* A thread that looked while another one forked must not leave the mutex locked
 * in the child. What it guards is whole at any time (guard). */
static void after_fork(void)
{
	pthread_mutex_init(&mutex, NULL);
}

static void watch_forks(void)
{
	(void)!pthread_atfork(NULL, NULL, after_fork);
}

int fault_guard_install(void)
{
	int err = 0;

	pthread_once(&fork_once, watch_forks);
	pthread_mutex_lock(&mutex);
	if (!landing_looks)
		landing_looks = look;
	for (unsigned i = 0; i < SIGNALS && !err; i++)
		err = guard(&guarded[i]);
	pthread_mutex_unlock(&mutex);
	return err;
}

static inline bool aligned(const void *p)
{
	return ((uintptr_t)p & (WORD - 1)) == 0;
}

/* memcpy moves words by vector instructions, which x86 never tears below eight
 * bytes. Of words that are aligned on one side only, they take halves. */
static size_t read_far(void *near, const void *far, uintptr_t len)
{
	if (len > SMALL_BYTES && aligned(near) && aligned(far) &&
	    len % WORD == 0)
		memcpy(near, far, len);
	else
		live_move(near, far, len);
	return 1;
}

static size_t write_far(void *far, const void *near, uintptr_t len)
{
	live_place(far, near, len);
	return 1;
}

static size_t atomic_far(void *far, const void *op, uintptr_t original)
{
	*(uint64_t *)original = atomic_op_execute(op, far);
	return 1;
}

/* Which of the two was it? */
static COLD int landed(const struct fault_range *r)
{
	return landing_hit(r->start, r->len_bytes) ? -EFAULT : -EADDRNOTAVAIL;
}

int fault_guard_read(const struct fault_range *r, const void *far, void *near,
		     size_t len_bytes)
{
	uintptr_t start = (uintptr_t)r->start;
	size_t done;

	landing_other(near, len_bytes);
	done = landing_call(near, far, len_bytes, read_far, start,
			    start + r->len_bytes);
	landing_other(NULL, 0);
	return LIKELY(done) ? 0 : landed(r);
}

int fault_guard_write(const struct fault_range *r, void *far, const void *near,
		      size_t len_bytes)
{
	uintptr_t start = (uintptr_t)r->start;
	size_t done;

	landing_other(near, len_bytes);
	done = landing_call(far, near, len_bytes, write_far, start,
			    start + r->len_bytes);
	landing_other(NULL, 0);
	return LIKELY(done) ? 0 : landed(r);
}

int fault_guard_atomic(const struct fault_range *r, const struct atomic_op *op,
		       void *far, uint64_t *original)
{
	uintptr_t start = (uintptr_t)r->start;

	return LIKELY(landing_call(far, op, (uintptr_t)original, atomic_far,
				   start, start + r->len_bytes))
		       ? 0
		       : -EFAULT;
}
