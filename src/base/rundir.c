/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and makes the runtime directory; trusts no directory it did not check.
 */
#include "rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"

/* base/name/rack: base exists and is not ours, name and rack are. With
 * AQUIFER_RUNDIR, base is that directory's parent. */
struct place {
	char base[RUNDIR_PATH_MAX];
	char name[RUNDIR_PATH_MAX];
};

bool rundir_rack_is_valid(const char *rack)
{
	size_t n = strspn(rack, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return n >= 1 && n <= RUNDIR_RACK_MAX && rack[n] == 0;
}

static int split_override(const char *dir, struct place *p)
{
	char copy[RUNDIR_PATH_MAX];
	size_t n = strlen(dir);
	char *slash;

	while (n > 1 && dir[n - 1] == '/')
		n--;
	if (dir[0] != '/' || n < 2)
		return error_set(-EINVAL,
				 "AQUIFER_RUNDIR=%s must be an absolute path "
				 "other than /",
				 dir);
	if (n >= sizeof(copy))
		return error_set(-ENAMETOOLONG,
				 "AQUIFER_RUNDIR is longer than %d bytes",
				 RUNDIR_PATH_MAX - 1);
	memcpy(copy, dir, n);
	copy[n] = 0;
	slash = strrchr(copy, '/');
	snprintf(p->name, sizeof(p->name), "%s", slash + 1);
	slash[slash == copy ? 1 : 0] = 0;
	snprintf(p->base, sizeof(p->base), "%s", copy);
	return 0;
}

/* XDG_RUNTIME_DIR counts only if it is ours; su keeps another user's. */
static bool xdg_is_usable(const char *dir)
{
	struct stat st;

	return dir && dir[0] == '/' && strlen(dir) < RUNDIR_PATH_MAX &&
	       stat(dir, &st) == 0 && S_ISDIR(st.st_mode) &&
	       st.st_uid == geteuid();
}

static int find_place(struct place *p)
{
	const char *override = secure_getenv("AQUIFER_RUNDIR");
	const char *xdg = secure_getenv("XDG_RUNTIME_DIR");

	if (override && override[0])
		return split_override(override, p);
	snprintf(p->name, sizeof(p->name), "aquifer");
	if (geteuid() == 0) {
		snprintf(p->base, sizeof(p->base), "/run");
	} else if (xdg_is_usable(xdg)) {
		snprintf(p->base, sizeof(p->base), "%s", xdg);
	} else {
		snprintf(p->base, sizeof(p->base), "/tmp");
		snprintf(p->name, sizeof(p->name), "aquifer-%u",
			 (unsigned)geteuid());
	}
	return 0;
}

static int find(const char *rack, struct place *p, char path[RUNDIR_PATH_MAX])
{
	char text[3 * RUNDIR_PATH_MAX];
	int err;

	if (!rundir_rack_is_valid(rack))
		return error_set(-EINVAL,
				 "rack name '%.64s' is not allowed: 1 to %d of "
				 "a-z, 0-9 and '-'",
				 rack, RUNDIR_RACK_MAX);
	err = find_place(p);
	if (err)
		return err;
	snprintf(text, sizeof(text), "%s/%s/%s",
		 strcmp(p->base, "/") ? p->base : "", p->name, rack);
	if (strlen(text) >= RUNDIR_PATH_MAX)
		return error_set(-ENAMETOOLONG,
				 "runtime directory %s is longer than %d bytes",
				 text, RUNDIR_PATH_MAX - 1);
	memcpy(path, text, strlen(text) + 1);
	return 0;
}

int rundir_path(const char *rack, char path[RUNDIR_PATH_MAX])
{
	struct place p;

	return find(rack, &p, path);
}

/* Makes dir_fd/name if needed and opens it; `where` is for the words only. */
static int subdir(int dir_fd, const char *where, const char *name)
{
	struct stat st;
	int fd, err;

	if (mkdirat(dir_fd, name, 0700) && errno != EEXIST) {
		err = -errno;
		return error_set(err, "cannot make directory %s/%s: %s", where,
				 name, strerror(-err));
	}
	fd = openat(dir_fd, name,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		err = -errno;
		(void)error_set(err, /* returned below */
				"cannot open directory %s/%s (symbolic links "
				"are not followed): %s",
				where, name, strerror(-err));
		goto err_close;
	}
	if (st.st_uid != geteuid() || (st.st_mode & 022)) {
		err = error_set(-EPERM,
				"directory %s/%s has owner %u and mode %04o; "
				"it must belong to user %u and be writable by "
				"nobody else",
				where, name, (unsigned)st.st_uid,
				(unsigned)st.st_mode & 07777,
				(unsigned)geteuid());
		goto err_close;
	}
	return fd;

err_close:
	if (fd >= 0)
		close(fd);
	return err;
}

int rundir_subdir_open(const char *path, const char *name)
{
	int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd;

	if (dir_fd < 0) {
		int err = -errno;

		return error_set(err, "cannot open directory %s: %s", path,
				 strerror(-err));
	}
	fd = subdir(dir_fd, path, name);
	close(dir_fd);
	return fd;
}

int rundir_make(const char *rack, char path[RUNDIR_PATH_MAX])
{
	char found[RUNDIR_PATH_MAX];
	int err, dir_fd, fd;
	struct place p;

	err = find(rack, &p, found);
	if (err)
		return err;
	dir_fd = rundir_subdir_open(p.base, p.name);
	if (dir_fd < 0)
		return dir_fd;
	fd = subdir(dir_fd, p.name, rack);
	close(dir_fd);
	if (fd < 0)
		return fd;
	close(fd);
	memcpy(path, found, sizeof(found));
	return 0;
}
