/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses for mappings: a bit per page, next fit. */
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

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

static void mark(uint64_t *set, uint64_t page, uint64_t count, bool used)
{
	for (uint64_t i = page; i < page + count; i++) {
		uint64_t bit = 1ull << (i % 64);

		/* Whole words at once: mappings are large. */
		if (i % 64 == 0 && i + 64 <= page + count) {
			set[i / 64] = used ? ~0ull : 0;
			i += 63;
		} else if (used) {
			set[i / 64] |= bit;
		} else {
			set[i / 64] &= ~bit;
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
		mark(preload.maps_used, at, count, true);
		preload.maps_next = at + count;
		addr = preload.range + RUN_MAPS_OFFSET + (at << RUN_PAGE_SHIFT);
	}
	preload_spin_unlock(&preload.maps_lock);
	return addr;
}

static bool is_foreign(uint64_t page)
{
	return preload.maps_foreign[page / 64] >> (page % 64) & 1;
}

/* Pages from `page` on that are alike. */
static uint64_t alike(uint64_t page, uint64_t end)
{
	uint64_t n = 1;

	while (page + n < end && is_foreign(page + n) == is_foreign(page))
		n++;
	return n;
}

static void free_run(uint64_t page, uint64_t count)
{
	void *addr = preload.range + RUN_MAPS_OFFSET + (page << RUN_PAGE_SHIFT);
	size_t bytes = count << RUN_PAGE_SHIFT;

	if (is_foreign(page)) {
		/* No far memory any more, so never again used: nothing that
		 * nobody may touch keeps the place. */
		(void)preload_sys_mmap(addr, bytes, PROT_NONE,
				       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED |
					       MAP_NORESERVE,
				       -1, 0);
		return;
	}
	/* The next owner of these addresses finds them as mmap promises. */
	(void)syscall(SYS_mprotect, addr, bytes, PROT_READ | PROT_WRITE);
	preload_spin_lock(&preload.maps_lock);
	mark(preload.maps_used, page, count, false);
	preload_spin_unlock(&preload.maps_lock);
}

void preload_maps_free(void *start, size_t bytes)
{
	uint64_t page = page_of(start);
	uint64_t end =
		page + (align_up(bytes, RUN_PAGE_BYTES) >> RUN_PAGE_SHIFT);

	if (!preload.has_foreign) {
		free_run(page, end - page);
		return;
	}
	while (page < end) {
		uint64_t n = alike(page, end);

		free_run(page, n);
		page += n;
	}
}

bool preload_maps_has(const void *addr)
{
	return preload_owns(addr) && (size_t)((const uint8_t *)addr -
					      preload.range) >= RUN_MAPS_OFFSET;
}

void preload_maps_set_foreign(void *start, size_t bytes)
{
	preload_spin_lock(&preload.maps_lock);
	preload.has_foreign = true;
	mark(preload.maps_foreign, page_of(start), bytes >> RUN_PAGE_SHIFT,
	     true);
	preload_spin_unlock(&preload.maps_lock);
}

bool preload_maps_is_foreign(const void *start, size_t bytes)
{
	uint64_t page = page_of(start);
	bool any = false;

	if (!preload_maps_has(start) || !preload.has_foreign)
		return false;
	for (uint64_t i = 0; i < bytes >> RUN_PAGE_SHIFT && !any; i++)
		any = is_foreign(page + i);
	return any;
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
		mark(preload.maps_used, page + had, want - had, true);
	preload_spin_unlock(&preload.maps_lock);
	return ok;
}
