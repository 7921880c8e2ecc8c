/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The map of a region: which byte lives in which piece on which node. Pure
 * arithmetic; talking to nodes is left to region.c, and base/piece_name.h says
 * what pieces are called.
 */
#ifndef AQ_CLIENT_MAP_H
#define AQ_CLIENT_MAP_H

#include "base/base.h"
#include "base/piece_name.h"
#include "client_limits.h"

struct client_piece {
	uint32_t node;	/* index in the rack */
	uint32_t id;	/* of the node */
	uint32_t epoch; /* changes when the piece's keys die */
	uint64_t size_bytes;
	uint64_t incarnation; /* of the node: restarted, it has another */
	uint64_t birth;	      /* stays when it moves; 0: the node names none */
};

struct client_map {
	uint64_t size_bytes;
	uint32_t piece_count;
	uint32_t stripe_shift;
	struct client_piece piece[CLIENT_NODE_MAX];
};

/* How large piece `index` of a region of that size must be; never 0. */
uint64_t client_piece_bytes(uint64_t size_bytes, uint32_t index, uint32_t count,
			    uint32_t shift);

/* The largest region that pieces of these sizes can hold. */
uint64_t client_map_size(const struct client_map *m);
/* The likely one where only some pieces are known, bit by bit, at least one:
 * as large as they allow, and if that can be, the same on all nodes. */
uint64_t client_map_size_of(const struct client_map *m, uint64_t have);

struct client_spot {
	uint32_t piece;
	uint64_t offset;    /* inside the piece */
	uint64_t len_bytes; /* contiguous from there, at most what was asked */
};

/* Where `len_bytes` from `offset` start; inside the region. */
struct client_spot client_map_find(const struct client_map *m, uint64_t offset,
				   uint64_t len_bytes);

#endif
