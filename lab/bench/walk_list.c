/* SPDX-License-Identifier: Apache-2.0 */
/* The chains of `bench walk`: 48 nodes each, scattered over all memory. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/pages.h"
#include "walk_bench.h"

#define FACTOR_FIRST  0x9e3779b97f4a7c15ull
#define FACTOR_SECOND 0xbf58476d1ce4e5b9ull

/* More than half of the bits, so that shifting twice is no change. */
static unsigned shift_of(uint64_t count)
{
	return (unsigned)__builtin_ctzll(count) / 2 + 1;
}

/* Two odd factors and a shift between. */
uint64_t walk_scatter(uint64_t count, uint64_t number)
{
	uint64_t mask = count - 1;
	uint64_t x = number * FACTOR_FIRST & mask;

	x ^= x >> shift_of(count);
	return x * FACTOR_SECOND & mask;
}

/* Of an odd number, modulo 2^64: each round doubles the bits that are right. */
static uint64_t inverse(uint64_t odd)
{
	uint64_t x = odd;

	for (unsigned bits = 3; bits < 64; bits *= 2)
		x *= 2 - odd * x;
	return x;
}

uint64_t walk_gather(uint64_t count, uint64_t place)
{
	uint64_t mask = count - 1;
	uint64_t x = place * inverse(FACTOR_SECOND) & mask;

	x ^= x >> shift_of(count);
	return x * inverse(FACTOR_FIRST) & mask;
}

uint64_t walk_list_at(const struct walk_list *l, uint64_t number)
{
	return WALK_FIRST + walk_scatter(l->nodes, number) * WALK_NODE_BYTES;
}

/* In the order of memory: where that is far, a page is written once. */
void walk_list_fill(struct walk_list *l)
{
	for (uint64_t place = 0; place < l->nodes; place++) {
		uint64_t i = walk_gather(l->nodes, place);
		bool is_last = i % WALK_CHAIN == WALK_CHAIN - 1;
		const struct walk_node n = {
			.key = i,
			.value = ~i,
			.next = is_last || i + 1 == l->nodes
					? 0
					: walk_list_at(l, i + 1),
		};

		memcpy(l->memory + WALK_FIRST + place * WALK_NODE_BYTES, &n,
		       sizeof(n));
	}
}

void walk_list_size(struct walk_list *l, uint64_t megabytes)
{
	l->nodes = (megabytes << 20) / WALK_NODE_BYTES;
	l->bytes = WALK_FIRST + l->nodes * WALK_NODE_BYTES;
	l->chains = l->nodes / WALK_CHAIN;
}

/* As the memory of a node is: a file, and huge pages if there are any. */
int walk_list_make(struct walk_list *l, uint64_t megabytes)
{
	int fd, err;

	walk_list_size(l, megabytes);
	l->bytes = pages_round(l->bytes);
	fd = pages_memfd("chains", l->bytes);
	if (fd < 0)
		return fd;
	l->memory = pages_map(fd, l->bytes, true);
	err = l->memory ? pages_make(fd, l->memory, l->bytes) : -errno;
	(void)close(fd); /* the mapping stays */
	if (err) {
		if (l->memory)
			walk_list_free(l);
		return err;
	}
	walk_list_fill(l);
	return 0;
}

void walk_list_free(struct walk_list *l)
{
	(void)munmap(l->memory, l->bytes); /* the end anyway */
}

struct walk_query walk_list_query(const struct walk_list *l, uint64_t draw)
{
	uint64_t first = draw % l->chains * WALK_CHAIN;
	uint64_t last = first + WALK_CHAIN - 1;

	return (struct walk_query){
		.start = walk_list_at(l, first), .key = last, .value = ~last};
}
