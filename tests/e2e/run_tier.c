/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program on several tiers, all of whose bytes are known.
 *
 *	run_tier place PAGES
 *		fills pages and says on which NUMA nodes they are
 *	run_tier newest PAGES
 *		fills pages, and then a few new ones again and again, until most
 *		of those are on node 0
 *	run_tier churn PAGES PARTS ROUNDS [fork]
 *		works on one of so many parts after the other, each until it is
 *		hot; with the last word also forks, and children check and write
 *	run_tier zipf PAGES READS [settle]
 *		reads pages, of which few are wanted often: for each of some
 *		rounds a line with the ns per page; how many times 1/1,000 of
 *		what the same work takes on a page beside the processor; and how
 *		many in 1,000 reads are of node 0, and here at all. With the
 *		last word it first reads until pages that move have settled
 *	run_tier loop PAGES
 *		fills pages, says so, and reads them for ever
 *	run_tier count FILE BYTES
 *		stands for a counter of the kernel: the file has so many bytes
 *		more each second
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
	NEWEST = 32,
	HOT_TOUCHES = 6, /* of every hot page in a round */
	FORK_ROUNDS = 5, /* between two forks */
	ZIPF_ROUNDS = 15,
	ZIPF_TOGETHER = 32,    /* reads, before as many of the other page */
	ZIPF_TURNS_MAX = 1024, /* of a round */
	ZIPF_STOOD = 10,       /* times the median: the machine stood still */
	SETTLE_READS = 100000, /* between two looks at where pages are */
	/* Without a gain: in a minute each slow page is looked at about once.
	 */
	SETTLE_VAIN_S = 60,
	SETTLE_GAIN = 5, /* of 1,000 reads */
	PAGES_MAX = 16384,
};

static uint64_t random_state = 88172645463325252ull;

static uint64_t random64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Here and below: not on the heap, which moves. */
static uint32_t order[PAGES_MAX];

static void shuffle(uint64_t n)
{
	CHECK(n <= PAGES_MAX);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t k = random64() % (i + 1);

		order[i] = order[k];
		order[k] = (uint32_t)i;
	}
}

/* ---- where pages are ----------------------------------------------------- */

/* Adds to its node what each page weighs, without `weight` one. */
static void weigh_nodes(void *mem, uint64_t pages, const double *weight,
			double on[NODES_MAX])
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
				on[status[i]] += weight ? weight[first + i] : 1;
	}
}

static void place(uint64_t pages)
{
	double on[NODES_MAX] = {0};
	void *mem = map(pages);

	fill(mem, pages, 1);
	check(mem, pages, 1, 0);
	weigh_nodes(mem, pages, NULL, on);
	printf("%.0f %.0f\n", on[0], on[1]);
}

static void newest(uint64_t pages)
{
	void *mem = map(pages);
	double on[NODES_MAX];

	fill(mem, pages, 1);
	do {
		void *few = map(NEWEST);

		memset(on, 0, sizeof(on));
		fill(few, NEWEST, 2);
		weigh_nodes(few, NEWEST, NULL, on);
		CHECK(munmap(few, NEWEST * PAGE) == 0);
		usleep(10000);
	} while (on[0] < 0.75 * NEWEST);
	check(mem, pages, 1, 0);
	puts("on top");
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

		/* In any order, so that no stream is foreseen; but each in its
		 * turn, so that none is waited for long. */
		for (unsigned n = 0; n < HOT_TOUCHES; n++) {
			shuffle(hot);
			for (uint64_t i = 0; i < hot; i++)
				touch(&b, order[i] * parts + first);
		}
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

/* Of a page, what of all reads are its; and sums of 1/1, 1/2, 1/3 ... */
static double zipf_weight[PAGES_MAX], zipf_sum[PAGES_MAX];
static uint64_t beside[WORDS];

/* Neighbours in rank are not neighbours in memory. */
static uint64_t page_of(uint64_t rank, uint64_t pages)
{
	return rank * 7919 % pages;
}

static void weigh(uint64_t pages)
{
	double sum = 0;

	CHECK(pages <= PAGES_MAX && pages % 7919 != 0);
	for (uint64_t i = 0; i < pages; i++)
		zipf_sum[i] = sum += 1.0 / (double)(i + 1);
	for (uint64_t i = 0; i < pages; i++)
		zipf_weight[page_of(i, pages)] = 1.0 / (double)(i + 1) / sum;
}

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
	return page_of(low, pages);
}

