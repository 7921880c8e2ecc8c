/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Robust mutexes. When a thread ends, the kernel walks its list of those that
 * it holds, from one to the next, and tells who waits (EOWNERDEAD). There it
 * can wait for no page, so the pages of such mutexes stay near while they live.
 * Libc has no other way to make one than pthread_mutex_init: no initialiser is
 * robust, and the list's head is in memory of libc, which is never far.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include "preload.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int pthread_mutex_init(pthread_mutex_t *m,
			      const pthread_mutexattr_t *attr);
EXPORT int pthread_mutex_destroy(pthread_mutex_t *m);

enum {
	PAGES = 65536, /* with such mutexes; a power of two */
};

/* Never removed, only its count: the search goes on until an empty place. */
struct robust_page {
	uintptr_t addr;
	uint32_t mutexes;
};

static struct {
	_Atomic int lock;
	struct robust_page *page; /* a hash table */
	unsigned used;
} robust;

/* Libc's own; every thread finds the same. */
static void *libc_find(_Atomic(void *) *known, const char *name)
{
	void *f = atomic_load_explicit(known, memory_order_relaxed);

	if (!f) {
		f = dlsym(RTLD_NEXT, name);
		atomic_store_explicit(known, f, memory_order_relaxed);
	}
	return f;
}

static int libc_init(pthread_mutex_t *m, const pthread_mutexattr_t *attr)
{
	static _Atomic(void *) known;
	__typeof__(pthread_mutex_init) *f;

	*(void **)&f = libc_find(&known, "pthread_mutex_init");
	return f ? f(m, attr) : ENOSYS;
}

static int libc_destroy(pthread_mutex_t *m)
{
	static _Atomic(void *) known;
	__typeof__(pthread_mutex_destroy) *f;

	*(void **)&f = libc_find(&known, "pthread_mutex_destroy");
	return f ? f(m) : ENOSYS;
}

static struct robust_page *find(uintptr_t addr)
{
	uint64_t hash = (addr >> RUN_PAGE_SHIFT) * 0x9e3779b97f4a7c15ull >> 32;

	for (unsigned i = 0; robust.page && i < PAGES; i++) {
		struct robust_page *e = &robust.page[(hash + i) % PAGES];

		if (e->addr == addr || !e->addr)
			return e;
	}
	return NULL;
}

static int keep_page(uintptr_t addr)
{
	struct robust_page *e;
	int err;

	if (!robust.page)
		robust.page = preload_new(PAGES * sizeof(*robust.page));
	e = find(addr);
	if (!e || (!e->addr && robust.used == PAGES / 2))
		return -ENOMEM;
	if (!e->mutexes) {
		err = preload_call(RUN_CALL_KEEP, (void *)addr, RUN_PAGE_BYTES);
		/* Where nobody serves us, nothing leaves. */
		if (err && err != -EIO)
			return err;
	}
	robust.used += !e->addr;
	e->addr = addr;
	e->mutexes++;
	return 0;
}

static void unkeep_page(uintptr_t addr)
{
	struct robust_page *e = find(addr);

	if (e && e->mutexes && --e->mutexes == 0)
		(void)preload_call(RUN_CALL_UNKEEP, (void *)addr,
				   RUN_PAGE_BYTES);
}

static uintptr_t page_at(const void *addr)
{
	return (uintptr_t)addr & ~(uintptr_t)(RUN_PAGE_BYTES - 1);
}

static int keep(const pthread_mutex_t *m)
{
	uintptr_t first = page_at(m), last = page_at((const char *)(m + 1) - 1);
	int err;

	preload_spin_lock(&robust.lock);
	err = keep_page(first);
	if (!err && last != first) {
		err = keep_page(last);
		if (err)
			unkeep_page(first);
	}
	preload_spin_unlock(&robust.lock);
	return err;
}

static void unkeep(const pthread_mutex_t *m)
{
	uintptr_t first = page_at(m), last = page_at((const char *)(m + 1) - 1);

	preload_spin_lock(&robust.lock);
	unkeep_page(first);
	if (last != first)
		unkeep_page(last);
	preload_spin_unlock(&robust.lock);
}

void preload_robust_keep(void)
{
	preload_spin_lock(&robust.lock);
	for (unsigned i = 0; robust.page && i < PAGES; i++)
		if (robust.page[i].mutexes)
			(void)preload_call(RUN_CALL_KEEP,
					   (void *)robust.page[i].addr,
					   RUN_PAGE_BYTES);
	preload_spin_unlock(&robust.lock);
}

int pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attr)
{
	int kind = PTHREAD_MUTEX_STALLED, err;

	if (attr)
		(void)pthread_mutexattr_getrobust(attr, &kind);
	if (kind != PTHREAD_MUTEX_ROBUST || !preload_owns(m))
		return libc_init(m, attr);
	/* First kept, then written, which brings it. */
	err = keep(m);
	if (err)
		return -err;
	err = libc_init(m, attr);
	if (err)
		unkeep(m);
	return err;
}

int pthread_mutex_destroy(pthread_mutex_t *m)
{
	/* Whether it was robust, libc no longer says: the bits are its own. */
	bool is_robust = m->__data.__kind & 16;
	int err = libc_destroy(m);

	if (!err && is_robust && preload_owns(m))
		unkeep(m);
	return err;
}
