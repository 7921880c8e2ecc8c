/* SPDX-License-Identifier: Apache-2.0 */
#include "state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	PATH_BYTES = 512,
};

static int write_all(int fd, const char *text)
{
	size_t len = strlen(text), done = 0;

	while (done < len) {
		ssize_t n = write(fd, text + done, len - done);

		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return fsync(fd) < 0 ? -errno : 0;
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int err = fd < 0 ? -errno : write_all(fd, text);

	if (fd >= 0 && close(fd) < 0 && !err)
		err = -errno;
	return err;
}

static int sync_dir(const char *path)
{
	char dir[PATH_BYTES];
	char *slash;
	int fd, err = 0;

	(void)snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (slash)
		*slash = 0;
	fd = open(slash ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fsync(fd) < 0)
		err = -errno;
	(void)close(fd); /* only synced */
	return err;
}

int state_file_replace(const char *path, const char *text)
{
	char temp[PATH_BYTES];
	int len = snprintf(temp, sizeof(temp), "%s.new", path);
	int err;

	if (len < 0 || (size_t)len >= sizeof(temp))
		return -ENAMETOOLONG;
	err = write_file(temp, text);
	if (!err && rename(temp, path) < 0)
		err = -errno;
	if (!err)
		return sync_dir(path);
	(void)unlink(temp); /* perhaps it was not even made */
	return err;
}
