/* SPDX-License-Identifier: Apache-2.0 */
/* System calls without libc, for a thread that libc does not know. */
#ifndef AQ_PRELOAD_RAW_H
#define AQ_PRELOAD_RAW_H

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

#endif
