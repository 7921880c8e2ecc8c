/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses for mappings: a bit per page, next fit. */
#include "preload.h"

#define MAPS_PAGES (RUN_MAPS_BYTES >> RUN_PAGE_SHIFT)

static uint64_t page_of(const void *addr)
{
	return ((uint64_t)((const uint8_t *)addr - preload.range) -
		RUN_MAPS_OFFSET) >>
	       RUN_PAGE_SHIFT;
}

static bool is_used(uint64_t page)
{
	return preload.maps_used[page / 64] >> (page % 64) & 1;
}

static void mark(uint64_t page, uint64_t count, bool used)
{
	for (uint64_t i = page; i < page + count; i++) {
		uint64_t bit = 1ull << (i % 64);

		/* Whole words at once: mappings are large. */
		if (i % 64 == 0 && i + 64 <= page + count) {
			preload.maps_used[i / 64] = used ? ~0ull : 0;
			i += 63;
		} else if (used) {
			preload.maps_used[i / 64] |= bit;
		} else {
			preload.maps_used[i / 64] &= ~bit;
		}
	}
}

/* The first run of `count` free pages in [from, to); `to` if there is none. */
static uint64_t find(uint64_t from, uint64_t to, uint64_t count)
{
	uint64_t run = 0;

	for (uint64_t i = from; i < to;) {
		uint64_t word = preload.maps_used[i / 64];

		if (i % 64 == 0 && i + 64 <= to &&
		    (word == 0 || word == ~0ull)) {
			run = word ? 0 : run + 64;
			i += 64;
		} else {
			run = is_used(i) ? 0 : run + 1;
			i++;
		}
		if (run >= count && i <= to)
			return i - run;
	}
	return to;
}

void *preload_maps_alloc(size_t bytes)
{
	uint64_t count = align_up(bytes, RUN_PAGE_BYTES) >> RUN_PAGE_SHIFT;
	uint64_t at;
	void *addr = NULL;

	if (bytes == 0 || bytes > RUN_MAPS_BYTES)
		return NULL;
	preload_spin_lock(&preload.maps_lock);
	at = find(preload.maps_next, MAPS_PAGES, count);
	if (at == MAPS_PAGES)
		at = find(0, MAPS_PAGES, count);
	if (at != MAPS_PAGES) {
		mark(at, count, true);
		preload.maps_next = at + count;
		addr = preload.range + RUN_MAPS_OFFSET + (at << RUN_PAGE_SHIFT);
	}
	preload_spin_unlock(&preload.maps_lock);
	return addr;
}

void preload_maps_free(void *start, size_t bytes)
{
	uint64_t count = align_up(bytes, RUN_PAGE_BYTES) >> RUN_PAGE_SHIFT;

	preload_spin_lock(&preload.maps_lock);
	mark(page_of(start), count, false);
	preload_spin_unlock(&preload.maps_lock);
}

bool preload_maps_grow(void *start, size_t old, size_t bytes)
{
	uint64_t page = page_of(start);
	uint64_t had = align_up(old, RUN_PAGE_BYTES) >> RUN_PAGE_SHIFT;
	uint64_t want = align_up(bytes, RUN_PAGE_BYTES) >> RUN_PAGE_SHIFT;
	bool ok;

	if (want <= had)
		return true;
	if (page + want > MAPS_PAGES)
		return false;
	preload_spin_lock(&preload.maps_lock);
	ok = find(page + had, page + want, want - had) == page + had;
	if (ok)
		mark(page + had, want - had, true);
	preload_spin_unlock(&preload.maps_lock);
	return ok;
}
