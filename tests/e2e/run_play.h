/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs of run_mapping and run_locked have in common: bytes that
 * are checked one by one, memory, and what becomes of an access. */
#ifndef RUN_PLAY_H
#define RUN_PLAY_H

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

#include "run_pages.h"

/* Everything else leaves for it. */
static inline void press(uint64_t pages)
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
static inline int probe(const volatile uint8_t *at)
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
static inline const char *word(long ret)
{
	return ret != -1 ? "ok" : strerrorname_np(errno);
}

struct play {
	const char *name;
	void (*play)(uint64_t pages);
};

static inline int run_play(int argc, char **argv, const struct play *plays,
			   unsigned count)
{
	CHECK(argc == 3);
	for (unsigned i = 0; i < count; i++)
		if (strcmp(plays[i].name, argv[1]) == 0) {
			plays[i].play((uint64_t)atoi(argv[2]) << 8);
			puts("ok");
			return 0;
		}
	return 2;
}

#endif
