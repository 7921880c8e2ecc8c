/* SPDX-License-Identifier: Apache-2.0 */
/* mmap and its relatives, where objects are concerned. */
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/types.h>

#include "shm.h"

SHM_EXPORT void *shm_do_mmap(void *addr, size_t len, int prot, int flags,
			     int fd, off_t offset) __asm__("mmap");
SHM_EXPORT __typeof__(shm_do_mmap) shm_do_mmap64 __asm__("mmap64")
	__attribute__((alias("mmap")));
SHM_EXPORT int munmap(void *addr, size_t len);
SHM_EXPORT void *mremap(void *old, size_t old_len, size_t len, int flags, ...);
SHM_EXPORT int msync(void *addr, size_t len, int flags);

static void *refuse(int err)
{
	errno = err;
	return MAP_FAILED;
}

static void *map_object(uint64_t id, void *addr, size_t len, int prot,
			int flags, off_t offset)
{
	bool is_fixed = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE);
	int type = flags & MAP_TYPE;
	long at;

	/* Copies of pages that are written would be of one moment. */
	if (type != MAP_SHARED && type != MAP_SHARED_VALIDATE)
		return refuse(EOPNOTSUPP);
	if (offset < 0 || flags & MAP_FIXED_NOREPLACE)
		return refuse(EINVAL);
	at = shm_map(id, is_fixed ? addr : NULL, (uint64_t)offset, len, prot);
	if (at == -EOPNOTSUPP)
		shm_complain("memory that sleeping threads shall share cannot "
			     "be mapped at any address (MAP_FIXED)",
			     -EOPNOTSUPP);
	return at < 0 ? refuse((int)-at) : (void *)at;
}

void *shm_do_mmap(void *addr, size_t len, int prot, int flags, int fd,
		  off_t offset)
{
	uint64_t id = fd >= 0 && !(flags & MAP_ANONYMOUS) ? shm_id_of(fd) : 0;
	void *mem;
	SHM_NEXT(next, shm_do_mmap, "mmap");

	if (id)
		return map_object(id, addr, len, prot, flags, offset);
	mem = next ? next(addr, len, prot, flags, fd, offset) : refuse(ENOSYS);
	if (mem != MAP_FAILED && shm_is_on() && shm_owns(mem))
		shm_forget(mem, len);
	return mem;
}

int munmap(void *addr, size_t len)
{
	SHM_NEXT(next, munmap, "munmap");
	int ret = next ? next(addr, len) : shm_fail(ENOSYS);

	if (ret == 0 && shm_is_on() && shm_owns(addr))
		shm_forget(addr, len);
	return ret;
}

/* The kernel would move pages away from who serves them. */
void *mremap(void *old, size_t old_len, size_t len, int flags, ...)
{
	va_list args;
	void *to;
	SHM_NEXT(next, mremap, "mremap");

	if (shm_is_on() && shm_owns(old))
		return refuse(EOPNOTSUPP);
	va_start(args, flags);
	to = flags & MREMAP_FIXED ? va_arg(args, void *) : NULL;
	va_end(args);
	return next ? next(old, old_len, len, flags, to) : refuse(ENOSYS);
}

int msync(void *addr, size_t len, int flags)
{
	SHM_NEXT(next, msync, "msync");
	int err;

	if (!shm_is_on() || !shm_owns(addr) || !(flags & MS_SYNC))
		return next ? next(addr, len, flags) : shm_fail(ENOSYS);
	err = shm_flush(addr, len);
	return err ? shm_fail(err) : 0;
}
