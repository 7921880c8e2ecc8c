/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of a function in an order without jumps backward. */
#ifndef AQ_WALKC_FLOW_H
#define AQ_WALKC_FLOW_H

#include "walkc_priv.h"

struct walkc_block {
	uint32_t first, end; /* instructions; `end` is behind the last */
	uint32_t next[2];    /* blocks: where a jump leads, what follows */
	uint8_t next_count;  /* of two the first one is the jump's */
	bool is_exit;
};

struct walkc_flow {
	const struct walkc_function *function;
	struct walkc_block *blocks;
	uint32_t block_count;
	uint32_t *order; /* numbers of blocks that can be reached */
	uint32_t order_count;
};

/* -EINVAL: a loop, or code that makes no sense. */
int walkc_flow_open(struct walkc_flow *flow,
		    const struct walkc_function *f) MUST_CHECK;
void walkc_flow_close(struct walkc_flow *flow);

#endif
