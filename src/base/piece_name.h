/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of regions and of their pieces. A region on one node is one piece
 * with the region's own name. A region on several nodes is striped: stripe k is
 * in piece k modulo the number of pieces, and its pieces are regions of the
 * nodes, named NAME.INDEX-COUNT-SHIFT (in hexadecimal). So clients find the map
 * again from the nodes alone, and a node knows which bytes of the region are
 * its own.
 */
#ifndef AQ_PIECE_NAME_H
#define AQ_PIECE_NAME_H

#include "base.h"

enum {
	PIECE_REGION_MAX = 41, /* a region's name, with the NUL */
	PIECE_NAME_MAX = 64,   /* a piece's, with the NUL */
	PIECE_COUNT_MAX = 64,
	PIECE_SHIFT_MIN = 12,
	PIECE_SHIFT_MAX = 30,
};

struct piece_name {
	char region[PIECE_REGION_MAX];
	uint32_t index;
	uint32_t count;
	uint32_t shift; /* of a stripe's bytes; 0 when count is 1 */
};

/* Letters, digits, '_' and '-', 1 to 40; the first is no '-'. */
bool piece_region_is_valid(const char *name);

/* The name on the node of one piece. */
void piece_name_write(const char *region, uint32_t index, uint32_t count,
		      uint32_t shift, char out[PIECE_NAME_MAX]);

/* Takes a name apart; -EINVAL when we would not have made it. */
int piece_name_parse(const char *name, struct piece_name *out) MUST_CHECK;

#endif
