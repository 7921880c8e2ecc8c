/* SPDX-License-Identifier: Apache-2.0 */
/* Who may attach to a pager, as far as the kernel tells about him. */
#ifndef AQ_RUN_PEER_H
#define AQ_RUN_PEER_H

#include <sys/types.h>

#include "base/base.h"

/* Whether `pid` is the child of a child ... of `ancestor`. */
bool run_peer_is_below(pid_t pid, pid_t ancestor);

/*
 * The program's user and root may: they could read the program's memory anyway.
 * Anybody else only as a descendant of the supervisor, which adopts orphans:
 * the program has become, or has started, another user's.
 */
bool run_peer_is_allowed(uid_t uid, pid_t pid, uid_t user, pid_t supervisor);

/* Where the process's first thread has its stack, which is another place for
 * every program that it executes; 0: that is not told. */
uint64_t run_peer_stack(pid_t pid);

#endif
