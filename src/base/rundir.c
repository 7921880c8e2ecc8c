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
#include "trust.h"

/* base/name/rack: base exists and may be anybody's, name and rack are ours.
 * With AQUIFER_RUNDIR, base is that directory's parent. */
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

/* A directory counts only if it is ours; su keeps another user's
 * XDG_RUNTIME_DIR. */
static bool is_ours(const char *dir)
{
	struct stat st;

	return dir && dir[0] == '/' && strlen(dir) < RUNDIR_PATH_MAX &&
	       stat(dir, &st) == 0 && S_ISDIR(st.st_mode) &&
	       st.st_uid == geteuid();
}

/* Whether somebody else has made what stands at this name. */
static bool is_squatted(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && st.st_uid != geteuid();
}

/* For a user without a session. Everybody may make names in /tmp, also ours. */
static void find_own_place(struct place *p)
{
	const char *home = secure_getenv("HOME");
	unsigned uid = (unsigned)geteuid();
	char path[RUNDIR_PATH_MAX];

	snprintf(path, sizeof(path), "/tmp/aquifer-%u", uid);
	if (is_squatted(path)) {
		snprintf(path, sizeof(path), "/run/user/%u", uid);
		if (is_ours(path)) {
			snprintf(p->base, sizeof(p->base), "%s", path);
			return;
		}
		if (is_ours(home)) {
			snprintf(p->base, sizeof(p->base), "%s", home);
			snprintf(p->name, sizeof(p->name),
				 ".local/state/aquifer/run");
			return;
		}
		/* Nothing is left: making it says what to do. */
	}
	snprintf(p->base, sizeof(p->base), "/tmp");
	snprintf(p->name, sizeof(p->name), "aquifer-%u", uid);
}

static int find_place(const struct trust *t, struct place *p)
{
	const char *override = secure_getenv("AQUIFER_RUNDIR");
	const char *xdg = secure_getenv("XDG_RUNTIME_DIR");

	if (override && override[0])
		return split_override(override, p);
	snprintf(p->name, sizeof(p->name), "aquifer");
	if (geteuid() == 0 || t->has_user || t->has_group)
		snprintf(p->base, sizeof(p->base), "/run");
	else if (is_ours(xdg))
		snprintf(p->base, sizeof(p->base), "%s", xdg);
	else
		find_own_place(p);
	return 0;
}

static int find(const char *rack, struct trust *t, struct place *p,
		char path[RUNDIR_PATH_MAX])
{
	char text[3 * RUNDIR_PATH_MAX];
	int err;

	if (!rundir_rack_is_valid(rack))
		return error_set(-EINVAL,
				 "rack name '%.64s' is not allowed: 1 to %d of "
				 "a-z, 0-9 and '-'",
				 rack, RUNDIR_RACK_MAX);
	err = trust_load(t);
	if (!err)
		err = find_place(t, p);
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
	struct trust t;
	struct place p;

	return find(rack, &t, &p, path);
}

/* ---- what a directory must be ------------------------------------------- */

enum kind {
	KIND_OWN,    /* of the caller alone */
	KIND_PARENT, /* of racks: entered by all who may use one of them */
	KIND_RACK,   /* as rack.user and rack.group say */
};

static bool is_shared(const struct trust *t)
{
	return t->has_user || t->has_group;
}

static bool owner_is_right(const struct trust *t, enum kind kind, uid_t owner)
{
	if (kind == KIND_OWN || !is_shared(t))
		return owner == t->self;
	if (kind == KIND_PARENT)
		return owner == t->self || owner == 0 ||
		       (t->has_user && owner == t->user);
	return owner == (t->has_user ? t->user : 0);
}

/* The group may write if it is the one that was named, and then in a sticky
 * directory only. */
static bool mode_is_right(const struct trust *t, enum kind kind,
			  const struct stat *st)
{
	if (st->st_mode & S_IWOTH)
		return false;
	if (!(st->st_mode & S_IWGRP))
		return true;
	return kind == KIND_RACK && t->has_group && st->st_gid == t->group &&
	       (st->st_mode & S_ISVTX);
}

/* Gives a directory to whom it shall belong, if it is ours to give: what root
 * made before rack.user was set is given over as well. */
static int hand_over(const struct trust *t, enum kind kind, int fd,
		     struct stat *st)
{
	uid_t user = t->has_user ? t->user : 0;
	mode_t mode = t->has_group ? 03770 : 0700;

	if (kind == KIND_OWN || !is_shared(t) || st->st_uid != t->self)
		return 0;
	if (kind == KIND_PARENT) {
		mode = (st->st_mode & 07777) | S_IXGRP | S_IXOTH;
		return (st->st_mode & S_IXOTH) || fchmod(fd, mode) == 0
			       ? 0
			       : -errno;
	}
	/* Without root one keeps what one has; whether it will do is checked
	 * below. */
	if (t->self != 0 && t->self != user)
		return 0;
	if (st->st_uid == user && (st->st_mode & 07777) == mode &&
	    (!t->has_group || st->st_gid == t->group))
		return 0;
	/* Closed while it changes hands. */
	if (fchmod(fd, 0700) < 0 ||
	    fchown(fd, user, t->has_group ? t->group : (gid_t)-1) < 0 ||
	    fchmod(fd, mode) < 0)
		return -errno;
	return fstat(fd, st) < 0 ? -errno : 0;
}

