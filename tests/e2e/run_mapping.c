/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs do with their mappings, through libc and past it: run_mapping
 * PLAY MIB. What it prints must be the same with and without far memory, where
 * most of what it has is far when it is asked for.
 */
#include "run_play.h"

enum {
	GUARD_INSTALL = 102, /* not in all headers */
	GUARD_REMOVE = 103,
};

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

int main(int argc, char **argv)
{
	static const struct play plays[] = {
		{"removed", play_removed},   {"raced", play_raced},
		{"moved", play_moved},	     {"storm", play_storm},
		{"unmapped", play_unmapped}, {"advice", play_advice},
		{"forked", play_forked},
	};

	return run_play(argc, argv, plays, sizeof(plays) / sizeof(plays[0]));
}
