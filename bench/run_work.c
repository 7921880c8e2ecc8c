/* SPDX-License-Identifier: Apache-2.0 */
/* The work, and the process that does it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rng.h"
#include "run_bench.h"

enum {
	PAGE_WORDS = 512,
	SORT_SMALL = 16,    /* then by insertion */
	HEADROOM = 4 << 20, /* of a cgroup: it counts more than the work */
};

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- the work ----------------------------------------------------------- */

/* Every page has its own number in its first word: read back, it proves that
 * the page is the right one. */
static uint64_t touch(uint64_t *words, const struct run_work *w, struct rng *r,
		      bool *ok)
{
	uint64_t pages = w->bytes / 4096;
	uint64_t start = now_ns();

	for (uint64_t i = 0; i < w->touches; i++) {
		uint64_t page = rng_below(r, pages);

		*ok &= words[page * PAGE_WORDS] == page;
		words[page * PAGE_WORDS + 1]++;
	}
	return now_ns() - start;
}

static void insertion(uint64_t *a, uint64_t n)
{
	for (uint64_t i = 1; i < n; i++) {
		uint64_t v = a[i], k = i;

		for (; k > 0 && a[k - 1] > v; k--)
			a[k] = a[k - 1];
		a[k] = v;
	}
}

/* Hoare's, the smaller half by recursion. */
static void quicksort(uint64_t *a, uint64_t n)
{
	while (n > SORT_SMALL) {
		uint64_t pivot = a[n / 2];
		uint64_t *i = a, *k = a + n - 1;

		while (i <= k) {
			while (*i < pivot)
				i++;
			while (*k > pivot)
				k--;
			if (i <= k) {
				uint64_t t = *i;

				*i++ = *k;
				*k-- = t;
			}
		}
		if (k - a < a + n - i) {
			quicksort(a, (uint64_t)(k - a + 1));
			n = (uint64_t)(a + n - i);
			a = i;
		} else {
			quicksort(i, (uint64_t)(a + n - i));
			n = (uint64_t)(k - a + 1);
		}
	}
	insertion(a, n);
}

static uint64_t sort(uint64_t *words, const struct run_work *w, bool *ok)
{
	uint64_t n = w->bytes / sizeof(*words);
	uint64_t start = now_ns(), took;

	quicksort(words, n);
	took = now_ns() - start;
	for (uint64_t i = 1; i < n; i++)
		*ok &= words[i - 1] <= words[i];
	return took;
}

int run_work_main(const struct run_work *w)
{
	uint64_t *words = mmap(NULL, w->bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool ok = true;
	struct rng r;
	uint64_t ns;

	if (words == MAP_FAILED)
		return 1;
	rng_init(&r, w->seed);
	for (uint64_t i = 0; i < w->bytes / sizeof(*words); i++)
		words[i] = rng_u64(&r);
	if (w->kind == RUN_WORK_TOUCH) {
		for (uint64_t i = 0; i < w->bytes / 4096; i++)
			words[i * PAGE_WORDS] = i;
		ns = touch(words, w, &r, &ok);
	} else {
		ns = sort(words, w, &ok);
	}
	if (!ok) {
		(void)fprintf(stderr, "aquifer: bench run: wrong bytes\n");
		return 1;
	}
	(void)printf("%" PRIu64 "\n", ns);
	return 0;
}

/* ---- its process -------------------------------------------------------- */

static void be_work(const struct run_work *w, bool is_far, uint64_t local_bytes)
{
	char exe[4096], local[24], bytes[24], touches[24], seed[24];
	const char *argv[20];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	unsigned n = 0;

	if (len < 0)
		_exit(127);
	exe[len] = '\0';
	(void)snprintf(local, sizeof(local), "%" PRIu64, local_bytes);
	(void)snprintf(bytes, sizeof(bytes), "%" PRIu64, w->bytes);
	(void)snprintf(touches, sizeof(touches), "%" PRIu64, w->touches);
	(void)snprintf(seed, sizeof(seed), "%" PRIu64, w->seed);
	if (is_far) {
		argv[n++] = exe;
		argv[n++] = "run";
		argv[n++] = "--local";
		argv[n++] = local;
		argv[n++] = "--";
	}
	argv[n++] = exe;
	argv[n++] = "bench";
	argv[n++] = "run";
	argv[n++] = "--work";
	argv[n++] = w->kind == RUN_WORK_TOUCH ? "touch" : "sort";
	argv[n++] = bytes;
	argv[n++] = touches;
	argv[n++] = seed;
	argv[n] = NULL;
	(void)execv(exe, (char *const *)(uintptr_t)argv);
	_exit(127);
}

static int read_answer(int fd, pid_t pid, uint64_t *ns)
{
	char text[64];
	ssize_t n, have = 0;
	int status;

	while ((n = read(fd, text + have, sizeof(text) - 1 - (size_t)have)) > 0)
		have += n;
	text[have] = '\0';
	if (waitpid(pid, &status, 0) != pid)
		return -errno;
	if (status != 0 || sscanf(text, "%" SCNu64, ns) != 1)
		return -EIO;
	return 0;
}

static int spawn(const struct run_work *w, enum run_place place,
		 uint64_t local_bytes, const struct run_zram *z, uint64_t *ns)
{
	int pipes[2];
	pid_t pid;
	int err;

	if (pipe2(pipes, O_CLOEXEC) != 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		(void)dup2(pipes[1], STDOUT_FILENO);
		if (place == RUN_PLACE_ZRAM && run_zram_enter(z) != 0)
			_exit(127);
		be_work(w, place == RUN_PLACE_FAR, local_bytes);
	}
	err = pid < 0 ? -errno : 0;
	(void)close(pipes[1]);
	if (!err)
		err = read_answer(pipes[0], pid, ns);
	(void)close(pipes[0]);
	return err;
}

int run_work_spawn(const struct run_work *w, enum run_place place,
		   uint64_t local_bytes, uint64_t *ns)
{
	struct run_zram z;
	const char *why;
	int err = 0;

	if (place != RUN_PLACE_ZRAM)
		return spawn(w, place, local_bytes, NULL, ns);
	err = run_zram_open(&z, local_bytes + HEADROOM, 2 * w->bytes, &why);
	if (err) {
		(void)fprintf(stderr, "aquifer: bench run: no %s\n", why);
		return -EOPNOTSUPP;
	}
	err = spawn(w, place, local_bytes, &z, ns);
	run_zram_close(&z);
	return err;
}
