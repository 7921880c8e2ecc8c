/* SPDX-License-Identifier: Apache-2.0 */
/* Reading /proc. */
#include "proc.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run_channel.h"

enum {
	DEPTH_MAX = 64,
};

FILE *run_proc_open(const char *format, ...)
{
	char path[64] = "/proc/";
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(path + 6, sizeof(path) - 6, format, ap);
	va_end(ap);
	return fopen(path, "re");
}

bool run_proc_name(pid_t pid, char *name, size_t bytes)
{
	FILE *f = run_proc_open("%d/comm", (int)pid);
	bool ok = f && fgets(name, (int)bytes, f);

	if (f)
		(void)fclose(f);
	if (ok)
		name[strcspn(name, "\n")] = '\0';
	return ok;
}

/* While a fault waits: without a stream's buffer. */
int64_t run_proc_stat(pid_t pid, pid_t tid, int field)
{
	char path[64], text[512];
	const char *at;
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid,
		       (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	text[n < 0 ? 0 : n] = '\0';
	/* The name may hold anything; what follows it is field 3. */
	at = strrchr(text, ')');
	for (int i = 2; at && i < field; i++)
		at = strchr(at + 1, ' ');
	return at ? strtoll(at + 1, NULL, 10) : -1;
}

static void kill_below(pid_t pid, int depth)
{
	FILE *f = run_proc_open("%d/task/%d/children", (int)pid, (int)pid);
	int child;

	if (!f)
		return;
	while (fscanf(f, "%d", &child) == 1) {
		if (depth < DEPTH_MAX)
			kill_below(child, depth + 1);
		(void)kill(child, SIGKILL);
	}
	(void)fclose(f);
}

void run_proc_kill_below(pid_t pid)
{
	kill_below(pid, 0);
}

/* One that has just ended is nobody, too. */
static bool is_somebody(pid_t pid)
{
	char name[32];

	return run_proc_name(pid, name, sizeof(name)) &&
	       strcmp(name, RUN_AGENT_NAME) != 0;
}

bool run_proc_has_child(pid_t but)
{
	FILE *f = run_proc_open("self/task/%d/children", (int)getpid());
	bool any = false;
	int child;

	if (!f)
		return true;
	while (fscanf(f, "%d", &child) == 1)
		any |= child != but && is_somebody(child);
	(void)fclose(f);
	return any;
}
