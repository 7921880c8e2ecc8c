/* SPDX-License-Identifier: Apache-2.0 */
#include "spill.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/landing.h"
#include "base/log.h"
#include "base/size.h"

enum {
	SYNC_S = 2,
	PAGE = 4096,
};

struct spill {
	int fd;
	uint8_t *base;
	uint64_t size_bytes;
	size_t unit_count;
	pthread_mutex_t lock; /* what follows */
	pthread_cond_t wake;
	uint8_t *taken; /* units */
	uint64_t used_bytes;
	bool stops;
	bool has_thread;
	pthread_t thread;
	/* Set by whoever finds out, also in a signal handler; never unset. */
	atomic_bool is_bad;
	atomic_uchar *bad; /* units */
	atomic_ullong errors;
};

/* Process-wide, as signals are. SPILL-1: who sees it sees it whole. */
static _Atomic(struct spill *) the_one;
static struct sigaction before;

/* ---- faults -------------------------------------------------------------- */

static size_t unit_of(const struct spill *s, const void *at)
{
	return (size_t)((const uint8_t *)at - s->base) / SPILL_UNIT;
}

/* Zeros instead of the page: the thread goes on, and who asks later hears that
 * the part is bad. */
static bool patch(void *at)
{
	/* SPILL-1, with spill_open. */
	struct spill *s = atomic_load_explicit(&the_one, memory_order_acquire);
	uintptr_t page = (uintptr_t)at & ~(uintptr_t)(PAGE - 1);

	if (!s || (uint8_t *)at < s->base ||
	    (uint8_t *)at >= s->base + s->size_bytes)
		return false;
	/* Relaxed: the thread itself looks at it after the fault. */
	atomic_store_explicit(&s->bad[unit_of(s, at)], 1, memory_order_relaxed);
	(void)atomic_fetch_add_explicit(&s->errors, 1, memory_order_relaxed);
	return mmap((void *)page, PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		    0) != MAP_FAILED;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	if (info->si_code > 0 &&
	    (landing_take((uintptr_t)info->si_addr, context) ||
	     patch(info->si_addr)))
		return;
	if (before.sa_flags & SA_SIGINFO)
		before.sa_sigaction(sig, info, context);
	else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
		before.sa_handler(sig);
	else
		(void)signal(sig, SIG_DFL); /* it faults again */
}

static int watch_faults(void)
{
	struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_ONSTACK,
				 .sa_sigaction = on_fault};

	return sigaction(SIGBUS, &ours, &before) < 0 ? -errno : 0;
}

/* ---- writing ------------------------------------------------------------- */

static void fail_all(struct spill *s, int err)
{
	(void)atomic_fetch_add_explicit(&s->errors, 1, memory_order_relaxed);
	/* Relaxed: whoever looks a moment later finds out then. */
	if (!atomic_exchange_explicit(&s->is_bad, true, memory_order_relaxed))
		log_err("memnode",
			"the disk of the spill tier fails: %s; what lies "
			"there is lost",
			strerror(err));
}

/* The kernel tells of what it could not write only who asks. */
static void *run(void *arg)
{
	struct spill *s = arg;
	struct timespec until;

	(void)pthread_setname_np(pthread_self(), "aq-spill");
	pthread_mutex_lock(&s->lock);
	while (!s->stops) {
		bool is_used = s->used_bytes != 0;

		pthread_mutex_unlock(&s->lock);
		if (is_used && fdatasync(s->fd) < 0)
			fail_all(s, errno);
		pthread_mutex_lock(&s->lock);
		(void)clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += SYNC_S;
		if (!s->stops)
			(void)pthread_cond_timedwait(&s->wake, &s->lock,
						     &until);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static int start_thread(struct spill *s)
{
	sigset_t all, was;
	int err;

	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &was);
	err = pthread_create(&s->thread, NULL, run, s);
	(void)pthread_sigmask(SIG_SETMASK, &was, NULL);
	s->has_thread = err == 0;
	return -err;
}

/* ---- life ---------------------------------------------------------------- */

static int open_file(const char *dir)
{
	char path[PATH_MAX];
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	int len;

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd < 0 ? -errno : fd;
	/* A file system that knows no files without a name. */
	len = snprintf(path, sizeof(path), "%s/aquifer-spill-XXXXXX", dir);
	if (len < 0 || (size_t)len >= sizeof(path))
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	(void)unlink(path);
	return fd;
}

static int make_file(struct spill *s, const char *dir)
{
	int err;

	s->fd = open_file(dir);
	if (s->fd < 0)
		return error_set(s->fd, "the spill tier cannot be in %s: %s",
				 dir, strerror(-s->fd));
	err = posix_fallocate(s->fd, 0, (off_t)s->size_bytes);
	if (err)
		return error_set(-err, "%s has no %s for the spill tier: %s",
				 dir, SIZE_TEXT(s->size_bytes), strerror(err));
	s->base = mmap(NULL, s->size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		       s->fd, 0);
	if (s->base != MAP_FAILED)
		return 0;
	s->base = NULL;
	return error_set(-errno, "the spill tier cannot be mapped: %s",
			 strerror(errno));
}

int spill_open(const char *dir, uint64_t size_bytes, struct spill **out)
{
	struct spill *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return error_set(-ENOMEM, "no memory for the spill tier");
	s->fd = -1;
	s->size_bytes = size_bytes / SPILL_UNIT * SPILL_UNIT;
	s->unit_count = (size_t)(s->size_bytes / SPILL_UNIT);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->wake, NULL);
	/* Its size is not believed before the disk has given as much. */
	err = make_file(s, dir);
	if (!err) {
		s->taken = calloc(s->unit_count, 1);
		s->bad = calloc(s->unit_count, sizeof(*s->bad));
		if (!s->taken || !s->bad)
			err = error_set(-ENOMEM,
					"no memory for the spill tier");
	}
	if (!err) {
		err = start_thread(s);
		if (err)
			(void)error_set(err, "no thread for the spill tier");
	}
	if (err) {
		spill_close(s);
		return err;
	}
	/* SPILL-1: the handler finds all of it. */
	atomic_store_explicit(&the_one, s, memory_order_release);
	err = watch_faults();
	if (err) {
		spill_close(s);
		return error_set(err, "SIGBUS cannot be handled");
	}
	*out = s;
	return 0;
}

