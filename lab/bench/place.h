/* SPDX-License-Identifier: Apache-2.0 */
/* Folders and daemons of a run, which end with it. */
#ifndef AQ_BENCH_PLACE_H
#define AQ_BENCH_PLACE_H

#include <stdint.h>
#include <sys/types.h>

enum {
	PLACE_PATIENCE_MS = 60 * 1000, /* for a node of this run */
};

enum place_flags {
	PLACE_QUIET = 1u << 0,	 /* its stderr is not shown */
	PLACE_SERVER = 1u << 1,	 /* on the server's core, best priority */
	PLACE_UNBOUND = 1u << 2, /* on both cores, best priority */
};

/* Makes "aquifer-NAME-XXXXXX" in TMPDIR, else in /tmp. 0 or -errno. */
int place_make(char dir[64], const char *name)
	__attribute__((warn_unused_result));
/* Removes the folder with everything in it; failures are ignored. */
void place_remove(const char *dir);

/* A handle to the rack of the environment, whose nodes may be starting. On a
 * busy machine a node may have to wait for its core, so a run waits for it
 * longer than programs do. 0 or -errno of libaquifer. */
struct aq_rack;
int place_rack(struct aq_rack **out) __attribute__((warn_unused_result));

/* Starts a program, or `aquifer ARGUMENT...`; the last argument is NULL. Its
 * stdout is not shown, and it ends with this process. The pid or -errno. */
pid_t place_start(unsigned flags, const char *path, char *const argv[])
	__attribute__((warn_unused_result));
pid_t place_start_aquifer(unsigned flags, ...)
	__attribute__((warn_unused_result, sentinel));
/* Connects to the socket of a process that is starting; *pid is what
 * place_start returned, or 0 when the process has ended. */
int place_dial(const char *path, pid_t *pid, int *fd)
	__attribute__((warn_unused_result));
/* The daemon of that name in a rack's runtime directory; 0: there is none. */
pid_t place_pid(const char *rundir, const char *name);
/* Asks the process to end, and waits for that. Does nothing without a pid. */
void place_end(pid_t pid);
/* Waits until the process ends by itself: 0, or -ECHILD when it failed. */
int place_wait(pid_t pid) __attribute__((warn_unused_result));

#endif
