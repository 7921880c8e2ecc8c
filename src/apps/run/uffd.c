/* SPDX-License-Identifier: Apache-2.0 */
/* The ioctls of userfaultfd. */
#include "uffd.h"

#include <errno.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/uffd_new.h"
#include "run_channel.h"

enum {
	FEATURE_MOVE = 1 << 16, /* newer than Debian's headers */
};

static bool is_userfaultfd(int fd)
{
	static const char want[] = "anon_inode:[userfaultfd]";
	char path[32], got[sizeof(want)];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, got, sizeof(got)) == sizeof(want) - 1 &&
	       memcmp(got, want, sizeof(want) - 1) == 0;
}

static int enable(int fd, uint64_t features)
{
	struct uffdio_api api = {.api = UFFD_API, .features = features};

	if (!is_userfaultfd(fd))
		return -EPROTO;
	/* EINVAL is also the answer to a feature that there is not. */
	if (ioctl(fd, UFFDIO_API, &api) != 0)
		return errno == EINVAL ? -EOPNOTSUPP : -errno;
	return 0;
}

int run_uffd_enable(int fd)
{
	return enable(fd, UFFD_FEATURE_EVENT_FORK | UFFD_FEATURE_EVENT_REMOVE |
				  UFFD_FEATURE_EVENT_UNMAP |
				  UFFD_FEATURE_EVENT_REMAP |
				  UFFD_FEATURE_THREAD_ID |
				  UFFD_FEATURE_PAGEFAULT_FLAG_WP);
}

int run_uffd_enable_file(int fd)
{
	return enable(fd, UFFD_FEATURE_MISSING_SHMEM |
				  UFFD_FEATURE_WP_HUGETLBFS_SHMEM |
				  UFFD_FEATURE_PAGEFAULT_FLAG_WP);
}

int run_uffd_register(int fd, uint64_t start, uint64_t bytes)
{
	struct uffdio_register reg = {.range = {start, bytes},
				      .mode = UFFDIO_REGISTER_MODE_MISSING |
					      UFFDIO_REGISTER_MODE_WP};

	if (ioctl(fd, UFFDIO_REGISTER, &reg) != 0)
		return -errno;
	return reg.ioctls & (1ull << _UFFDIO_WRITEPROTECT) ? 0 : -EOPNOTSUPP;
}

void run_uffd_unregister(int fd, uint64_t start, uint64_t bytes)
{
	struct uffdio_range r = {start, bytes};

	/* Fails only where there is nothing any more. */
	(void)ioctl(fd, UFFDIO_UNREGISTER, &r);
}

struct poison {
	struct uffdio_range range;
	uint64_t mode;
	int64_t updated;
};
#define IOCTL_POISON _IOWR(UFFDIO, 0x08, struct poison)

static int copy(int fd, uint64_t to, const void *from, unsigned pages,
		uint64_t mode)
{
	struct uffdio_copy c = {.dst = to,
				.src = (uint64_t)(uintptr_t)from,
				.len = (uint64_t)pages * RUN_PAGE_BYTES,
				.mode = mode};

	if (ioctl(fd, UFFDIO_COPY, &c) == 0)
		return (int)pages;
	/* Stopped in the middle: `copy` says where. */
	if (c.copy > 0)
		return (int)(c.copy / RUN_PAGE_BYTES);
	return -errno;
}

int run_uffd_copy(int fd, uint64_t to, const void *from, unsigned pages)
{
	return copy(fd, to, from, pages, 0);
}

int run_uffd_copy_protected(int fd, uint64_t to, const void *from)
{
	return copy(fd, to, from, 1, UFFDIO_COPY_MODE_WP);
}

int run_uffd_zero(int fd, uint64_t to, unsigned pages)
{
	struct uffdio_zeropage z = {
		.range = {to, (uint64_t)pages * RUN_PAGE_BYTES}};

	if (ioctl(fd, UFFDIO_ZEROPAGE, &z) == 0)
		return (int)pages;
	/* Stopped in the middle: `zeropage` says where. */
	if (z.zeropage > 0)
		return (int)(z.zeropage / RUN_PAGE_BYTES);
	return -errno;
}

static int protect(int fd, uint64_t start, uint64_t bytes, uint64_t mode)
{
	struct uffdio_writeprotect wp = {.range = {start, bytes}, .mode = mode};
	int err = ioctl(fd, UFFDIO_WRITEPROTECT, &wp) == 0 ? 0 : -errno;

	/* Older kernels take no range that the program's advice or rights have
	 * cut into several mappings. */
	if (err != -ENOENT || bytes == RUN_PAGE_BYTES)
		return err;
	err = 0;
	for (uint64_t at = 0; at < bytes && !err; at += RUN_PAGE_BYTES)
		err = protect(fd, start + at, RUN_PAGE_BYTES, mode);
	return err;
}

int run_uffd_protect(int fd, uint64_t start, uint64_t bytes)
{
	return protect(fd, start, bytes, UFFDIO_WRITEPROTECT_MODE_WP);
}

int run_uffd_unprotect(int fd, uint64_t start, uint64_t bytes)
{
	return protect(fd, start, bytes, 0);
}

void run_uffd_wake(int fd, uint64_t start, uint64_t bytes)
{
	struct uffdio_range r = {start, bytes};

	/* Fails only where nobody can wait: the memory is gone. */
	(void)ioctl(fd, UFFDIO_WAKE, &r);
}

int run_uffd_poison(int fd, uint64_t page)
{
	struct poison p = {.range = {page, RUN_PAGE_BYTES}};

	return ioctl(fd, IOCTL_POISON, &p) == 0 ? 0 : -errno;
}

int run_uffd_ask(int fd, uint64_t start)
{
	/* Asks for something harmless: unprotecting what is not protected. */
	return protect(fd, start, RUN_PAGE_BYTES,
		       UFFDIO_WRITEPROTECT_MODE_DONTWAKE);
}

bool run_uffd_is_alive(int fd, uint64_t start)
{
	return run_uffd_ask(fd, start) != -ESRCH;
}

bool run_uffd_can_move(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	int fd = uffd_new_plain();
	bool ok;

	if (fd < 0)
		return false;
	ok = ioctl(fd, UFFDIO_API, &api) == 0 && (api.features & FEATURE_MOVE);
	(void)close(fd);
	return ok;
}
