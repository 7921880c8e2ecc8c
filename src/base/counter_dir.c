/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of counter files: who is there, and who is gone. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "counter.h"
#include "error.h"

enum {
	HIDDEN_S = 60, /* making a file takes far less */
};

/* <pid>-<name>; everything else in the directory is left alone. */
static bool is_counter_name(const char *name)
{
	size_t digits = strspn(name, "0123456789");

	return digits > 0 && name[digits] == '-' && name[digits + 1];
}

/* The directory, or NULL with *err set; 0 when it does not exist. */
static DIR *open_dir(const char *rundir, int *err)
{
	char path[COUNTER_PATH_MAX];
	DIR *dir;
	int n;

	*err = 0;
	n = snprintf(path, sizeof(path), "%s/counters", rundir);
	if (n < 0 || (size_t)n >= sizeof(path)) {
		*err = error_set(-ENAMETOOLONG, "%s is too long", rundir);
		return NULL;
	}
	dir = opendir(path);
	if (!dir && errno != ENOENT) {
		*err = -errno;
		(void)error_set(*err, "cannot list %s: %s", path,
				strerror(-*err)); /* *err is the result */
	}
	return dir;
}

/* A file that its owner was killed while making; see open_locked in counter.c.
 */
static bool is_abandoned(int dir_fd, const char *name)
{
	struct stat st;

	return name[0] == '.' && is_counter_name(name + 1) &&
	       fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_mtime < time(NULL) - HIDDEN_S;
}

/* Removes the file if nobody holds its lock. True if it did. */
static bool clean_one(int dir_fd, const char *name)
{
	struct stat by_fd, by_name;
	bool removed = false;
	int fd;

	fd = openat(dir_fd, name,
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	/* Between opening and locking, another cleaner may have removed it and
	 * a new process may have made its own of the same name. Whoever holds
	 * the lock of the file that has the name is the only one to remove. */
	if (fstat(fd, &by_fd) == 0 && S_ISREG(by_fd.st_mode) &&
	    flock(fd, LOCK_EX | LOCK_NB) == 0 &&
	    fstatat(dir_fd, name, &by_name, AT_SYMLINK_NOFOLLOW) == 0 &&
	    by_name.st_ino == by_fd.st_ino && by_name.st_dev == by_fd.st_dev)
		removed = unlinkat(dir_fd, name, 0) == 0;
	close(fd);
	return removed;
}

int counter_dir_clean(const char *rundir)
{
	int removed = 0, err;
	DIR *dir = open_dir(rundir, &err);
	struct dirent *entry;

	if (!dir)
		return err;
	while ((entry = readdir(dir)))
		if (is_counter_name(entry->d_name) ||
		    is_abandoned(dirfd(dir), entry->d_name))
			removed += clean_one(dirfd(dir), entry->d_name);
	closedir(dir);
	return removed;
}

int counter_dir_each(const char *rundir, counter_dir_fn fn, void *ctx)
{
	char path[COUNTER_PATH_MAX];
	struct dirent *entry;
	int err = 0, n;
	DIR *dir;

	(void)counter_dir_clean(rundir); /* best effort */
	dir = open_dir(rundir, &err);
	while (dir && err == 0 && (entry = readdir(dir))) {
		if (!is_counter_name(entry->d_name))
			continue;
		n = snprintf(path, sizeof(path), "%s/counters/%s", rundir,
			     entry->d_name);
		if (n > 0 && (size_t)n < sizeof(path))
			err = fn(path, ctx);
	}
	if (dir)
		closedir(dir);
	return err;
}
