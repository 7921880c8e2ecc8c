/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs do with memory, checked byte by byte: run_client SCENARIO MIB.
 * It knows nothing of far memory; the tests run it with and without.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_pages.h"

enum {
	UNSEEN = 64, /* pages; few enough to be all here */
};

/* Random reads and writes, heap and mapping, against a second copy that is
 * computed. */
static void play_random(uint64_t pages)
{
	uint8_t *salt = calloc(pages, 1);
	void *heap = malloc(pages / 2 * PAGE);
	void *maps = map(pages - pages / 2);

	CHECK(salt && heap);
	fill(heap, pages / 2, 0);
	fill(maps, pages - pages / 2, 0);
	for (uint64_t i = 0; i < pages * 2; i++) {
		uint64_t n = mix(i) % pages;
		uint64_t k = n < pages / 2 ? n : n - pages / 2;
		uint64_t *page = at(n < pages / 2 ? heap : maps, k);

		check_page(page, salted(k, salt[n]));
		if (i % 3 == 0)
			fill_page(page, salted(k, ++salt[n]));
	}
	free(heap);
	CHECK(munmap(maps, (pages - pages / 2) * PAGE) == 0);
}

/* Pages that are dropped behind Aquifer's back are zeros, and the room that
 * others need is found all the same. */
static void play_unseen(uint64_t pages)
{
	uint64_t *gone = map(UNSEEN), *mem = map(pages);

	fill(gone, UNSEEN, 1);
	CHECK(syscall(SYS_madvise, gone, UNSEEN * PAGE, MADV_DONTNEED) == 0);
	fill(mem, pages, 2);
	check_zero(gone, UNSEEN);
	check(mem, pages, 2, 0);
}

/* A child that does not call exec: both see their own memory. */
static void play_fork(uint64_t pages)
{
	void *mem = map(pages);
	int status;

	fill(mem, pages, 1);
	for (unsigned round = 0; round < 3; round++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid == 0) {
			void *more = malloc(pages / 4 * PAGE);

			check(mem, pages, 1 + round, 0);
			fill(mem, pages / 2, 100);
			fill(more, pages / 4, 7);
			check(mem, pages / 2, 100, 0);
			check(more, pages / 4, 7, 0);
			/* A grandchild, too. */
			pid = fork();
			CHECK(pid >= 0);
			if (pid)
				CHECK(waitpid(pid, &status, 0) == pid &&
				      status == 0);
			check(more, pages / 4, 7, 0);
			_exit(0);
		}
		fill(mem, pages, 2 + round);
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
		check(mem, pages, 2 + round, 0);
	}
}

struct work {
	void *mem;
	uint64_t pages;
	uint64_t number, count;
};

static void *worker(void *arg)
{
	struct work *w = arg;

	for (unsigned round = 0; round < 3; round++)
		for (uint64_t i = w->number; i < w->pages; i += w->count) {
			if (round)
				check_page(at(w->mem, i), salted(i, round));
			fill_page(at(w->mem, i), salted(i, round + 1));
		}
	return NULL;
}

