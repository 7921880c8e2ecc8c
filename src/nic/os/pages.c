/* SPDX-License-Identifier: Apache-2.0 */
/* Page memory: anonymous for queues, memfds for what peers share. */
#include "pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	HUGE_BYTES = 2 << 20,
	HUGE_STEP = 64 << 20, /* each call begins with a word to all cores */
};

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* since Linux 6.1 */
#endif

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

size_t pages_round(size_t len_bytes)
{
	return (size_t)align_up(len_bytes, (uint64_t)sysconf(_SC_PAGESIZE));
}

/* As mmap() from the beginning of a file, or of none. What may have huge pages
 * begins where one may. */
static void *map(size_t len, int prot, int flags, int fd)
{
	size_t slack = len >= HUGE_BYTES ? HUGE_BYTES : 0;
	uintptr_t start, aligned;
	void *p;

	if (!slack)
		return mmap(NULL, len, prot, flags, fd, 0);
	p = mmap(NULL, len + slack, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return p;
	start = (uintptr_t)p;
	aligned = (uintptr_t)align_up(start, HUGE_BYTES);
	/* Give back what is around it. */
	if (aligned > start)
		munmap(p, aligned - start);
	if (start + slack > aligned)
		munmap((void *)(aligned + len), start + slack - aligned);
	p = mmap((void *)aligned, len, prot, flags | MAP_FIXED, fd, 0);
	if (p == MAP_FAILED) {
		int err = errno;

		munmap((void *)aligned, len);
		errno = err;
	}
	return p;
}

void *pages_alloc(size_t len_bytes)
{
	size_t len = pages_round(len_bytes);
	void *p;

	if (len == 0 || len < len_bytes)
		return NULL;
	p = map(len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	if (p == MAP_FAILED)
		return NULL;
	/* Only a wish: without huge pages it works just as well, slower. */
	if (len >= HUGE_BYTES)
		(void)madvise(p, len, MADV_HUGEPAGE);
	return p;
}

void pages_free(void *pages, size_t len_bytes)
{
	if (pages)
		munmap(pages, pages_round(len_bytes));
}

int pages_memfd(const char *name, size_t len_bytes)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);
	int err;

	if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
		fd = memfd_create(name, flags);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)len_bytes) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

int pages_seal_size(int fd)
{
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) <
	    0)
		return -errno;
	return 0;
}

int pages_check_sealed(int fd, size_t len_bytes)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || !(seals & F_SEAL_SHRINK))
		return -EPERM;
	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_size == (off_t)len_bytes ? 0 : -EBADMSG;
}

int pages_open_read_only(int fd, bool fixed_size)
{
	int seals = F_SEAL_FUTURE_WRITE | F_SEAL_GROW | F_SEAL_SEAL;
	char path[64];
	int ro;

	if (fixed_size)
		seals |= F_SEAL_SHRINK;
	if (fcntl(fd, F_ADD_SEALS, seals) < 0)
		return -errno;
	if (fchmod(fd, S_IRUSR) < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ro = open(path, O_RDONLY | O_CLOEXEC);
	return ro < 0 ? -errno : ro;
}

void *pages_map(int fd, size_t len_bytes, bool writable)
{
	int prot = writable ? PROT_READ | PROT_WRITE : PROT_READ;
	void *p = map(len_bytes, prot, MAP_SHARED, fd);

	return p == MAP_FAILED ? NULL : p;
}

/*
 * The kernel makes one huge page of what is there, which must be something, and
 * clears the rest; and it makes it where that something is, so that the
 * machine's nodes of memory stay as the thread wants them.
 */
static bool make_huge(int fd, uint8_t *from, uint8_t *addr, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t at = 0; at < len; at += HUGE_BYTES)
		if (fallocate(fd, 0, (from - addr) + (off_t)at, (off_t)page))
			return false;
	return madvise(from, len, MADV_COLLAPSE) == 0;
}

int pages_make(int fd, void *addr, size_t len_bytes)
{
	size_t huge = len_bytes - len_bytes % HUGE_BYTES, n;
	uint8_t *p = addr;

	/* A wish for pages that are made later. */
	(void)madvise(p, len_bytes, MADV_HUGEPAGE);
	for (size_t at = 0; at < huge; at += n) {
		n = huge - at < HUGE_STEP ? huge - at : HUGE_STEP;
		if (!make_huge(fd, p + at, p, n))
			break;
	}
	return fallocate(fd, 0, 0, (off_t)len_bytes) ? -errno : 0;
}
