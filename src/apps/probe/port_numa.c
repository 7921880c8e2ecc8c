/* SPDX-License-Identifier: Apache-2.0 */
/* A NUMA node as loads and stores of this process. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/error.h"
#include "base/size.h"
#include "probe_priv.h"

enum {
	BLOCK = 64 << 10, /* so that looking at the clock does not count */
	CHASE = 256,	  /* loads of one sample */
	CACHES = 4,	  /* an area has this many times the largest cache */
	FREE_PART = 8,	  /* of free memory, at most, for each of two areas */
	AREA_MIN = 4 << 20,
	LOAD_BYTES = 64 << 20, /* for each thread */
};

#define CHASE_MIN (64ull << 20)
#define AREA_MAX  (1ull << 30)

struct numa_port {
	struct probe_port base;
	struct probe_arena chase, load;
	bool is_lent;  /* `load` is the caller's */
	uint64_t **at; /* the cell that is followed next */
};

/* ---- dependent loads ---------------------------------------------------- */

static int chase(struct probe_port *p, uint32_t count)
{
	struct numa_port *n = container_of(p, struct numa_port, base);
	uint64_t **at = n->at;

	for (uint32_t i = 0; i < count; i++)
		at = (uint64_t **)*at;
	/* Kept, so that the loads are made, and the next sample goes on. */
	n->at = at;
	return 0;
}

/* ---- blocks ------------------------------------------------------------- */

/* One load of each line, which brings all of it: a processor that looks at
 * every word has instructions under way where it could have lines, and reads a
 * tenth less. Four sums, so that no load waits for the one before. */
static void read_block(const uint8_t *from)
{
#ifdef __SSE2__
	enum {
		LINE = CACHE_LINE / sizeof(__m128i)
	};
	const __m128i *line = (const __m128i *)(const void *)from;
	const __m128i *end = line + BLOCK / sizeof(*line);
	__m128i a = _mm_setzero_si128(), b = a, c = a, d = a;

	for (; line < end; line += 4 * LINE) {
		a = _mm_or_si128(a, _mm_load_si128(line));
		b = _mm_or_si128(b, _mm_load_si128(line + LINE));
		c = _mm_or_si128(c, _mm_load_si128(line + 2 * LINE));
		d = _mm_or_si128(d, _mm_load_si128(line + 3 * LINE));
	}
	/* The compiler must believe that somebody wants them. */
	__asm__ volatile("" : : "x"(a), "x"(b), "x"(c), "x"(d));
#else
	const uint64_t *w = (const uint64_t *)(const void *)from;
	uint64_t all = 0;

	for (unsigned i = 0; i < BLOCK / 8; i += CACHE_LINE / 8)
		all |= w[i];
	__asm__ volatile("" : : "r"(all));
#endif
}

/* Past the caches where the processor can do that: a line is not read before
 * it is written. */
static void write_block(uint8_t *to, uint64_t value)
{
#ifdef __SSE2__
	__m128i v = _mm_set1_epi64x((long long)value);

	for (unsigned i = 0; i < BLOCK; i += 16)
		_mm_stream_si128((__m128i *)(void *)(to + i), v);
	_mm_sfence();
#else
	memset(to, (int)value, BLOCK);
#endif
}

static int move(struct probe_port *p, uint64_t block, bool is_write)
{
	struct numa_port *n = container_of(p, struct numa_port, base);
	uint8_t *at = n->load.memory + block * BLOCK;

	if (is_write)
		write_block(at, block);
	else
		read_block(at);
	return 0;
}

/* ---- sizes -------------------------------------------------------------- */

/* More than caches have, and not more than there is. What the C library calls
 * the size of the last cache may be that of all of them together: an area of so
 * much is not filled in time. */
static uint64_t area_bytes(const cpu_set_t *cpus, uint64_t least, uint64_t most)
{
	uint32_t cpu = 0;

	while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, cpus))
		cpu++;
	return u64_min(
		u64_min(u64_max(least, CACHES * probe_cache_bytes("/sys", cpu)),
			AREA_MAX),
		most);
}

/* Both areas; of a node with so many bytes to take from. */
static int make_areas(struct numa_port *n, uint32_t node, uint32_t threads,
		      const struct probe_memory *load, uint64_t most)
{
	const cpu_set_t *cpus = &n->base.cpus;
	int err = probe_arena_make(node, area_bytes(cpus, CHASE_MIN, most),
				   &n->chase);

	n->is_lent = load->memory != NULL;
	if (n->is_lent)
		n->load = (struct probe_arena){.memory = load->memory,
					       .bytes = load->bytes};
	else if (!err)
		err = probe_arena_make(
			node,
			area_bytes(cpus, LOAD_BYTES * (uint64_t)threads, most),
			&n->load);
	return err;
}

int probe_numa_open(const struct probe_facts *facts, uint32_t node,
		    uint32_t threads, const struct probe_memory *load,
		    struct probe_tier *tier, struct probe_port **out)
{
	uint64_t most = facts->free_bytes / FREE_PART;
	struct numa_port *n;
	int err;

	if (most < AREA_MIN)
		return error_set(-ENOMEM,
				 "node %u has %s free, too little to measure "
				 "in",
				 node, SIZE_TEXT(facts->free_bytes));
	n = calloc(1, sizeof(*n));
	if (!n)
		return error_set(-ENOMEM, "no memory for the probe");
	n->base = (struct probe_port){.chase = chase,
				      .move = move,
				      .chase_count = CHASE,
				      .block_bytes = BLOCK};
	probe_node_cpus(facts->cpu_node, &n->base.cpus);
	err = make_areas(n, node, threads, load, most);
	if (!err)
		err = probe_circle_link(&n->chase, &n->at);
	if (err) {
		probe_numa_close(&n->base);
		return err;
	}
	n->base.block_count = n->load.bytes / BLOCK;
	tier->arena_bytes = n->chase.bytes;
	tier->load_bytes = n->load.bytes;
	tier->huge_share = probe_arena_huge(&n->chase);
	*out = &n->base;
	return 0;
}

void probe_numa_close(struct probe_port *p)
{
	struct numa_port *n = container_of(p, struct numa_port, base);

	probe_arena_free(&n->chase);
	if (!n->is_lent)
		probe_arena_free(&n->load);
	free(n);
}
