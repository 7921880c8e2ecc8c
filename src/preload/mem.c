/* SPDX-License-Identifier: Apache-2.0 */
/* mmap and its relatives, as the program sees them. */
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "preload.h"

#define EXPORT __attribute__((visibility("default")))

/* A reservation larger than this stays local. */
#define RESERVE_MAX (16ull << 30)

/* With 64-bit offsets the headers rename mmap, so both names are given by
 * hand. */
EXPORT void *preload_mmap(void *addr, size_t len, int prot, int flags, int fd,
			  off_t offset) __asm__("mmap");
EXPORT void *preload_mmap64(void *addr, size_t len, int prot, int flags, int fd,
			    off_t offset) __asm__("mmap64");
EXPORT int munmap(void *addr, size_t len);
EXPORT void *mremap(void *old, size_t old_len, size_t len, int flags, ...);
EXPORT int madvise(void *addr, size_t len, int advice);
EXPORT int mlockall(int flags);
EXPORT int mlock(const void *addr, size_t len);

/*
 * Plain memory, and reservations without rights, parts of which a runtime makes
 * accessible later (the heaps of JVM and V8). An address that is only wished
 * for is not granted: who asks that way must take what it gets.
 */
static bool wants_far(size_t len, int prot, int flags)
{
	int plain = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

	return preload_is_far() && len >= preload.min_bytes &&
	       (prot == (PROT_READ | PROT_WRITE) ||
		(prot == PROT_NONE && len <= RESERVE_MAX)) &&
	       (flags & ~plain) == 0 && (flags & MAP_ANONYMOUS) &&
	       (flags & MAP_PRIVATE);
}

static void *map_far(size_t len, int prot)
{
	void *addr = preload_maps_alloc(len);

	if (addr && prot == PROT_NONE)
		(void)syscall(SYS_mprotect, addr, align_up(len, RUN_PAGE_BYTES),
			      prot);
	return addr;
}

static bool is_plain(int flags)
{
	return (flags & MAP_ANONYMOUS) && (flags & MAP_PRIVATE);
}

/* A fixed mapping over far pages: plain memory becomes zeros with other rights,
 * anything else takes the place of far memory for good. */
static void *map_over(void *addr, size_t len, int prot, int flags, int fd,
		      off_t offset)
{
	size_t bytes = align_up(len, RUN_PAGE_BYTES);
	int err = 0;

	if ((flags & MAP_FIXED_NOREPLACE) == MAP_FIXED_NOREPLACE)
		err = -EEXIST;
	else if (!preload_owns((uint8_t *)addr + bytes - 1) ||
		 (!is_plain(flags) && !preload_maps_has(addr)))
		err = -ENOMEM;
	if (!err)
		err = preload_discard(addr, bytes);
	if (err) {
		errno = -err;
		return MAP_FAILED;
	}
	if (is_plain(flags) && !preload_maps_is_foreign(addr, bytes))
		return syscall(SYS_mprotect, addr, bytes, prot) == 0
			       ? addr
			       : MAP_FAILED;
	preload_maps_set_foreign(addr, bytes);
	return preload_sys_mmap(addr, len, prot, flags, fd, offset);
}

void *preload_mmap(void *addr, size_t len, int prot, int flags, int fd,
		   off_t offset)
{
	void *far;

	if (wants_far(len, prot, flags)) {
		if (preload_is_full()) {
			errno = ENOMEM;
			return MAP_FAILED;
		}
		far = map_far(len, prot);
		if (far)
			return far;
	}
	if ((flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) && preload_owns(addr))
		return map_over(addr, len, prot, flags, fd, offset);
	return preload_sys_mmap(addr, len, prot, flags, fd, offset);
}

void *preload_mmap64(void *addr, size_t len, int prot, int flags, int fd,
		     off_t offset)
{
	return preload_mmap(addr, len, prot, flags, fd, offset);
}

int munmap(void *addr, size_t len)
{
	size_t bytes = align_up(len, RUN_PAGE_BYTES);
	int err;

	if (!preload_owns(addr))
		return preload_sys_munmap(addr, len);
	if ((uintptr_t)addr % RUN_PAGE_BYTES || len == 0 ||
	    !preload_owns((uint8_t *)addr + bytes - 1)) {
		errno = EINVAL;
		return -1;
	}
	err = preload_discard(addr, bytes);
	if (err) {
		errno = -err;
		return -1;
	}
	if (preload_maps_has(addr))
		preload_maps_free(addr, bytes);
	return 0;
}

