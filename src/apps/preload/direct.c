/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that are opened with O_DIRECT. The agent sees that a page is in use by
 * a transfer if the file system pins it. Those that are built on the block
 * layer do. Others (NFS, 9p, Ceph) only take a reference, which nobody sees:
 * there O_DIRECT is refused with EINVAL, as by file systems that do not have
 * it.
 *
 * The list is of those that are known to pin: an unknown one costs a program
 * its O_DIRECT, not its data. Calls that do not go through libc are not seen
 * here.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "preload.h"

#define EXPORT __attribute__((visibility("default")))

/* By their names in libc: with 64-bit offsets the headers rename them. */
EXPORT int direct_open(const char *path, int flags, ...) __asm__("open");
EXPORT int direct_openat(int dir, const char *path, int flags,
			 ...) __asm__("openat");
EXPORT int direct_fcntl(int fd, int cmd, ...) __asm__("fcntl");
/* What checked builds call where no mode is given. */
EXPORT int direct_open_2(const char *path, int flags) __asm__("__open_2");
EXPORT int direct_openat_2(int dir, const char *path,
			   int flags) __asm__("__openat_2");

/* libc's own, once we know them: they can be cancelled, the system calls
 * cannot. */
static struct {
	__typeof__(direct_openat) *openat;
	__typeof__(direct_fcntl) *fcntl;
	__typeof__(direct_open_2) *open_2;
	__typeof__(direct_openat_2) *openat_2;
} libc;

void preload_direct_start(void)
{
	libc.openat = (__typeof__(direct_openat) *)dlsym(RTLD_NEXT, "openat");
	libc.fcntl = (__typeof__(direct_fcntl) *)dlsym(RTLD_NEXT, "fcntl");
	libc.open_2 = (__typeof__(direct_open_2) *)dlsym(RTLD_NEXT, "__open_2");
	libc.openat_2 =
		(__typeof__(direct_openat_2) *)dlsym(RTLD_NEXT, "__openat_2");
}

static bool pins(int fd)
{
	static const uint32_t types[] = {
		0x01021994, /* tmpfs: copies */
		0x0000ef53, /* ext4 */
		0x58465342, /* xfs */
		0x9123683e, /* btrfs */
		0xf2f52010, /* f2fs */
		0x794c7630, /* overlay, of those */
	};
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) != 0 || S_ISBLK(st.st_mode) || S_ISCHR(st.st_mode) ||
	    S_ISFIFO(st.st_mode))
		return true;
	if (fstatfs(fd, &fs) != 0)
		return false;
	for (unsigned i = 0; i < ARRAY_LEN(types); i++)
		if ((uint32_t)fs.f_type == types[i])
			return true;
	return false;
}

static bool is_refused(int fd, int flags)
{
	return UNLIKELY(flags & O_DIRECT) && fd >= 0 && preload_is_far() &&
	       !pins(fd);
}

static int opened(int fd, int flags)
{
	if (!is_refused(fd, flags))
		return fd;
	(void)close(fd);
	errno = EINVAL;
	return -1;
}

static bool needs_mode(int flags)
{
	return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

/* libc too reads the mode only where there is one. */
#define TAKE_MODE(mode, last)                        \
	do {                                         \
		va_list ap;                          \
		va_start(ap, last);                  \
		if (needs_mode(last))                \
			(mode) = va_arg(ap, mode_t); \
		va_end(ap);                          \
	} while (0)

static int do_openat(int dir, const char *path, int flags, mode_t mode)
{
	int fd = libc.openat ? libc.openat(dir, path, flags, mode)
			     : (int)syscall(SYS_openat, dir, path, flags, mode);

	return opened(fd, flags);
}

int direct_open(const char *path, int flags, ...)
{
	mode_t mode = 0;

	TAKE_MODE(mode, flags);
	return do_openat(AT_FDCWD, path, flags, mode);
}

int direct_openat(int dir, const char *path, int flags, ...)
{
	mode_t mode = 0;

	TAKE_MODE(mode, flags);
	return do_openat(dir, path, flags, mode);
}

int direct_open_2(const char *path, int flags)
{
	if (!libc.open_2)
		return do_openat(AT_FDCWD, path, flags, 0);
	return opened(libc.open_2(path, flags), flags);
}

int direct_openat_2(int dir, const char *path, int flags)
{
	if (!libc.openat_2)
		return do_openat(dir, path, flags, 0);
	return opened(libc.openat_2(dir, path, flags), flags);
}

/* The third argument is a number, a pointer, or not there. */
int direct_fcntl(int fd, int cmd, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (cmd == F_SETFL && is_refused(fd, (int)(intptr_t)arg)) {
		errno = EINVAL;
		return -1;
	}
	if (libc.fcntl)
		return libc.fcntl(fd, cmd, arg);
	return (int)syscall(SYS_fcntl, fd, cmd, arg);
}

/* ---- the names with 64-bit offsets -------------------------------------- */

#define SAME(name, twin, target)                                          \
	EXPORT __typeof__(direct_##name) direct_##name##_64 __asm__(twin) \
		__attribute__((alias(target)))
SAME(open, "open64", "open");
SAME(openat, "openat64", "openat");
SAME(fcntl, "fcntl64", "fcntl");
SAME(open_2, "__open64_2", "__open_2");
SAME(openat_2, "__openat64_2", "__openat_2");
