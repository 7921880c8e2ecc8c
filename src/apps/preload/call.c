/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to the pager: a line in the channel, and a touch of the bell page. */
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload.h"

void *preload_sys_mmap(void *addr, size_t len, int prot, int flags, int fd,
		       long offset)
{
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
}

void *preload_new(size_t bytes)
{
	void *mem = preload_sys_mmap(
		NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

int preload_sys_munmap(void *addr, size_t len)
{
	return (int)syscall(SYS_munmap, addr, len);
}

int preload_sys_madvise(void *addr, size_t len, int advice)
{
	return (int)syscall(SYS_madvise, addr, len, advice);
}

/* Held for microseconds, by at most a few threads, and in allocators where a
 * mutex of libc is not allowed. */
void preload_spin_lock(_Atomic int *lock)
{
	/* RUN-L1: who has the lock sees all that was done under it. */
	while (atomic_exchange_explicit(lock, 1, memory_order_acquire))
		(void)sched_yield();
}

void preload_spin_unlock(_Atomic int *lock)
{
	/* RUN-L1 */
	atomic_store_explicit(lock, 0, memory_order_release);
}

static int ring(uint32_t bell_page, uint32_t kind, const void *start,
		size_t bytes)
{
	uint8_t *bell = preload.range + (size_t)bell_page * RUN_PAGE_BYTES;
	struct run_call *call = &preload.channel->call;
	int err;

	/* In a child that could not attach, or was made past the handlers of
	 * fork: there is no channel. */
	if (!atomic_load_explicit(preload.is_attached, memory_order_relaxed))
		return -EIO;
	preload_spin_lock(&preload.is_busy);
	call->kind = kind;
	call->start = (uint64_t)(uintptr_t)start;
	call->bytes = bytes;
	call->err = -EIO;
	/* RUN-B1: the other end is the kernel's, which carries the request.
	 * Who reads its message never sees half of the call. */
	(void)atomic_load_explicit((_Atomic uint8_t *)bell,
				   memory_order_seq_cst);
	err = call->err;
	(void)preload_sys_madvise(bell, RUN_PAGE_BYTES, MADV_DONTNEED);
	preload_spin_unlock(&preload.is_busy);
	return err;
}

int preload_call(uint32_t kind, const void *start, size_t bytes)
{
	return ring(0, kind, start, bytes);
}

int preload_call_self(uint32_t bell_page)
{
	return ring(bell_page, RUN_CALL_SELF, NULL, 0);
}
