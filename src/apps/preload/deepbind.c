/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlopen without RTLD_DEEPBIND. A library that is opened with it finds libc's
 * free before ours, and calls it on what our malloc gave out (PHP opens its
 * extensions so).
 *
 * libc looks at the address that dlopen returns to, to know whose search path
 * counts. So this is no call but a jump, with the caller's address where it
 * was.
 */
#include <dlfcn.h>

#include "preload.h"

/* Found when it is first wanted: others may open libraries before we start. */
__attribute__((used)) static void *(*real_dlopen)(const char *, int);

__attribute__((used)) static void find_dlopen(void)
{
	*(void **)&real_dlopen = dlsym(RTLD_NEXT, "dlopen");
}

_Static_assert(RTLD_DEEPBIND == 8, "the constant below");

/* At the function's start the stack is eight bytes off sixteen; three pushes
 * set it right for the call. */
__asm__(".text\n"
	".globl dlopen\n"
	".type dlopen, @function\n"
	"dlopen:\n"
	"	endbr64\n"
	"	andl $~8, %esi\n"
	"	movq real_dlopen(%rip), %rax\n"
	"	testq %rax, %rax\n"
	"	jnz 1f\n"
	"	pushq %rdi\n"
	"	pushq %rsi\n"
	"	pushq %rsi\n"
	"	call find_dlopen\n"
	"	popq %rsi\n"
	"	popq %rsi\n"
	"	popq %rdi\n"
	"	movq real_dlopen(%rip), %rax\n"
	"1:	jmp *%rax\n"
	".size dlopen, .-dlopen\n");
