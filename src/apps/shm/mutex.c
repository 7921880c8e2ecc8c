/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutexes that know their owner. libc knows it by the number that one kernel
 * gave to a thread, and another machine has the same numbers for other threads.
 * So a recursive or error-checking mutex in shared memory is a plain one for
 * libc, and its owner, a random number of the thread, and depth are kept here,
 * where libc has the list of robust mutexes. Robust and priority-inheriting
 * ones need the kernel: they are refused.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/random.h>
#include <time.h>

#include "shm.h"

SHM_EXPORT int pthread_mutex_init(pthread_mutex_t *m,
				  const pthread_mutexattr_t *attr);
SHM_EXPORT int pthread_mutex_destroy(pthread_mutex_t *m);
SHM_EXPORT int pthread_mutex_lock(pthread_mutex_t *m);
SHM_EXPORT int pthread_mutex_trylock(pthread_mutex_t *m);
SHM_EXPORT int pthread_mutex_timedlock(pthread_mutex_t *m,
				       const struct timespec *until);
SHM_EXPORT int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock,
				       const struct timespec *until);
SHM_EXPORT int pthread_mutex_unlock(pthread_mutex_t *m);
SHM_EXPORT int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m);
SHM_EXPORT int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
				      const struct timespec *until);
SHM_EXPORT int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m,
				      clockid_t clock,
				      const struct timespec *until);

/* There are older ones, which a search without a version may find. */
#define COND_VERSION "GLIBC_2.3.2"

enum {
	TAG_RECURSIVE = 0x41516d72,
	TAG_CHECKED = 0x41516d65,
};

struct owned {
	_Atomic uint64_t owner; /* 0: nobody; written by who has the mutex */
	_Atomic uint32_t tag;
	uint32_t depth;
};
_Static_assert(sizeof(struct owned) ==
		       sizeof(((pthread_mutex_t *)0)->__data.__list),
	       "libc has the list elsewhere");

/* NULL: libc alone knows it. Whoever asks is about to write the mutex: a plain
 * load would bring its page to read first, and then once more. */
static struct owned *owned_of(pthread_mutex_t *m)
{
	struct owned *o = (struct owned *)(void *)&m->__data.__list;
	uint32_t tag = 0;

	if (!shm_owns(m) || !shm_is_on())
		return NULL;
	(void)atomic_compare_exchange_strong_explicit(
		&o->tag, &tag, 0, memory_order_relaxed, memory_order_relaxed);
	return tag == TAG_RECURSIVE || tag == TAG_CHECKED ? o : NULL;
}

static bool is_checked(const struct owned *o)
{
	return atomic_load_explicit(&o->tag, memory_order_relaxed) ==
	       TAG_CHECKED;
}

static void set_tag(struct owned *o, uint32_t tag)
{
	atomic_store_explicit(&o->tag, tag, memory_order_relaxed);
}

/* ---- threads ------------------------------------------------------------- */

static __thread uint64_t self;

static uint64_t own_number(void)
{
	while (!self)
		if (getrandom(&self, sizeof(self), 0) != sizeof(self))
			self = 0;
	return self;
}

/* A child has nothing locked. */
static void fork_child(void)
{
	self = 0;
}

__attribute__((constructor)) static void constructor(void)
{
	if (shm_is_on())
		(void)pthread_atfork(NULL, NULL, fork_child);
}

static bool is_mine(const struct owned *o)
{
	return atomic_load_explicit(&o->owner, memory_order_relaxed) ==
	       own_number();
}

static void own(struct owned *o, uint32_t depth)
{
	o->depth = depth;
	atomic_store_explicit(&o->owner, depth ? own_number() : 0,
			      memory_order_relaxed);
}

/* ---- making -------------------------------------------------------------- */

static bool needs_kernel(const pthread_mutexattr_t *attr)
{
	int robust = PTHREAD_MUTEX_STALLED, protocol = PTHREAD_PRIO_NONE;

	(void)pthread_mutexattr_getrobust(attr, &robust);
	(void)pthread_mutexattr_getprotocol(attr, &protocol);
	return robust != PTHREAD_MUTEX_STALLED || protocol != PTHREAD_PRIO_NONE;
}

int pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attr)
{
	struct owned *o = (struct owned *)(void *)&m->__data.__list;
	int type = PTHREAD_MUTEX_NORMAL, err;
	pthread_mutexattr_t plain;
	SHM_NEXT(next, pthread_mutex_init, "pthread_mutex_init");

	if (!next)
		return ENOSYS;
	if (!attr || !shm_is_on() || !shm_owns(m))
		return next(m, attr);
	if (needs_kernel(attr))
		return ENOTSUP;
	(void)pthread_mutexattr_gettype(attr, &type);
	if (type != PTHREAD_MUTEX_RECURSIVE && type != PTHREAD_MUTEX_ERRORCHECK)
		return next(m, attr);
	plain = *attr;
	(void)pthread_mutexattr_settype(&plain, PTHREAD_MUTEX_NORMAL);
	err = next(m, &plain);
	if (!err) {
		own(o, 0);
		set_tag(o, type == PTHREAD_MUTEX_RECURSIVE ? TAG_RECURSIVE
							   : TAG_CHECKED);
	}
	return err;
}

