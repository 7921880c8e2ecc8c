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
};

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

void *pages_alloc(size_t len_bytes)
{
	size_t len = pages_round(len_bytes);
	size_t slack = len >= HUGE_BYTES ? HUGE_BYTES : 0;
	uintptr_t start, aligned;
	uint8_t *p;

	if (len == 0 || len < len_bytes)
		return NULL;
	p = mmap(NULL, len + slack, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	if (!slack)
		return p;
	/* Huge pages need an aligned start: give back what is around it. */
	start = (uintptr_t)p;
	aligned = (uintptr_t)align_up(start, HUGE_BYTES);
	if (aligned > start)
		munmap(p, aligned - start);
	if (start + slack > aligned)
		munmap((void *)(aligned + len), start + slack - aligned);
	/* Only a wish: without huge pages it works just as well, slower. */
	(void)madvise((void *)aligned, len, MADV_HUGEPAGE);
	return (void *)aligned;
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
	void *p = mmap(NULL, len_bytes, prot, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}
