/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages that lie on one NUMA node. The node's memory may be very slow to fill,
 * or little, so as much is taken as can be filled in a second.
 */
#include <errno.h>
#include <inttypes.h>
#include <numaif.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/node_bind.h"
#include "base/size.h"
#include "probe_priv.h"

enum {
	PAGE = 4096,
	HUGE_PAGE =
		2 << 20, /* also what is filled between looks at the clock */
	FILL_MS = 1000,
	ARENA_MIN = 2 << 20, /* less than that measures a cache */
	CHECKED = 64,	     /* pages whose node is asked for */
};

static int bind_to(uint32_t node, void *memory, uint64_t bytes)
{
	int err = node_bind_memory(memory, bytes, node);

	if (!err)
		return 0;
	/* Some containers forbid it; with one node there is nothing to bind. */
	if (err == -EPERM || err == -ENOSYS) {
		struct tier_set nodes;

		if (probe_nodes_find(&nodes) == 0 &&
		    tier_set_count(&nodes) == 1)
			return 0;
	}
	return error_set(err, "pages cannot be bound to node %u: %s", node,
			 strerror(-err));
}

static void fill(struct probe_arena *a)
{
	uint64_t end_ns = clock_mono_ns() + FILL_MS * 1000000ull;

	do {
		uint64_t to = u64_min(a->bytes + HUGE_PAGE, a->mapped_bytes);

		for (uint64_t at = a->bytes; at < to; at += PAGE)
			a->memory[at] = 1;
		a->bytes = to;
	} while (a->bytes < a->mapped_bytes && clock_mono_ns() < end_ns);
}

/* The kernel may have had no such page, whatever it was told. */
static int check_pages(uint32_t node, const struct probe_arena *a)
{
	void *page[CHECKED];
	int where[CHECKED];
	unsigned wrong = 0;

	for (unsigned i = 0; i < CHECKED; i++)
		page[i] = a->memory + a->bytes / PAGE * i / CHECKED * PAGE;
	if (move_pages(0, CHECKED, page, NULL, where, 0) != 0)
		return 0; /* not allowed here; then nobody can tell */
	for (unsigned i = 0; i < CHECKED; i++)
		wrong += where[i] != (int)node;
	return wrong ? error_set(-ENOMEM,
				 "%u of %d pages were put on another node than "
				 "%u",
				 wrong, CHECKED, node)
		     : 0;
}

int probe_arena_make(uint32_t node, uint64_t bytes, struct probe_arena *out)
{
	struct probe_arena a = {.mapped_bytes = align_up(bytes, HUGE_PAGE)};
	int err;

	a.memory = mmap(NULL, a.mapped_bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (a.memory == MAP_FAILED)
		return error_set(-errno, "no memory to measure in: %s",
				 strerror(errno));
	(void)madvise(a.memory, a.mapped_bytes, MADV_HUGEPAGE); /* a wish */
	err = bind_to(node, a.memory, a.mapped_bytes);
	if (!err) {
		fill(&a);
		err = check_pages(node, &a);
	}
	if (!err && a.bytes < ARENA_MIN)
		err = error_set(-ENOMEM, "node %u has too little memory", node);
	if (err)
		(void)munmap(a.memory, a.mapped_bytes);
	else
		*out = a;
	return err;
}

void probe_arena_free(struct probe_arena *a)
{
	if (a->memory)
		(void)munmap(a->memory, a->mapped_bytes); /* mapped above */
	*a = (struct probe_arena){0};
}

double probe_arena_huge(const struct probe_arena *a)
{
	const uintptr_t begin = (uintptr_t)a->memory, end = begin + a->bytes;
	FILE *f = fopen("/proc/self/smaps", "re");
	uint64_t huge_kb = 0, from, to, kb;
	bool is_ours = false;
	char line[256];

	if (!f)
		return -1;
	/* One mapping may hold several arenas, or one several mappings. */
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &from, &to) == 2)
			is_ours = from < end && to > begin;
		else if (is_ours &&
			 sscanf(line, "AnonHugePages: %" SCNu64, &kb) == 1)
			huge_kb += kb;
	}
	(void)fclose(f); /* it was only read */
	return (double)u64_min(huge_kb << 10, a->bytes) / (double)a->bytes;
}
