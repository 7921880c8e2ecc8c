/* SPDX-License-Identifier: Apache-2.0 */
/* Giving up rights that a part of `aquifer run` does not need. */
#ifndef AQ_RUN_CONFINE_H
#define AQ_RUN_CONFINE_H

#include <linux/capability.h>

#include "base.h"

/* Keeper: signals for a program of another user, also the one that the kernel
 * sends in its name when it dies. */
#define RUN_CAPS_KEEPER (1ull << CAP_KILL)
/* Pager, while it opens rack and NIC: their files may be another user's, and
 * ports need rights of the network. Threads of the NIC start here and keep
 * them: a thread cannot take rights from another. */
#define RUN_CAPS_START                                    \
	(1ull << CAP_KILL | 1ull << CAP_DAC_READ_SEARCH | \
	 1ull << CAP_NET_ADMIN | 1ull << CAP_NET_RAW | 1ull << 39 /* BPF */)
/* Its own threads, once all is open: SIGBUS where the kernel cannot poison a
 * page. Serving another process's userfaultfd needs none. */
#define RUN_CAPS_PAGER (1ull << CAP_KILL)

/* The calling thread and those that it starts keep no capability outside the
 * mask, and gain none by executing a program. */
int run_confine(uint64_t mask) MUST_CHECK;

#endif