void spill_close(struct spill *s)
{
	struct spill *self = s;

	if (!s)
		return;
	if (atomic_compare_exchange_strong_explicit(&the_one, &self, NULL,
						    memory_order_relaxed,
						    memory_order_relaxed))
		(void)sigaction(SIGBUS, &before, NULL);
	if (s->has_thread) {
		pthread_mutex_lock(&s->lock);
		s->stops = true;
		pthread_cond_signal(&s->wake);
		pthread_mutex_unlock(&s->lock);
		(void)pthread_join(s->thread, NULL);
	}
	if (s->base)
		(void)munmap(s->base, s->size_bytes);
	if (s->fd >= 0)
		(void)close(s->fd);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	free(s->taken);
	free(s->bad);
	free(s);
}

/* ---- parts --------------------------------------------------------------- */

static bool is_free(const struct spill *s, size_t at, size_t count)
{
	return !memchr(s->taken + at, 1, count);
}

int spill_take(struct spill *s, uint64_t bytes, void **out)
{
	size_t count = (size_t)(align_up(bytes, SPILL_UNIT) / SPILL_UNIT);
	int err = -ENOSPC;

	if (atomic_load_explicit(&s->is_bad, memory_order_relaxed))
		return error_set(-EIO, "the disk of the spill tier fails");
	pthread_mutex_lock(&s->lock);
	/* Blocks are powers of two, so multiples of their size are enough. */
	for (size_t at = 0; at + count <= s->unit_count && err; at += count)
		if (is_free(s, at, count)) {
			memset(s->taken + at, 1, count);
			s->used_bytes += (uint64_t)count * SPILL_UNIT;
			*out = s->base + at * SPILL_UNIT;
			err = 0;
		}
	pthread_mutex_unlock(&s->lock);
	return err ? error_set(err, "the spill tier has no %s left",
			       SIZE_TEXT(bytes))
		   : 0;
}

/* Zeros that keep their place on the disk. */
static bool clear(struct spill *s, size_t at, size_t count)
{
	off_t from = (off_t)at * SPILL_UNIT, len = (off_t)count * SPILL_UNIT;
	static const uint8_t zeros[SPILL_UNIT];

	if (fallocate(s->fd, FALLOC_FL_ZERO_RANGE, from, len) == 0)
		return true;
	for (size_t i = 0; i < count; i++)
		if (pwrite(s->fd, zeros, SPILL_UNIT,
			   from + (off_t)i * SPILL_UNIT) != SPILL_UNIT)
			return false;
	return true;
}

void spill_give(struct spill *s, void *at, uint64_t bytes)
{
	size_t first = unit_of(s, at);
	size_t count = (size_t)(align_up(bytes, SPILL_UNIT) / SPILL_UNIT);
	bool is_kept = spill_is_bad(s, at, bytes) || !clear(s, first, count);

	pthread_mutex_lock(&s->lock);
	s->used_bytes -= (uint64_t)count * SPILL_UNIT;
	if (!is_kept)
		memset(s->taken + first, 0, count);
	pthread_mutex_unlock(&s->lock);
}

bool spill_is_bad(const struct spill *s, const void *at, uint64_t bytes)
{
	size_t first = unit_of(s, at);
	size_t count = (size_t)(align_up(bytes, SPILL_UNIT) / SPILL_UNIT);

	if (atomic_load_explicit(&s->is_bad, memory_order_relaxed))
		return true;
	for (size_t i = first; i < first + count; i++)
		if (atomic_load_explicit(&s->bad[i], memory_order_relaxed))
			return true;
	return false;
}

uint64_t spill_size(const struct spill *s)
{
	return s->size_bytes;
}

uint64_t spill_used(struct spill *s)
{
	uint64_t used;

	pthread_mutex_lock(&s->lock);
	used = s->used_bytes;
	pthread_mutex_unlock(&s->lock);
	return used;
}

uint64_t spill_errors(const struct spill *s)
{
	return atomic_load_explicit(&s->errors, memory_order_relaxed);
}
