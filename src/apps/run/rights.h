/* SPDX-License-Identifier: Apache-2.0 */
/* The rights that each part of `aquifer run` keeps (confine_thread). */
#ifndef AQ_RUN_RIGHTS_H
#define AQ_RUN_RIGHTS_H

#include <linux/capability.h>

#include "base/base.h"

/* Supervisor: signals for a program of another user, also the one that the
 * kernel sends in its name when it dies. */
#define RUN_CAPS_SUPERVISOR (1ull << CAP_KILL)
/* The rights to open rack and NIC. The NIC's threads, which start then, keep
 * them: files may belong to another user, and ports need network rights. */
#define RUN_CAPS_OPEN                                          \
	(1ull << CAP_DAC_READ_SEARCH | 1ull << CAP_NET_ADMIN | \
	 1ull << CAP_NET_RAW | 1ull << 39 /* CAP_BPF */)
/* The thread that serves faults: it sets up userfaultfds with events of fork,
 * and sends SIGBUS where the kernel cannot poison a page. */
#define RUN_CAPS_PAGER (1ull << CAP_KILL | 1ull << CAP_SYS_PTRACE)
#define RUN_CAPS_NONE  0ull

/* Calls `work` in a thread that keeps only `mask`, and returns its result.
 * Threads that it starts inherit the mask, not the caller's rights. */
int run_confined(uint64_t mask, int (*work)(void *), void *arg) MUST_CHECK;

#endif
