/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a range mapped, with these rights? Pinning would tell, at registration.
 * The kernel is asked without touching a page, because a page may be served by
 * a fault handler that is the caller itself, and there may be terabytes of
 * them.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verbs_priv.h"

/* Since Linux 6.11; older headers do not have it. */
struct map_query {
	uint64_t size;
	uint64_t query_flags;
	uint64_t query_addr;
	uint64_t vma_start;
	uint64_t vma_end;
	uint64_t vma_flags;
	uint64_t unused[7];
};
STATIC_ASSERT(sizeof(struct map_query) == 104, "as the kernel has it");

#define MAP_QUERY _IOWR('f', 17, struct map_query)

enum {
	MAP_READABLE = 1,
	MAP_WRITABLE = 2,
	PROBE_PAGES = 4096,
};

/* -ENOTTY: this kernel does not answer. */
static int ask(int fd, uintptr_t at, uintptr_t end, uint64_t rights)
{
	while (at < end) {
		struct map_query q = {.size = sizeof(q), .query_addr = at};

		if (ioctl(fd, MAP_QUERY, &q) < 0)
			return errno == ENOENT ? -EFAULT : -ENOTTY;
		if ((q.vma_flags & rights) != rights)
			return -EFAULT;
		at = q.vma_end;
	}
	return 0;
}

/* The same from the text: "start-end rwxp ...", in ascending order. */
static int read_text(int fd, uintptr_t at, uintptr_t end, uint64_t rights)
{
	FILE *f = fdopen(fd, "re");
	unsigned long from, to;
	char r, w;
	int err = -EFAULT;

	if (!f) {
		close(fd);
		return -ENOMEM;
	}
	while (fscanf(f, "%lx-%lx %c%c%*[^\n]", &from, &to, &r, &w) == 4) {
		if (to <= at)
			continue;
		if (from > at || r != 'r' ||
		    ((rights & MAP_WRITABLE) && w != 'w'))
			break;
		at = to;
		if (at >= end) {
			err = 0;
			break;
		}
	}
	fclose(f);
	return err;
}

/* Who may not open its map, as a confined daemon, learns at least whether there
 * is anything. */
static int probe(uintptr_t at, uintptr_t end, uintptr_t page)
{
	unsigned char resident[PROBE_PAGES];

	while (at < end) {
		size_t span = u64_min(end - at, PROBE_PAGES * page);

		if (mincore((void *)at, span, resident))
			return -EFAULT;
		at += span;
	}
	return 0;
}

int verbs_range_check(const void *addr, size_t length, bool writable)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t at = (uintptr_t)addr & ~(page - 1);
	uintptr_t end = (uintptr_t)addr + length;
	uint64_t rights = MAP_READABLE | (writable ? MAP_WRITABLE : 0);
	int fd, err;

	if (!addr || !length || end < (uintptr_t)addr)
		return -EINVAL;
	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return probe(at, end, page);
	err = ask(fd, at, end, rights);
	if (err == -ENOTTY)
		return read_text(fd, at, end, rights);
	close(fd);
	return err;
}