int pthread_mutex_destroy(pthread_mutex_t *m)
{
	struct owned *o = owned_of(m);
	SHM_NEXT(next, pthread_mutex_destroy, "pthread_mutex_destroy");
	int err = next ? next(m) : ENOSYS;

	if (!err && o)
		set_tag(o, 0);
	return err;
}

/* ---- locking ------------------------------------------------------------- */

/* Who has it already: true, and what that means. */
static bool is_again(struct owned *o, int deadlock, int *err)
{
	if (!o || !is_mine(o))
		return false;
	if (is_checked(o))
		*err = deadlock;
	else
		*err = o->depth == UINT32_MAX ? EAGAIN : 0;
	o->depth += !*err;
	return true;
}

static int locked(struct owned *o, int err)
{
	if (o && !err)
		own(o, 1);
	return err;
}

int pthread_mutex_lock(pthread_mutex_t *m)
{
	struct owned *o = owned_of(m);
	int err;
	SHM_NEXT(next, pthread_mutex_lock, "pthread_mutex_lock");

	return is_again(o, EDEADLK, &err) ? err
					  : locked(o, next ? next(m) : ENOSYS);
}

int pthread_mutex_trylock(pthread_mutex_t *m)
{
	struct owned *o = owned_of(m);
	int err;
	SHM_NEXT(next, pthread_mutex_trylock, "pthread_mutex_trylock");

	return is_again(o, EBUSY, &err) ? err
					: locked(o, next ? next(m) : ENOSYS);
}

int pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *until)
{
	struct owned *o = owned_of(m);
	int err;
	SHM_NEXT(next, pthread_mutex_timedlock, "pthread_mutex_timedlock");

	return is_again(o, EDEADLK, &err)
		       ? err
		       : locked(o, next ? next(m, until) : ENOSYS);
}

int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock,
			    const struct timespec *until)
{
	struct owned *o = owned_of(m);
	int err;
	SHM_NEXT(next, pthread_mutex_clocklock, "pthread_mutex_clocklock");

	return is_again(o, EDEADLK, &err)
		       ? err
		       : locked(o, next ? next(m, clock, until) : ENOSYS);
}

/* A thread that is cancelled while it waits for a condition has the mutex
 * again, and only libc knows. */
static bool was_cancelled(const pthread_mutex_t *m, const struct owned *o)
{
	return m->__data.__lock &&
	       !atomic_load_explicit(&o->owner, memory_order_relaxed);
}

int pthread_mutex_unlock(pthread_mutex_t *m)
{
	struct owned *o = owned_of(m);
	SHM_NEXT(next, pthread_mutex_unlock, "pthread_mutex_unlock");

	if (o && !is_mine(o) && !was_cancelled(m, o))
		return EPERM;
	if (o && o->depth > 1) {
		o->depth--;
		return 0;
	}
	if (o)
		own(o, 0);
	return next ? next(m) : ENOSYS;
}

/* ---- condition variables: the mutex is another's meanwhile ----------------
 */

static void *versioned(_Atomic(void *) *known, const char *name)
{
	void *f = atomic_load_explicit(known, memory_order_relaxed);

	if (!f) {
		f = dlvsym(RTLD_NEXT, name, COND_VERSION);
		f = f ? f : dlsym(RTLD_NEXT, name); /* another processor's */
		atomic_store_explicit(known, f, memory_order_relaxed);
	}
	return f;
}

/* How deep the mutex is, which is let go; 0: libc alone knows it. */
static uint32_t let_go(pthread_mutex_t *m)
{
	struct owned *o = owned_of(m);
	uint32_t depth = o && is_mine(o) ? o->depth : 0;

	if (depth)
		own(o, 0);
	return depth;
}

static int taken(pthread_mutex_t *m, uint32_t depth, int err)
{
	if (depth)
		own(owned_of(m), depth);
	return err;
}

int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	static _Atomic(void *) known;
	__typeof__(pthread_cond_wait) *next;
	uint32_t depth;

	*(void **)&next = versioned(&known, "pthread_cond_wait");
	if (!next)
		return ENOSYS;
	depth = let_go(m);
	return taken(m, depth, next(c, m));
}

int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
			   const struct timespec *until)
{
	static _Atomic(void *) known;
	__typeof__(pthread_cond_timedwait) *next;
	uint32_t depth;

	*(void **)&next = versioned(&known, "pthread_cond_timedwait");
	if (!next)
		return ENOSYS;
	depth = let_go(m);
	return taken(m, depth, next(c, m, until));
}

int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m,
			   clockid_t clock, const struct timespec *until)
{
	uint32_t depth;
	SHM_NEXT(next, pthread_cond_clockwait, "pthread_cond_clockwait");

	if (!next)
		return ENOSYS;
	depth = let_go(m);
	return taken(m, depth, next(c, m, clock, until));
}
