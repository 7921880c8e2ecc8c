/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program on several tiers, all of whose bytes are known.
 *
 *	run_tier place PAGES		fills pages and says on which NUMA nodes
 *					they are
 *	run_tier churn PAGES PARTS ROUNDS
 *					works on one of so many parts after the
 *					other, each until it is hot; with one
 *					more word also forks, and children check
 *					and write
 *	run_tier zipf PAGES READS	reads pages, of which few are wanted
 *					often: for each of some rounds a line
 *					with the ns per page, and with how many
 *					in 1,000 reads are of node 0, and here
 *					at all
 *	run_tier loop PAGES		fills pages, says so, and reads them for
 *					ever
 *	run_tier count FILE BYTES	stands for a counter of the kernel: the
 *					file has so many bytes more each second
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "run_pages.h"

enum {
	NODES_MAX = 8,
	CHUNK = 256,
	HOT_TOUCHES = 6, /* of every hot page in a round, on average */
	FORK_ROUNDS = 5, /* between two forks */
	ZIPF_ROUNDS = 5,
	ZIPF_TOGETHER = 4, /* reads, before a pause of a ms */
	ZIPF_PAGES_MAX = 8192,
};

static uint64_t random_state = 88172645463325252ull;

static uint64_t random64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* ---- where pages are ----------------------------------------------------- */

static void count_nodes(void *mem, uint64_t pages, uint64_t on[NODES_MAX])
{
	for (uint64_t first = 0; first < pages; first += CHUNK) {
		uint64_t n = pages - first < CHUNK ? pages - first : CHUNK;
		int status[CHUNK];
		void *page[CHUNK];

		for (uint64_t i = 0; i < n; i++)
			page[i] = at(mem, first + i);
		CHECK(syscall(SYS_move_pages, 0, n, page, NULL, status, 0) ==
		      0);
		for (uint64_t i = 0; i < n; i++)
			if (status[i] >= 0 && status[i] < NODES_MAX)
				on[status[i]]++;
	}
}

static void place(uint64_t pages)
{
	uint64_t on[NODES_MAX] = {0};
	void *mem = map(pages);

	fill(mem, pages, 1);
	check(mem, pages, 1, 0);
	count_nodes(mem, pages, on);
	printf("%llu %llu\n", (unsigned long long)on[0],
	       (unsigned long long)on[1]);
}

/* ---- pages that become hot and cold -------------------------------------- */

struct book {
	void *mem;
	uint64_t pages;
	uint32_t *version; /* of every page: what is in it */
};

static void touch(struct book *b, uint64_t page)
{
	check_page(at(b->mem, page), salted(page, b->version[page]));
	if (random64() % 4 == 0)
		fill_page(at(b->mem, page), salted(page, ++b->version[page]));
}

/* The child has what its parent had, and its parent none of what it writes. */
static void fork_one(struct book *b)
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (child == 0) {
		for (uint64_t i = 0; i < b->pages; i += 3)
			touch(b, i);
		_exit(0);
	}
	for (uint64_t i = 1; i < b->pages; i += 5)
		touch(b, i);
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void churn(uint64_t pages, uint64_t parts, uint64_t rounds, bool forks)
{
	struct book b = {map(pages), pages, calloc(pages, sizeof(uint32_t))};
	uint64_t hot = pages / parts;

	CHECK(b.version != NULL);
	fill(b.mem, pages, 0);
	for (uint64_t r = 0; r < rounds; r++) {
		uint64_t first = r % parts;

		/* At random, so that no stream is foreseen. */
		for (uint64_t i = 0; i < hot * HOT_TOUCHES; i++)
			touch(&b, random64() % hot * parts + first);
		if (forks && r % FORK_ROUNDS == 0)
			fork_one(&b);
	}
	for (uint64_t i = 0; i < pages; i++)
		check_page(at(b.mem, i), salted(i, b.version[i]));
	puts("right");
}

