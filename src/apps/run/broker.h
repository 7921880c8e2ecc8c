/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The privileged part of the pager: a process of its own, without NIC, network
 * and threads, which does what the confined pager may not. It enables
 * userfaultfds with events of fork, looks at processes of the run, and kills
 * them. It asks itself whose a process is, and answers with numbers and
 * descriptors; what it is asked are messages of one size.
 *
 * Each call waits for the answer. The caller has the pager's lock, or is alone.
 * -EPIPE: the broker has ended.
 */
#ifndef AQ_RUN_BROKER_H
#define AQ_RUN_BROKER_H

#include <sys/types.h>

#include "base/base.h"
#include "exe.h"

struct run_start;

/* Starts it, before the pager gives anything up; *sock is our end. It ends with
 * the process that calls this. */
int run_broker_start(const struct run_start *start, int *sock) MUST_CHECK;

/* -EPROTO: it is no userfaultfd; -EOPNOTSUPP: the kernel cannot do it. */
int run_broker_enable(int sock, int uffd) MUST_CHECK;
/* A pidfd of a process of the run, or -errno: -ESRCH if it is none. */
int run_broker_owner(int sock, pid_t pid) MUST_CHECK;
/* As run_peer_stack. */
uint64_t run_broker_stack(int sock, pid_t pid);
/* Its smaps, open, or -errno. */
int run_broker_smaps(int sock, pid_t pid) MUST_CHECK;
enum exe_kind run_broker_exe(int sock, pid_t pid);
/* SIGKILL or SIGBUS. One that has ended, or is none of the run, gets none. */
void run_broker_kill(int sock, pid_t pid, int signal);
/* Removes socket and directory of the run: the supervisor may have been killed.
 */
void run_broker_remove_place(int sock);

#endif
