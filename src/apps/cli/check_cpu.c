/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of kernel and processors. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "cli_check.h"

/* 5.1 brought F_SEAL_FUTURE_WRITE, 5.11 userfaultfd without privileges. */
void cli_check_kernel(struct cli_check_result *out)
{
	unsigned major = 0, minor = 0;
	struct utsname u;

	if (uname(&u) != 0 || sscanf(u.release, "%u.%u", &major, &minor) != 2) {
		cli_check_found(out, CLI_CHECK_WARN, "version unknown");
		return;
	}
	if (major * 1000 + minor < 5001) {
		cli_check_found(out, CLI_CHECK_MISSING,
				"%s %s; 5.1 is the oldest that works",
				u.sysname, u.release);
	} else if (major * 1000 + minor < 5011) {
		cli_check_found(out, CLI_CHECK_WARN,
				"%s %s; far paging without root needs 5.11",
				u.sysname, u.release);
	} else {
		cli_check_found(out, CLI_CHECK_OK, "%s %s", u.sysname,
				u.release);
		return;
	}
	cli_check_fix(out, "apt-get install linux-image-amd64 && reboot");
}

void cli_check_cpus(struct cli_check_result *out)
{
	cpu_set_t set;
	int count;

	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof(set), &set) != 0) {
		cli_check_found(out, CLI_CHECK_WARN, "unknown: %s",
				strerror(errno));
		return;
	}
	count = CPU_COUNT(&set);
	cli_check_found(out, count > 1 ? CLI_CHECK_OK : CLI_CHECK_WARN,
			"%d usable", count);
	if (count == 1)
		cli_check_fix(out, "give this machine or container two CPUs");
}

void cli_check_realtime(struct cli_check_result *out)
{
	struct sched_param fifo = {.sched_priority = 1};
	struct sched_param old;
	int policy = sched_getscheduler(0);

	if (policy < 0 || sched_getparam(0, &old) != 0) {
		cli_check_found(out, CLI_CHECK_WARN, "unknown: %s",
				strerror(errno));
		return;
	}
	/* Trying is the only honest test: capability, rlimit and cgroup all
	 * have a say. */
	if (sched_setscheduler(0, SCHED_FIFO, &fifo) != 0) {
		cli_check_found(out, CLI_CHECK_WARN,
				"SCHED_FIFO is not permitted (%s)",
				strerror(errno));
		cli_check_fix(out, "run benchmarks as root, or: ulimit -r 50");
		return;
	}
	if (sched_setscheduler(0, policy, &old) != 0) {
		cli_check_found(out, CLI_CHECK_WARN,
				"SCHED_FIFO permitted, but not the way back");
		return;
	}
	cli_check_found(out, CLI_CHECK_OK, "SCHED_FIFO is permitted");
}
