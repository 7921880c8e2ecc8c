/* SPDX-License-Identifier: Apache-2.0 */
/* Makes folders and starts daemons, and takes both away again. */
#include "place.h"

#include <aquifer/aquifer.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "machine.h"
#include "shield.h"
#include "ticks.h"

enum {
	ARGS_MAX = 16,
	NAP_US = 5000,
};

#define START_NS 30000000000ull

int place_make(char dir[64], const char *name)
{
	const char *in = getenv("TMPDIR");

	/* The names of sockets in it are short. */
	snprintf(dir, 64, "%s/aquifer-%s-XXXXXX",
		 in && strlen(in) < 32 ? in : "/tmp", name);
	return mkdtemp(dir) ? 0 : -errno;
}

static int remove_one(const char *path, const struct stat *st, int kind,
		      struct FTW *ftw)
{
	(void)!remove(path); /* what will not go stays in /tmp */
	return 0;
}

void place_remove(const char *dir)
{
	if (dir[0])
		(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int place_rack(struct aq_rack **out)
{
	uint64_t end_ns = bench_now_ns() + START_NS;
	int err;

	while ((err = aq_rack_open(NULL, out)) && bench_now_ns() < end_ns)
		(void)usleep(NAP_US);
	return err ? err : aq_rack_set_deadline(*out, PLACE_PATIENCE_MS);
}

static void take_core(unsigned flags)
{
	cpu_set_t both;

	if (flags & PLACE_SERVER)
		(void)shield_pin(SHIELD_CPU_SERVER);
	if (flags & PLACE_UNBOUND) {
		CPU_ZERO(&both);
		CPU_SET(SHIELD_CPU_CLIENT, &both);
		CPU_SET(SHIELD_CPU_SERVER, &both);
		/* Or it stays where it was. */
		(void)!sched_setaffinity(0, sizeof(both), &both);
	}
	if (flags & (PLACE_SERVER | PLACE_UNBOUND))
		(void)shield_enter_nice();
}

pid_t place_start(unsigned flags, const char *path, char *const argv[])
{
	pid_t pid;
	int fd;

	/* Else the child could print buffered text again. */
	fflush(NULL);
	pid = fork();
	if (pid != 0)
		return pid < 0 ? -errno : pid;
	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGTERM, SIG_DFL);
	(void)signal(SIGHUP, SIG_DFL);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	take_core(flags);
	fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (fd >= 0)
		(void)dup2(fd, STDOUT_FILENO);
	if (fd >= 0 && flags & PLACE_QUIET)
		(void)dup2(fd, STDERR_FILENO);
	execvp(path, argv);
	_exit(127);
}

pid_t place_start_aquifer(unsigned flags, ...)
{
	char *argv[ARGS_MAX] = {"aquifer"};
	unsigned n = 1;
	va_list ap;

	va_start(ap, flags);
	while (n + 1 < ARGS_MAX && (argv[n] = va_arg(ap, char *)))
		n++;
	va_end(ap);
	return place_start(flags, machine_aquifer(), argv);
}

int place_dial(const char *path, pid_t *pid, int *fd)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	uint64_t end_ns = bench_now_ns() + START_NS;

	if (*pid < 0)
		return (int)*pid;
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	while (bench_now_ns() < end_ns) {
		*fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (*fd < 0)
			return -errno;
		if (connect(*fd, (struct sockaddr *)&a, sizeof(a)) == 0)
			return 0;
		close(*fd);
		*fd = -1;
		if (waitpid(*pid, NULL, WNOHANG) == *pid) {
			*pid = 0;
			break;
		}
		(void)usleep(NAP_US);
	}
	return -ENOENT;
}

pid_t place_pid(const char *rundir, const char *name)
{
	char path[PATH_MAX];
	long pid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.pid", rundir, name);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%ld", &pid) != 1 || pid <= 1)
		pid = 0;
	fclose(f);
	return (pid_t)pid;
}

void place_end(pid_t pid)
{
	if (pid <= 0)
		return;
	(void)kill(pid, SIGTERM);
	(void)waitpid(pid, NULL, 0);
}

int place_wait(pid_t pid)
{
	int status;

	if (pid < 0)
		return (int)pid;
	if (waitpid(pid, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECHILD;
}
