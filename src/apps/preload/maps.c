/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses for mappings: a bit per page, next fit. */
#include <errno.h>
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

/* Those very pages; false: some are used. */
static bool claim(uint64_t page, uint64_t count)
{
	bool ok;

	preload_spin_lock(&preload.maps_lock);
	ok = find(page, page + count, count) == page;
	if (ok)
		mark(preload.maps_used, page, count, true);
	preload_spin_unlock(&preload.maps_lock);
	return ok;
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

/* Plain memory as it was in the beginning, whatever was done with it or mapped
 * there. */
bool preload_maps_renew(void *start, size_t bytes)
{
	void *mem;

	if (atomic_load_explicit(&preload.locks_future, memory_order_relaxed) ||
	    preload_call(RUN_CALL_LEAVE, start, bytes) != 0)
		return false;
	mem = preload_sys_mmap(
		start, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
	if (mem == MAP_FAILED)
		return false;
	preload_plain(mem, bytes);
	return preload_call(RUN_CALL_TAKE, start, bytes) == 0;
}

/* The next owner of these addresses finds them as mmap promises. */
static bool make_plain(void *start, size_t bytes)
{
	if (preload_has_oddities())
		return preload_maps_renew(start, bytes);
	return preload_sys_madvise(start, bytes, MADV_DONTNEED) == 0 &&
	       syscall(SYS_mprotect, start, bytes, PROT_READ | PROT_WRITE) == 0;
}

int preload_maps_free(void *start, size_t bytes)
{
	uint64_t page = page_of(start);
	int saved = errno;

	if (!make_plain(start, bytes)) {
		/* Gone all the same, but never again used. */
		return preload_sys_munmap(start, bytes);
	}
	errno = saved;
	preload_spin_lock(&preload.maps_lock);
	mark(preload.maps_used, page, bytes >> RUN_PAGE_SHIFT, false);
	preload_spin_unlock(&preload.maps_lock);
	return 0;
}

bool preload_maps_take(void *start, size_t bytes)
{
	uint64_t count = align_up(bytes, RUN_PAGE_BYTES) >> RUN_PAGE_SHIFT;
	uint64_t page = page_of(start);

	return preload_maps_has(start) && bytes > 0 &&
	       bytes <= RUN_MAPS_BYTES && page + count <= MAPS_PAGES &&
	       claim(page, count);
}

void preload_maps_use(void *start, size_t bytes)
{
	preload_spin_lock(&preload.maps_lock);
	mark(preload.maps_used, page_of(start), bytes >> RUN_PAGE_SHIFT, true);
	preload_spin_unlock(&preload.maps_lock);
}

bool preload_maps_has(const void *addr)
{
	return preload_owns(addr) && (size_t)((const uint8_t *)addr -
					      preload.range) >= RUN_MAPS_OFFSET;
}

bool preload_maps_grow(void *start, size_t old, size_t bytes)
{
	uint64_t page = page_of(start);
	uint64_t had = align_up(old, RUN_PAGE_BYTES) >> RUN_PAGE_SHIFT;
	uint64_t want = align_up(bytes, RUN_PAGE_BYTES) >> RUN_PAGE_SHIFT;

	return want <= had ||
	       (page + want <= MAPS_PAGES && claim(page + had, want - had));
}
