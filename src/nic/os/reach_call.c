/* SPDX-License-Identifier: Apache-2.0 */
/* The restartable sequence of reach_call.h, for x86-64 and a libc that has
 * registered its threads (glibc 2.35); elsewhere there is none. */
#include "reach_call.h"

#include <errno.h>
#include <sys/uio.h>

#if defined(__x86_64__) && defined(__has_include)
#if __has_include(<sys/rseq.h>)
#define HAS_RSEQ 1
#endif
#endif

#ifdef HAS_RSEQ

#include <sys/rseq.h>

STATIC_ASSERT(offsetof(struct reach_gate, value) == 16, "layout for the code");
STATIC_ASSERT(RSEQ_SIG == 0x53053053, "what stands before the way out");

static struct rseq *area(void)
{
	return (struct rseq *)((uintptr_t)__builtin_thread_pointer() +
			       (uintptr_t)__rseq_offset);
}

bool reach_call_is_able(void)
{
	return __rseq_size != 0 && (int)area()->cpu_id >= 0;
}

long reach_call(const struct reach_gate *gate, long number, long pid,
		const struct iovec *near, unsigned near_count,
		const struct iovec *far, unsigned far_count)
{
	register const struct iovec *r10 __asm__("r10") = far;
	register unsigned long r8 __asm__("r8") = far_count;
	register unsigned long r9 __asm__("r9") = 0;
	long result;

	/*
	 * 1 to 2 is the sequence: its last instruction is the call, so a thread
	 * inside the call is behind it. REACH-1, with reach_revoke: these loads
	 * are the second half of the user's side.
	 */
	__asm__ volatile(".pushsection __rseq_cs, \"aw\"\n\t"
			 ".balign 32\n"
			 "3:\n\t"
			 ".long 0, 0\n\t"
			 ".quad 1f, 2f - 1f, 4f\n\t"
			 ".popsection\n\t"
			 "leaq 3b(%%rip), %%rcx\n\t"
			 "movq %%rcx, %[cs]\n"
			 "1:\n\t"
			 "movq 0(%[gate]), %%rcx\n\t"
			 "movl (%%rcx), %%ecx\n\t"
			 "cmpl %%ecx, 16(%[gate])\n\t"
			 "jne 5f\n\t"
			 "movq 8(%[gate]), %%rcx\n\t"
			 "movl (%%rcx), %%ecx\n\t"
			 "cmpl %%ecx, 20(%[gate])\n\t"
			 "jne 5f\n\t"
			 "syscall\n"
			 "2:\n\t"
			 "jmp 6f\n\t"
			 ".pushsection __rseq_failure, \"ax\"\n\t"
			 ".byte 0x0f, 0xb9, 0x3d\n\t"
			 ".long 0x53053053\n"
			 "4:\n\t"
			 "jmp 5f\n\t"
			 ".popsection\n"
			 "5:\n\t"
			 "movq %[again], %%rax\n"
			 "6:\n\t"
			 "movq $0, %[cs]\n\t"
			 : "=a"(result), [cs] "+m"(area()->rseq_cs)
			 : "a"(number), "D"(pid), "S"(near),
			   "d"((unsigned long)near_count), "r"(r10), "r"(r8),
			   "r"(r9), [gate] "r"(gate), [again] "i"(-EAGAIN)
			 : "rcx", "r11", "memory", "cc");
	return result;
}

#else

bool reach_call_is_able(void)
{
	return false;
}

long reach_call(const struct reach_gate *gate, long number, long pid,
		const struct iovec *near, unsigned near_count,
		const struct iovec *far, unsigned far_count)
{
	return -EAGAIN;
}

#endif
