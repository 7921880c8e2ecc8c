/* SPDX-License-Identifier: Apache-2.0 */
/* The chains of `bench walk`: 48 nodes each, scattered over all memory. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "walk_bench.h"

const struct aq_walk_shape walk_list_shape = {
	.kind = AQ_WALK_LIST_FIND,
	.key_at = offsetof(struct walk_node, key),
	.key_bytes = 8,
	.value_at = offsetof(struct walk_node, value),
	.value_bytes = 8,
	.next_at = offsetof(struct walk_node, next),
};

/* A bijection of 0 to nodes - 1: two odd factors and a shift between. */
uint64_t walk_list_at(const struct walk_list *l, uint64_t number)
{
	uint64_t mask = l->nodes - 1;
	unsigned half = (unsigned)__builtin_ctzll(l->nodes) / 2 + 1;
	uint64_t x = number * 0x9e3779b97f4a7c15ull & mask;

	x ^= x >> half;
	x = x * 0xbf58476d1ce4e5b9ull & mask;
	return WALK_FIRST + x * WALK_NODE_BYTES;
}

static void fill(struct walk_list *l)
{
	for (uint64_t i = 0; i < l->nodes; i++) {
		uint64_t at = walk_list_at(l, i);
		bool is_last = i % WALK_CHAIN == WALK_CHAIN - 1;
		const struct walk_node n = {
			.key = i,
			.value = ~i,
			.next = is_last || i + 1 == l->nodes
					? 0
					: walk_list_at(l, i + 1),
		};

		memcpy(l->memory + at, &n, sizeof(n));
	}
}

int walk_list_make(struct walk_list *l, uint64_t megabytes)
{
	l->nodes = (megabytes << 20) / WALK_NODE_BYTES;
	l->bytes = WALK_FIRST + l->nodes * WALK_NODE_BYTES;
	l->chains = l->nodes / WALK_CHAIN;
	/* As the memory of a node is: shared, in pages of the usual size. */
	l->memory = mmap(NULL, l->bytes, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (l->memory == MAP_FAILED)
		return -errno;
	fill(l);
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
