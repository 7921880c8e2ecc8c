/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of fibers: mapping, switching, and what the sanitizers must hear. */
#include "stack.h"

#include <errno.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define WITH_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WITH_TSAN 1
#endif
#endif

#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef WITH_TSAN
#include <sanitizer/tsan_interface.h>
#endif

enum {
	GUARD_BYTES = 4096,
};

#if defined(__x86_64__)
/*
 * stack_swap(&save, load): pushes what the ABI says a callee keeps, stores the
 * stack pointer in *save, takes the one in load and pops from there.
 */
void stack_swap(void **save, void *load) __attribute__((visibility("hidden")));
void stack_start(void) __attribute__((visibility("hidden")));
__asm__(".text\n"
	".p2align 4\n"
	".globl stack_swap\n"
	".hidden stack_swap\n"
	".type stack_swap, @function\n"
	"stack_swap:\n"
	"	pushq %rbp\n"
	"	pushq %rbx\n"
	"	pushq %r12\n"
	"	pushq %r13\n"
	"	pushq %r14\n"
	"	pushq %r15\n"
	"	subq $8, %rsp\n"
	"	stmxcsr (%rsp)\n"
	"	fnstcw 4(%rsp)\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	ldmxcsr (%rsp)\n"
	"	fldcw 4(%rsp)\n"
	"	addq $8, %rsp\n"
	"	popq %r15\n"
	"	popq %r14\n"
	"	popq %r13\n"
	"	popq %r12\n"
	"	popq %rbx\n"
	"	popq %rbp\n"
	"	ret\n"
	".size stack_swap, . - stack_swap\n"
	/* The first return of a new stack comes here; rbx holds its stack. */
	".p2align 4\n"
	".globl stack_start\n"
	".hidden stack_start\n"
	".type stack_start, @function\n"
	"stack_start:\n"
	"	movq %rbx, %rdi\n"
	"	xorl %ebp, %ebp\n"
	"	call stack_main\n"
	"	ud2\n"
	".size stack_start, . - stack_start\n");
#endif

void stack_main(struct stack *s) __attribute__((visibility("hidden"), used));

/* Each switch is announced on the side it leaves and confirmed on the other. */
static void announce_enter(struct stack *s)
{
#ifdef WITH_ASAN
	__sanitizer_start_switch_fiber(&s->outside_fake, s->map + GUARD_BYTES,
				       s->map_bytes - GUARD_BYTES);
#endif
#ifdef WITH_TSAN
	s->outside_tsan = __tsan_get_current_fiber();
	__tsan_switch_to_fiber(s->tsan, 0);
#endif
	(void)s; /* used by the sanitizers only */
}

static void confirm_enter(struct stack *s)
{
#ifdef WITH_ASAN
	__sanitizer_finish_switch_fiber(s->fake, &s->outside_bottom,
					&s->outside_bytes);
#endif
	(void)s; /* used by the sanitizers only */
}

static void announce_leave(struct stack *s, bool last)
{
#ifdef WITH_ASAN
	__sanitizer_start_switch_fiber(last ? NULL : &s->fake,
				       s->outside_bottom, s->outside_bytes);
#endif
#ifdef WITH_TSAN
	__tsan_switch_to_fiber(s->outside_tsan, 0);
#endif
	(void)s; /* used by the sanitizers only */
	(void)last;
}

static void confirm_leave(struct stack *s)
{
#ifdef WITH_ASAN
	__sanitizer_finish_switch_fiber(s->outside_fake, NULL, NULL);
#endif
	(void)s; /* used by the sanitizers only */
}

void stack_main(struct stack *s)
{
	confirm_enter(s);
	s->fn(s->arg);
	ASSERT(false); /* it ends with stack_exit */
}

#if defined(__x86_64__)
static void prepare(struct stack *s)
{
	uint64_t *top = (uint64_t *)(s->map + s->map_bytes);

	/* As stack_swap leaves a stack: control words, six registers, return
	 * address. What is above the return address is 16-byte aligned, as the
	 * ABI wants it before the call in stack_start. */
	top -= 2;
	*top = 0;
	*--top = (uint64_t)(uintptr_t)stack_start;
	*--top = 0;			 /* rbp */
	*--top = (uint64_t)(uintptr_t)s; /* rbx */
	*--top = 0;			 /* r12 */
	*--top = 0;
	*--top = 0;
	*--top = 0;			   /* r15 */
	*--top = 0x037full << 32 | 0x1f80; /* x87 and SSE defaults */
	s->sp = top;
}

static void switch_in(struct stack *s)
{
	stack_swap(&s->outside_sp, s->sp);
}

static void switch_out(struct stack *s)
{
	stack_swap(&s->sp, s->outside_sp);
}
#else
static void context_main(unsigned hi, unsigned lo)
{
	stack_main((struct stack *)(uintptr_t)((uint64_t)hi << 32 | lo));
}

static void prepare(struct stack *s)
{
	uint64_t p = (uint64_t)(uintptr_t)s;

	getcontext(&s->ctx);
	s->ctx.uc_stack.ss_sp = s->map + GUARD_BYTES;
	s->ctx.uc_stack.ss_size = s->map_bytes - GUARD_BYTES;
	s->ctx.uc_link = NULL;
	makecontext(&s->ctx, (void (*)(void))context_main, 2,
		    (unsigned)(p >> 32), (unsigned)p);
}

static void switch_in(struct stack *s)
{
	swapcontext(&s->outside_ctx, &s->ctx);
}

static void switch_out(struct stack *s)
{
	swapcontext(&s->ctx, &s->outside_ctx);
}
#endif

int stack_init(struct stack *s, size_t len_bytes, stack_fn fn, void *arg)
{
	void *map = mmap(NULL, len_bytes + GUARD_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

	if (map == MAP_FAILED)
		return -ENOMEM;
	if (mprotect(map, GUARD_BYTES, PROT_NONE)) {
		int err = -errno;

		munmap(map, len_bytes + GUARD_BYTES);
		return err;
	}
	*s = (struct stack){.map = map,
			    .map_bytes = len_bytes + GUARD_BYTES,
			    .fn = fn,
			    .arg = arg};
	prepare(s);
#ifdef WITH_TSAN
	s->tsan = __tsan_create_fiber(0);
#endif
	return 0;
}

void stack_release(struct stack *s)
{
#ifdef WITH_TSAN
	__tsan_destroy_fiber(s->tsan);
#endif
#ifdef WITH_ASAN
	/* Whoever gets these pages next must not meet our red zones. */
	__asan_unpoison_memory_region(s->map, s->map_bytes);
#endif
	munmap(s->map, s->map_bytes);
}

void stack_enter(struct stack *s)
{
	announce_enter(s);
	switch_in(s);
	confirm_leave(s);
}

void stack_leave(struct stack *s)
{
	announce_leave(s, false);
	switch_out(s);
	confirm_enter(s);
}

void stack_exit(struct stack *s)
{
	announce_leave(s, true);
	switch_out(s);
	ASSERT(false); /* nobody enters it again */
	__builtin_unreachable();
}
