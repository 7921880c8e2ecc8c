/* SPDX-License-Identifier: Apache-2.0 */
/* mmap, munmap and mremap, as the program sees them. What else is done to far
 * memory, by whatever call, the kernel tells the pager. */
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload.h"

#define EXPORT __attribute__((visibility("default")))

/* A reservation larger than this stays local. */
#define RESERVE_MAX (16ull << 30)

enum {
	/* Reservations at other addresses than was wished that a program gives
	 * back at once before it gets what it wishes, as local memory. A JVM
	 * tries some dozens of addresses and then takes any. */
	UNWANTED_MAX = 128,
};

/* With 64-bit offsets the headers rename mmap, so both names are given by
 * hand. */
EXPORT void *preload_mmap(void *addr, size_t len, int prot, int flags, int fd,
			  off_t offset) __asm__("mmap");
EXPORT __typeof__(preload_mmap) preload_mmap64 __asm__("mmap64")
	__attribute__((alias("mmap")));
EXPORT int munmap(void *addr, size_t len);
EXPORT void *mremap(void *old, size_t old_len, size_t len, int flags, ...);

/* Plain memory, and reservations without rights, parts of which a runtime makes
 * accessible later (the heaps of JVM and V8). */
static bool wants_far(size_t len, int prot, int flags)
{
	int plain = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

	return preload_is_far() && len >= preload.min_bytes &&
	       !atomic_load_explicit(&preload.locks_future,
				     memory_order_relaxed) &&
	       (prot == (PROT_READ | PROT_WRITE) ||
		(prot == PROT_NONE && len <= RESERVE_MAX)) &&
	       (flags & ~plain) == 0 && (flags & MAP_ANONYMOUS) &&
	       (flags & MAP_PRIVATE);
}

static void *with_rights(void *addr, size_t len, int prot)
{
	if (addr && prot != (PROT_READ | PROT_WRITE))
		(void)syscall(SYS_mprotect, addr, align_up(len, RUN_PAGE_BYTES),
			      prot);
	return addr;
}

static void *refuse(int err)
{
	errno = err;
	return MAP_FAILED;
}

/* ---- an address that is wished for --------------------------------------- */

/*
 * Who wishes for memory at an address mostly takes what it gets. But some need
 * it (LuaJIT: code near to other code; ZGC): accessible memory is therefore had
 * from the kernel if that has the address free. Reservations are far first, as
 * most of them are heaps, until a program has given back many in a row.
 */
static void *map_wished(void *addr, size_t len, int prot, int flags)
{
	void *mem;

	if (preload_maps_take(addr, len))
		return with_rights(addr, len, prot);
	if (prot == PROT_NONE &&
	    atomic_load_explicit(&preload.unwanted_count,
				 memory_order_relaxed) < UNWANTED_MAX)
		return NULL;
	mem = preload_sys_mmap(addr, len, prot, flags, -1, 0);
	if (mem == MAP_FAILED)
		return NULL;
	/* The kernel rounds down. */
	if ((uintptr_t)addr - (uintptr_t)mem < RUN_PAGE_BYTES)
		return mem;
	(void)preload_sys_munmap(mem, len);
	return NULL;
}

static void note_wished(const void *far)
{
	/* Of several threads that wish, one counts. */
	if (atomic_exchange_explicit(&preload.unwanted, (uintptr_t)far,
				     memory_order_relaxed))
		atomic_store_explicit(&preload.unwanted_count, 0,
				      memory_order_relaxed);
}

static void note_unmapped(const void *addr)
{
	uintptr_t old = (uintptr_t)addr;

	if (atomic_compare_exchange_strong_explicit(&preload.unwanted, &old, 0,
						    memory_order_relaxed,
						    memory_order_relaxed))
		(void)atomic_fetch_add_explicit(&preload.unwanted_count, 1,
						memory_order_relaxed);
}

static void *map_far(void *addr, size_t len, int prot, int flags)
{
	void *mem = addr ? map_wished(addr, len, prot, flags) : NULL;

	if (mem)
		return mem;
	mem = with_rights(preload_maps_alloc(len), len, prot);
	if (mem && addr && prot == PROT_NONE)
		note_wished(mem);
	return mem;
}

/* ---- mmap ---------------------------------------------------------------- */

/* A fixed mapping over far pages: plain memory becomes zeros with other rights,
 * anything else takes the place of far memory until it is unmapped. */
static void *map_over(void *addr, size_t len, int prot, int flags, int fd,
		      off_t offset)
{
	size_t bytes = align_up(len, RUN_PAGE_BYTES);
	bool is_plain = (flags & MAP_ANONYMOUS) && (flags & MAP_PRIVATE) &&
			!(flags & (MAP_GROWSDOWN | MAP_LOCKED | MAP_POPULATE));

	if (!preload_owns((uint8_t *)addr + bytes - 1) ||
	    !preload_maps_has(addr))
		return refuse(ENOMEM);
	if (is_plain && !preload_has_oddities() &&
	    preload_sys_madvise(addr, bytes, MADV_DONTNEED) == 0) {
		preload_maps_use(addr, bytes);
		return syscall(SYS_mprotect, addr, bytes, prot) == 0
			       ? addr
			       : MAP_FAILED;
	}
	if (is_plain && preload_maps_renew(addr, bytes)) {
		preload_maps_use(addr, bytes);
		return with_rights(addr, bytes, prot);
	}
	/* A failure: no agent, so nobody who could drop it. */
	(void)preload_call(RUN_CALL_LEAVE, addr, bytes);
	preload_maps_use(addr, bytes);
	return preload_sys_mmap(addr, len, prot, flags, fd, offset);
}

