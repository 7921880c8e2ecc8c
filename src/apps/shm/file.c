/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POSIX shared memory: shm_open, files below /dev/shm that are opened by open,
 * and what can be done with their descriptors. Which object a descriptor is for
 * stands in its name in /proc: so copies of it, in children, after exec and in
 * other programs, are known as well.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shm.h"

#define DIRECTORY "/dev/shm/"

/* With 64-bit offsets the headers rename functions, so names are given by
 * hand. */
SHM_EXPORT int shm_open(const char *name, int flags, mode_t mode);
SHM_EXPORT int shm_unlink(const char *name);
SHM_EXPORT int shm_do_open(const char *path, int flags, ...) __asm__("open");
SHM_EXPORT __typeof__(shm_do_open) shm_do_open64 __asm__("open64")
	__attribute__((alias("open")));
SHM_EXPORT int shm_do_openat(int dir, const char *path, int flags,
			     ...) __asm__("openat");
SHM_EXPORT __typeof__(shm_do_openat) shm_do_openat64 __asm__("openat64")
	__attribute__((alias("openat")));
SHM_EXPORT int shm_do_open_2(const char *path, int flags) __asm__("__open_2");
SHM_EXPORT __typeof__(shm_do_open_2) shm_do_open64_2 __asm__("__open64_2")
	__attribute__((alias("__open_2")));
SHM_EXPORT int shm_do_openat_2(int dir, const char *path,
			       int flags) __asm__("__openat_2");
SHM_EXPORT __typeof__(shm_do_openat_2) shm_do_openat64_2 __asm__("__openat64_2")
	__attribute__((alias("__openat_2")));
SHM_EXPORT int unlink(const char *path);
SHM_EXPORT int shm_do_ftruncate(int fd, off_t length) __asm__("ftruncate");
SHM_EXPORT __typeof__(shm_do_ftruncate) shm_do_ftruncate64 __asm__(
	"ftruncate64") __attribute__((alias("ftruncate")));
SHM_EXPORT int shm_do_fallocate(int fd, off_t offset,
				off_t len) __asm__("posix_fallocate");
SHM_EXPORT __typeof__(shm_do_fallocate) shm_do_fallocate64 __asm__(
	"posix_fallocate64") __attribute__((alias("posix_fallocate")));
SHM_EXPORT int shm_do_fstat(int fd, struct stat *st) __asm__("fstat");
SHM_EXPORT __typeof__(shm_do_fstat) shm_do_fstat64 __asm__("fstat64")
	__attribute__((alias("fstat")));

SHM_EXPORT int fchmod(int fd, mode_t mode);
SHM_EXPORT int fchown(int fd, uid_t owner, gid_t group);

/* ---- which object -------------------------------------------------------- */

uint64_t shm_id_of(int fd)
{
	static const char prefix[] = "/memfd:" COHERENT_PLACEHOLDER;
	char path[32], link[96];
	int saved = errno;
	uint64_t id = 0;
	ssize_t n;

	if (shm_is_on() && fcntl(fd, F_GETFL) & O_PATH) {
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, link, sizeof(link) - 1);
		link[n > 0 ? n : 0] = '\0';
		if (strncmp(link, prefix, sizeof(prefix) - 1) == 0)
			id = strtoull(link + sizeof(prefix) - 1, NULL, 10);
	}
	errno = saved;
	return id;
}

/* The name of a file below /dev/shm, or NULL. */
static const char *name_in(const char *path)
{
	size_t n = sizeof(DIRECTORY) - 1;

	return shm_is_on() && strncmp(path, DIRECTORY, n) == 0 && path[n]
		       ? path + n
		       : NULL;
}

/* ---- names --------------------------------------------------------------- */

static int open_object(const char *name, int flags)
{
	char full[COHERENT_NAME_MAX];
	struct shm_object o;
	int sock, fd = -1, err = shm_name(SHM_FILE, name, full);

	if (err)
		return shm_fail(err);
	sock = shm_connect();
	if (sock < 0)
		return shm_fail(sock);
	err = shm_find(sock, full, 0,
		       (flags & O_CREAT ? COHERENT_CREATE : 0) |
			       (flags & O_EXCL ? COHERENT_EXCLUSIVE : 0),
		       &o, &fd);
	(void)close(sock);
	/* Memory that others use does not become shorter. */
	if (!err && flags & O_TRUNC && o.length_bytes) {
		(void)close(fd);
		err = -EOPNOTSUPP;
	}
	if (err)
		return shm_fail(err);
	if (!(flags & O_CLOEXEC))
		(void)fcntl(fd, F_SETFD, 0);
	return fd;
}

