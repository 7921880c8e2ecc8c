/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plain POSIX program, written for one machine: PageRank by several
 *processes. Ranks are in shared memory, each process makes a part of them, and
 *a barrier is between two rounds. With Aquifer they may be on several machines
 * (aquifer-run(1)); arguments: which one it is, of how many, pages, rounds:
 *
 *	cc pagerank.c -o pagerank
 *	aquifer run --shared demo -- ./pagerank 0 2 10000 20	on one machine
 *	aquifer run --shared demo -- ./pagerank 1 2 10000 20	on another one
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	LINKS = 8, /* to each page */
};

struct ranks {
	pthread_barrier_t barrier;
	_Atomic int is_ready;
	double of[]; /* of each page, twice: in even and in odd rounds */
};

/* From which page a link to this one is: the same for everybody, and from some
 * pages more than from others. */
static long source(long page, int link, long pages)
{
	unsigned long x = (unsigned long)(page * LINKS + link + 1);

	x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9ul;
	x = (x ^ x >> 32) % (unsigned long)pages;
	return (long)(link % 2 ? x * x / (unsigned long)pages : x);
}

static struct ranks *find(long self, long count, long pages)
{
	size_t size = sizeof(struct ranks) + 2 * (size_t)pages * sizeof(double);
	int fd = shm_open("/ranks", O_RDWR | O_CREAT, 0600);
	pthread_barrierattr_t shared;
	struct ranks *r = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, (off_t)size) == 0)
		r = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (r == MAP_FAILED)
		exit((perror("pagerank"), 1));
	if (self == 0) {
		pthread_barrierattr_init(&shared);
		pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
		pthread_barrier_init(&r->barrier, &shared, (unsigned)count);
		r->is_ready = 1;
	}
	while (!r->is_ready)
		usleep(1000);
	return r;
}

int main(int argc, char **argv)
{
	long n[4], best = 0, *links;
	double *old, *new;
	struct ranks *r;

	for (int i = 0; i < 4; i++)
		n[i] = argc == 5 ? atol(argv[i + 1]) : -1;
	if (n[0] < 0 || n[1] <= n[0] || n[2] < 1 || n[3] < 0)
		return fprintf(stderr, "pagerank SELF OF PAGES ROUNDS\n"), 2;
	r = find(n[0], n[1], n[2]);
	links = calloc((size_t)n[2], sizeof(*links));
	if (!links)
		return perror("pagerank"), 1;
	for (long i = 0; i < n[2] * LINKS; i++)
		links[source(i / LINKS, (int)(i % LINKS), n[2])]++;
	for (long round = 0; round <= n[3]; round++) {
		old = r->of + (round + 1) % 2 * n[2];
		new = r->of + round % 2 * n[2];
		for (long i = n[2] * n[0] / n[1]; i < n[2] * (n[0] + 1) / n[1];
		     i++) {
			double sum = 0;

			for (int k = 0; round && k < LINKS; k++)
				sum += old[source(i, k, n[2])] /
				       (double)links[source(i, k, n[2])];
			new[i] = (round ? 0.15 : 1) / (double)n[2] + 0.85 * sum;
		}
		pthread_barrier_wait(&r->barrier);
	}
	for (long i = 0; i < n[2]; i++)
		best = new[i] > new[best] ? i : best;
	printf("page %ld has %.17g\n", best, new[best]);
	return n[0] == 0 ? shm_unlink("/ranks") != 0 : 0;
}
