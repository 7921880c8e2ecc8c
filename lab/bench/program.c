/* SPDX-License-Identifier: Apache-2.0 */
/* Starts both sides of a program, waits for the client, reads its number. */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "machine.h"
#include "shield.h"
#include "ticks.h"

enum {
	ARGS_MAX = 20,
	OUTPUT_MAX = 16384,
	NAP_US = 5000,
	NUMBER_BYTES = 16,
	COLUMNS_MAX = 12,
	FEW = 200,
};

#define START_NS  20000000000ull
#define CLIENT_NS 60000000000ull

/* The words of one side, and the numbers among them. */
struct side_args {
	char *argv[ARGS_MAX];
	char port[NUMBER_BYTES], bytes[NUMBER_BYTES], count[NUMBER_BYTES],
		warm_up[NUMBER_BYTES];
};

/* Two that spin on one core have a slice of the scheduler each, some
 * milliseconds, for every message. */
static uint32_t iterations(const struct program *p, enum program_where where)
{
	return where == PROGRAM_TWO_CORES ? p->iterations
					  : u32_min(p->iterations, FEW);
}

static void make_args(const struct program *p, enum program_where where,
		      unsigned port, bool is_client, struct side_args *a)
{
	char *const verbs[] = {(char *)(uintptr_t)machine_aquifer(),
			       "exec",
			       "--",
			       (char *)(uintptr_t)p->verbs,
			       "-F",
			       "-p",
			       a->port,
			       "-s",
			       a->bytes,
			       "-n",
			       a->count,
			       is_client ? "127.0.0.1" : NULL,
			       NULL};
	char *const ucx_server[] = {"ucx_perftest", "-p", a->port, NULL};
	char *const ucx_client[] = {
		"ucx_perftest", "-p",	  a->port,
		"127.0.0.1",	"-t",	  (char *)(uintptr_t)p->ucx,
		"-s",		a->bytes, "-n",
		a->count,	"-w",	  a->warm_up,
		"-f",		NULL};

	snprintf(a->port, sizeof(a->port), "%u", port);
	snprintf(a->bytes, sizeof(a->bytes), "%u", p->bytes);
	snprintf(a->count, sizeof(a->count), "%u", iterations(p, where));
	snprintf(a->warm_up, sizeof(a->warm_up), "%u",
		 iterations(p, where) / 10);
	if (p->verbs) {
		memcpy(a->argv, verbs, sizeof(verbs));
		/* perftest takes no size for atomics. */
		if (strcmp(p->verbs, "ib_atomic_lat") == 0)
			memmove(&a->argv[7], &a->argv[9],
				sizeof(verbs) - 9 * sizeof(a->argv[0]));
	} else if (is_client) {
		memcpy(a->argv, ucx_client, sizeof(ucx_client));
	} else {
		memcpy(a->argv, ucx_server, sizeof(ucx_server));
	}
}

/* A child on this core, which ends with this process: 0 in the child. */
static pid_t fork_on(int cpu)
{
	pid_t pid;

	/* Else the child could print buffered text again. */
	fflush(NULL);
	pid = fork();
	if (pid != 0)
		return pid < 0 ? -errno : pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)shield_pin(cpu);
	return 0;
}

/* What it prints goes to `out`, or nowhere. */
static pid_t start(const struct program *p, char *const argv[], int cpu,
		   int out)
{
	pid_t pid = fork_on(cpu);

	if (pid != 0)
		return pid;
	(void)setenv("UCX_TLS", "posix,cma,self", 1);
	if (p->is_plain_memory)
		(void)setenv("UCX_ALLOC_PRIO", "heap", 1);
	(void)setenv("UCX_WARN_UNUSED_ENV_VARS", "n", 1);
	if (out < 0)
		out = open("/dev/null", O_WRONLY | O_CLOEXEC);
	(void)dup2(out, STDOUT_FILENO);
	(void)dup2(out, STDERR_FILENO);
	execvp(argv[0], argv);
	_exit(127);
}

static pid_t start_busy_loop(int cpu)
{
	pid_t pid = fork_on(cpu);

	while (pid == 0)
		__asm__ volatile("");
	return pid;
}