static int refuse(const struct trust *t, enum kind kind, const char *where,
		  const char *name, const struct stat *st)
{
	if (kind == KIND_RACK && is_shared(t))
		return error_set(-EPERM,
				 "directory %s/%s has owner %u, group %u and "
				 "mode %04o; rack.user and rack.group ask for "
				 "owner %u%s; start the rack as root or as "
				 "that user first",
				 where, name, (unsigned)st->st_uid,
				 (unsigned)st->st_gid,
				 (unsigned)st->st_mode & 07777,
				 t->has_user ? (unsigned)t->user : 0,
				 t->has_group ? ", that group and mode 3770"
					      : " and mode 0700");
	return error_set(-EPERM,
			 "directory %s/%s has owner %u and mode %04o; it must "
			 "belong to user %u and be writable by nobody else; "
			 "set AQUIFER_RUNDIR to a directory of your own",
			 where, name, (unsigned)st->st_uid,
			 (unsigned)st->st_mode & 07777, (unsigned)t->self);
}

/* Makes dir_fd/name if needed and opens it; `where` is for the words only. */
static int subdir(const struct trust *t, enum kind kind, int dir_fd,
		  const char *where, const char *name)
{
	struct stat st;
	int fd, err;

	if (mkdirat(dir_fd, name, 0700) && errno != EEXIST) {
		err = -errno;
		/* Who may not make it may still use what is there. */
		if (faccessat(dir_fd, name, F_OK, 0) < 0)
			return error_set(err, "cannot make directory %s/%s: %s",
					 where, name, strerror(-err));
	}
	fd = openat(dir_fd, name,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* A parent that may be entered, not listed. */
	if (fd < 0 && errno == EACCES)
		fd = openat(dir_fd, name,
			    O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		err = -errno;
		(void)error_set(err, /* returned below */
				"cannot open directory %s/%s (symbolic links "
				"are not followed): %s",
				where, name, strerror(-err));
		goto err_close;
	}
	err = hand_over(t, kind, fd, &st);
	if (err) {
		(void)error_set(err, "cannot hand over directory %s/%s: %s",
				where, name, strerror(-err));
		goto err_close;
	}
	if (!owner_is_right(t, kind, st.st_uid) ||
	    !mode_is_right(t, kind, &st)) {
		err = refuse(t, kind, where, name, &st);
		goto err_close;
	}
	return fd;

err_close:
	if (fd >= 0)
		close(fd);
	return err;
}

static int base_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err;

	if (fd < 0 && errno == EACCES)
		fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	err = -errno;
	return error_set(err, "cannot open directory %s: %s", path,
			 strerror(-err));
}

static int subdir_open(const struct trust *t, enum kind kind, const char *path,
		       const char *name)
{
	int dir_fd = base_open(path);
	int fd;

	if (dir_fd < 0)
		return dir_fd;
	fd = subdir(t, kind, dir_fd, path, name);
	close(dir_fd);
	return fd;
}

int rundir_subdir_open(const char *path, const char *name)
{
	const struct trust t = {.self = geteuid()};

	return subdir_open(&t, KIND_OWN, path, name);
}

int rundir_shared_open(const char *path, const char *name)
{
	struct trust t;
	int err = trust_load(&t);

	return err ? err : subdir_open(&t, KIND_RACK, path, name);
}

/* What stands between the base and the rack: usually one directory. */
static int open_parent(const struct trust *t, struct place *p)
{
	int fd = base_open(p->base);
	char *rest = p->name, *name;

	while (fd >= 0 && (name = strsep(&rest, "/"))) {
		int next = subdir(t, KIND_PARENT, fd, p->base, name);

		close(fd);
		fd = next;
	}
	return fd;
}

/* All who may use the rack put their counters there, so it is made by who may
 * give it away: a daemon that is confined cannot any more. Without it nothing
 * is published. */
static void make_counters(const struct trust *t, int dir_fd, const char *path)
{
	int fd;

	if (!is_shared(t) ||
	    (t->self != 0 && !(t->has_user && t->self == t->user)))
		return;
	fd = subdir(t, KIND_RACK, dir_fd, path, "counters");
	if (fd >= 0)
		close(fd);
	else
		error_clear();
}

static int make(const char *rack, char path[RUNDIR_PATH_MAX])
{
	char parent[RUNDIR_PATH_MAX];
	struct trust t;
	struct place p;
	int dir_fd, fd;
	int err = find(rack, &t, &p, path);

	if (err)
		return err;
	snprintf(parent, sizeof(parent), "%.*s",
		 (int)(strlen(path) - strlen(rack) - 1), path);
	dir_fd = open_parent(&t, &p);
	if (dir_fd < 0)
		return dir_fd;
	fd = subdir(&t, KIND_RACK, dir_fd, parent, rack);
	close(dir_fd);
	if (fd >= 0)
		make_counters(&t, fd, path);
	return fd;
}

int rundir_open(const char *rack)
{
	char path[RUNDIR_PATH_MAX];

	return make(rack, path);
}

int rundir_make(const char *rack, char path[RUNDIR_PATH_MAX])
{
	char found[RUNDIR_PATH_MAX];
	int fd = make(rack, found);

	if (fd < 0)
		return fd;
	close(fd);
	memcpy(path, found, sizeof(found));
	return 0;
}

int rundir_file_open(const char *path, int flags)
{
	const int never = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	struct trust t;
	struct stat st;
	int fd, err = trust_load(&t);

	if (err)
		return err;
	fd = open(path, flags | never, 0600);
	if (fd < 0) {
		err = -errno;
		return error_set(err, "cannot open %s: %s", path,
				 strerror(-err));
	}
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    (!t.has_group || (st.st_nlink == 1 && trust_serves(&t, st.st_uid))))
		return fd;
	close(fd);
	return error_set(-EPERM,
			 "%s is no file of the rack's own: somebody else has "
			 "put it there; look who, and remove it",
			 path);
}
