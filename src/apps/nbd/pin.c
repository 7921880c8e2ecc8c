/* SPDX-License-Identifier: Apache-2.0 */
/* Locks the server into memory, as far as it will ever be used. */
#include "pin.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif

enum {
	/* Stacks are locked as a whole; ours and nbdkit's are shallow. */
	STACK_BYTES = 512 << 10,
	/* A mapping beyond this is not filled: nbdkit has an array of 192 MiB
	 * for disks that cannot write zeros. */
	WHOLE_MAX = 16 << 20,
};

static int spare(void)
{
	static const char least[] = "-1000";
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, least, sizeof(least) - 1) < 0)
		err = -errno;
	(void)close(fd);
	return err;
}

/* Code and data that were never touched would have to be read from a disk at
 * the worst of moments. */
static int fill(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t room = 0;
	uintptr_t from, to;

	if (!maps)
		return -errno;
	while (getline(&line, &room, maps) > 0) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &from, &to) != 2)
			continue;
		/* What has no access rights cannot be filled. */
		if (to - from <= WHOLE_MAX)
			(void)!mlock((const void *)from, to - from);
	}
	free(line);
	(void)fclose(maps);
	return 0;
}

static int lock(void)
{
	if (mlockall(MCL_CURRENT | MCL_ONFAULT) != 0 ||
	    mlockall(MCL_FUTURE) != 0)
		return -errno;
	return fill();
}

/* Threads have what their maker has: memory for the server is not made by
 * writing to the disk that it serves. */
static int no_io(void)
{
	if (prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) == 0)
		return 0;
	/* Kernels before 5.6 do not know it. */
	return errno == EINVAL ? 0 : -errno;
}

static int small_stacks(void)
{
	pthread_attr_t attr;
	int err = -pthread_getattr_default_np(&attr);

	if (err)
		return err;
	err = -pthread_attr_setstacksize(&attr, STACK_BYTES);
	if (!err)
		err = -pthread_setattr_default_np(&attr);
	(void)pthread_attr_destroy(&attr);
	return err;
}

/* nbdkit asks for a SIGTERM at its parent's end, though nobody told it to (seen
 * with 1.32 in the foreground). The kernel's pages must outlive who said
 * "swap on". */
static int outlive(void)
{
	return prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0) == 0 ? 0 : -errno;
}

int nbd_pin(const char **what)
{
	static const struct {
		const char *what;
		int (*run)(void);
	} step[] = {
		{"outlive its parent", outlive},
		{"have small stacks", small_stacks},
		{"be spared by the OOM killer", spare},
		{"be an I/O flusher", no_io},
		{"lock its memory", lock},
	};

	for (size_t i = 0; i < ARRAY_LEN(step); i++) {
		int err = step[i].run();

		if (err) {
			*what = step[i].what;
			return err;
		}
	}
	return 0;
}
