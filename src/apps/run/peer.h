/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes may attach to a pager, by what the kernel tells of them. */
#ifndef AQ_RUN_PEER_H
#define AQ_RUN_PEER_H

#include <sys/types.h>

#include "base/base.h"

/* Whether `pid` is the child of a child ... of `ancestor`. */
bool run_peer_is_below(pid_t pid, pid_t ancestor);

/*
 * The program's user and root may, because they could read the program's memory
 * anyway. Another user's process may only as a descendant of the supervisor,
 * which adopts orphans: the program has become, or has started, that user's
 * process.
 */
bool run_peer_is_allowed(uid_t uid, pid_t pid, uid_t user, pid_t supervisor);

/* The address of the stack of the process's first thread, which differs for
 * every program that it executes; 0: not known. */
uint64_t run_peer_stack(pid_t pid);

#endif
