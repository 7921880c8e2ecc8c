/* SPDX-License-Identifier: Apache-2.0 */
/* Where the pager listens. */
#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/rundir.h"

#define UNNAMED "new" /* until it has its secret name */

static int make_public(struct run_place *p)
{
	int err;

	/* The number is for who looks; it may have been another's, who was
	 * killed, or be another's in another namespace. */
	(void)snprintf(p->dir, sizeof(p->dir), "/run/aquifer-run-%d-XXXXXX",
		       (int)getpid());
	if (!mkdtemp(p->dir))
		goto err_errno;
	p->dir_fd =
		open(p->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (p->dir_fd < 0)
		goto err_errno;
	if (fchmod(p->dir_fd, 0711) == 0)
		return 0;
err_errno:
	err = -errno;
	return error_set(err, "cannot make directory %s: %s", p->dir,
			 strerror(-err));
}

static int make_private(struct run_place *p)
{
	char path[RUNDIR_PATH_MAX], name[32];
	int err = rundir_make("run", path);

	if (err)
		return err;
	(void)snprintf(name, sizeof(name), "run-%d", (int)getpid());
	if (strlen(path) + 1 + strlen(name) >= sizeof(p->dir))
		return error_set(-ENAMETOOLONG,
				 "runtime directory %s is too long for a "
				 "socket",
				 path);
	(void)snprintf(p->dir, sizeof(p->dir), "%.60s/%.16s", path, name);
	p->dir_fd = rundir_subdir_open(path, name);
	return p->dir_fd < 0 ? p->dir_fd : 0;
}

int run_place_make(struct run_place *p)
{
	uint64_t secret[2];

	*p = (struct run_place){.dir_fd = -1};
	if (getrandom(secret, sizeof(secret), 0) != sizeof(secret))
		return error_set(-EIO, "no randomness");
	(void)snprintf(p->name, sizeof(p->name), "%016llx%016llx",
		       (unsigned long long)secret[0],
		       (unsigned long long)secret[1]);
	if (geteuid() == 0 && make_public(p) == 0)
		return 0;
	return make_private(p);
}

void run_place_remove(const struct run_place *p)
{
	if (p->dir_fd < 0)
		return;
	(void)unlinkat(p->dir_fd, p->name, 0);
	(void)unlinkat(p->dir_fd, UNNAMED, 0);
	(void)rmdir(p->dir);
}

int run_place_listen(const struct run_place *p)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);
	int err;

	if (fd < 0)
		return -errno;
	/* What is bound is what /proc/net/unix shows to everybody. */
	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d/%s",
		       p->dir_fd, UNNAMED);
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0 ||
	    fchmodat(p->dir_fd, UNNAMED, 0666, 0) != 0 ||
	    listen(fd, SOMAXCONN) != 0 ||
	    renameat(p->dir_fd, UNNAMED, p->dir_fd, p->name) != 0) {
		err = -errno;
		(void)close(fd);
		return err;
	}
	return fd;
}
