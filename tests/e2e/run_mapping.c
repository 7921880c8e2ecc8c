/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs do with their mappings, through libc and past it: run_mapping
 * PLAY MIB. What it prints must be the same with and without far memory, where
 * most of what it has is far when it is asked for.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(cond)                                                           \
	do {                                                                  \
		if (!(cond)) {                                                \
			fprintf(stderr, "line %d: %s (errno %d)\n", __LINE__, \
				#cond, errno);                                \
			_exit(3);                                             \
		}                                                             \
	} while (0)

enum {
	PAGE = 4096,
	GUARD_INSTALL = 102,
	GUARD_REMOVE = 103,
};

/* ---- bytes -------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	return x ^ x >> 33;
}

static void fill(void *mem, uint64_t pages, uint64_t salt)
{
	uint64_t *w = mem;

	for (uint64_t i = 0; i < pages * PAGE / 8; i++)
		w[i] = mix(i + (salt << 40));
}

static void check(const void *mem, uint64_t pages, uint64_t salt,
		  uint64_t first)
{
	const uint64_t *w = mem;

	for (uint64_t i = 0; i < pages * PAGE / 8; i++)
		CHECK(w[i] == mix(i + first * PAGE / 8 + (salt << 40)));
}

static void check_zero(const void *mem, uint64_t pages)
{
	const uint64_t *w = mem;

	for (uint64_t i = 0; i < pages * PAGE / 8; i++)
		CHECK(w[i] == 0);
}

static uint8_t *map(uint64_t pages)
{
	void *mem = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(mem != MAP_FAILED);
	return mem;
}

/* Everything else leaves for it. */
static void press(uint64_t pages)
{
	uint8_t *mem = map(2 * pages);

	fill(mem, 2 * pages, 77);
	check(mem, 2 * pages, 77, 0);
	CHECK(munmap(mem, 2 * pages * PAGE) == 0);
}

static sigjmp_buf back;

static void on_fault(int sig)
{
	siglongjmp(back, sig);
}

/* The signal of a read, or 0. */
static int probe(const volatile uint8_t *at)
{
	struct sigaction sa = {.sa_handler = on_fault}, old[2];
	int sig;

	CHECK(sigaction(SIGSEGV, &sa, &old[0]) == 0 &&
	      sigaction(SIGBUS, &sa, &old[1]) == 0);
	sig = sigsetjmp(back, 1);
	if (!sig)
		(void)*at;
	CHECK(sigaction(SIGSEGV, &old[0], NULL) == 0 &&
	      sigaction(SIGBUS, &old[1], NULL) == 0);
	return sig;
}

/* How a call ended, as a word. */
static const char *word(long ret)
{
	return ret != -1 ? "ok" : strerrorname_np(errno);
}

static long raw_madvise(void *addr, size_t len, int advice)
{
	return syscall(SYS_madvise, addr, len, advice);
}

/* ---- given up ----------------------------------------------------------- */

static void play_removed(uint64_t pages)
{
	uint64_t part = pages / 4;
	uint8_t *mem = map(pages);

	for (unsigned round = 0; round < 4; round++) {
		uint8_t *at = mem + round * part * PAGE;

		fill(mem, pages, round);
		if (round % 2)
			press(part);
		CHECK(raw_madvise(at, part * PAGE, MADV_DONTNEED) == 0);
		check_zero(at, part);
		check(mem, round * part, round, 0);
		check(at + part * PAGE, pages - (round + 1) * part, round,
		      (round + 1) * part);
	}
	/* What is lazily freed and written again stays. */
	fill(mem, pages, 9);
	CHECK(raw_madvise(mem, pages * PAGE, MADV_FREE) == 0);
	for (uint64_t i = 0; i < pages; i += 2)
		memset(mem + i * PAGE, 5, PAGE);
	press(pages);
	for (uint64_t i = 0; i < pages; i += 2)
		for (unsigned k = 0; k < PAGE; k++)
			CHECK(mem[i * PAGE + k] == 5);
}

struct churn {
	uint8_t *mem;
	uint64_t pages;
	_Atomic int ends;
};

static void *churn(void *arg)
{
	struct churn *c = arg;

	while (!c->ends)
		for (uint64_t i = 0; i < c->pages; i++)
			c->mem[i * PAGE]++;
	return NULL;
}

/* While others make everything leave: each page given up is zeros, and none
 * beside it. */
static void play_raced(uint64_t pages)
{
	struct churn c = {.mem = map(pages), .pages = pages};
	uint64_t few = pages / 8;
	uint8_t *mem = map(few);
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, churn, &c) == 0);
	for (unsigned round = 0; round < 24; round++) {
		fill(mem, few, round);
		for (uint64_t i = round % 3; i + 2 < few; i += 3)
			CHECK(raw_madvise(mem + i * PAGE, PAGE,
					  MADV_DONTNEED) == 0);
		for (uint64_t i = 0; i + 2 < few; i++) {
			if (i % 3 == round % 3)
				check_zero(mem + i * PAGE, 1);
			else
				check(mem + i * PAGE, 1, round, i);
		}
	}
	c.ends = 1;
	CHECK(pthread_join(thread, NULL) == 0);
}

