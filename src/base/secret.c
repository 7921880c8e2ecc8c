/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes files with a secret; what the secret is for is left to
 * others. */
#include "secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "hex.h"
#include "rundir.h"
#include "trust.h"

enum {
	PATH_BYTES = 512,
};

bool secret_is_valid(const char *text)
{
	return strnlen(text, SECRET_TEXT) == SECRET_CHARS &&
	       strspn(text, "0123456789abcdef") == SECRET_CHARS;
}

int secret_make(char text[SECRET_TEXT])
{
	uint8_t bytes[SECRET_BYTES];

	/* So few bytes come whole or not at all. */
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return error_set(-EIO, "the kernel gives no random numbers");
	hex_write(text, bytes, sizeof(bytes));
	explicit_bzero(bytes, sizeof(bytes));
	return 0;
}

void secret_forget(char text[SECRET_TEXT])
{
	explicit_bzero(text, SECRET_TEXT);
}

/* ---- reading ------------------------------------------------------------ */

/* Who can write the file decides what is believed, who can read it knows the
 * secret. Root may look at every rack of the machine. */
static int check(int fd, const char *path)
{
	struct trust t;
	struct stat st;
	int err = trust_load(&t);

	if (err)
		return err;
	if (fstat(fd, &st) < 0)
		return error_set(-errno, "cannot look at %s: %s", path,
				 strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(-EPERM, "%s is no file", path);
	if (st.st_mode & 077)
		return error_set(-EPERM,
				 "%s is open to others (mode %04o): chmod 600 "
				 "%s, and replace the token with `aquifer "
				 "token new` if somebody may have read it",
				 path, (unsigned)st.st_mode & 07777, path);
	if (t.self != 0 && !trust_serves(&t, st.st_uid))
		return error_set(-EPERM,
				 "%s belongs to user %u, who is neither this "
				 "user, root nor rack.user",
				 path, (unsigned)st.st_uid);
	return 0;
}

static int take(int fd, const char *path, char text[SECRET_TEXT])
{
	char buf[SECRET_TEXT + 1];
	ssize_t n = read(fd, buf, sizeof(buf) - 1);
	int err = 0;

	if (n < 0)
		return error_set(-errno, "cannot read %s: %s", path,
				 strerror(errno));
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	if (secret_is_valid(buf))
		memcpy(text, buf, SECRET_TEXT);
	else
		err = error_set(-EBADMSG,
				"%s holds no token of %d lower-case hex digits",
				path, SECRET_CHARS);
	explicit_bzero(buf, sizeof(buf));
	return err;
}

static int check_and_take(int fd, const char *path, char text[SECRET_TEXT])
{
	int err = check(fd, path);

	if (!err)
		err = take(fd, path, text);
	(void)close(fd); /* only read */
	return err;
}

int secret_read(const char *path, char text[SECRET_TEXT])
{
	/* A link is followed: who may change the link may change the file. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return error_set(-errno, "cannot open %s: %s", path,
				 strerror(errno));
	return check_and_take(fd, path, text);
}

int secret_read_runtime(const char *path, char text[SECRET_TEXT])
{
	int fd = rundir_file_open(path, O_RDONLY);

	return fd < 0 ? fd : check_and_take(fd, path, text);
}

/* ---- writing ------------------------------------------------------------ */

static int write_all(int fd, const char *text)
{
	char line[SECRET_TEXT];
	ssize_t n;
	int err = 0;

	memcpy(line, text, SECRET_CHARS);
	line[SECRET_CHARS] = '\n';
	n = write(fd, line, sizeof(line));
	if (n != (ssize_t)sizeof(line))
		err = n < 0 ? -errno : -EIO;
	else if (fsync(fd) < 0 && errno != EINVAL && errno != EROFS)
		err = -errno;
	explicit_bzero(line, sizeof(line));
	return err;
}

/* Who can make files in the directory must not choose the owner. */
static int hand_over(const char *path, int fd)
{
	char dir[PATH_BYTES];
	struct stat at, st;
	struct trust t;
	char *slash;
	int err = trust_load(&t);

	if (err || t.self != 0)
		return err;
	(void)snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (slash)
		slash[slash == dir] = '\0';
	if (stat(slash ? dir : ".", &at) < 0)
		return -errno;
	if (at.st_mode & 022)
		return 0;
	if (stat(path, &st) == 0)
		at = st;
	else if (t.has_user)
		at.st_uid = t.user;
	return at.st_uid == 0 || fchown(fd, at.st_uid, (gid_t)-1) == 0 ? 0
								       : -errno;
}

/* A whole file under a name of its own. */
static int write_aside(const char *path, const char *text, bool give,
		       char temp[PATH_BYTES])
{
	int len = snprintf(temp, PATH_BYTES, "%s.%ld", path, (long)getpid());
	int fd, err;

	if (len < 0 || len >= PATH_BYTES)
		return -ENAMETOOLONG;
	(void)unlink(temp); /* of a process long gone that had our pid */
	fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	err = give ? hand_over(path, fd) : 0;
	if (!err)
		err = write_all(fd, text);
	if (close(fd) < 0 && !err)
		err = -errno;
	if (err)
		(void)unlink(temp);
	return err;
}

/* link(2) is O_EXCL for a file that is complete. */
int secret_create(const char *path, const char *text)
{
	char temp[PATH_BYTES];
	int err = write_aside(path, text, false, temp);

	if (!err) {
		if (link(temp, path) < 0)
			err = -errno;
		(void)unlink(temp);
	}
	return err ? error_set(err, "cannot make %s: %s", path, strerror(-err))
		   : 0;
}

static int replace(const char *path, const char *text, bool give)
{
	char temp[PATH_BYTES];
	int err = write_aside(path, text, give, temp);

	if (!err && rename(temp, path) < 0) {
		err = -errno;
		(void)unlink(temp);
	}
	return err ? error_set(err, "cannot write %s: %s", path, strerror(-err))
		   : 0;
}

int secret_replace(const char *path, const char *text)
{
	return replace(path, text, false);
}

int secret_give(const char *path, const char *text)
{
	return replace(path, text, true);
}