/* Neighbouring pages belong to different threads. */
static void play_threads(uint64_t pages)
{
	pthread_t thread[8];
	struct work work[8];
	void *mem = map(pages);

	for (unsigned i = 0; i < 8; i++) {
		work[i] = (struct work){mem, pages, i, 8};
		CHECK(pthread_create(&thread[i], NULL, worker, &work[i]) == 0);
	}
	for (unsigned i = 0; i < 8; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
	check(mem, pages, 3, 0);
}

/* Many threads write the words of the same pages. */
static void *word_worker(void *arg)
{
	struct work *w = arg;

	for (uint64_t round = 1; round <= 4; round++)
		for (uint64_t i = 0; i < w->pages; i++)
			at(w->mem, i)[w->number] += round;
	return NULL;
}

static void play_words(uint64_t pages)
{
	pthread_t thread[4];
	struct work work[4];
	void *mem = map(pages);

	for (unsigned i = 0; i < 4; i++) {
		work[i] = (struct work){mem, pages, i, 4};
		CHECK(pthread_create(&thread[i], NULL, word_worker, &work[i]) ==
		      0);
	}
	for (unsigned i = 0; i < 4; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
	for (uint64_t i = 0; i < pages; i++)
		for (unsigned k = 0; k < 4; k++)
			CHECK(at(mem, i)[k] == 10);
}

/* As a runtime does it: reserved, made accessible in parts, a file in the
 * middle of it, given back and used by others. */
static void play_reserved(uint64_t pages)
{
	uint64_t part = pages / 4;
	uint8_t *mem = mmap(NULL, 64 * pages * PAGE, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint8_t *middle = mem + 8 * part * PAGE;
	FILE *f = tmpfile();

	CHECK(mem != MAP_FAILED && f && fwrite("file", 1, 4, f) == 4 &&
	      fflush(f) == 0);
	CHECK(mprotect(mem, 3 * part * PAGE, PROT_READ | PROT_WRITE) == 0);
	fill(mem, 3 * part, 1);
	CHECK(mmap(middle, part * PAGE, PROT_READ | PROT_WRITE,
		   MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == middle);
	fill(middle, part, 2);
	CHECK(mmap(middle + part * PAGE, PAGE, PROT_READ,
		   MAP_FIXED | MAP_PRIVATE, fileno(f),
		   0) == middle + part * PAGE);
	CHECK(memcmp(middle + part * PAGE, "file", 4) == 0);
	CHECK(mprotect(mem, part * PAGE, PROT_NONE) == 0);
	CHECK(mprotect(mem, part * PAGE, PROT_READ) == 0);
	check(mem, 3 * part, 1, 0);
	check(middle, part, 2, 0);
	/* Not readable as a whole: refused or moved, but no death. */
	(void)!mremap(mem, 64 * pages * PAGE, 65 * pages * PAGE, 0);
	CHECK(munmap(mem, 64 * pages * PAGE) == 0);
	mem = map(2 * pages);
	for (uint64_t i = 0; i < 2 * pages; i++)
		CHECK(at(mem, i)[0] == 0);
	fill(mem, pages, 3);
	check(mem, pages, 3, 0);
	CHECK(fclose(f) == 0);
}

/* Given back and taken again: zeros. Moved: the same bytes. */
static void play_maps(uint64_t pages)
{
	uint8_t *mem = map(pages), *moved;
	uint64_t half = pages / 2;

	/* Advice that cuts the mapping into pieces. */
	for (uint64_t i = 0; i < pages; i += 24)
		CHECK(madvise(mem + i * PAGE, 8 * PAGE, MADV_SEQUENTIAL) == 0);
	CHECK(madvise(mem, 5 * PAGE, MADV_POPULATE_WRITE) == 0);
	fill(mem, pages, 5);
	CHECK(madvise(mem, half * PAGE, MADV_DONTNEED) == 0);
	check_zero(mem, half);
	check(at(mem, half), pages - half, 5, half);
	moved = mremap(mem, pages * PAGE, (pages + half) * PAGE,
		       MREMAP_MAYMOVE);
	CHECK(moved != MAP_FAILED);
	check(at(moved, half), pages - half, 5, half);
	for (uint64_t i = pages; i < pages + half; i++)
		CHECK(at(moved, i)[9] == 0);
	CHECK(munmap(moved, half * PAGE) == 0);
	mem = map(half);
	for (uint64_t i = 0; i < half; i++)
		CHECK(at(mem, i)[0] == 0 && at(mem, i)[511] == 0);
	check(at(moved, half), pages - half, 5, half);
	/* Rights that come and go. */
	CHECK(mprotect(moved + half * PAGE, half * PAGE, PROT_NONE) == 0);
	fill(mem, half, 6);
	CHECK(mprotect(moved + half * PAGE, half * PAGE, PROT_READ) == 0);
	check(at(moved, half), pages - half, 5, half);
	check(mem, half, 6, 0);
}

/* The kernel reads from and writes to far pages, datagrams included. */
static void play_calls(uint64_t pages)
{
	uint8_t *mem = map(pages), *copy = map(pages);
	FILE *f = tmpfile();
	int pair[2];

	CHECK(f && socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
	fill(mem, pages, 8);
	for (uint64_t i = 0; i < pages; i++)
		CHECK(pwrite(fileno(f), mem + i * PAGE, PAGE,
			     (off_t)(i * PAGE)) == PAGE);
	for (uint64_t i = 0; i < pages; i++)
		CHECK(pread(fileno(f), copy + i * PAGE, PAGE,
			    (off_t)(i * PAGE)) == PAGE);
	check(copy, pages, 8, 0);
	check(mem, pages, 8, 0);
	for (uint64_t i = 0; i < pages; i++) {
		uint64_t to = pages - 1 - i;

		CHECK(send(pair[0], mem + i * PAGE, PAGE, 0) == PAGE);
		CHECK(recv(pair[1], copy + to * PAGE, PAGE, 0) == PAGE);
		check_page(at(copy, to), salted(i, 8));
	}
}

static volatile sig_atomic_t alarms;

static void on_alarm(int sig)
{
	alarms++;
}

/* Signals arrive while pages are awaited. */
static void play_signals(uint64_t pages)
{
	struct sigaction sa = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	timer_t timer;
	struct itimerspec every = {{0, 500000}, {0, 500000}};
	void *mem = map(pages);

	CHECK(sigaction(SIGALRM, &sa, NULL) == 0);
	CHECK(timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0);
	CHECK(timer_settime(timer, 0, &every, NULL) == 0);
	for (unsigned round = 1; round < 4; round++) {
		fill(mem, pages, round);
		check(mem, pages, round, 0);
	}
	CHECK(alarms > 10);
}

/* Prints a line, then reads everything forwards and backwards and rewrites a
 * part, page by page. */
static void play_linear(uint64_t pages)
{
	void *mem = map(pages);

	fill(mem, pages, 10);
	(void)!write(STDOUT_FILENO, "filled\n", 7);
	for (uint64_t i = 0; i < pages; i++) {
		check_page(at(mem, i), salted(i, 10));
		if (i % 5 == 0)
			fill_page(at(mem, i), salted(i, 11));
	}
	for (uint64_t i = pages; i-- > 0;)
		check_page(at(mem, i), salted(i, i % 5 == 0 ? 11 : 10));
}

/* Prints a line, then reads everything again and again until a signal. */
static void play_loop(uint64_t pages)
{
	void *mem = map(pages);

	fill(mem, pages, 9);
	(void)!write(STDOUT_FILENO, "filled\n", 7);
	for (;;)
		check(mem, pages, 9, 0);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*play)(uint64_t pages);
	} plays[] = {
		{"random", play_random},   {"fork", play_fork},
		{"threads", play_threads}, {"words", play_words},
		{"maps", play_maps},	   {"reserved", play_reserved},
		{"calls", play_calls},	   {"signals", play_signals},
		{"loop", play_loop},	   {"unseen", play_unseen},

		{"linear", play_linear},
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
