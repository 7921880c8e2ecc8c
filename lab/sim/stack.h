/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second stack and the switch to it and back, told to the sanitizers. On
 * x86-64 a switch is some twenty instructions of our own, because swapcontext
 * makes two system calls each time; elsewhere ucontext does it.
 */
#ifndef AQ_SIM_STACK_H
#define AQ_SIM_STACK_H

#include "base/base.h"

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

typedef void (*stack_fn)(void *arg);

struct stack {
	uint8_t *map; /* the guard page is the lowest */
	size_t map_bytes;
	stack_fn fn;
	void *arg;
#if defined(__x86_64__)
	void *sp;	  /* of this stack, while it is not running */
	void *outside_sp; /* of the stack that entered */
#else
	ucontext_t ctx;
	ucontext_t outside_ctx;
#endif
	void *fake; /* ASan's fake stacks */
	void *outside_fake;
	const void *outside_bottom;
	size_t outside_bytes;
	void *tsan;
	void *outside_tsan;
};

/* fn runs at the first stack_enter; it ends with stack_exit, not by return. */
int stack_init(struct stack *s, size_t len_bytes, stack_fn fn,
	       void *arg) MUST_CHECK;
void stack_release(struct stack *s);

/* Runs on `s` until it leaves or exits. */
void stack_enter(struct stack *s);
/* Goes back to the stack that entered; returns at the next stack_enter. */
void stack_leave(struct stack *s);
/* Goes back for the last time. */
void stack_exit(struct stack *s) __attribute__((noreturn));

#endif
