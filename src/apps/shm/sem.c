/* SPDX-License-Identifier: Apache-2.0 */
/* Named semaphores: each is the first bytes of an object of a page. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "shm.h"

SHM_EXPORT sem_t *sem_open(const char *name, int flags, ...);
SHM_EXPORT int sem_close(sem_t *sem);
SHM_EXPORT int sem_unlink(const char *name);

enum {
	SEMAPHORES = 256,
	READY_TRIES = 10000, /* of a millisecond */
};

/* What is in the page. The rest of it is free. */
struct page {
	sem_t sem;
	_Atomic uint32_t is_ready; /* it has its first value */
};

/* A process that opens a semaphore twice has one address of it. */
static struct {
	pthread_mutex_t lock;
	unsigned count;
	struct {
		uint64_t id;
		struct page *page;
		unsigned users;
	} open[SEMAPHORES];
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int map_page(uint64_t id, struct page **out)
{
	long at = shm_map(id, NULL, 0, COHERENCE_PAGE_BYTES,
			  PROT_READ | PROT_WRITE);

	if (at < 0)
		return (int)at;
	*out = (struct page *)at;
	return 0;
}

static int make(uint64_t id, unsigned value, struct page **out)
{
	int err = shm_resize(id, COHERENCE_PAGE_BYTES);

	if (!err)
		err = map_page(id, out);
	if (!err && sem_init(&(*out)->sem, 1, value) != 0)
		err = -errno;
	/* SHM-1: who sees it ready sees the value. */
	if (!err)
		atomic_store_explicit(&(*out)->is_ready, 1,
				      memory_order_release);
	else
		(void)!shm_unlink_object(NULL, id);
	return err;
}

static int await(uint64_t id, struct page **out)
{
	struct timespec pause = {.tv_nsec = 1000000};
	struct shm_object o;
	int err = shm_await(id, &o);

	if (!err)
		err = map_page(id, out);
	if (err)
		return err;
	for (unsigned i = 0; i < READY_TRIES; i++) {
		/* SHM-1 */
		if (atomic_load_explicit(&(*out)->is_ready,
					 memory_order_acquire))
			return 0;
		(void)nanosleep(&pause, NULL);
	}
	(void)munmap(*out, COHERENCE_PAGE_BYTES);
	return -ETIMEDOUT; /* who made it has died before that */
}

/* Under the lock. */
static int open_page(const char *name, int flags, unsigned value,
		     struct page **out)
{
	unsigned how = (flags & O_CREAT ? COHERENT_CREATE : 0) |
		       (flags & O_EXCL ? COHERENT_EXCLUSIVE : 0);
	char full[COHERENT_NAME_MAX];
	struct shm_object o;
	int sock, err = shm_name(SHM_SEMAPHORE, name, full);

	if (err)
		return err;
	sock = shm_connect();
	if (sock < 0)
		return sock;
	err = shm_find(sock, full, 0, how, &o, NULL);
	for (unsigned i = 0; !err && i < all.count; i++)
		if (all.open[i].id == o.id) {
			all.open[i].users++;
			*out = all.open[i].page;
			(void)close(sock);
			return 0;
		}
	if (!err && all.count == SEMAPHORES)
		err = -EMFILE;
	if (!err)
		err = o.is_new ? make(o.id, value, out) : await(o.id, out);
	(void)close(sock);
	if (!err) {
		all.open[all.count].id = o.id;
		all.open[all.count].page = *out;
		all.open[all.count++].users = 1;
	}
	return err;
}

sem_t *sem_open(const char *name, int flags, ...)
{
	unsigned value = 0;
	struct page *page = NULL;
	mode_t mode = 0;
	va_list args;
	int err;
	SHM_NEXT(next, sem_open, "sem_open");

	va_start(args, flags);
	if (flags & O_CREAT) {
		mode = va_arg(args, mode_t);
		value = va_arg(args, unsigned);
	}
	va_end(args);
	if (!shm_is_on())
		return next ? next(name, flags, mode, value) : SEM_FAILED;
	while (*name == '/')
		name++;
	(void)pthread_mutex_lock(&all.lock);
	err = value > (unsigned)SEM_VALUE_MAX
		      ? -EINVAL
		      : open_page(name, flags, value, &page);
	(void)pthread_mutex_unlock(&all.lock);
	if (err) {
		(void)shm_fail(err);
		return SEM_FAILED;
	}
	return &page->sem;
}

int sem_close(sem_t *sem)
{
	struct page *gone = NULL;
	bool is_known = false;
	SHM_NEXT(next, sem_close, "sem_close");

	if (!shm_is_on())
		return next ? next(sem) : shm_fail(ENOSYS);
	(void)pthread_mutex_lock(&all.lock);
	for (unsigned i = 0; i < all.count && !is_known; i++) {
		if (&all.open[i].page->sem != sem)
			continue;
		is_known = true;
		if (--all.open[i].users)
			continue;
		gone = all.open[i].page;
		all.open[i] = all.open[--all.count];
	}
	(void)pthread_mutex_unlock(&all.lock);
	if (!is_known)
		return shm_fail(EINVAL);
	return gone ? munmap(gone, COHERENCE_PAGE_BYTES) : 0;
}

int sem_unlink(const char *name)
{
	char full[COHERENT_NAME_MAX];
	int err;
	SHM_NEXT(next, sem_unlink, "sem_unlink");

	if (!shm_is_on())
		return next ? next(name) : shm_fail(ENOSYS);
	while (*name == '/')
		name++;
	err = shm_name(SHM_SEMAPHORE, name, full);
	if (!err)
		err = shm_unlink_object(full, 0);
	return err ? shm_fail(err) : 0;
}
