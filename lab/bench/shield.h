/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps other work off the measured cores where the system permits it, and says
 * how much of it got through.
 */
#ifndef AQ_BENCH_SHIELD_H
#define AQ_BENCH_SHIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum shield_kind {
	SHIELD_NONE, /* ordinary priority */
	SHIELD_NICE, /* the highest ordinary priority */
	SHIELD_FIFO, /* real-time: only interrupts and the host come between */
};

enum {
	SHIELD_FIFO_PRIORITY = 50,
	SHIELD_CPU_CLIENT = 0,
	SHIELD_CPU_SERVER = 1,
};

/*
 * Gives the calling process the strongest shield it may have; threads made
 * later inherit it. Only the measured processes have it, and only while they
 * measure: in the kernel, a real-time process that ends or reaps another can
 * wait for an ordinary one that it keeps off the core (seen in 6.18, in wait4).
 */
enum shield_kind shield_enter(void);
/* The best ordinary priority. */
enum shield_kind shield_enter_nice(void);
/* The same for all threads of another process that takes part in a round: only
 * while it is measured. Returns whether it has real-time priority now. */
bool shield_enter_process(pid_t pid);
void shield_leave_process(pid_t pid);
void shield_leave(void);
const char *shield_name(enum shield_kind kind);

/* Puts the calling thread on one core. 0 or -errno. */
int shield_pin(int cpu);

/*
 * What ran on the two measured cores between two readings. A side is pinned, so
 * all its time is on its own core.
 */
struct shield_meter {
	uint64_t wall_ns;
	uint64_t busy_ns[2]; /* of the client's core and of the server's: all
				processes, and what the host stole */
	uint64_t own_ns[2];  /* of the two measured processes */
	/* Time of other processes that take part. If there are any, the cores
	 * are not told apart, because their threads run on either. */
	uint64_t more_ns;
	unsigned more_count;
};

/* `own`: the client's and the server's process; `more`: others. 0 or -errno. */
int shield_meter_read(struct shield_meter *m, const pid_t own[2],
		      const pid_t *more, unsigned more_count)
	__attribute__((warn_unused_result));

/* Processor time of a process, or of this one (pid 0); 0 when it is gone. */
uint64_t shield_process_ns(pid_t pid);

/* Finds the line of one core in /proc/stat and adds up everything but idle and
 * iowait, in clock ticks. 0 or -EBADMSG. */
int shield_parse_stat(const char *text, int cpu, uint64_t *busy_ticks)
	__attribute__((warn_unused_result));

/*
 * Foreign load between a and b, in cores; 0 when the kernel's coarse ticks
 * cannot tell. The core of a side that mostly slept does not count, because
 * others may use it.
 */
double shield_foreign_cores(const struct shield_meter *a,
			    const struct shield_meter *b);

#endif
