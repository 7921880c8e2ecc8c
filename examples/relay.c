/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plain POSIX program, written for one machine: a ring of numbers in shared
 * memory, with a mutex and condition variables on which both sides sleep. With
 * Aquifer the two sides may be on two machines (aquifer-run(1)):
 *
 *	cc relay.c -o relay
 *	aquifer run --shared demo -- ./relay take 1000	on one machine
 *	aquifer run --shared demo -- ./relay put 1000	on another one
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	SLOTS = 16
};

struct ring {
	pthread_mutex_t lock;
	pthread_cond_t is_not_full, is_not_empty;
	unsigned first, count;
	long slot[SLOTS];
	_Atomic int is_ready; /* all of the above can be used */
};

static void make(struct ring *r)
{
	pthread_mutexattr_t mutex;
	pthread_condattr_t cond;

	pthread_mutexattr_init(&mutex);
	pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
	pthread_condattr_init(&cond);
	pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED);
	if (pthread_mutex_init(&r->lock, &mutex) ||
	    pthread_cond_init(&r->is_not_full, &cond) ||
	    pthread_cond_init(&r->is_not_empty, &cond))
		exit(1);
	r->is_ready = 1;
}

/* The first one makes it; the other one waits for that. */
static struct ring *find(void)
{
	int fd = shm_open("/relay", O_RDWR | O_CREAT | O_EXCL, 0600);
	int is_first = fd >= 0;
	struct ring *r;

	if (!is_first)
		fd = shm_open("/relay", O_RDWR, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(*r)) != 0) {
		perror("relay");
		exit(1);
	}
	r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (r == MAP_FAILED) {
		perror("relay");
		exit(1);
	}
	close(fd);
	if (is_first)
		make(r);
	while (!r->is_ready)
		usleep(1000);
	return r;
}

int main(int argc, char **argv)
{
	int is_put = argc == 3 && strcmp(argv[1], "put") == 0;
	long count = argc == 3 ? atol(argv[2]) : 0, sum = 0;
	struct ring *r = find();

	for (long i = 0; i < count; i++) {
		pthread_mutex_lock(&r->lock);
		while (r->count == (is_put ? SLOTS : 0))
			pthread_cond_wait(is_put ? &r->is_not_full
						 : &r->is_not_empty,
					  &r->lock);
		if (is_put)
			r->slot[(r->first + r->count++) % SLOTS] = i;
		else
			sum += r->slot[r->first++ % SLOTS], r->count--;
		pthread_cond_signal(is_put ? &r->is_not_empty
					   : &r->is_not_full);
		pthread_mutex_unlock(&r->lock);
	}
	if (!is_put) {
		printf("%ld numbers, sum %ld\n", count, sum);
		shm_unlink("/relay");
	}
	return 0;
}
