/* SPDX-License-Identifier: Apache-2.0 */
/* Chains whose nodes are on two memory nodes by turns. */
#include <stddef.h>

#include "walk_bench.h"

enum {
	CHAINS = 256,
	STRIPE = 4096,
	/* An even number, so that all chains begin on the same node. */
	CHAIN_STRIPES = WALK_CROSS_NODES + 1,
	REGION_BYTES = CHAINS * CHAIN_STRIPES * STRIPE,
};
STATIC_ASSERT(CHAIN_STRIPES % 2 == 0, "chains begin on the same node");

/* Behind a stripe's first node, because 0 is no pointer. */
static uint64_t node_at(uint64_t chain, uint64_t number)
{
	return (chain * CHAIN_STRIPES + number) * STRIPE + WALK_NODE_BYTES;
}

int walk_cross_write(struct aq_rack *rack)
{
	const struct aq_region_options o = {.nodes = 2, .stripe_bytes = STRIPE};
	struct aq_region *region;
	int err = aq_region_create(rack, WALK_CROSS_REGION, REGION_BYTES, &o,
				   &region);

	for (uint64_t i = 0; i < CHAINS * WALK_CROSS_NODES && !err; i++) {
		uint64_t chain = i / WALK_CROSS_NODES;
		uint64_t number = i % WALK_CROSS_NODES;
		const struct walk_node n = {
			.key = i,
			.value = ~i,
			.next = number + 1 < WALK_CROSS_NODES
					? node_at(chain, number + 1)
					: 0,
		};

		err = aq_write(region, node_at(chain, number), &n, sizeof(n));
	}
	return err;
}

struct walk_query walk_cross_query(uint64_t draw)
{
	uint64_t chain = draw % CHAINS;
	uint64_t last = chain * WALK_CROSS_NODES + WALK_CROSS_NODES - 1;

	return (struct walk_query){
		.start = node_at(chain, 0), .key = last, .value = ~last};
}
