/* SPDX-License-Identifier: Apache-2.0 */
/* The nbdkit of this machine that serves a swap device. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli.h"
#include "cli_rack.h"
#include "cli_swap.h"

enum {
	SERVER_MS = 20000,
	LOOK_MS = 20,
};

#define NAME_START "swap-"

bool swap_server_is_name(const char *name)
{
	return strncmp(name, NAME_START, sizeof(NAME_START) - 1) == 0;
}

int swap_server_place(const char *device, struct swap_server *out)
{
	struct cli_rack rack;
	int err = cli_rack_open(&rack, NULL, true);

	if (err)
		return err;
	(void)snprintf(out->name, sizeof(out->name), NAME_START "%.40s",
		       strrchr(device, '/') + 1);
	/* Not *.sock: those are the rack's nodes. */
	(void)snprintf(out->socket, sizeof(out->socket), "%s/%s.nbd",
		       rack.rundir, out->name);
	(void)snprintf(out->rundir, sizeof(out->rundir), "%s", rack.rundir);
	(void)snprintf(out->rack, sizeof(out->rack), "%s", rack.name);
	cli_rack_close(&rack);
	return 0;
}

static bool greets(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct timeval wait = {.tv_sec = SERVER_MS / 1000};
	char magic[8];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool ok = false;

	if (fd < 0 || strlen(path) >= sizeof(sa.sun_path))
		goto out;
	memcpy(sa.sun_path, path, strlen(path));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	ok = connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 &&
	     recv(fd, magic, sizeof(magic), MSG_WAITALL) == sizeof(magic) &&
	     memcmp(magic, "NBDMAGIC", sizeof(magic)) == 0;
out:
	if (fd >= 0)
		(void)close(fd);
	return ok;
}

int swap_server_start(const struct swap_server *s, const char *const words[])
{
	struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};
	/* env looks for the program and becomes it. */
	const char *all[SWAP_WORDS_MAX + 1] = {"/usr/bin/env"};
	struct cli_proc proc;
	uint64_t end_ms;
	int err;

	for (unsigned i = 0; i < SWAP_WORDS_MAX && words[i]; i++)
		all[i + 1] = words[i];
	/* nbdkit does not take the place of a socket that is there. */
	(void)unlink(s->socket);
	err = cli_proc_start(s->rundir, s->name, (char *const *)(uintptr_t)all,
			     &proc);
	if (err)
		return err;
	end_ms = clock_mono_ms() + SERVER_MS;
	while (clock_mono_ms() < end_ms) {
		if (greets(s->socket))
			return 0;
		if (cli_proc_find(s->rundir, s->name, &proc) != 0)
			break;
		(void)nanosleep(&pause, NULL);
	}
	cli_error("swap: nbdkit does not come up; %s/%s.log says why",
		  s->rundir, s->name);
	return -ETIMEDOUT;
}

int swap_server_find(const struct swap_server *s, struct cli_proc *out)
{
	return cli_proc_find(s->rundir, s->name, out);
}

void swap_server_end(const struct swap_server *s)
{
	struct cli_proc proc;

	if (swap_server_find(s, &proc) == 0 && cli_proc_end(&proc) == 0)
		(void)!cli_proc_wait(&proc, SERVER_MS);
	cli_proc_forget(s->rundir, s->name);
	(void)unlink(s->socket);
}
