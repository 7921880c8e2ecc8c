/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes of a rack on this machine: started in the background with a log
 * file, remembered in a pid file together with their start time, so that a
 * number that now belongs to another process is never signalled.
 */
#ifndef AQ_CLI_PROC_H
#define AQ_CLI_PROC_H

#include <sys/types.h>

#include "base/base.h"

struct cli_proc {
	pid_t pid;
	uint64_t start_ticks; /* field 22 of /proc/PID/stat */
};

/* -ENOENT: no pid file; -ESRCH: it tells of a process that is gone. */
int cli_proc_find(const char *rundir, const char *node,
		  struct cli_proc *out) MUST_CHECK;

/* Starts argv in a session of its own, with stdout and stderr appended to
 * <rundir>/<node>.log, and writes the pid file. */
int cli_proc_start(const char *rundir, const char *node, char *const argv[],
		   struct cli_proc *out) MUST_CHECK;

/* SIGTERM, without waiting. */
int cli_proc_end(const struct cli_proc *p) MUST_CHECK;
/* Waits; then SIGKILL. 0: it ended by itself; 1: it was killed; -errno. */
int cli_proc_wait(const struct cli_proc *p, uint32_t timeout_ms) MUST_CHECK;

/* Removes pid file and socket of a node that is gone. */
void cli_proc_forget(const char *rundir, const char *node);

#endif
