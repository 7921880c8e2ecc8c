/* SPDX-License-Identifier: Apache-2.0 */
/* Priorities, cores and the detection of foreign load; Linux only. */
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "ticks.h"

enum {
	NICE_BEST = -20,
	/* Without a pause; the longest round takes 10 s. */
	GUARD_RT_US = 30 * 1000 * 1000,
};

enum guard_kind guard_enter(bool above)
{
	struct sched_param sp = {
		.sched_priority = GUARD_FIFO_PRIORITY + (above ? 1 : 0),
	};

	/* A real-time process that runs away takes the machine with it. */
	struct rlimit rt = {.rlim_cur = GUARD_RT_US, .rlim_max = GUARD_RT_US};

	if (setrlimit(RLIMIT_RTTIME, &rt) == 0 &&
	    sched_setscheduler(0, SCHED_FIFO, &sp) == 0)
		return GUARD_FIFO;
	if (setpriority(PRIO_PROCESS, 0, NICE_BEST) == 0)
		return GUARD_NICE;
	return GUARD_NONE;
}

const char *guard_name(enum guard_kind kind)
{
	switch (kind) {
	case GUARD_FIFO:
		return "SCHED_FIFO 50";
	case GUARD_NICE:
		return "nice -20";
	case GUARD_NONE:
		break;
	}
	return "none";
}

int guard_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) == 0 ? 0 : -errno;
}

int guard_parse_stat(const char *text, uint64_t *busy_ticks)
{
	uint64_t user, nice_, sys, idle, wait, irq, soft, steal;

	if (sscanf(text,
		   "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
		   &user, &nice_, &sys, &idle, &wait, &irq, &soft, &steal) != 8)
		return -EBADMSG;
	*busy_ticks = user + nice_ + sys + irq + soft + steal;
	return 0;
}

static int read_busy_ns(uint64_t *busy_ns)
{
	char text[256];
	uint64_t ticks;
	ssize_t n;
	int fd, rc;

	fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	rc = n < 0 ? -errno : 0;
	close(fd);
	if (rc < 0)
		return rc;
	text[n] = '\0';
	rc = guard_parse_stat(text, &ticks);
	if (rc < 0)
		return rc;
	*busy_ns = ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
	return 0;
}

static uint64_t process_ns(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 ||
	    clock_gettime(clock, &ts) != 0)
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int guard_meter_read(struct guard_meter *m, const pid_t *own, size_t own_count)
{
	struct guard_meter now = {.wall_ns = bench_now_ns()};
	int rc = read_busy_ns(&now.busy_ns);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < own_count; i++)
		now.own_ns += process_ns(own[i]);
	*m = now;
	return 0;
}

double guard_foreign_cores(const struct guard_meter *a,
			   const struct guard_meter *b)
{
	/* Either reading may be one tick early or late on either core. */
	uint64_t slack_ns = 2 * 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t own_ns = b->own_ns - a->own_ns + slack_ns;
	uint64_t busy_ns = b->busy_ns - a->busy_ns;

	if (busy_ns <= own_ns || b->wall_ns <= a->wall_ns)
		return 0;
	return (double)(busy_ns - own_ns) / (double)(b->wall_ns - a->wall_ns);
}
