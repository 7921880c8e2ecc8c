/* SPDX-License-Identifier: Apache-2.0 */
/* Pages whose every word is known, and threads that want the place of others:
 * for programs whose main() ends with run_pressed(). */
#ifndef RUN_PRESS_H
#define RUN_PRESS_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "run_check.h"

enum {
	PAGE = 4096,
	WORDS = PAGE / 8,
	PRESS_PAGES = 1536, /* that others use meanwhile */
};

static uint64_t seed;
static atomic_bool is_over;

static uint64_t mix(uint64_t x)
{
	x += seed;
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	return x ^ x >> 33;
}

static uint64_t *map(uint64_t pages)
{
	void *mem = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(mem != MAP_FAILED);
	return mem;
}

static void fill_page(uint64_t *mem, uint64_t number)
{
	for (unsigned i = 0; i < WORDS; i++)
		mem[i] = mix(number * WORDS + i);
}

static void check_page(const uint64_t *mem, uint64_t number)
{
	for (unsigned i = 0; i < WORDS; i++)
		CHECK(mem[i] == mix(number * WORDS + i));
}

static void *press(void *arg)
{
	uint64_t salt = (uint64_t)(uintptr_t)arg << 40;
	uint64_t *mem = map(PRESS_PAGES);

	for (uint64_t i = 0; i < PRESS_PAGES; i++)
		fill_page(mem + i * WORDS, salt + i);
	for (uint64_t n = 0; n < 2 * PRESS_PAGES || !atomic_load(&is_over);
	     n++) {
		uint64_t at = n % PRESS_PAGES;

		check_page(mem + at * WORDS, salt + at);
		mem[at * WORDS]++; /* dirty, and put right again */
		mem[at * WORDS]--;
		/* Others shall get on, too. */
		if (n % 256 == 0)
			usleep(1000);
	}
	return NULL;
}

/* Plays while two threads press. */
static int run_pressed(void (*play)(const char *), const char *name)
{
	pthread_t thread[2];

	for (uintptr_t i = 0; i < 2; i++)
		CHECK(pthread_create(&thread[i], NULL, press,
				     (void *)(i + 1)) == 0);
	play(name);
	atomic_store(&is_over, true);
	for (unsigned i = 0; i < 2; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
	puts("ok");
	return 0;
}

#endif
