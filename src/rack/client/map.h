/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The map of a region: which byte lives in which piece on which node. Pure
 * arithmetic and names; talking to nodes is left to region.c.
 *
 * A region on one node is one piece with the region's own name. A region on
 * several nodes is striped: stripe k is in piece k modulo the number of pieces.
 * Its pieces are regions of the nodes, named NAME.INDEX-COUNT-SHIFT (in
 * hexadecimal), so that the map can be found again from the nodes alone.
 */
#ifndef AQ_CLIENT_MAP_H
#define AQ_CLIENT_MAP_H

#include "base/base.h"
#include "client_limits.h"

struct client_piece {
	uint32_t node;	/* index in the rack */
	uint32_t id;	/* of the node */
	uint32_t epoch; /* changes when the piece's keys die */
	uint64_t size_bytes;
	uint64_t incarnation; /* of the node: restarted, it has another */
};

struct client_map {
	uint64_t size_bytes;
	uint32_t piece_count;
	uint32_t stripe_shift;
	struct client_piece piece[CLIENT_NODE_MAX];
};

/* Letters, digits, '_' and '-', 1 to 40; the first is no '-'. */
bool client_name_is_valid(const char *name);

/* The name on the node of one piece. */
void client_piece_name(const char *region, uint32_t index, uint32_t count,
		       uint32_t shift, char out[CLIENT_PIECE_NAME_MAX]);

struct client_piece_id {
	char region[CLIENT_REGION_NAME_MAX];
	uint32_t index;
	uint32_t count;
	uint32_t shift; /* 0 when count is 1 */
};

/* Takes a name apart; -EINVAL when we would not have made it. */
int client_piece_parse(const char *name,
		       struct client_piece_id *out) MUST_CHECK;

/* How large piece `index` of a region of that size must be; never 0. */
uint64_t client_piece_bytes(uint64_t size_bytes, uint32_t index, uint32_t count,
			    uint32_t shift);

/* The largest region that pieces of these sizes can hold. */
uint64_t client_map_size(const struct client_map *m);

struct client_spot {
	uint32_t piece;
	uint64_t offset;    /* inside the piece */
	uint64_t len_bytes; /* contiguous from there, at most what was asked */
};

/* Where `len_bytes` from `offset` start; inside the region. */
struct client_spot client_map_find(const struct client_map *m, uint64_t offset,
				   uint64_t len_bytes);

#endif
