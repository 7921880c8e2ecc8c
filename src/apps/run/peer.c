/* SPDX-License-Identifier: Apache-2.0 */
/* Who may attach to a pager. */
#include "peer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run_limits.h"

/* What follows the name in /proc/PID/stat: the state is field 3. The name may
 * hold anything. */
static const char *after_name(pid_t pid, char *text, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	n = read(fd, text, size - 1);
	(void)close(fd);
	text[n < 0 ? 0 : n] = '\0';
	return strrchr(text, ')');
}

/* 0: there is no such process, or no such field. */
static uint64_t stat_field(pid_t pid, int field)
{
	char text[512];
	const char *at = after_name(pid, text, sizeof(text));

	for (int i = 2; at && i < field; i++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

static pid_t parent_of(pid_t pid)
{
	return (pid_t)stat_field(pid, 4);
}

uint64_t run_peer_stack(pid_t pid)
{
	return stat_field(pid, 28);
}

bool run_peer_is_below(pid_t pid, pid_t ancestor)
{
	for (unsigned i = 0; i < RUN_ANCESTORS_MAX && pid > 1; i++) {
		pid = parent_of(pid);
		if (pid == ancestor)
			return true;
	}
	return false;
}

bool run_peer_is_allowed(uid_t uid, pid_t pid, uid_t user, pid_t supervisor)
{
	return uid == user || uid == 0 || run_peer_is_below(pid, supervisor);
}
