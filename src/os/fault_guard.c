/* SPDX-License-Identifier: Apache-2.0 */
/* Guarded access to memory that can be truncated under us. */
#include "fault_guard.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <ucontext.h>

#include "atomic_op.h"

enum {
	WORD = 8,
	SMALL_BYTES = 256, /* word by word; above, memcpy does the bulk */
	TAIL_BYTES = 64,   /* of a large write, stored in order at the end */
};

/* The guarded range of this thread; empty while it guards nothing. */
struct guard {
	sigjmp_buf back;
	_Atomic uintptr_t start;
	_Atomic uintptr_t end;
};

/*
 * Process-wide by nature: one handler, one predecessor. The thread's guard has
 * the initial-exec model, so that the handler reaches it without a call that
 * may allocate.
 */
static __thread struct guard guard __attribute__((tls_model("initial-exec")));
static struct sigaction previous;
static pthread_once_t install_once = PTHREAD_ONCE_INIT;
static int install_error;

static void pass_on(int sig, siginfo_t *info, void *context)
{
	if (previous.sa_flags & SA_SIGINFO) {
		previous.sa_sigaction(sig, info, context);
		return;
	}
	if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
		previous.sa_handler(sig);
		return;
	}
	if (previous.sa_handler == SIG_IGN && info->si_code <= 0)
		return;
	/* The default: the instruction faults again and ends the process with
	 * the core where it belongs; a signal that was sent is sent again. */
	signal(sig, SIG_DFL);
	if (info->si_code <= 0)
		raise(sig);
}

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)info->si_addr;

	if (info->si_code > 0 &&
	    at >= atomic_load_explicit(&guard.start, memory_order_relaxed) &&
	    at < atomic_load_explicit(&guard.end, memory_order_relaxed)) {
		const ucontext_t *uc = context;

		atomic_store_explicit(&guard.end, 0, memory_order_relaxed);
		/* The jump restores no mask, so that setting it up costs no
		 * system call: put back here what was interrupted. */
		pthread_sigmask(SIG_SETMASK, &uc->uc_sigmask, NULL);
		siglongjmp(guard.back, 1);
	}
	pass_on(sig, info, context);
}

static void install(void)
{
	struct sigaction sa = {
		.sa_sigaction = on_sigbus,
		.sa_flags = SA_SIGINFO | SA_ONSTACK,
	};

	sigemptyset(&sa.sa_mask);
	if (sigaction(SIGBUS, &sa, &previous) < 0)
		install_error = -errno;
}

int fault_guard_install(void)
{
	pthread_once(&install_once, install);
	return install_error;
}

static inline void guard_enter(const struct fault_range *r)
{
	uintptr_t start = (uintptr_t)r->start;

	atomic_store_explicit(&guard.start, start, memory_order_relaxed);
	atomic_store_explicit(&guard.end, start + r->len_bytes,
			      memory_order_relaxed);
	/* Against the compiler only: the handler runs in this thread. */
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void guard_leave(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&guard.end, 0, memory_order_relaxed);
}

static inline bool aligned(const void *p)
{
	return ((uintptr_t)p & (WORD - 1)) == 0;
}

/* far -> near, in ascending order. */
static inline void read_words(uint8_t *near, const uint8_t *far, size_t len)
{
	while (len && !aligned(far)) {
		*near++ = *far++;
		len--;
	}
	for (; len >= WORD; len -= WORD, far += WORD, near += WORD) {
		uint64_t w = atomic_load_explicit(
			(const _Atomic uint64_t *)(const void *)far,
			memory_order_relaxed);

		memcpy(near, &w, sizeof(w));
	}
	while (len--)
		*near++ = *far++;
}

static inline void write_byte(uint8_t *far, uint8_t b)
{
	atomic_store_explicit((_Atomic uint8_t *)far, b, memory_order_release);
}

/* near -> far, in ascending order; each store is released after those before
 * it, which costs nothing on x86. */
static inline void write_words(uint8_t *far, const uint8_t *near, size_t len)
{
	while (len && !aligned(far)) {
		write_byte(far++, *near++);
		len--;
	}
	for (; len >= WORD; len -= WORD, far += WORD, near += WORD) {
		uint64_t w;

		memcpy(&w, near, sizeof(w));
		atomic_store_explicit((_Atomic uint64_t *)(void *)far, w,
				      memory_order_release);
	}
	while (len--)
		write_byte(far++, *near++);
}

/* Out of line, so that nothing that changes lives across sigsetjmp. memcpy
 * moves aligned words by vector instructions, which x86 never tears below eight
 * bytes. */
static __attribute__((noinline)) void read_far(uint8_t *near,
					       const uint8_t *far, size_t len)
{
	if (len <= SMALL_BYTES)
		read_words(near, far, len);
	else
		memcpy(near, far, len);
}

static __attribute__((noinline)) void write_far(uint8_t *far,
						const uint8_t *near, size_t len)
{
	size_t bulk = len > SMALL_BYTES ? len - TAIL_BYTES : 0;

	if (bulk)
		memcpy(far, near, bulk);
	write_words(far + bulk, near + bulk, len - bulk);
}

int fault_guard_read(const struct fault_range *r, const void *far, void *near,
		     size_t len_bytes)
{
	if (sigsetjmp(guard.back, 0))
		return -EFAULT;
	guard_enter(r);
	read_far(near, far, len_bytes);
	guard_leave();
	return 0;
}

int fault_guard_write(const struct fault_range *r, void *far, const void *near,
		      size_t len_bytes)
{
	if (sigsetjmp(guard.back, 0))
		return -EFAULT;
	guard_enter(r);
	write_far(far, near, len_bytes);
	guard_leave();
	return 0;
}

int fault_guard_atomic(const struct fault_range *r, const struct atomic_op *op,
		       void *far, uint64_t *original)
{
	uint64_t old;

	if (sigsetjmp(guard.back, 0))
		return -EFAULT;
	guard_enter(r);
	old = atomic_op_execute(op, far);
	guard_leave();
	*original = old;
	return 0;
}
