/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates and keys as files. */
#include "cli_cert.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/error.h"

enum {
	FILE_MAX = 256 << 10,
};

int cli_cert_dir(char dir[PATH_MAX])
{
	const char *xdg = secure_getenv("XDG_CONFIG_HOME");
	const char *home = secure_getenv("HOME");
	char path[CONFIG_PATH_MAX];
	char *slash;

	if (config_find_file(path) == 0) {
		slash = strrchr(path, '/');
		if (slash)
			slash[slash == path] = '\0';
		(void)snprintf(dir, PATH_MAX, "%s", slash ? path : ".");
	} else if (geteuid() == 0) {
		(void)snprintf(dir, PATH_MAX, "/etc/aquifer");
	} else if (xdg && xdg[0]) {
		(void)snprintf(dir, PATH_MAX, "%s/aquifer", xdg);
	} else if (home && home[0]) {
		(void)snprintf(dir, PATH_MAX, "%s/.config/aquifer", home);
	} else {
		return error_set(-ENOENT,
				 "there is no home directory; say --dir");
	}
	return 0;
}

int cli_cert_read(const char *path, char **out)
{
	char *text = malloc(FILE_MAX + 1);
	FILE *f = fopen(path, "re");
	size_t n = 0;
	int err = 0;

	if (!f || !text)
		err = f ? -ENOMEM : -errno;
	if (!err) {
		n = fread(text, 1, FILE_MAX + 1, f);
		if (ferror(f))
			err = -EIO;
		else if (n > FILE_MAX || memchr(text, 0, n))
			err = -EBADMSG;
	}
	if (f)
		(void)fclose(f); /* only read */
	if (err) {
		free(text);
		return error_set(err, "cannot read %s: %s", path,
				 strerror(-err));
	}
	text[n] = '\0';
	*out = text;
	return 0;
}

static int write_whole(int fd, const char *text)
{
	size_t len = strlen(text);
	ssize_t n = write(fd, text, len);

	if (n != (ssize_t)len)
		return n < 0 ? -errno : -ENOSPC;
	return fsync(fd) < 0 && errno != EINVAL && errno != EROFS ? -errno : 0;
}

int cli_cert_write(const char *path, const char *text, unsigned mode,
		   bool replace)
{
	char temp[PATH_MAX];
	int n = snprintf(temp, sizeof(temp), "%s.%ld", path, (long)getpid());
	int fd, err;

	if (n < 0 || n >= PATH_MAX)
		return error_set(-ENAMETOOLONG, "%.80s... is too long", path);
	(void)unlink(temp); /* of a process long gone that had our pid */
	fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	err = fd < 0 ? -errno : write_whole(fd, text);
	if (fd >= 0 && close(fd) < 0 && !err)
		err = -errno;
	/* link(2) is O_EXCL for a file that is complete. */
	if (!err && (replace ? rename(temp, path) : link(temp, path)) < 0)
		err = -errno;
	if (err || !replace)
		(void)unlink(temp); /* only a name of it, or nothing */
	return err ? error_set(err, "cannot write %s: %s", path, strerror(-err))
		   : 0;
}
