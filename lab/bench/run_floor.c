/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor of a fault: the least that any handler of userfaultfd does on the
 * core of the thread that faults, to bring a page and to take one out. Nothing
 * is looked up, nothing is far, nothing is checked. Pages leave 64 at a time,
 * all neighbours: protected, copied, dropped. The handler is in another process
 * or, for comparison, in the thread itself, which gets SIGBUS; then system
 * calls that meet a missing page fail.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "run_bench.h"

enum {
	PAGE = 4096,
	BATCH = 64, /* pages that leave together */
	BATCH_BYTES = BATCH * PAGE,
};

struct floor {
	int uffd;
	uint8_t *range; /* twice what is resident */
	uint8_t *from;	/* where pages come from, as large as what is */
	uint8_t *out;	/* where they go: as large again */
	uint64_t bytes; /* resident at a time */
	uint64_t batch; /* the next to come */
	uint64_t next;	/* byte of `from` that comes next */
};

static uint8_t *memory(uint64_t bytes)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

static int watch(struct floor *f, bool by_signal)
{
	struct uffdio_api api = {.api = UFFD_API,
				 .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP};
	struct uffdio_register reg = {
		.range = {(uint64_t)(uintptr_t)f->range, 2 * f->bytes},
		.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP};

	if (by_signal)
		api.features |= UFFD_FEATURE_SIGBUS;
	f->uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (f->uffd < 0 || ioctl(f->uffd, UFFDIO_API, &api) != 0 ||
	    ioctl(f->uffd, UFFDIO_REGISTER, &reg) != 0)
		return -errno;
	return 0;
}

static int stay_on_core(void)
{
	cpu_set_t set;
	int core = sched_getcpu();

	if (core < 0)
		return -errno;
	CPU_ZERO(&set);
	CPU_SET(core, &set);
	return sched_setaffinity(0, sizeof(set), &set) == 0 ? 0 : -errno;
}

static bool put_next(struct floor *f, uint64_t addr)
{
	struct uffdio_copy c = {.src = (uint64_t)(uintptr_t)(f->from + f->next),
				.dst = addr & ~(uint64_t)(PAGE - 1),
				.len = PAGE};

	f->next = (f->next + PAGE) % f->bytes;
	return ioctl(f->uffd, UFFDIO_COPY, &c) == 0;
}

static bool serve_one(struct floor *f)
{
	struct uffd_msg m;

	return read(f->uffd, &m, sizeof(m)) == sizeof(m) &&
	       put_next(f, m.arg.pagefault.address);
}

/* The handler. It ends with its parent, and its parent with it: nobody else
 * would answer. */
static void serve(struct floor *f)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (serve_one(f))
		;
	(void)kill(getppid(), SIGKILL);
	_exit(1);
}

/* A signal brings no argument. */
static struct floor *signalled;

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	if (!put_next(signalled, (uint64_t)(uintptr_t)info->si_addr))
		_exit(1);
}

static int serve_by_signal(struct floor *f)
{
	struct sigaction sa = {.sa_sigaction = on_sigbus,
			       .sa_flags = SA_SIGINFO};

	signalled = f;
	return sigaction(SIGBUS, &sa, NULL) == 0 ? 0 : -errno;
}

static int take_out(struct floor *f, uint64_t batch)
{
	uint8_t *start = f->range + batch * BATCH_BYTES;
	struct uffdio_writeprotect wp = {
		.range = {(uint64_t)(uintptr_t)start, BATCH_BYTES},
		.mode = UFFDIO_WRITEPROTECT_MODE_WP};

	if (ioctl(f->uffd, UFFDIO_WRITEPROTECT, &wp) != 0)
		return -errno;
	memcpy(f->out + batch * BATCH_BYTES % f->bytes, start, BATCH_BYTES);
	return madvise(start, BATCH_BYTES, MADV_DONTNEED) == 0 ? 0 : -errno;
}

/* The next batch comes, its pages in a random order. */
static int bring(struct floor *f, struct rng *r)
{
	uint8_t *start = f->range + f->batch * BATCH_BYTES;
	uint64_t first = rng_below(r, BATCH);

	for (uint64_t i = 0; i < BATCH; i++) {
		/* An odd stride meets each of them once. */
		uint64_t page = (first + i * 37) % BATCH;
		uint64_t *word = (uint64_t *)(void *)(start + page * PAGE);

		if (word[0] == 0)
			return -EIO;
		word[1]++;
	}
	f->batch = (f->batch + 1) % (2 * f->bytes / BATCH_BYTES);
	return 0;
}

/* With `bytes` resident: each batch that comes takes the place of the oldest.
 */
static uint64_t measure(struct floor *f, struct rng *r, uint64_t faults)
{
	uint64_t half = f->bytes / BATCH_BYTES, start;

	for (uint64_t i = 0; i < half; i++)
		if (bring(f, r) != 0)
			return 0;
	start = bench_now_ns();
	for (uint64_t i = 0; i < faults / BATCH; i++)
		if (take_out(f, (f->batch + half) % (2 * half)) != 0 ||
		    bring(f, r) != 0)
			return 0;
	return bench_now_ns() - start;
}

static void fill(uint64_t *words, uint64_t bytes, struct rng *r)
{
	for (uint64_t i = 0; i < bytes / sizeof(*words); i++)
		words[i] = rng_u64(r) | 1;
}

static uint64_t measure_beside(struct floor *f, struct rng *r, uint64_t faults)
{
	uint64_t ns = 0;
	pid_t pid = fork();

	if (pid == 0)
		serve(f);
	if (pid > 0) {
		ns = measure(f, r, faults);
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	return ns;
}

uint64_t run_floor(const struct run_work *w)
{
	struct floor f = {.bytes = w->bytes / BATCH_BYTES * BATCH_BYTES};
	bool by_signal = w->kind == RUN_WORK_FLOOR_SIGNAL;
	struct rng r;

	rng_init(&r, w->seed);
	f.range = memory(2 * f.bytes);
	f.from = memory(f.bytes);
	f.out = memory(f.bytes);
	if (!f.bytes || !f.range || !f.from || !f.out || stay_on_core() != 0)
		return 0;
	fill((uint64_t *)(void *)f.from, f.bytes, &r);
	memset(f.out, 1, f.bytes);
	if (watch(&f, by_signal) != 0)
		return 0;
	if (!by_signal)
		return measure_beside(&f, &r, w->count);
	return serve_by_signal(&f) == 0 ? measure(&f, &r, w->count) : 0;
}
