/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps other work off the measured cores where the system permits it, and says
 * how much of it got through.
 */
#ifndef AQ_BENCH_GUARD_H
#define AQ_BENCH_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum guard_kind {
	GUARD_NONE, /* ordinary priority */
	GUARD_NICE, /* the highest ordinary priority */
	GUARD_FIFO, /* real-time: only interrupts and the host come between */
};

enum {
	GUARD_FIFO_PRIORITY = 50,
	GUARD_CPU_CLIENT = 0,
	GUARD_CPU_SERVER = 1,
};

/* Gives the calling process the strongest guard it may have. `above` puts it
 * above the measured processes, so that it can end one that hangs. Threads made
 * later inherit it. */
enum guard_kind guard_enter(bool above);
const char *guard_name(enum guard_kind kind);

/* Puts the calling thread on one core. 0 or -errno. */
int guard_pin(int cpu);

/* What ran on this machine between two readings. */
struct guard_meter {
	uint64_t wall_ns;
	uint64_t busy_ns; /* all cores, all processes, and stolen by the host */
	uint64_t own_ns;  /* the processes given to guard_meter_read */
};

int guard_meter_read(struct guard_meter *m, const pid_t *own, size_t own_count)
	__attribute__((warn_unused_result));

/* Parses the "cpu" line of /proc/stat: everything but idle and iowait, in
 * clock ticks. 0 or -EBADMSG. */
int guard_parse_stat(const char *text, uint64_t *busy_ticks)
	__attribute__((warn_unused_result));

/* Cores' worth of time that was not ours between a and b; 0 when the kernel's
 * coarse ticks cannot tell. */
double guard_foreign_cores(const struct guard_meter *a,
			   const struct guard_meter *b);

#endif
