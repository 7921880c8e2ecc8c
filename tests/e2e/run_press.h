/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that want the place of others, for programs whose main() ends with
 * run_pressed(). */
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

#include "run_pages.h"

enum {
	PRESS_PAGES = 1536, /* that others use meanwhile */
};

static atomic_bool is_over;

static void *press(void *arg)
{
	uint64_t salt = (uint64_t)(uintptr_t)arg;
	uint64_t *mem = map(PRESS_PAGES);

	fill(mem, PRESS_PAGES, salt);
	for (uint64_t n = 0; n < 2 * PRESS_PAGES || !atomic_load(&is_over);
	     n++) {
		uint64_t number = n % PRESS_PAGES;
		uint64_t *page = at(mem, number);

		check_page(page, salted(number, salt));
		page[0]++; /* dirty, and put right again */
		page[0]--;
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
