/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc says of the processes of a run. */
#ifndef AQ_RUN_PROC_H
#define AQ_RUN_PROC_H

#include <stdio.h>
#include <sys/types.h>

#include "base/base.h"

/* A file below /proc; NULL: there is none. */
FILE *run_proc_open(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
/* Its name without the end of line; false: there is no such process. */
bool run_proc_name(pid_t pid, char *name, size_t bytes);
/* A field of its stat after the name, as proc(5) counts them; -1: there is no
 * such thread, or no such field. */
int64_t run_proc_stat(pid_t pid, pid_t tid, int field);
/* SIGKILL for all that its first thread has started, and so on. */
void run_proc_kill_below(pid_t pid);
/* Whether we have a child other than `but` and other than agents, which end
 * when the pager tells them to. True if it is not known. */
bool run_proc_has_child(pid_t but);

#endif
