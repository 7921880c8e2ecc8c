/* SPDX-License-Identifier: Apache-2.0 */
/* Folders and daemons of a run, which end with it. */
#ifndef AQ_BENCH_PLACE_H
#define AQ_BENCH_PLACE_H

#include <stdint.h>
#include <sys/types.h>

enum {
	PLACE_PATIENCE_MS = 60 * 1000, /* for a node of the run's own */
};

enum place_flags {
	PLACE_QUIET = 1u << 0,	 /* what it says on stderr is not shown */
	PLACE_SERVER = 1u << 1,	 /* on the server's core, best priority */
	PLACE_UNBOUND = 1u << 2, /* on both cores, best priority */
};

/* Makes "aquifer-NAME-XXXXXX" in TMPDIR, else in /tmp. 0 or -errno. */
int place_make(char dir[64], const char *name)
	__attribute__((warn_unused_result));
/* With everything in it; what will not go stays. */
void place_remove(const char *dir);

/* A handle to the rack of the environment, whose nodes may be starting. Slow is
 * not dead: on a busy machine a node may have to wait for its core, and a run
 * waits for it, longer than programs do. 0 or -errno of libaquifer. */
struct aq_rack;
int place_rack(struct aq_rack **out) __attribute__((warn_unused_result));

/* Starts a program, or `aquifer ARGUMENT...`; the last argument is NULL. Its
 * stdout is not shown, and it ends with this process. The pid or -errno. */
pid_t place_start(unsigned flags, const char *path, char *const argv[])
	__attribute__((warn_unused_result));
pid_t place_start_aquifer(unsigned flags, ...)
	__attribute__((warn_unused_result, sentinel));
/* Connects to the socket of one that is starting; *pid is 0 when it has ended,
 * or what place_start said. */
int place_dial(const char *path, pid_t *pid, int *fd)
	__attribute__((warn_unused_result));
/* The daemon of that name in a rack's runtime directory; 0: there is none. */
pid_t place_pid(const char *rundir, const char *name);
/* Asks it to end, and waits for that. No pid: nothing. */
void place_end(pid_t pid);
/* Waits for its own end: 0, or -ECHILD when it failed. */
int place_wait(pid_t pid) __attribute__((warn_unused_result));

#endif
