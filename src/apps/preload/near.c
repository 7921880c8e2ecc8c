/* SPDX-License-Identifier: Apache-2.0 */
/* mlock and its relatives: the pager keeps the pages, and the kernel locks
 * them, with its limits and its errors. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int mlock(const void *addr, size_t len);
EXPORT int mlock2(const void *addr, size_t len, unsigned flags);
EXPORT int munlock(const void *addr, size_t len);
EXPORT int mlockall(int flags);
EXPORT int munlockall(void);

/* mlock rounds down, too. */
static bool clip(const void *addr, size_t len, void **start, size_t *bytes)
{
	size_t before = (uintptr_t)addr % RUN_PAGE_BYTES;

	return preload_clip((const uint8_t *)addr - before, len + before, start,
			    bytes);
}

int mlock2(const void *addr, size_t len, unsigned flags)
{
	size_t bytes;
	void *start;
	int ret, err;

	if (!clip(addr, len, &start, &bytes))
		return (int)syscall(SYS_mlock2, addr, len, flags);
	preload_set_oddities();
	err = preload_call(RUN_CALL_KEEP, start, bytes);
	/* Where nobody serves us, nothing leaves. */
	if (err && err != -EIO) {
		errno = -err;
		return -1;
	}
	ret = (int)syscall(SYS_mlock2, addr, len, flags);
	if (ret != 0) {
		int saved = errno;

		(void)preload_call(RUN_CALL_UNKEEP, start, bytes);
		errno = saved;
	}
	return ret;
}

int mlock(const void *addr, size_t len)
{
	return mlock2(addr, len, 0);
}

int munlock(const void *addr, size_t len)
{
	size_t bytes;
	void *start;
	int ret = (int)syscall(SYS_munlock, addr, len);

	if (ret == 0 && clip(addr, len, &start, &bytes)) {
		(void)preload_call(RUN_CALL_UNKEEP, start, bytes);
		preload_robust_keep();
	}
	return ret;
}

/* ---- all of it ----------------------------------------------------------- */

/* "start-end rwxp ..."; what is ours, and what may not be touched, is left out.
 */
static int lock_line(const char *line, int flags)
{
	char *at;
	uint64_t start = strtoull(line, &at, 16);
	uint64_t end = strtoull(at + 1, &at, 16);
	bool on_fault = flags & MCL_ONFAULT;
	struct rlimit limit;

	if (at[0] != ' ' || at[1] == '-' || start >> 63 ||
	    start - (uintptr_t)preload.range < RUN_RANGE_BYTES ||
	    start == (uintptr_t)preload.agent_staging)
		return 0;
	if (syscall(SYS_mlock2, start, end - start,
		    on_fault ? MLOCK_ONFAULT : 0) == 0)
		return 0;
	if (errno == EPERM)
		return -EPERM;
	/* The kernel's own pages and files with nothing behind them cannot be
	 * had; only a limit is an error. */
	return errno == ENOMEM && !strstr(at, "[v") &&
			       getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
			       limit.rlim_cur != RLIM_INFINITY
		       ? -ENOMEM
		       : 0;
}

/* All mappings but the range, which is larger than any memory. */
static int lock_local(int flags)
{
	static const char path[] = "/proc/self/maps";
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	char text[4096];
	size_t have = 0;
	int err = 0;
	long n;

	if (fd < 0)
		return -errno;
	while (!err && have < sizeof(text) - 1 &&
	       (n = read(fd, text + have, sizeof(text) - 1 - have)) > 0) {
		char *line = text, *end;

		text[have += (size_t)n] = '\0';
		while (!err && (end = strchr(line, '\n'))) {
			*end = '\0';
			err = lock_line(line, flags);
			line = end + 1;
		}
		have = (size_t)(text + have - line);
		memmove(text, line, have);
	}
	(void)close(fd);
	return err;
}

/*
 * Far memory as far as it fits: what there is, and with MCL_FUTURE what malloc
 * gives out later; mappings that come later are local, and the kernel locks
 * them.
 */
int mlockall(int flags)
{
	int err = 0;

	if (!preload_is_far() ||
	    (flags & ~(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)) ||
	    !(flags & (MCL_CURRENT | MCL_FUTURE)))
		return (int)syscall(SYS_mlockall, flags);
	preload_set_oddities();
	if (flags & MCL_FUTURE) {
		if (syscall(SYS_mlockall, flags & ~MCL_CURRENT) != 0)
			return -1;
		atomic_store_explicit(&preload.locks_future, 1,
				      memory_order_relaxed);
	}
	err = preload_call(flags & MCL_CURRENT ? RUN_CALL_KEEP_ALL
					       : RUN_CALL_KEEP_LATER,
			   preload.range, flags & MCL_FUTURE);
	if ((!err || err == -EIO) && (flags & MCL_CURRENT))
		err = lock_local(flags);
	if (!err)
		return 0;
	(void)munlockall();
	errno = -err;
	return -1;
}

int munlockall(void)
{
	int ret = (int)syscall(SYS_munlockall);

	if (!preload_is_far())
		return ret;
	atomic_store_explicit(&preload.locks_future, 0, memory_order_relaxed);
	(void)preload_call(RUN_CALL_UNKEEP, preload.range, RUN_RANGE_BYTES);
	preload_robust_keep();
	return ret;
}