static void *map_fixed(void *addr, size_t len, int prot, int flags, int fd,
		       off_t offset)
{
	if (len == 0 || (uintptr_t)addr % RUN_PAGE_BYTES)
		return refuse(EINVAL);
	if (flags & MAP_FIXED_NOREPLACE) {
		if (!preload_maps_take(addr, len))
			return refuse(EEXIST);
		flags = (flags & ~MAP_FIXED_NOREPLACE) | MAP_FIXED;
	}
	return map_over(addr, len, prot, flags, fd, offset);
}

void *preload_mmap(void *addr, size_t len, int prot, int flags, int fd,
		   off_t offset)
{
	void *far;

	if (wants_far(len, prot, flags)) {
		if (preload_is_full())
			return refuse(ENOMEM);
		far = map_far(addr, len, prot, flags);
		if (far)
			return far;
	}
	if ((flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) && preload_owns(addr))
		return map_fixed(addr, len, prot, flags, fd, offset);
	return preload_sys_mmap(addr, len, prot, flags, fd, offset);
}

int munmap(void *addr, size_t len)
{
	size_t bytes = align_up(len, RUN_PAGE_BYTES);

	if (!preload_owns(addr))
		return preload_sys_munmap(addr, len);
	if ((uintptr_t)addr % RUN_PAGE_BYTES || len == 0 ||
	    !preload_owns((uint8_t *)addr + bytes - 1)) {
		errno = EINVAL;
		return -1;
	}
	note_unmapped(addr);
	if (preload_maps_has(addr))
		return preload_maps_free(addr, bytes);
	return preload_sys_madvise(addr, bytes, MADV_DONTNEED);
}

/* ---- mremap -------------------------------------------------------------- */

/*
 * Moves far memory to `to`. The kernel leaves the old place mapped and empty
 * (MREMAP_DONTUNMAP): a hole would be anybody's at once, and is made only where
 * the program has somebody else's memory there.
 */
static void *move_to(uint8_t *old, size_t bytes, uint8_t *to, bool keeps_old)
{
	bool is_inside = preload_maps_has(to) && preload_owns(to + bytes - 1);
	int saved = errno;

	if (is_inside)
		(void)preload_call(RUN_CALL_LEAVE, to, bytes);
	if ((void *)syscall(SYS_mremap, old, bytes, bytes,
			    MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
			    to) == MAP_FAILED)
		return MAP_FAILED;
	if (is_inside) {
		preload_maps_use(to, bytes);
		(void)preload_call(RUN_CALL_TAKE, to, bytes);
	}
	if (!keeps_old && preload_maps_has(old))
		(void)preload_maps_free(old, bytes);
	errno = saved;
	return to;
}

static void *move_fixed(uint8_t *old, size_t had, size_t want, void *fixed,
			bool keeps_old)
{
	uint8_t *to = fixed;
	size_t common = had < want ? had : want;

	if ((uintptr_t)to % RUN_PAGE_BYTES ||
	    (to < old + had && old < to + want))
		return refuse(EINVAL);
	if (want > had &&
	    preload_mmap(to + had, want - had, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			 0) == MAP_FAILED)
		return MAP_FAILED;
	if (want < had && munmap(old + want, had - want) != 0)
		return MAP_FAILED;
	return move_to(old, common, to, keeps_old);
}

static void *move_anywhere(uint8_t *old, size_t had, size_t want,
			   bool keeps_old)
{
	uint8_t *to = preload_maps_alloc(want);

	if (!to)
		return refuse(ENOMEM);
	if (move_to(old, had, to, keeps_old) == MAP_FAILED) {
		int saved = errno;

		(void)preload_maps_free(to, want);
		errno = saved;
		return MAP_FAILED;
	}
	return to;
}

static void *remap_far(uint8_t *old, size_t old_len, size_t len, int flags,
		       void *fixed)
{
	int all = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
	size_t had = align_up(old_len, RUN_PAGE_BYTES);
	size_t want = align_up(len, RUN_PAGE_BYTES);
	bool keeps_old = flags & MREMAP_DONTUNMAP;

	if (len == 0 || old_len == 0 || (flags & ~all) ||
	    (uintptr_t)old % RUN_PAGE_BYTES ||
	    ((flags & ~MREMAP_MAYMOVE) && !(flags & MREMAP_MAYMOVE)) ||
	    ((flags & MREMAP_DONTUNMAP) && had != want))
		return refuse(EINVAL);
	if (flags & MREMAP_FIXED)
		return move_fixed(old, had, want, fixed, keeps_old);
	if (keeps_old)
		return move_anywhere(old, had, want, true);
	if (want < had && munmap(old + want, had - want) != 0)
		return MAP_FAILED;
	if (want <= had || preload_maps_grow(old, had, want))
		return old;
	if (!(flags & MREMAP_MAYMOVE))
		return refuse(ENOMEM);
	return move_anywhere(old, had, want, false);
}

void *mremap(void *old, size_t old_len, size_t len, int flags, ...)
{
	void *fixed = NULL;
	va_list ap;

	if (flags & MREMAP_FIXED) {
		va_start(ap, flags);
		fixed = va_arg(ap, void *);
		va_end(ap);
	}
	if (preload_owns(old))
		return remap_far(old, old_len, len, flags, fixed);
	/* Something else comes to where far memory is. */
	if (preload_owns(fixed)) {
		(void)preload_call(RUN_CALL_LEAVE, fixed,
				   align_up(len, RUN_PAGE_BYTES));
		preload_maps_use(fixed, align_up(len, RUN_PAGE_BYTES));
	}
	return (void *)syscall(SYS_mremap, old, old_len, len, flags, fixed);
}
