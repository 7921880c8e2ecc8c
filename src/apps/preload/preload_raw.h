/* SPDX-License-Identifier: Apache-2.0 */
/* System calls without libc, for a process that libc does not know. */
#ifndef AQ_PRELOAD_RAW_H
#define AQ_PRELOAD_RAW_H

#include <sys/syscall.h>

/* What the kernel returns: -errno, not -1. */
static inline long raw6(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ __volatile__("syscall"
			     : "=a"(ret)
			     : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10),
			       "r"(r8), "r"(r9)
			     : "rcx", "r11", "memory");
	return ret;
}

/* The same with as few arguments as the call has, of any type. */
#define raw(...) RAW_SEVEN(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#define RAW_SEVEN(n, a, b, c, d, e, f, ...)                                    \
	raw6((long)(n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), \
	     (long)(f))

/* clone returns twice; in the child on the new stack, where no stack frame of
 * ours is, so the child's path must be here. `ctid` is where the kernel writes
 * the child's number with CLONE_CHILD_SETTID. */
static inline long raw_clone(unsigned long flags, void *stack_top, void *ctid,
			     void *tls, void (*main)(void *), void *arg)
{
	register void *r8 __asm__("r8") = tls;
	register void *r10 __asm__("r10") = ctid;
	register void (*r12)(void *) __asm__("r12") = main;
	register void *r13 __asm__("r13") = arg;
	long ret;

	__asm__ __volatile__("syscall\n\t"
			     "test %%rax, %%rax\n\t"
			     "jnz 1f\n\t"
			     "xor %%ebp, %%ebp\n\t"
			     "mov %%r13, %%rdi\n\t"
			     "call *%%r12\n\t"
			     "hlt\n"
			     "1:"
			     : "=a"(ret)
			     : "a"(SYS_clone), "D"(flags), "S"(stack_top),
			       "d"(0), "r"(r10), "r"(r8), "r"(r12), "r"(r13)
			     : "rcx", "r11", "memory");
	return ret;
}

#endif
