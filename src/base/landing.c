/* SPDX-License-Identifier: Apache-2.0 */
/* The landing of each thread, and what a thread must not block to reach it. */
#include "landing.h"

#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
#endif

enum {
	/* A program may block its signals, or handle them itself, at any time;
	 * asking costs 0.1 us each. */
	LOOK_EVERY = 4096,
};

__thread struct landing landing;
void (*landing_looks)(void);

/* Called by landing_call now and then. */
void landing_look(void) __attribute__((visibility("hidden")));
void landing_look(void)
{
	sigset_t faults;

	/* Programs block everything in threads that are to get no signals. Of
	 * these two that only means that a fault ends them without a word. */
	sigemptyset(&faults);
	sigaddset(&faults, SIGSEGV);
	sigaddset(&faults, SIGBUS);
	pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
	if (landing_looks)
		landing_looks();
	landing.trust = LOOK_EVERY;
}

#if defined(__x86_64__)
/* As the code below has them. */
STATIC_ASSERT(offsetof(struct landing, end) == 8 &&
		      offsetof(struct landing, sp) == 16 &&
		      offsetof(struct landing, trust) == 24,
	      "offsets");

/* Pushes what the ABI says a callee keeps: the work that faults may have
 * changed all of it. landing_back is where landing_take sends the thread. */
void landing_back(void) __attribute__((visibility("hidden")));
__asm__(".text\n"
	".p2align 4\n"
	".globl landing_call\n"
	".hidden landing_call\n"
	".type landing_call, @function\n"
	"landing_call:\n"
	"	.cfi_startproc\n"
	"	pushq %rbp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset rbp, -16\n"
	"	pushq %rbx\n"
	"	pushq %r12\n"
	"	pushq %r13\n"
	"	pushq %r14\n"
	"	pushq %r15\n"
	"	subq $8, %rsp\n"
	"	.cfi_def_cfa_offset 64\n"
	"	.cfi_offset rbx, -24\n"
	"	.cfi_offset r12, -32\n"
	"	.cfi_offset r13, -40\n"
	"	.cfi_offset r14, -48\n"
	"	.cfi_offset r15, -56\n"
	"	movq landing@gottpoff(%rip), %rax\n"
	"	movq %rsp, %fs:16(%rax)\n"
	"	movq %r8, %fs:(%rax)\n"
	"	movq %r9, %fs:8(%rax)\n"
	"	decq %fs:24(%rax)\n"
	"	js 2f\n"
	"	call *%rcx\n"
	"1:	movq landing@gottpoff(%rip), %rcx\n"
	"	movq $0, %fs:8(%rcx)\n"
	"	addq $8, %rsp\n"
	"	.cfi_remember_state\n"
	"	.cfi_def_cfa_offset 56\n"
	"	popq %r15\n"
	"	popq %r14\n"
	"	popq %r13\n"
	"	popq %r12\n"
	"	popq %rbx\n"
	"	popq %rbp\n"
	"	.cfi_def_cfa_offset 8\n"
	"	ret\n"
	"	.cfi_restore_state\n"
	"2:	movq %rdi, %rbx\n"
	"	movq %rsi, %rbp\n"
	"	movq %rdx, %r12\n"
	"	movq %rcx, %r13\n"
	"	call landing_look\n"
	"	movq %rbx, %rdi\n"
	"	movq %rbp, %rsi\n"
	"	movq %r12, %rdx\n"
	"	call *%r13\n"
	"	jmp 1b\n"
	".globl landing_back\n"
	".hidden landing_back\n"
	"landing_back:\n"
	"	xorl %eax, %eax\n"
	"	jmp 1b\n"
	"	.cfi_endproc\n"
	".size landing_call, .-landing_call\n"
	".previous\n");
#else
__attribute__((noinline)) size_t landing_call(void *a, const void *b,
					      uintptr_t c, landing_work *work,
					      uintptr_t start, uintptr_t end)
{
	size_t done;

	if (__builtin_setjmp(landing.back))
		return 0;
	if (--landing.trust < 0)
		landing_look();
	atomic_store_explicit(&landing.start, start, memory_order_relaxed);
	atomic_store_explicit(&landing.end, end, memory_order_relaxed);
	/* LAND-1, against the compiler only: the handler runs in this thread
	 * and must not find an old range while the work is under way. */
	atomic_signal_fence(memory_order_seq_cst);
	done = work(a, b, c);
	/* LAND-1: nor none while it still is. */
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&landing.end, 0, memory_order_relaxed);
	return done;
}
#endif

static bool is_ours(uintptr_t at)
{
	uintptr_t end =
		atomic_load_explicit(&landing.end, memory_order_relaxed);

	if (end == 0)
		return false;
	if (at < end &&
	    at >= atomic_load_explicit(&landing.start, memory_order_relaxed))
		return true;
	return at < atomic_load_explicit(&landing.other_end,
					 memory_order_relaxed) &&
	       at >= atomic_load_explicit(&landing.other_start,
					  memory_order_relaxed);
}

bool landing_take(uintptr_t at, void *context)
{
	ucontext_t *uc = context;

	if (!is_ours(at))
		return false;
	landing.at = at;
#ifdef WITH_ASAN
	/* What the work had on the stack is no more. */
	__asan_handle_no_return();
#endif
#if defined(__x86_64__)
	uc->uc_mcontext.gregs[REG_RSP] = (greg_t)landing.sp;
	uc->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)landing_back;
	/* rep movs may have been going backwards. */
	uc->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)0x400;
	return true;
#else
	atomic_store_explicit(&landing.end, 0, memory_order_relaxed);
	/* The jump restores no mask: put back what was interrupted. */
	pthread_sigmask(SIG_SETMASK, &uc->uc_sigmask, NULL);
	__builtin_longjmp(landing.back, 1);
#endif
}
