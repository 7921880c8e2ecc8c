/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A system call that is made only if two words have their values, without a
 * moment between the look and the call in which the thread could be stopped:
 * a restartable sequence (rseq(2)) that ends with the call. A thread that is
 * preempted, stopped or sent a signal between them does not make the call.
 */
#ifndef AQ_REACH_CALL_H
#define AQ_REACH_CALL_H

#include "base/base.h"

struct iovec;

/* The layout is known to the code in reach_call.c. */
struct reach_gate {
	const void *word[2]; /* 32 bits each */
	uint32_t value[2];
};

/* Whether this thread can. */
bool reach_call_is_able(void);

/* process_vm_readv or process_vm_writev: bytes, or -errno. -EAGAIN: a word had
 * another value, or the thread was disturbed; nothing was done. */
long reach_call(const struct reach_gate *gate, long number, long pid,
		const struct iovec *near, unsigned near_count,
		const struct iovec *far, unsigned far_count);

#endif