static int unlink_object(const char *name)
{
	char full[COHERENT_NAME_MAX];
	int err = shm_name(SHM_FILE, name, full);

	if (!err)
		err = shm_unlink_object(full, 0);
	return err ? shm_fail(err) : 0;
}

int shm_open(const char *name, int flags, mode_t mode)
{
	SHM_NEXT(next, shm_open, "shm_open");

	if (!shm_is_on())
		return next ? next(name, flags, mode) : shm_fail(ENOSYS);
	while (*name == '/')
		name++;
	return open_object(name, flags | O_CLOEXEC);
}

int shm_unlink(const char *name)
{
	SHM_NEXT(next, shm_unlink, "shm_unlink");

	if (!shm_is_on())
		return next ? next(name) : shm_fail(ENOSYS);
	while (*name == '/')
		name++;
	return unlink_object(name);
}

static mode_t mode_of(int flags, va_list args)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE
		       ? va_arg(args, mode_t)
		       : 0;
}

int shm_do_open(const char *path, int flags, ...)
{
	const char *name = name_in(path);
	mode_t mode;
	va_list args;
	SHM_NEXT(next, shm_do_open, "open");

	if (name)
		return open_object(name, flags);
	va_start(args, flags);
	mode = mode_of(flags, args);
	va_end(args);
	return next ? next(path, flags, mode) : shm_fail(ENOSYS);
}

int shm_do_openat(int dir, const char *path, int flags, ...)
{
	const char *name = name_in(path);
	mode_t mode;
	va_list args;
	SHM_NEXT(next, shm_do_openat, "openat");

	if (name)
		return open_object(name, flags);
	va_start(args, flags);
	mode = mode_of(flags, args);
	va_end(args);
	return next ? next(dir, path, flags, mode) : shm_fail(ENOSYS);
}

/* What libc's headers make of open where the flags are not known yet. */
int shm_do_open_2(const char *path, int flags)
{
	return shm_do_open(path, flags);
}

int shm_do_openat_2(int dir, const char *path, int flags)
{
	return shm_do_openat(dir, path, flags);
}

int unlink(const char *path)
{
	const char *name = name_in(path);
	SHM_NEXT(next, unlink, "unlink");

	if (name)
		return unlink_object(name);
	return next ? next(path) : shm_fail(ENOSYS);
}

/* ---- lengths ------------------------------------------------------------- */

int shm_do_ftruncate(int fd, off_t length)
{
	uint64_t id = shm_id_of(fd);
	int err;
	SHM_NEXT(next, shm_do_ftruncate, "ftruncate");

	if (!id)
		return next ? next(fd, length) : shm_fail(ENOSYS);
	if (length < 0)
		return shm_fail(EINVAL);
	err = shm_resize(id, (uint64_t)length);
	return err ? shm_fail(err) : 0;
}

int shm_do_fallocate(int fd, off_t offset, off_t len)
{
	uint64_t id = shm_id_of(fd);
	struct shm_object o;
	int err;
	SHM_NEXT(next, shm_do_fallocate, "posix_fallocate");

	if (!id)
		return next ? next(fd, offset, len) : ENOSYS;
	if (offset < 0 || len <= 0 || offset > INT64_MAX / 2 - len)
		return EINVAL;
	err = shm_look(id, &o);
	if (!err && o.length_bytes < (uint64_t)(offset + len))
		err = shm_resize(id, (uint64_t)(offset + len));
	return -err;
}

int shm_do_fstat(int fd, struct stat *st)
{
	uint64_t id = shm_id_of(fd);
	struct shm_object o;
	int err;
	SHM_NEXT(next, shm_do_fstat, "fstat");

	if (!next)
		return shm_fail(ENOSYS);
	if (next(fd, st) != 0)
		return -1;
	if (!id)
		return 0;
	err = shm_look(id, &o);
	if (err)
		return shm_fail(err);
	st->st_size = (off_t)o.length_bytes;
	return 0;
}

/* ---- rights: all programs of a group are one user's -----------------------
 */

int fchmod(int fd, mode_t mode)
{
	SHM_NEXT(next, fchmod, "fchmod");

	if (shm_id_of(fd))
		return 0;
	return next ? next(fd, mode) : shm_fail(ENOSYS);
}

int fchown(int fd, uid_t owner, gid_t group)
{
	bool is_same = (owner == (uid_t)-1 || owner == geteuid()) &&
		       (group == (gid_t)-1 || group == getegid());
	SHM_NEXT(next, fchown, "fchown");

	if (shm_id_of(fd))
		return is_same ? 0 : shm_fail(EPERM);
	return next ? next(fd, owner, group) : shm_fail(ENOSYS);
}