/* ---- moved -------------------------------------------------------------- */

static uint8_t *remap(bool raw, void *old, uint64_t had, uint64_t want,
		      int flags, void *to)
{
	void *p = raw ? (void *)syscall(SYS_mremap, old, had * PAGE,
					want * PAGE, flags, to)
		      : mremap(old, had * PAGE, want * PAGE, flags, to);

	CHECK(p != MAP_FAILED);
	return p;
}

static void move(bool raw, uint64_t pages)
{
	uint64_t half = pages / 2;
	uint8_t *mem = map(pages), *to = map(pages), *other;

	/* To where the kernel or the library likes, and larger. */
	fill(mem, pages, 1);
	mem = remap(raw, mem, pages, pages + half, MREMAP_MAYMOVE, NULL);
	check(mem, pages, 1, 0);
	check_zero(mem + pages * PAGE, half);
	CHECK(munmap(mem, (pages + half) * PAGE) == 0);
	/* To a place in far memory, that had something. */
	mem = map(pages);
	fill(mem, pages, 2);
	fill(to, pages, 3);
	press(half);
	CHECK(remap(raw, mem, pages, pages, MREMAP_MAYMOVE | MREMAP_FIXED,
		    to) == to);
	check(to, pages, 2, 0);
	press(half);
	check(to, pages, 2, 0);
	/* And what is left is empty, or nothing. */
	other = remap(raw, to, pages, pages, MREMAP_MAYMOVE | MREMAP_DONTUNMAP,
		      NULL);
	check_zero(to, pages);
	check(other, pages, 2, 0);
	CHECK(munmap(other, pages * PAGE) == 0 &&
	      munmap(to, pages * PAGE) == 0);
	/* A part out of the middle. */
	mem = map(pages);
	to = map(half);
	fill(mem, pages, 4);
	CHECK(remap(raw, mem + 16 * PAGE, half, half,
		    MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
	check(to, half, 4, 16);
	check(mem, 16, 4, 0);
	check(mem + (16 + half) * PAGE, pages - 16 - half, 4, 16 + half);
	CHECK(munmap(mem, pages * PAGE) == 0 && munmap(to, half * PAGE) == 0);
	/* The addresses are good for others. */
	for (unsigned i = 0; i < 4; i++) {
		mem = map(pages);
		check_zero(mem, pages);
		fill(mem, pages, i);
		check(mem, pages, i, 0);
		CHECK(munmap(mem, pages * PAGE) == 0);
	}
}

static void play_moved(uint64_t pages)
{
	uint8_t *mem = map(16);

	move(false, pages);
	move(true, pages);
	printf("%s", word((long)mremap(mem, 16 * PAGE, 16 * PAGE, MREMAP_FIXED,
				       mem)));
	printf(" %s", word((long)mremap(mem, 16 * PAGE, 32 * PAGE,
					MREMAP_MAYMOVE | MREMAP_DONTUNMAP)));
	printf(" %s", word((long)mremap(mem, 16 * PAGE, 0, MREMAP_MAYMOVE)));
	printf(" %s\n", word((long)mremap(mem, 0, PAGE, MREMAP_MAYMOVE)));
}

/* ---- all at once -------------------------------------------------------- */

enum {
	STORMERS = 4,
	STORM_STEPS = 30,
};

struct storm {
	uint64_t seed;
	uint64_t pages;
};

static void storm_step(uint64_t dice, uint8_t **mem, uint64_t pages,
		       uint64_t salt)
{
	uint64_t some = 1 + dice / 64 % (pages - 1);
	uint8_t *at = *mem + (pages - some) * PAGE, *to;

	switch (dice % 6) {
	case 0:
		CHECK(raw_madvise(at, some * PAGE, MADV_DONTNEED) == 0);
		check_zero(at, some);
		break;
	case 1:
		/* To a place that another of our mappings had. */
		to = map(pages);
		fill(to, some, 99);
		CHECK(remap(false, *mem, pages, pages,
			    MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
		*mem = to;
		at = to + (pages - some) * PAGE;
		break;
	case 2:
		*mem = remap(false, *mem, pages, pages + some, MREMAP_MAYMOVE,
			     NULL);
		check_zero(*mem + pages * PAGE, some);
		CHECK(munmap(*mem + pages * PAGE, some * PAGE) == 0);
		at = *mem + (pages - some) * PAGE;
		break;
	case 3:
		CHECK(munmap(at, some * PAGE) == 0);
		check(*mem, pages - some, salt, 0);
		/* Not all of it: others may be there by now. */
		CHECK(munmap(*mem, (pages - some) * PAGE) == 0);
		*mem = map(pages);
		check_zero(*mem, pages);
		return;
	case 4:
		CHECK(madvise(at, some * PAGE, MADV_WIPEONFORK) == 0);
		if (fork() == 0) {
			check(*mem, pages - some, salt, 0);
			check_zero(at, some);
			_exit(0);
		}
		CHECK(madvise(at, some * PAGE, MADV_KEEPONFORK) == 0);
		check(at, some, salt, pages - some);
		break;
	default:
		to = remap(dice & 64, *mem, pages, pages,
			   MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
		check_zero(*mem, pages);
		check(to, pages, salt, 0);
		CHECK(munmap(to, pages * PAGE) == 0);
		return;
	}
	check(*mem, pages - some, salt, 0);
	if (dice % 6)
		check(at, some, salt, pages - some);
}

static void *storm(void *arg)
{
	const struct storm *s = arg;
	uint8_t *mem = map(s->pages);

	for (unsigned i = 0; i < STORM_STEPS; i++) {
		fill(mem, s->pages, i);
		storm_step(mix(s->seed * 1000 + i), &mem, s->pages, i);
	}
	CHECK(munmap(mem, s->pages * PAGE) == 0);
	return NULL;
}

/* Threads that do all of it at the same time, each with its own memory. */
static void play_storm(uint64_t pages)
{
	struct storm s[STORMERS];
	pthread_t thread[STORMERS];
	int status;

	for (unsigned i = 0; i < STORMERS; i++) {
		s[i] = (struct storm){i, pages / STORMERS};
		CHECK(pthread_create(&thread[i], NULL, storm, &s[i]) == 0);
	}
	for (unsigned i = 0; i < STORMERS; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
	while (wait(&status) > 0)
		CHECK(status == 0);
}

/* ---- unmapped and mapped over ------------------------------------------- */

static void play_unmapped(uint64_t pages)
{
	uint64_t part = pages / 4;
	uint8_t *mem = map(pages), *over;
	FILE *f = tmpfile();

	CHECK(f && ftruncate(fileno(f), (off_t)(part * PAGE)) == 0);
	fill(mem, pages, 1);
	CHECK(syscall(SYS_munmap, mem + part * PAGE, part * PAGE) == 0);
	printf("%d\n", probe(mem + part * PAGE));
	press(part);
	check(mem, part, 1, 0);
	check(mem + 2 * part * PAGE, 2 * part, 1, 2 * part);
	/* Something else, by a raw call, and a file through libc, whose pages
	 * are written to; what is around them leaves. */
	over = (void *)syscall(SYS_mmap, mem + part * PAGE, 8 * PAGE,
			       PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	CHECK(over == mem + part * PAGE);
	fill(over, 8, 2);
	for (uint64_t i = 2 * part; i < 3 * part; i += 2)
		CHECK(mmap(mem + i * PAGE, PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_FIXED, fileno(f),
			   0) == mem + i * PAGE);
	for (uint64_t i = 2 * part; i < 3 * part; i += 2)
		memset(mem + i * PAGE, 7, PAGE);
	press(pages);
	check(over, 8, 2, 0);
	for (uint64_t i = 2 * part; i < 3 * part; i++) {
		if (i % 2)
			check(mem + i * PAGE, 1, 1, i);
		else
			CHECK(mem[i * PAGE] == 7 && mem[i * PAGE + 99] == 7);
	}
	/* Plain again. */
	CHECK(mmap(mem + 2 * part * PAGE, part * PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		   0) == mem + 2 * part * PAGE);
	check_zero(mem + 2 * part * PAGE, part);
	fill(mem + 2 * part * PAGE, part, 5);
	press(pages);
	check(mem + 2 * part * PAGE, part, 5, 0);
	CHECK(munmap(mem, pages * PAGE) == 0);
	for (unsigned i = 0; i < 4; i++) {
		mem = map(pages);
		check_zero(mem, pages);
		fill(mem, pages, i);
		press(part);
		check(mem, pages, i, 0);
	}
}

/* ---- advice ------------------------------------------------------------- */

static void play_advice(uint64_t pages)
{
	static const int all[] = {
		MADV_NORMAL,	    MADV_RANDOM,	 MADV_SEQUENTIAL,
		MADV_WILLNEED,	    MADV_HUGEPAGE,	 MADV_NOHUGEPAGE,
		MADV_REMOVE,	    MADV_COLD,		 MADV_PAGEOUT,
		MADV_POPULATE_READ, MADV_POPULATE_WRITE, 12345};
	uint64_t half = pages / 2;
	uint8_t *mem = map(pages);
	uint8_t *none =
		mmap(NULL, pages * PAGE, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	fill(mem, pages, 1);
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		printf("%d %s\n", all[i],
		       word(madvise(mem, pages / 8 * PAGE, all[i])));
	printf("%s", word(madvise(none, half * PAGE, MADV_POPULATE_WRITE)));
	printf(" %s", word(madvise(mem + 1, PAGE, MADV_DONTNEED)));
	printf(" %s\n", word(madvise(mem, 0, MADV_DONTNEED)));
	check(mem, pages, 1, 0);
	/* Guards, where the kernel has them. */
	if (madvise(mem, half * PAGE, GUARD_INSTALL) == 0) {
		CHECK(probe(mem) == SIGSEGV);
		CHECK(probe(mem + (half - 1) * PAGE) == SIGSEGV);
		check(mem + half * PAGE, half, 1, half);
		CHECK(madvise(mem, half * PAGE, GUARD_REMOVE) == 0);
		check_zero(mem, half);
		CHECK(madvise(mem, 4 * PAGE, GUARD_INSTALL) == 0);
	}
	CHECK(munmap(mem, pages * PAGE) == 0);
	for (unsigned i = 0; i < 3; i++)
		check_zero(map(pages), pages);
}

/* ---- fork --------------------------------------------------------------- */

static void in_child(void (*what)(uint8_t *, uint64_t), uint8_t *mem,
		     uint64_t pages)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		what(mem, pages);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void sees_wiped(uint8_t *mem, uint64_t pages)
{
	check_zero(mem, pages / 2);
	check(mem + pages / 2 * PAGE, pages / 2, 1, pages / 2);
	fill(mem, pages / 2, 3);
	press(pages / 4);
	check(mem, pages / 2, 3, 0);
	/* The advice is inherited. */
	if (fork() == 0) {
		check_zero(mem, pages / 2);
		_exit(0);
	} else {
		int status;

		CHECK(wait(&status) > 0 && status == 0);
	}
}

static void sees_all(uint8_t *mem, uint64_t pages)
{
	check(mem, pages, 1, 0);
}

static void sees_half(uint8_t *mem, uint64_t pages)
{
	CHECK(probe(mem) == SIGSEGV);
	check(mem + pages / 2 * PAGE, pages / 2, 1, pages / 2);
	CHECK(munmap(mem, pages * PAGE) == 0);
	check_zero(map(pages), pages);
	check_zero(map(pages), pages);
}

static void play_forked(uint64_t pages)
{
	size_t half = pages / 2 * PAGE;
	uint8_t *mem = map(pages), *heap;

	fill(mem, pages, 1);
	CHECK(madvise(mem, half, MADV_WIPEONFORK) == 0);
	in_child(sees_wiped, mem, pages);
	check(mem, pages, 1, 0);
	CHECK(madvise(mem, half, MADV_KEEPONFORK) == 0);
	in_child(sees_all, mem, pages);
	CHECK(madvise(mem, half, MADV_DONTFORK) == 0);
	in_child(sees_half, mem, pages);
	CHECK(madvise(mem, half, MADV_DOFORK) == 0);
	in_child(sees_all, mem, pages);
	/* What was said of a mapping ends with it. */
	CHECK(madvise(mem, half, MADV_WIPEONFORK) == 0);
	CHECK(munmap(mem, pages * PAGE) == 0);
	mem = map(pages);
	fill(mem, pages, 1);
	in_child(sees_all, mem, pages);
	heap = malloc(pages * PAGE);
	CHECK(heap);
	fill(heap, pages, 1);
	in_child(sees_all, heap, pages);
}

/* ---- addresses and sizes ------------------------------------------------ */

static void play_wished(uint64_t pages)
{
	size_t len = pages * PAGE;
	/* Where nothing is, with and without far memory. */
	uint8_t *want = (uint8_t *)0x100000000000, *mem;
	int plain = MAP_PRIVATE | MAP_ANONYMOUS;

	for (unsigned i = 0; i < 4; i++) {
		mem = mmap(want, len, PROT_READ | PROT_WRITE, plain, -1, 0);
		CHECK(mem == want);
		fill(mem, 4, 1);
		CHECK(munmap(mem, len) == 0);
	}
	mem = mmap(want, len, PROT_READ | PROT_WRITE,
		   plain | MAP_FIXED_NOREPLACE, -1, 0);
	CHECK(mem == want);
	CHECK(mmap(want, len, PROT_READ, plain | MAP_FIXED_NOREPLACE, -1, 0) ==
		      MAP_FAILED &&
	      errno == EEXIST);
	/* Taken: somewhere else. */
	mem = mmap(want, len, PROT_READ | PROT_WRITE, plain, -1, 0);
	CHECK(mem != MAP_FAILED && mem != want);
	CHECK(mmap(mem, len, PROT_READ, plain | MAP_FIXED_NOREPLACE, -1, 0) ==
		      MAP_FAILED &&
	      errno == EEXIST);
	CHECK(munmap(mem, len) == 0);
	/* What was given back can be had again, by wish and by demand. */
	want = map(pages);
	CHECK(munmap(want, len) == 0);
	CHECK(mmap(want, len, PROT_READ | PROT_WRITE, plain, -1, 0) == want);
	CHECK(munmap(want, len) == 0);
	CHECK(mmap(want, len, PROT_READ | PROT_WRITE,
		   plain | MAP_FIXED_NOREPLACE, -1, 0) == want);
	fill(want, pages, 2);
	check(want, pages, 2, 0);
	mem = mmap(NULL, len, PROT_READ | PROT_WRITE, plain | MAP_32BIT, -1, 0);
	CHECK(mem != MAP_FAILED && (uintptr_t)mem + len <= 1ull << 31);
	mem = mmap(NULL, len, PROT_READ | PROT_WRITE, plain | MAP_POPULATE, -1,
		   0);
	CHECK(mem != MAP_FAILED);
	check_zero(mem, pages);
	CHECK(mmap(want, 0, PROT_READ, plain | MAP_FIXED, -1, 0) == MAP_FAILED);
	printf("%s\n", strerrorname_np(errno));
	/* A runtime that must have the address gets it in the end. */
	want = (uint8_t *)0x200000000000;
	for (unsigned i = 0; i < 1000; i++, want += len) {
		mem = mmap(want, len, PROT_NONE, plain | MAP_NORESERVE, -1, 0);
		CHECK(mem != MAP_FAILED);
		if (mem == want)
			return;
		CHECK(munmap(mem, len) == 0);
	}
	CHECK(mem == want);
}

static void play_sizes(uint64_t pages)
{
	void *p = malloc(100), *q;

	(void)pages;
	printf("%s\n", realloc(p, 0) ? "a block" : "nothing");
	printf("%s\n", reallocarray(malloc(9), 0, 8) ? "a block" : "nothing");
	for (unsigned shift = 12; shift <= 30; shift++) {
		size_t align = (size_t)1 << shift;

		p = aligned_alloc(align, 3 * PAGE);
		CHECK(p && (uintptr_t)p % align == 0);
		check_zero(p, 0);
		fill(p, 3, shift);
		CHECK(posix_memalign(&q, align, 100) == 0 &&
		      (uintptr_t)q % align == 0 && q != p);
		free(q);
		p = realloc(p, 9 * PAGE);
		CHECK(p);
		check(p, 3, shift, 0);
		free(p);
	}
	CHECK(posix_memalign(&q, 3ull << 26, 100) == EINVAL);
}

/* More than this machine may have at all. */
static void play_large(uint64_t pages)
{
	void *p = malloc(100ull << 30);

	(void)pages;
	CHECK(p);
	fill(p, 16, 1);
	fill((uint8_t *)p + (99ull << 30), 16, 2);
	check(p, 16, 1, 0);
	check((uint8_t *)p + (99ull << 30), 16, 2, 0);
	free(p);
	p = mmap(NULL, 100ull << 30, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(p != MAP_FAILED);
	fill(p, 16, 1);
	check(p, 16, 1, 0);
	CHECK(munmap(p, 100ull << 30) == 0);
}

/* ---- locked ------------------------------------------------------------- */

static unsigned count_here(uint8_t *mem, unsigned pages)
{
	unsigned char vec[256];
	unsigned n = 0;

	CHECK(pages <= sizeof(vec) && mincore(mem, pages * PAGE, vec) == 0);
	for (unsigned i = 0; i < pages; i++)
		n += vec[i] & 1;
	return n;
}

static void play_locked(uint64_t pages)
{
	uint8_t *mem = map(pages);

	fill(mem, pages, 1);
	printf("%s", word(mlock(mem + 100, 32 * PAGE)));
	printf(" %s", word(mlock2(mem + 64 * PAGE, 32 * PAGE, MLOCK_ONFAULT)));
	printf(" %s", word(mlock2(mem, PAGE, 12345)));
	printf(" %s", word(madvise(mem, 8 * PAGE, MADV_DONTNEED)));
	check(mem + 64 * PAGE, 32, 1, 64);
	press(pages);
	printf(" %u", count_here(mem, 33));
	printf(" %u", count_here(mem + 64 * PAGE, 32));
	check(mem, pages, 1, 0);
	printf(" %s", word(munlock(mem, 96 * PAGE)));
	printf(" %s", word(madvise(mem, 8 * PAGE, MADV_DONTNEED)));
	check_zero(mem, 8);
	check(mem + 8 * PAGE, pages - 8, 1, 8);
	CHECK(mlock(mem, 16 * PAGE) == 0 && munmap(mem, pages * PAGE) == 0);
	mem = map(pages);
	check_zero(mem, pages);
	printf(" %s", word(madvise(mem, 8 * PAGE, MADV_DONTNEED)));
	printf(" %s\n", word(munlockall()));
}

/* From the beginning, as programs do that must not wait. */
static void play_locked_all(uint64_t pages)
{
	uint8_t *mem;

	printf("%s", word(mlockall(0)));
	printf(" %s", word(mlockall(MCL_CURRENT | MCL_FUTURE)));
	mem = malloc(64 * PAGE);
	fill(mem, 64, 1);
	mem = (uint8_t *)(((uintptr_t)mem + PAGE - 1) & ~(PAGE - 1ul));
	press(pages / 4);
	printf(" %u", count_here(mem, 63));
	printf(" %s", word(munlockall()));
	mem = map(pages);
	fill(mem, pages, 2);
	press(pages);
	check(mem, pages, 2, 0);
	printf(" %s\n", word(munmap(mem, pages * PAGE)));
}

/* Past libc, and more than may be here. */
static void play_locked_raw(uint64_t pages)
{
	uint8_t *mem = map(pages), *other = map(pages);

	fill(mem, pages, 1);
	CHECK(syscall(SYS_mlock, mem, pages * PAGE) == 0);
	for (unsigned i = 0; i < 4; i++) {
		fill(other, pages, i);
		check(mem, pages, 1, 0);
		check(other, pages, i, 0);
	}
	CHECK(count_here(mem, 256) == 256);
	CHECK(syscall(SYS_munlock, mem, pages * PAGE) == 0);
	check(mem, pages, 1, 0);
}

/* More than may be here: told, not done. */
static void play_locked_much(uint64_t pages)
{
	uint8_t *mem = map(pages);

	fill(mem, pages, 1);
	printf("%s", word(mlock(mem, pages * PAGE)));
	printf(" %s", word(mlockall(MCL_CURRENT)));
	printf(" %s\n", word(mlock(mem, 8 * PAGE)));
	check(mem, pages, 1, 0);
}

/* ---- robust mutexes ----------------------------------------------------- */

enum {
	MUTEXES = 64,
};

static void *holder(void *arg)
{
	pthread_mutex_t **m = arg;

	for (unsigned i = 0; i < MUTEXES; i++)
		CHECK(pthread_mutex_lock(m[i]) == 0);
	press(1024);
	return NULL;
}

static void play_robust(uint64_t pages)
{
	pthread_mutex_t *m[MUTEXES];
	pthread_mutexattr_t attr;
	pthread_t thread;

	CHECK(pthread_mutexattr_init(&attr) == 0 &&
	      pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST) == 0);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < MUTEXES; i++) {
			m[i] = malloc(2 * PAGE);
			CHECK(m[i] && pthread_mutex_init(m[i], &attr) == 0);
		}
		CHECK(pthread_create(&thread, NULL, holder, m) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
		press(pages / 2);
		for (unsigned i = 0; i < MUTEXES; i++) {
			CHECK(pthread_mutex_lock(m[i]) == EOWNERDEAD);
			CHECK(pthread_mutex_consistent(m[i]) == 0 &&
			      pthread_mutex_unlock(m[i]) == 0 &&
			      pthread_mutex_destroy(m[i]) == 0);
			free(m[i]);
		}
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*play)(uint64_t pages);
	} plays[] = {
		{"removed", play_removed},
		{"raced", play_raced},
		{"moved", play_moved},
		{"unmapped", play_unmapped},
		{"advice", play_advice},
		{"forked", play_forked},
		{"wished", play_wished},
		{"sizes", play_sizes},
		{"robust", play_robust},
		{"large", play_large},
		{"locked", play_locked},
		{"storm", play_storm},
		{"locked-all", play_locked_all},
		{"locked-raw", play_locked_raw},
		{"locked-much", play_locked_much},
	};

	CHECK(argc == 3);
	for (unsigned i = 0; i < sizeof(plays) / sizeof(plays[0]); i++)
		if (strcmp(plays[i].name, argv[1]) == 0) {
			plays[i].play((uint64_t)atoi(argv[2]) << 8);
			puts("ok");
			return 0;
		}
	return 2;
}
