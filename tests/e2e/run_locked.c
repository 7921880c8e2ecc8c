/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses that programs wish for, sizes, locks on memory and in it:
 * run_locked PLAY MIB. What it prints must be the same with and without far
 * memory, but for limits.
 */
#include "run_play.h"

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
	static const struct play plays[] = {
		{"wished", play_wished},
		{"sizes", play_sizes},
		{"large", play_large},
		{"locked", play_locked},
		{"locked-all", play_locked_all},
		{"locked-raw", play_locked_raw},
		{"locked-much", play_locked_much},
		{"robust", play_robust},
	};

	return run_play(argc, argv, plays, sizeof(plays) / sizeof(plays[0]));
}
