/* SPDX-License-Identifier: Apache-2.0 */
/* Priorities, cores and the detection of foreign load; Linux only. */
#include "shield.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "ticks.h"

enum {
	NICE_BEST = -20,
	STAT_BYTES = 1024,
	IDLE_SIDE_PART = 5, /* a side that ran less than a fifth slept */
	/* Without a pause; the longest round takes 10 s. */
	SHIELD_RT_US = 30 * 1000 * 1000,
};

enum shield_kind shield_enter(void)
{
	struct sched_param sp = {.sched_priority = SHIELD_FIFO_PRIORITY};
	/* A real-time process that runs away takes the machine with it. */
	struct rlimit rt = {.rlim_cur = SHIELD_RT_US, .rlim_max = SHIELD_RT_US};

	if (setrlimit(RLIMIT_RTTIME, &rt) == 0 &&
	    sched_setscheduler(0, SCHED_FIFO, &sp) == 0)
		return SHIELD_FIFO;
	return shield_enter_nice();
}

enum shield_kind shield_enter_nice(void)
{
	return setpriority(PRIO_PROCESS, 0, NICE_BEST) == 0 ? SHIELD_NICE
							    : SHIELD_NONE;
}

/* Sets the policy of each thread; true when all took it. */
static bool set_threads(pid_t pid, int policy, int priority)
{
	struct sched_param sp = {.sched_priority = priority};
	struct dirent *e;
	char path[64];
	bool all = true;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return false;
	while ((e = readdir(dir)))
		if (e->d_name[0] != '.' &&
		    sched_setscheduler(atoi(e->d_name), policy, &sp) < 0)
			all = false;
	closedir(dir);
	return all;
}

bool shield_enter_process(pid_t pid)
{
	struct rlimit rt = {.rlim_cur = SHIELD_RT_US, .rlim_max = SHIELD_RT_US};

	if (prlimit(pid, RLIMIT_RTTIME, &rt, NULL) == 0 &&
	    set_threads(pid, SCHED_FIFO, SHIELD_FIFO_PRIORITY))
		return true;
	shield_leave_process(pid);
	return false;
}

void shield_leave_process(pid_t pid)
{
	(void)set_threads(pid, SCHED_OTHER, 0); /* or never entered */
}

void shield_leave(void)
{
	struct sched_param ordinary = {0};

	(void)sched_setscheduler(0, SCHED_OTHER, &ordinary); /* or never left */
}

const char *shield_name(enum shield_kind kind)
{
	switch (kind) {
	case SHIELD_FIFO:
		return "SCHED_FIFO 50";
	case SHIELD_NICE:
		return "nice -20";
	case SHIELD_NONE:
		break;
	}
	return "none";
}

int shield_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) == 0 ? 0 : -errno;
}

int shield_parse_stat(const char *text, int cpu, uint64_t *busy_ticks)
{
	uint64_t user, nice_, sys, idle, wait, irq, soft, steal;
	char name[16];
	const char *line;

	snprintf(name, sizeof(name), "cpu%d ", cpu);
	line = strstr(text, name);
	if (!line ||
	    sscanf(line + strlen(name),
		   "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64 " %" SCNu64 " %" SCNu64,
		   &user, &nice_, &sys, &idle, &wait, &irq, &soft, &steal) != 8)
		return -EBADMSG;
	*busy_ticks = user + nice_ + sys + irq + soft + steal;
	return 0;
}

/* The cores' lines come first, so the start of the file is enough. */
static int read_stat(char *text, size_t size)
{
	ssize_t n;
	int fd, rc;

	fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, size - 1);
	rc = n < 0 ? -errno : 0;
	close(fd);
	if (rc == 0)
		text[n] = '\0';
	return rc;
}

uint64_t shield_process_ns(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 ||
	    clock_gettime(clock, &ts) != 0)
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int shield_meter_read(struct shield_meter *m, const pid_t own[2],
		      const pid_t *more, unsigned more_count)
{
	static const int cpu[2] = {SHIELD_CPU_CLIENT, SHIELD_CPU_SERVER};
	struct shield_meter now = {.wall_ns = bench_now_ns()};
	uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
	char text[STAT_BYTES];
	int rc = read_stat(text, sizeof(text));

	for (int i = 0; i < 2 && rc == 0; i++) {
		uint64_t ticks = 0;

		rc = shield_parse_stat(text, cpu[i], &ticks);
		now.busy_ns[i] = ticks * tick_ns;
		now.own_ns[i] = shield_process_ns(own[i]);
	}
	if (rc < 0)
		return rc;
	now.more_count = more_count;
	for (unsigned i = 0; i < more_count; i++)
		now.more_ns += shield_process_ns(more[i]);
	*m = now;
	return 0;
}

static double foreign_pooled(const struct shield_meter *a,
			     const struct shield_meter *b, uint64_t slack_ns)
{
	uint64_t busy_ns =
		b->busy_ns[0] - a->busy_ns[0] + b->busy_ns[1] - a->busy_ns[1];
	uint64_t own_ns = b->own_ns[0] - a->own_ns[0] + b->own_ns[1] -
			  a->own_ns[1] + b->more_ns - a->more_ns;

	if (busy_ns <= own_ns + 2 * slack_ns)
		return 0;
	return (double)(busy_ns - own_ns - 2 * slack_ns) /
	       (double)(b->wall_ns - a->wall_ns);
}

double shield_foreign_cores(const struct shield_meter *a,
			    const struct shield_meter *b)
{
	/* Either reading may be a tick early or late. */
	uint64_t slack_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t wall_ns = b->wall_ns - a->wall_ns;
	uint64_t foreign_ns = 0;

	if (b->wall_ns <= a->wall_ns)
		return 0;
	if (b->more_count)
		return foreign_pooled(a, b, slack_ns);
	for (int i = 0; i < 2; i++) {
		uint64_t busy_ns = b->busy_ns[i] - a->busy_ns[i];
		uint64_t own_ns = b->own_ns[i] - a->own_ns[i];

		if (own_ns * IDLE_SIDE_PART >= wall_ns &&
		    busy_ns > own_ns + slack_ns)
			foreign_ns += busy_ns - own_ns - slack_ns;
	}
	return (double)foreign_ns / (double)wall_ns;
}
