/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of which every word is known, for the programs of the run_* tests. */
#ifndef RUN_PAGES_H
#define RUN_PAGES_H

#include <stdint.h>
#include <sys/mman.h>

#include "run_check.h"

enum {
	PAGE = 4096,
	WORDS = PAGE / 8,
};

static uint64_t seed; /* of all that mix makes */

static inline uint64_t mix(uint64_t x)
{
	x += seed;
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	return x ^ x >> 33;
}

/* The number of a page whose words differ from those of any other salt. */
static inline uint64_t salted(uint64_t number, uint64_t salt)
{
	return number + (salt << 31);
}

static inline uint64_t *at(const void *mem, uint64_t page)
{
	return (uint64_t *)mem + page * WORDS;
}

/* Incompressible, and different in every word and for every number. */
static inline void fill_page(uint64_t *page, uint64_t number)
{
	for (unsigned i = 0; i < WORDS; i++)
		page[i] = mix(number * WORDS + i);
}

static inline void check_page(const uint64_t *page, uint64_t number)
{
	for (unsigned i = 0; i < WORDS; i++)
		CHECK(page[i] == mix(number * WORDS + i));
}

static inline void fill(void *mem, uint64_t pages, uint64_t salt)
{
	for (uint64_t i = 0; i < pages; i++)
		fill_page(at(mem, i), salted(i, salt));
}

/* mem[0] is page `first` of what was filled. */
static inline void check(const void *mem, uint64_t pages, uint64_t salt,
			 uint64_t first)
{
	for (uint64_t i = 0; i < pages; i++)
		check_page(at(mem, i), salted(first + i, salt));
}

static inline void check_zero(const void *mem, uint64_t pages)
{
	for (uint64_t i = 0; i < pages * WORDS; i++)
		CHECK(((const uint64_t *)mem)[i] == 0);
}

static inline void *map(uint64_t pages)
{
	void *mem = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(mem != MAP_FAILED);
	return mem;
}

#endif