/* By system call: of a reservation that may not be read, the program shall hear
 * and not die. */
static bool copy_all(uint8_t *to, uint8_t *from, size_t bytes)
{
	while (bytes) {
		struct iovec local = {to, bytes}, remote = {from, bytes};
		long n = syscall(SYS_process_vm_readv, getpid(), &local, 1,
				 &remote, 1, 0);

		if (n <= 0)
			return false;
		to += n;
		from += n;
		bytes -= (size_t)n;
	}
	return true;
}

static void *remap_far(uint8_t *old, size_t old_len, size_t len, int flags)
{
	size_t had = align_up(old_len, RUN_PAGE_BYTES);
	size_t want = align_up(len, RUN_PAGE_BYTES);
	void *moved;

	if (len == 0 || (flags & ~MREMAP_MAYMOVE)) {
		errno = EINVAL;
		return MAP_FAILED;
	}
	if (want < had && munmap(old + want, had - want) != 0)
		return MAP_FAILED;
	if (want <= had || preload_maps_grow(old, had, want))
		return old;
	if (!(flags & MREMAP_MAYMOVE) || !(moved = preload_maps_alloc(want))) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	if (!copy_all(moved, old, had)) {
		(void)munmap(moved, want);
		errno = ENOMEM;
		return MAP_FAILED;
	}
	(void)munmap(old, had);
	return moved;
}

void *mremap(void *old, size_t old_len, size_t len, int flags, ...)
{
	void *fixed = NULL;
	va_list ap;

	if (preload_owns(old))
		return remap_far(old, old_len, len, flags);
	if (flags & MREMAP_FIXED) {
		va_start(ap, flags);
		fixed = va_arg(ap, void *);
		va_end(ap);
	}
	return (void *)syscall(SYS_mremap, old, old_len, len, flags, fixed);
}

enum {
	ADVICE_POPULATE_READ = 22, /* not in all headers */
	ADVICE_POPULATE_WRITE = 23,
};

/* By touching: in the kernel every fault would start the walk anew. */
static void populate(uint8_t *addr, size_t len, bool is_write)
{
	for (size_t i = 0; i < len; i += RUN_PAGE_BYTES) {
		_Atomic uint8_t *byte = (_Atomic uint8_t *)(addr + i);

		if (is_write)
			(void)atomic_fetch_or_explicit(byte, 0,
						       memory_order_relaxed);
		else
			(void)atomic_load_explicit(byte, memory_order_relaxed);
	}
}

int madvise(void *addr, size_t len, int advice)
{
	int err;

	if (!preload_owns(addr))
		return preload_sys_madvise(addr, len, advice);
	switch (advice) {
	case MADV_DONTNEED:
	case MADV_FREE:
	case MADV_REMOVE:
		if ((uintptr_t)addr % RUN_PAGE_BYTES) {
			errno = EINVAL;
			return -1;
		}
		err = preload_discard(addr, align_up(len, RUN_PAGE_BYTES));
		if (!err)
			return 0;
		errno = -err;
		return -1;
	case ADVICE_POPULATE_READ:
	case ADVICE_POPULATE_WRITE:
		populate(addr, len, advice == ADVICE_POPULATE_WRITE);
		return 0;
	case MADV_HUGEPAGE: /* far pages are small */
	case MADV_MERGEABLE:
	case MADV_COLD:
	case MADV_PAGEOUT:
		return 0;
	default:
		return preload_sys_madvise(addr, len, advice);
	}
}

/* Locked pages cannot leave, and the range is far larger than memory. */
int mlockall(int flags)
{
	if (!preload_is_far())
		return (int)syscall(SYS_mlockall, flags);
	errno = EPERM;
	return -1;
}

int mlock(const void *addr, size_t len)
{
	if (!preload_owns(addr))
		return (int)syscall(SYS_mlock, addr, len);
	errno = EPERM;
	return -1;
}
