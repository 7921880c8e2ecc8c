/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages that the kernel does not move although no device has them, while other
 * threads want their place: run_unmoved PLAY SEED. Every word is checked.
 */
#include <sys/syscall.h>
#include <sys/wait.h>

#include "run_press.h"

static void check_all(uint64_t *mem, unsigned pages)
{
	for (unsigned i = 0; i < pages; i++)
		check_page(mem + (uint64_t)i * WORDS, i);
}

/* Rights change page by page, while pages leave. */
static void play_rights(void)
{
	enum {
		PAGES = 256
	};
	uint64_t *mem = map(PAGES);

	for (unsigned i = 0; i < PAGES; i++)
		fill_page(mem + (uint64_t)i * WORDS, i);
	for (unsigned round = 0; round < 6; round++) {
		for (unsigned i = 0; i < PAGES; i++)
			CHECK(mprotect(mem + (uint64_t)i * WORDS, PAGE,
				       (i + round) % 3
					       ? PROT_READ
					       : PROT_READ | PROT_WRITE) == 0);
		usleep(20000);
		check_all(mem, PAGES);
		for (unsigned i = 0; i < PAGES; i++)
			if ((i + round) % 3 == 0)
				fill_page(mem + (uint64_t)i * WORDS, i);
	}
}

/* More is locked than may be here: the program goes on. */
static void play_lock(void)
{
	enum {
		PAGES = 1024
	};
	uint64_t *mem = map(PAGES);

	for (unsigned i = 0; i < PAGES; i++)
		fill_page(mem + (uint64_t)i * WORDS, i);
	CHECK(syscall(SYS_mlock, mem, PAGES * PAGE) == 0);
	check_all(mem, PAGES);
	CHECK(syscall(SYS_mlockall, MCL_CURRENT | MCL_ONFAULT) == 0);
	check_all(mem, PAGES);
	CHECK(syscall(SYS_munlockall) == 0);
	check_all(mem, PAGES);
}

/*
 * One thread writes ever new numbers, page by page in ascending order. Whatever
 * the moment of a fork, its child has one number up to some page and the one
 * before it from there on.
 */
enum {
	COUNTED = 768
};
static _Atomic uint64_t *counted;

static void *count_main(void *arg)
{
	(void)arg;
	for (uint64_t n = 1; !atomic_load(&is_over); n++) {
		for (unsigned i = 0; i < COUNTED; i++)
			atomic_store(&counted[(uint64_t)i * WORDS], n);
		usleep(1000);
	}
	return NULL;
}

static int child_main(int depth)
{
	uint64_t first = atomic_load(&counted[0]), now = first;

	for (unsigned i = 0; i < COUNTED; i++) {
		uint64_t n = atomic_load(&counted[(uint64_t)i * WORDS]);

		CHECK(n == now || (now == first && n == first - 1));
		now = n;
		for (unsigned k = 1; k < WORDS; k++)
			CHECK(counted[(uint64_t)i * WORDS + k] ==
			      mix((uint64_t)i * WORDS + k));
	}
	if (depth > 0) {
		pid_t pid = fork();
		int status;

		CHECK(pid >= 0);
		if (pid == 0)
			_exit(child_main(depth - 1));
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	}
	/* Its own from now on. */
	for (unsigned i = 0; i < COUNTED; i += 3)
		atomic_store(&counted[(uint64_t)i * WORDS], first + 1000);
	for (unsigned i = 0; i < COUNTED; i += 3)
		CHECK(counted[(uint64_t)i * WORDS] == first + 1000);
	return 0;
}

static void play_fork(void)
{
	pthread_t thread;

	counted = (_Atomic uint64_t *)map(COUNTED);
	for (unsigned i = 0; i < COUNTED; i++)
		for (unsigned k = 1; k < WORDS; k++)
			counted[(uint64_t)i * WORDS + k] =
				mix((uint64_t)i * WORDS + k);
	CHECK(pthread_create(&thread, NULL, count_main, NULL) == 0);
	for (unsigned i = 0; i < 4; i++) {
		pid_t pid = fork();
		int status;

		CHECK(pid >= 0);
		if (pid == 0)
			_exit(child_main(i % 2));
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	}
	atomic_store(&is_over, true);
	CHECK(pthread_join(thread, NULL) == 0);
}

static void play(const char *name)
{
	if (!strcmp(name, "rights"))
		play_rights();
	else if (!strcmp(name, "lock"))
		play_lock();
	else {
		CHECK(!strcmp(name, "fork"));
		play_fork();
	}
}

int main(int argc, char **argv)
{
	CHECK(argc == 3);
	seed = strtoull(argv[2], NULL, 10);
	return run_pressed(play, argv[1]);
}
