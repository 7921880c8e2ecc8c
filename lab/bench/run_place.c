/* SPDX-License-Identifier: Apache-2.0 */
/* Places: the process that does a work, and what is around it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "machine.h"
#include "run_bench.h"

enum {
	HEADROOM = 4 << 20, /* of a cgroup: it counts more than the work */
	ARGS_MAX = 24,
};

static const char *const names[RUN_PLACE_COUNT] = {
	[RUN_PLACE_LOCAL] = "local",
	[RUN_PLACE_CABLE] = "far-cable",
	[RUN_PLACE_CHAIN] = "far-chain-cable",
	[RUN_PLACE_DIRECT] = "far-direct",
	[RUN_PLACE_TIERED] = "far-direct-tier",
	[RUN_PLACE_UDP] = "far-udp",
	[RUN_PLACE_ZRAM] = "zram",
	[RUN_PLACE_DISK] = "swap-file",
};

const char *run_place_name(enum run_place place)
{
	return names[place];
}

static bool is_mapped(enum run_place place)
{
	return place == RUN_PLACE_DIRECT || place == RUN_PLACE_TIERED;
}

static bool is_far(enum run_place place)
{
	return place >= RUN_PLACE_CABLE && place <= RUN_PLACE_UDP;
}

/* Page by page, but where static pages are what it is compared with. */
static const char *mode_of(enum run_place place)
{
	return place == RUN_PLACE_CABLE ? "static"
	       : is_mapped(place)	? "sparse"
					: "chain";
}

static void be_work(const struct run_work *w, enum run_place place,
		    uint64_t local_bytes, bool is_counted)
{
	char self[4096], local[48], bytes[24], count[24], seed[24];
	const char *argv[ARGS_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	unsigned n = 0;

	if (len < 0)
		_exit(127);
	self[len] = '\0';
	(void)snprintf(local, sizeof(local),
		       place == RUN_PLACE_TIERED ? "top=%" PRIu64 "@0"
						 : "%" PRIu64,
		       local_bytes);
	(void)snprintf(bytes, sizeof(bytes), "%" PRIu64, w->bytes);
	(void)snprintf(count, sizeof(count), "%" PRIu64, w->count);
	(void)snprintf(seed, sizeof(seed), "%" PRIu64, w->seed);
	if (is_far(place)) {
		argv[n++] = machine_aquifer();
		argv[n++] = "run";
		argv[n++] = place == RUN_PLACE_TIERED ? "--tier" : "--local";
		argv[n++] = local;
		if (!is_mapped(place))
			argv[n++] = "--no-direct";
		argv[n++] = "--mode";
		argv[n++] = mode_of(place);
		if (is_counted) {
			argv[n++] = "--json";
			argv[n++] = "--prefetch";
			argv[n++] = "0";
		}
		argv[n++] = "--";
	}
	argv[n++] = self;
	argv[n++] = "--work";
	argv[n++] = run_work_name(w->kind);
	argv[n++] = bytes;
	argv[n++] = count;
	argv[n++] = seed;
	argv[n] = NULL;
	(void)execv(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

static int read_answer(int fd, pid_t pid, uint64_t *ns)
{
	char text[64];
	ssize_t n, have = 0;
	int status;

	while ((n = read(fd, text + have, sizeof(text) - 1 - (size_t)have)) > 0)
		have += n;
	text[have] = '\0';
	if (waitpid(pid, &status, 0) != pid)
		return -errno;
	if (status != 0 || sscanf(text, "%" SCNu64, ns) != 1)
		return -EIO;
	return 0;
}

/* report_fd -1: none. */
static int spawn(const struct run_work *w, enum run_place place,
		 uint64_t local_bytes, const struct run_swap *s, int report_fd,
		 uint64_t *ns)
{
	int pipes[2];
	pid_t pid;
	int err;

	if (pipe2(pipes, O_CLOEXEC) != 0)
		return -errno;
	(void)fflush(NULL);
	pid = fork();
	if (pid == 0) {
		(void)dup2(pipes[1], STDOUT_FILENO);
		if (report_fd >= 0)
			(void)dup2(report_fd, STDERR_FILENO);
		if (s && run_swap_enter(s) != 0)
			_exit(127);
		be_work(w, place, local_bytes, report_fd >= 0);
	}
	err = pid < 0 ? -errno : 0;
	(void)close(pipes[1]);
	if (!err)
		err = read_answer(pipes[0], pid, ns);
	(void)close(pipes[0]);
	return err;
}

int run_work_spawn(const struct run_work *w, enum run_place place,
		   uint64_t local_bytes, uint64_t *ns, const char **why)
{
	struct run_swap s;
	int err;

	*why = "a run that succeeds";
	if (place != RUN_PLACE_ZRAM && place != RUN_PLACE_DISK)
		return spawn(w, place, local_bytes, NULL, -1, ns);
	err = run_swap_open(&s, place == RUN_PLACE_DISK, local_bytes + HEADROOM,
			    2 * w->bytes, why);
	if (err)
		return -EOPNOTSUPP;
	err = spawn(w, place, local_bytes, &s, -1, ns);
	if (err)
		*why = "a run that succeeds";
	run_swap_close(&s);
	return err;
}

int run_work_spawn_counted(const struct run_work *w, enum run_place place,
			   uint64_t local_bytes, int report_fd, uint64_t *ns)
{
	return spawn(w, place, local_bytes, NULL, report_fd, ns);
}
