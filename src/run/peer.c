/* SPDX-License-Identifier: Apache-2.0 */
/* Who may attach to a pager. */
#include "peer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run_limits.h"

/* 0: there is no such process, or it has no parent that we could see. */
static pid_t parent_of(pid_t pid)
{
	char path[64], text[512];
	const char *at;
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	text[n < 0 ? 0 : n] = '\0';
	/* "PID (NAME) STATE PARENT", and the name may hold anything. */
	at = strrchr(text, ')');
	if (!at || strlen(at) < 5)
		return 0;
	return (pid_t)strtol(at + 4, NULL, 10);
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

bool run_peer_is_allowed(uid_t uid, pid_t pid, uid_t user, pid_t keeper)
{
	return uid == user || uid == 0 || run_peer_is_below(pid, keeper);
}
