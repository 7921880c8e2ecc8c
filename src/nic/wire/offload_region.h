/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The regions that an application's requests name, and whether a request can be
 * executed: what every engine checks before it sends anything. The application
 * is not trusted, so a request may be anything.
 */
#ifndef AQ_WIRE_OFFLOAD_REGION_H
#define AQ_WIRE_OFFLOAD_REGION_H

#include "offload_map.h"

struct offload_piece_config {
	uint32_t node;
	uint32_t read_rkey;
	uint32_t write_rkey;
	uint64_t addr;
	uint64_t size_bytes;
};

struct offload_region_config {
	int err; /* why its requests fail, -ESTALE; the shape still holds */
	bool is_read_only;
	uint64_t size_bytes;
	uint32_t piece_count;
	uint32_t stripe_shift; /* stripe k is in piece k modulo piece_count */
	struct offload_piece_config piece[OFFLOAD_NODES_MAX];
};

/* -EINVAL: a region that cannot be, or is larger than its pieces. */
int offload_region_check(const struct offload_region_config *r,
			 uint32_t node_count) MUST_CHECK;

/* Where a range of a region begins, and how much of it is together there. */
struct offload_spot {
	uint32_t piece;
	uint64_t offset;
	uint64_t len_bytes;
};
struct offload_spot offload_region_spot(const struct offload_region_config *r,
					uint64_t far, uint64_t len_bytes);

/* OFFLOAD_RD or OFFLOAD_WR; -EBADMSG for neither: it has no sequence, so
 * nothing could be said about it. */
int offload_request_kind(const struct offload_meta *m) MUST_CHECK;
/* Why no engine ever executes it, as a positive errno, or 0. Whether its region
 * is there at the moment is another question. */
int offload_request_check(const struct offload_meta *m,
			  const struct offload_map *map,
			  const struct offload_region_config *regions,
			  uint32_t region_count) MUST_CHECK;

#endif
