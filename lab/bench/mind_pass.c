/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A turn that two machines give each other, by a mutex and a condition variable
 * on which the other one sleeps: plain POSIX programs under `aquifer run
 * --shared`, which are this program once more. What they cost is counted in the
 * switch's trace, between two pages that are touched for that.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mind_bench.h"
#include "place.h"

enum {
	PASSES = 200, /* of each side */
	WARM = 8,     /* of each side, before it counts */
	/* Pages, each in a region of its own. */
	AT_TURN = 0,
	AT_BEGIN = MIND_APART,
	AT_END = 2 * MIND_APART,
	AT_READY = 3 * MIND_APART,
	PAGES = 4 * MIND_APART,
	PAGE = 4096,
	READY_US = 1000,
};

#define OBJECT "/pass"

struct turn {
	pthread_mutex_t lock;
	pthread_cond_t is_passed;
	long turn;
};

/* ---- the program ----------------------------------------------------------
 */

static int make(struct turn *t)
{
	pthread_mutexattr_t mutex;
	pthread_condattr_t cond;

	(void)pthread_mutexattr_init(&mutex);
	(void)pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
	(void)pthread_condattr_init(&cond);
	(void)pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED);
	return pthread_mutex_init(&t->lock, &mutex) ||
	       pthread_cond_init(&t->is_passed, &cond);
}

/* The memory of both; side 0 makes it, and says where it is. NULL: errno. */
static uint8_t *meet(int side, const char *where)
{
	int fd = shm_open(OBJECT, O_RDWR | O_CREAT, 0600);
	_Atomic int *is_ready;
	uint8_t *m;
	FILE *f;

	if (fd < 0 || ftruncate(fd, PAGES * PAGE) != 0)
		return NULL;
	m = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	if (m == MAP_FAILED)
		return NULL;
	is_ready = (_Atomic int *)(void *)(m + AT_READY * PAGE);
	if (side == 0) {
		f = make((struct turn *)(void *)m) ? NULL : fopen(where, "we");
		if (!f || fprintf(f, "%" PRIuPTR "\n", (uintptr_t)m) < 0 ||
		    fclose(f) != 0)
			return NULL;
		atomic_store_explicit(is_ready, 1, memory_order_relaxed);
	}
	while (!atomic_load_explicit(is_ready, memory_order_relaxed))
		(void)usleep(READY_US);
	return m;
}

int mind_pass_from(char **argv)
{
	int side = atoi(argv[1]);
	uint8_t *m = meet(side, argv[0]);
	struct turn *t = (struct turn *)(void *)m;

	if (!m) {
		perror(OBJECT);
		return 1;
	}
	for (long i = 0; i < WARM + PASSES; i++) {
		(void)pthread_mutex_lock(&t->lock);
		while (t->turn % 2 != side)
			(void)pthread_cond_wait(&t->is_passed, &t->lock);
		if (side == 0 && i == WARM)
			m[AT_BEGIN * PAGE] = 1;
		t->turn++;
		(void)pthread_cond_signal(&t->is_passed);
		(void)pthread_mutex_unlock(&t->lock);
	}
	if (side == 1) {
		m[AT_END * PAGE] = 1;
		(void)shm_unlink(OBJECT);
	}
	return 0;
}

/* ---- the bench ------------------------------------------------------------
 */

static int read_where(const char *path, uint64_t *va)
{
	FILE *f = fopen(path, "re");
	int n = f ? fscanf(f, "%" SCNu64, va) : 0;

	if (f)
		(void)fclose(f); /* it was only read */
	return n == 1 ? 0 : -EIO;
}

int mind_pass_run(struct bench *b, const struct mind_rack *r, uint64_t *va)
{
	char self[4096], where[MIND_PATH_BYTES];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	pid_t pid[MIND_MACHINES];
	int err = 0;

	if (len < 0)
		return bench_fail(b, -errno, "no /proc");
	self[len] = '\0';
	(void)snprintf(where, sizeof(where), "%s/pass", r->dir);
	for (unsigned i = 0; i < MIND_MACHINES; i++) {
		mind_rack_be(i);
		pid[i] = place_start_aquifer(0, "run", "--shared", "bench",
					     "--", self, "--mind-pass", where,
					     i ? "1" : "0", (char *)NULL);
		(void)unsetenv("AQUIFER_NIC_ADDRESS");
	}
	for (unsigned i = 0; i < MIND_MACHINES; i++)
		if (pid[i] < 0 || place_wait(pid[i]))
			err = -ECHILD;
	if (!err)
		err = read_where(where, va);
	return err ? bench_fail(b, err, "a program of a group has failed") : 0;
}

void mind_pass_report(struct bench *b, const struct mind_trace *t, uint64_t va)
{
	int gets = mind_trace_gets(t, va + AT_TURN * PAGE, va + AT_BEGIN * PAGE,
				   va + AT_END * PAGE);
	double each = gets / (2.0 * PASSES);

	if (gets < 0) {
		bench_void(b, "gets_per_mutex_pass", "not in the trace");
		return;
	}
	(void)bench_row(b, "count", "gets_per_mutex_pass", each, "gets",
			"mutex and condition variable pass a turn between two "
			"machines that sleep");
	bench_ratio_add(b, "gets_per_mutex_pass", each);
}
