/* SPDX-License-Identifier: Apache-2.0 */
/* One run of a program: how long it took, what it printed, what it needed. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "machine.h"
#include "run_bench.h"
#include "users.h"

enum {
	LOCAL_MIN = 1 << 20, /* less is refused */
	HEADROOM = 4 << 20,  /* of a cgroup: it counts more than the heap */
	WHOLE_HEAP = 1 << 30,
};

static bool is_swapped(enum users_place place)
{
	return place == USERS_ZRAM_HALF || place == USERS_ZRAM_QUARTER;
}

/* How much of its heap may be here. */
static uint64_t local_bytes(enum users_place place,
			    const struct users_size *size)
{
	uint64_t heap = size->heap_bytes;

	if (place == USERS_ALL)
		return WHOLE_HEAP;
	return u64_max(place == USERS_HALF || place == USERS_ZRAM_HALF
			       ? heap / 2
			       : heap / 4,
		       LOCAL_MIN);
}

/* The same, and all that is never far: code, files, stacks. */
static uint64_t cgroup_bytes(enum users_place place,
			     const struct users_size *size)
{
	uint64_t rest = size->rss_bytes > size->heap_bytes
				? size->rss_bytes - size->heap_bytes
				: 0;

	return local_bytes(place, size) + u64_max(rest, HEADROOM);
}

static void be_program(const char *command, const char *dir,
		       enum users_place place, const struct users_size *size)
{
	char local[24];
	const char *far[] = {machine_aquifer(), "run", "--local", local,
			     "--json",		"--",  "sh",	  "-c",
			     command,		NULL};
	const char *plain[] = {"/bin/sh", "-c", command, NULL};
	const char **argv = far;

	if (place == USERS_PLAIN || is_swapped(place))
		argv = plain;
	else
		snprintf(local, sizeof(local), "%" PRIu64,
			 local_bytes(place, size));
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (chdir(dir) == 0)
		(void)execv(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

/* FNV-1a of all that was written. */
static uint64_t hash_of(FILE *f)
{
	uint64_t hash = 0xcbf29ce484222325ull;
	int c;

	rewind(f);
	while ((c = getc(f)) != EOF)
		hash = (hash ^ (uint8_t)c) * 0x100000001b3ull;
	return hash;
}

static int run(const char *command, const char *dir, enum users_place place,
	       const struct users_size *size, const struct run_swap *s,
	       FILE *files[2], struct users_run *out)
{
	uint64_t began = bench_now_ns();
	struct rusage used;
	int status;
	pid_t pid;

	(void)fflush(NULL);
	pid = fork();
	if (pid == 0) {
		(void)dup2(fileno(files[0]), STDOUT_FILENO);
		(void)dup2(fileno(files[1]), STDERR_FILENO);
		if (s && run_swap_enter(s) != 0)
			_exit(127);
		be_program(command, dir, place, size);
	}
	if (pid < 0 || wait4(pid, &status, 0, &used) != pid)
		return -errno;
	out->ns = bench_now_ns() - began;
	out->size.rss_bytes = (uint64_t)used.ru_maxrss << 10;
	return status == 0 ? 0 : -ECHILD;
}

static int run_and_read(const char *command, const char *dir,
			enum users_place place, const struct users_size *size,
			const struct run_swap *s, struct users_run *out)
{
	FILE *files[2] = {tmpfile(), tmpfile()};
	int err = files[0] && files[1] ? 0 : -errno;

	if (!err)
		err = run(command, dir, place, size, s, files, out);
	if (!err)
		out->output = hash_of(files[0]);
	if (!err && place != USERS_PLAIN && !s) {
		struct run_counted counted;

		err = run_report_read(files[1], &counted);
		out->loads = counted.loads;
		out->size.heap_bytes = counted.heap_bytes;
	}
	for (unsigned i = 0; i < 2; i++)
		if (files[i])
			(void)fclose(files[i]);
	return err;
}

int users_spawn(const char *command, const char *dir, enum users_place place,
		const struct users_size *size, struct users_run *out,
		const char **why)
{
	struct run_swap s;
	int err;

	*out = (struct users_run){0};
	*why = "a run that succeeds";
	if (!is_swapped(place))
		return run_and_read(command, dir, place, size, NULL, out);
	err = run_swap_open(&s, false, cgroup_bytes(place, size),
			    2 * size->rss_bytes, why);
	if (err)
		return -EOPNOTSUPP;
	err = run_and_read(command, dir, place, size, &s, out);
	if (err)
		*why = "a run that succeeds";
	run_swap_close(&s);
	return err;
}
