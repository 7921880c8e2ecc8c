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

/* Process-wide by nature: one handler, and who was there before it. */
static struct sigaction before_segv, before_bus;
static pthread_once_t install_once = PTHREAD_ONCE_INIT;
static int install_error;

static void pass_on(int sig, siginfo_t *info, void *context)
{
	const struct sigaction *before =
		sig == SIGBUS ? &before_bus : &before_segv;

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

static void on_fault(int sig, siginfo_t *info, void *context)
{
	if (info->si_code > 0 &&
	    landing_take((uintptr_t)info->si_addr, context))
		return;
	pass_on(sig, info, context);
}

static void install(void)
{
	struct sigaction sa = {
		.sa_sigaction = on_fault,
		.sa_flags = SA_SIGINFO | SA_ONSTACK,
	};

	sigemptyset(&sa.sa_mask);
	if (sigaction(SIGSEGV, &sa, &before_segv) < 0 ||
	    sigaction(SIGBUS, &sa, &before_bus) < 0)
		install_error = -errno;
}

int fault_guard_install(void)
{
	pthread_once(&install_once, install);
	return install_error;
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