/* Of 1,000 reads, how many are of pages of node 0; *here: of any node. */
static unsigned share_of_top(void *mem, uint64_t pages, unsigned *here)
{
	double on[NODES_MAX] = {0}, all = 0;

	weigh_nodes(mem, pages, zipf_weight, on);
	for (unsigned i = 0; i < NODES_MAX; i++)
		all += on[i];
	*here = (unsigned)(all * 1000 + 0.5);
	return (unsigned)(on[0] * 1000 + 0.5);
}

static void read_some(const void *mem, uint64_t pages, uint64_t reads)
{
	for (uint64_t i = 0; i < reads; i++) {
		uint64_t page = pick(pages);

		check_page(at(mem, page), salted(page, 1));
	}
}

/* Until no more of the pages that are read often are found on the slow node, by
 * time: how often a page is looked at does not depend on how many are read. */
static void settle(void *mem, uint64_t pages)
{
	uint64_t gain_ns = now_ns();
	unsigned best = 0, here;

	while (now_ns() - gain_ns < SETTLE_VAIN_S * 1000000000ull) {
		unsigned top;

		read_some(mem, pages, SETTLE_READS);
		top = share_of_top(mem, pages, &here);
		if (top > best + SETTLE_GAIN) {
			best = top;
			gain_ns = now_ns();
		}
	}
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The mean of turns, but for those in which a machine that does other work, or
 * was stopped, stood still: faults of a program's own take part of a turn. */
static double mean_turn(uint64_t *ns, unsigned count)
{
	uint64_t sum = 0;
	unsigned n = 0;

	qsort(ns, count, sizeof(*ns), compare);
	while (n < count && ns[n] <= ZIPF_STOOD * ns[count / 2])
		sum += ns[n++];
	return (double)sum / n;
}

/*
 * The time of a round is compared with that of as many looks at one page that
 * is always here, in turns of a fraction of a ms: whatever else the machine
 * does takes from both.
 */
static void zipf_round(void *mem, uint64_t pages, uint64_t reads)
{
	static uint64_t read_ns[ZIPF_TURNS_MAX], beside_ns[ZIPF_TURNS_MAX];
	unsigned turns = (unsigned)(reads / ZIPF_TOGETHER), top, here;
	double ns;

	CHECK(turns > 0 && turns <= ZIPF_TURNS_MAX);
	for (unsigned i = 0; i < turns; i++) {
		uint64_t start = now_ns(), middle;

		read_some(mem, pages, ZIPF_TOGETHER);
		middle = now_ns();
		for (unsigned k = 0; k < ZIPF_TOGETHER; k++) {
			(void)pick(pages);
			check_page(beside, salted(0, 2));
		}
		read_ns[i] = middle - start;
		beside_ns[i] = now_ns() - middle;
	}
	top = share_of_top(mem, pages, &here);
	ns = mean_turn(read_ns, turns);
	printf("%.0f %.0f %u %u\n", ns / ZIPF_TOGETHER,
	       1000 * ns / mean_turn(beside_ns, turns), top, here);
	(void)fflush(stdout);
}

static void zipf(uint64_t pages, uint64_t reads, bool does_settle)
{
	void *mem = map(pages);

	weigh(pages);
	fill(mem, pages, 1);
	fill_page(beside, salted(0, 2));
	if (does_settle)
		settle(mem, pages);
	for (unsigned r = 0; r < ZIPF_ROUNDS; r++)
		zipf_round(mem, pages, reads);
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
	else if (strcmp(argv[1], "newest") == 0)
		newest(pages);
	else if (strcmp(argv[1], "churn") == 0)
		churn(pages, count, argc > 4 ? strtoull(argv[4], NULL, 10) : 1,
		      argc > 5);
	else if (strcmp(argv[1], "zipf") == 0)
		zipf(pages, count, argc > 4);
	else if (strcmp(argv[1], "loop") == 0)
		loop(pages);
	else
		CHECK(!"a known word");
	return 0;
}
