/* SPDX-License-Identifier: Apache-2.0 */
/* Futexes in memory that processes share. */
#include "doze.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000ull),
				 .tv_nsec = (long)(ns % 1000000000ull)};
}

static long wait_for_one(const struct doze_word *w, uint64_t max_ns)
{
	struct timespec t = timespec_of(max_ns);

	return syscall(SYS_futex, w->at, FUTEX_WAIT, w->value, &t, NULL, 0);
}

static long wait_for_any(const struct doze_word *words, unsigned count,
			 uint64_t max_ns)
{
	struct timespec until = timespec_of(clock_mono_ns() + max_ns);
	struct futex_waitv v[DOZE_WORDS_MAX] = {0};

	for (unsigned i = 0; i < count; i++) {
		v[i].val = words[i].value;
		v[i].uaddr = (uintptr_t)words[i].at;
		v[i].flags = FUTEX_32;
	}
	return syscall(SYS_futex_waitv, v, count, 0, &until, CLOCK_MONOTONIC);
}

bool doze_wait(const struct doze_word *words, unsigned count, uint64_t max_ns)
{
	long rc;

	ASSERT(count > 0 && count <= DOZE_WORDS_MAX);
	rc = count == 1 ? wait_for_one(words, max_ns)
			: wait_for_any(words, count, max_ns);
	return rc >= 0 || errno == EAGAIN || errno == ETIMEDOUT ||
	       errno == EINTR;
}

void doze_rouse(const void *at)
{
	/* It fails only where nobody can wait either. */
	(void)syscall(SYS_futex, at, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