/* ---- speed --------------------------------------------------------------- */

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Sums of 1/1, 1/2, 1/3 ...: not on the heap, which moves. */
static double zipf_sum[ZIPF_PAGES_MAX];

/* Neighbours in rank are not neighbours in memory. */
static uint64_t pick(uint64_t pages)
{
	double want = (double)(random64() >> 11) / 9007199254740992.0 *
		      zipf_sum[pages - 1];
	uint64_t low = 0, high = pages - 1;

	while (low < high) {
		uint64_t mid = (low + high) / 2;

		if (zipf_sum[mid] < want)
			low = mid + 1;
		else
			high = mid;
	}
	return low * 7919 % pages;
}

/* Of 1,000 reads, how many are of pages of node 0; *here: of any node. */
static unsigned share_of_top(void *mem, uint64_t pages, unsigned *here)
{
	unsigned top = 0;

	*here = 0;
	for (unsigned i = 0; i < 1000; i++) {
		void *page = at(mem, pick(pages));
		int status = -ENOENT;

		CHECK(syscall(SYS_move_pages, 0, 1, &page, NULL, &status, 0) ==
		      0);
		top += status == 0;
		*here += status >= 0;
	}
	return top;
}

static void zipf(uint64_t pages, uint64_t reads)
{
	void *mem = map(pages);

	CHECK(pages <= ZIPF_PAGES_MAX);
	for (uint64_t i = 0; i < pages; i++)
		zipf_sum[i] = (i ? zipf_sum[i - 1] : 0) + 1.0 / (double)(i + 1);
	fill(mem, pages, 1);
	for (unsigned r = 0; r < ZIPF_ROUNDS; r++) {
		uint64_t start = now_ns(), end;
		unsigned top, here;

		for (uint64_t i = 0; i < reads; i++) {
			uint64_t page = pick(pages);

			check_page(at(mem, page), salted(page, 1));
			/* So that some pages are cold for seconds. */
			if (i % ZIPF_TOGETHER == 0)
				usleep(1000);
		}
		end = now_ns();
		top = share_of_top(mem, pages, &here);
		printf("%llu %u %u\n",
		       (unsigned long long)((end - start) / reads), top, here);
		(void)fflush(stdout);
	}
}

static void loop(uint64_t pages)
{
	void *mem = map(pages);

	fill(mem, pages, 1);
	puts("filled");
	(void)fflush(stdout);
	for (;;) {
		uint64_t page = random64() % pages;

		check_page(at(mem, page), salted(page, 1));
	}
}

/* Always of the same length, so that no reader sees half of it. */
static void count_up(const char *path, uint64_t bytes_s)
{
	FILE *out = fopen(path, "w");
	uint64_t start = now_ns();

	CHECK(out != NULL);
	for (;;) {
		double s = (double)(now_ns() - start) / 1e9;

		rewind(out);
		CHECK(fprintf(out, "%019llu\n",
			      1000 + (unsigned long long)(s *
							  (double)bytes_s)) ==
		      20);
		CHECK(fflush(out) == 0);
		usleep(1000);
	}
}

int main(int argc, char **argv)
{
	uint64_t pages, count;

	CHECK(argc >= 3);
	if (strcmp(argv[1], "count") == 0)
		count_up(argv[2], strtoull(argv[3], NULL, 10));
	pages = strtoull(argv[2], NULL, 10);
	count = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
	if (strcmp(argv[1], "place") == 0)
		place(pages);
	else if (strcmp(argv[1], "churn") == 0)
		churn(pages, count, argc > 4 ? strtoull(argv[4], NULL, 10) : 1,
		      argc > 5);
	else if (strcmp(argv[1], "zipf") == 0)
		zipf(pages, count);
	else if (strcmp(argv[1], "loop") == 0)
		loop(pages);
	else
		CHECK(!"a known word");
	return 0;
}
