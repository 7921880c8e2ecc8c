/* SPDX-License-Identifier: Apache-2.0 */
/* madvise, as the program sees it. The kernel does what is asked and tells the
 * pager what goes; here is what it does not tell, or would do in vain. */
#include <errno.h>
#include <sys/mman.h>

#include "preload.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int madvise(void *addr, size_t len, int advice);

enum {
	/* Not in all headers. */
	ADVICE_GUARD_INSTALL = 102,
	ADVICE_GUARD_REMOVE = 103,
};

bool preload_clip(const void *addr, size_t len, void **start, size_t *bytes)
{
	uintptr_t from = (uintptr_t)addr;
	uintptr_t to = from + align_up(len, RUN_PAGE_BYTES);
	uintptr_t first = (uintptr_t)preload.range;
	uintptr_t end = first + RUN_RANGE_BYTES;

	if (!preload_is_far() || to < from)
		return false;
	from = from > first ? from : first;
	to = to < end ? to : end;
	if (from >= to)
		return false;
	*start = (void *)from;
	*bytes = to - from;
	return true;
}

/* What is to become of it in a child: the kernel knows, but of what is not here
 * the pager makes the child's. */
static int advise_fork(void *addr, size_t len, int advice, uint32_t kind)
{
	int ret = preload_sys_madvise(addr, len, advice);
	size_t bytes;
	void *start;

	if (ret == 0 && preload_clip(addr, len, &start, &bytes)) {
		int saved = errno;

		preload_set_oddities();
		/* A process that the pager does not know has nobody who forks
		 * for it either. */
		(void)preload_call(kind, start, bytes);
		errno = saved;
	}
	return ret;
}

/* Its bytes are gone for good, also those that are not here. */
static int install_guard(void *addr, size_t len)
{
	int ret = preload_sys_madvise(addr, len, ADVICE_GUARD_INSTALL);

	preload_set_oddities();
	if (ret == 0)
		ret = preload_sys_madvise(addr, len, MADV_DONTNEED);
	return ret;
}

int madvise(void *addr, size_t len, int advice)
{
	size_t bytes;
	void *start;

	if (!preload_clip(addr, len, &start, &bytes))
		return preload_sys_madvise(addr, len, advice);
	switch (advice) {
	case MADV_FREE:
		/* That it could stay is of no use: it would be taken away by
		 * the kernel, which knows of no want. */
		return preload_sys_madvise(addr, len, MADV_DONTNEED);
	case MADV_WIPEONFORK:
		return advise_fork(addr, len, advice, RUN_CALL_WIPE);
	case MADV_KEEPONFORK:
		return advise_fork(addr, len, advice, RUN_CALL_UNWIPE);
	case MADV_DONTFORK:
		return advise_fork(addr, len, advice, RUN_CALL_WITHHOLD);
	case MADV_DOFORK:
		return advise_fork(addr, len, advice, RUN_CALL_UNWITHHOLD);
	case ADVICE_GUARD_INSTALL:
		return install_guard(addr, len);
	case MADV_HUGEPAGE: /* far pages are small */
	case MADV_MERGEABLE:
	case MADV_COLD:
	case MADV_PAGEOUT:
		return 0;
	default:
		return preload_sys_madvise(addr, len, advice);
	}
}
