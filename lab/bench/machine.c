/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the machine's description from the kernel. */
#include "machine.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "shield.h"
#include "ticks.h"

static void read_cpu_model(char *out, size_t size)
{
	char line[256];
	FILE *f = fopen("/proc/cpuinfo", "re");

	snprintf(out, size, "unknown");
	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');

		if (!colon || strncmp(line, "model name", 10) != 0)
			continue;
		colon[strcspn(colon, "\n")] = '\0';
		snprintf(out, size, "%s",
			 colon + 1 + (colon[1] == ' ' ? 1 : 0));
		break;
	}
	fclose(f);
}

static long read_rt_runtime_us(void)
{
	FILE *f = fopen("/proc/sys/kernel/sched_rt_runtime_us", "re");
	long v = -1;

	if (!f)
		return v;
	if (fscanf(f, "%ld", &v) != 1)
		v = -1;
	fclose(f);
	return v;
}

json_t *machine_json(void)
{
	struct utsname u = {0};
	double tsc_ghz = bench_ticks_per_ns();
	char cpu[80];

	read_cpu_model(cpu, sizeof(cpu));
	(void)uname(&u); /* or it has no name */
	return json_pack("{s:s, s:s, s:i, s:f, s:f, s:i, s:i, s:i}", "cpu", cpu,
			 "kernel", u.release, "cores",
			 (int)sysconf(_SC_NPROCESSORS_ONLN), "tsc_ghz", tsc_ghz,
			 "clock_read_ns", bench_tick_step() / tsc_ghz,
			 "rt_runtime_us", (int)read_rt_runtime_us(),
			 "client_core", (int)SHIELD_CPU_CLIENT, "server_core",
			 (int)SHIELD_CPU_SERVER);
}

static char *find_beside(const char *const places[], size_t count,
			 const char *name)
{
	char self[PATH_MAX];
	char *slash, *path;
	ssize_t n;

	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n < 0)
		return NULL;
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return NULL;
	slash[1] = '\0';
	for (size_t i = 0; i < count; i++) {
		if (asprintf(&path, "%s%s%s", self, places[i], name) < 0)
			return NULL;
		if (access(path, X_OK) == 0)
			return path;
		free(path);
	}
	return NULL;
}

/* The build tree, then the folder that both are installed in. */
char *machine_find_helper(const char *name)
{
	static const char *const places[] = {"lab/bench/", ""};

	return find_beside(places, sizeof(places) / sizeof(places[0]), name);
}

const char *machine_aquifer(void)
{
	static const char *const places[] = {"", "../../bin/"};
	static char *path;

	if (!path)
		path = find_beside(places, sizeof(places) / sizeof(places[0]),
				   "aquifer");
	return path ? path : "aquifer";
}