static void end(pid_t pid)
{
	if (pid <= 0)
		return;
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

static int free_port(unsigned *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&a, len) ||
	    getsockname(fd, (struct sockaddr *)&a, &len))
		err = -errno;
	else
		*port = ntohs(a.sin_port);
	close(fd);
	return err;
}

/* Connecting would be the one connection that the server waits for. */
static bool listens(const char *table, unsigned port)
{
	FILE *f = fopen(table, "re");
	unsigned local, state;
	bool found = false;
	char line[256];

	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, " %*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x",
			       &local, &state) == 2 &&
			local == port && state == 0x0a;
	if (f)
		fclose(f);
	return found;
}

static int await_listener(pid_t pid, unsigned port)
{
	uint64_t end_ns = bench_now_ns() + START_NS;
	int status;

	while (bench_now_ns() < end_ns) {
		if (listens("/proc/net/tcp", port) ||
		    listens("/proc/net/tcp6", port))
			return 0;
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) && WEXITSTATUS(status) == 127
				       ? -ENOENT
				       : -EIO;
		(void)usleep(NAP_US);
	}
	return -ETIMEDOUT;
}

/* All that comes until the other side closes. */
static int read_output(int fd, char *text, size_t max)
{
	uint64_t end_ns = bench_now_ns() + CLIENT_NS;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	size_t len = 0;

	for (;;) {
		uint64_t now_ns = bench_now_ns();
		ssize_t n;

		if (now_ns >= end_ns)
			return -ETIMEDOUT;
		if (poll(&p, 1, (int)((end_ns - now_ns) / 1000000) + 1) <= 0)
			continue;
		n = read(fd, text + len, max - 1 - len);
		if (n < 0)
			return -errno;
		len += (size_t)n;
		text[len] = '\0';
		if (n == 0 || len == max - 1)
			return 0;
	}
}

/* The last line that is nothing but numbers, as many as are needed. */
static int find_number(char *text, unsigned column, double *out)
{
	int err = -EIO;
	char *line, *next = text;

	while ((line = strsep(&next, "\n"))) {
		double v[COLUMNS_MAX];
		unsigned n = 0;
		char *at = line, *after;

		while (n < COLUMNS_MAX) {
			v[n] = strtod(at, &after);
			if (after == at)
				break;
			at = after;
			n++;
		}
		if (n > column && at[strspn(at, " \t\r")] == '\0') {
			*out = v[column];
			err = 0;
		}
	}
	return err;
}

static int run_client(const struct program *p, enum program_where where,
		      unsigned port, double *out)
{
	char text[OUTPUT_MAX];
	struct side_args args;
	int fd[2], err, status = 0;
	pid_t pid;

	if (pipe2(fd, O_CLOEXEC))
		return -errno;
	make_args(p, where, port, true, &args);
	pid = start(p, args.argv,
		    where == PROGRAM_SAME_CORE ? SHIELD_CPU_SERVER
					       : SHIELD_CPU_CLIENT,
		    fd[1]);
	close(fd[1]);
	err = pid < 0 ? (int)pid : read_output(fd[0], text, sizeof(text));
	close(fd[0]);
	if (err) {
		end(pid);
		return err;
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
	    WEXITSTATUS(status) != 0)
		return -EIO;
	return find_number(text, p->column, out);
}

int program_run(const struct program *p, enum program_where where, double *out)
{
	pid_t loop[2] = {0, 0}, server;
	struct side_args args;
	unsigned port = 0;
	int err = free_port(&port);

	if (err)
		return err;
	make_args(p, where, port, false, &args);
	server = start(p, args.argv, SHIELD_CPU_SERVER, -1);
	if (server < 0)
		return (int)server;
	err = await_listener(server, port);
	if (where == PROGRAM_BUSY && !err) {
		loop[0] = start_busy_loop(SHIELD_CPU_CLIENT);
		loop[1] = start_busy_loop(SHIELD_CPU_SERVER);
	}
	if (!err)
		err = run_client(p, where, port, out);
	end(loop[0]);
	end(loop[1]);
	end(server);
	return err;
}
