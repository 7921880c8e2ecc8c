/* SPDX-License-Identifier: Apache-2.0 */
/* Idle time of the cores, by /proc/stat. */
#include "cores.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	STAT_BYTES = 32768, /* cores beyond it are not looked at */
	FREE_PERCENT = 80,  /* idle: then a core is free ... */
	BUSY_PERCENT = 30,  /* ... and below that it is not */
};

/* The most that any other core was idle. */
static uint64_t most_idle(struct cores *c, const char *stat,
			  const cpu_set_t *set, int ours)
{
	uint64_t most = 0;

	for (const char *line = stat; line; line = strchr(line, '\n')) {
		unsigned long long idle, iowait, rested;
		unsigned core;

		line += *line == '\n';
		/* "cpu " is the sum of all. */
		if (strncmp(line, "cpu ", 4) == 0 ||
		    sscanf(line, "cpu%u %*u %*u %*u %llu %llu", &core, &idle,
			   &iowait) != 3 ||
		    core >= CPU_SETSIZE)
			continue;
		/* The kernel's count of iowait may fall. */
		idle += iowait;
		rested = idle > c->idle[core] ? idle - c->idle[core] : 0;
		c->idle[core] = idle;
		if ((int)core != ours && CPU_ISSET(core, set))
			most = u64_max(most, rested);
	}
	return most;
}

bool run_cores_judge(struct cores *c, const char *stat, uint64_t ticks,
		     const cpu_set_t *set, int ours, bool was)
{
	uint64_t idle = most_idle(c, stat, set, ours);

	if (idle * 100 >= ticks * FREE_PERCENT)
		return false;
	return was || idle * 100 < ticks * BUSY_PERCENT;
}

bool run_cores_are_busy(struct cores *c, uint64_t now_ns, const cpu_set_t *set,
			int ours, bool was)
{
	char text[STAT_BYTES], *rest;
	uint64_t ns = now_ns - c->looked_ns;
	ssize_t n;
	int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return was;
	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	text[n < 0 ? 0 : n] = '\0';
	/* The rest is long, and sscanf measures it each time. */
	rest = strstr(text, "\nintr");
	if (rest)
		*rest = '\0';
	c->looked_ns = now_ns;
	return run_cores_judge(
		c, text, ns * (uint64_t)sysconf(_SC_CLK_TCK) / 1000000000u, set,
		ours, was);
}
