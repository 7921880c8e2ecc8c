/* SPDX-License-Identifier: Apache-2.0 */
/* Where everything is in the rings of offload.h, and their header. */
#ifndef AQ_WIRE_OFFLOAD_MAP_H
#define AQ_WIRE_OFFLOAD_MAP_H

#include "offload.h"

/* Where everything is, in bytes from the start. */
struct offload_map {
	uint32_t entries;
	uint32_t mask; /* entries - 1 */
	uint64_t wdata_bytes;
	uint64_t rdata_bytes;
	uint64_t status_at;
	uint64_t meta_at;
	uint64_t wdata_at;
	uint64_t rdata_at;
	uint64_t total_bytes;
};

/* -EINVAL: not powers of two, or beyond the limits. */
int offload_map_make(uint64_t entries, uint64_t wdata_bytes,
		     uint64_t rdata_bytes, struct offload_map *out) MUST_CHECK;

/* Writes header and geometry into zeroed memory of map->total_bytes. */
void offload_preamble_init(struct offload_preamble *p,
			   const struct offload_map *map, const char *creator);
/* Checks those of a peer; avail_bytes is the size of its registration.
 * -EBADMSG, -EPROTONOSUPPORT, with words. */
int offload_preamble_check(const struct offload_preamble *p,
			   uint64_t avail_bytes,
			   struct offload_map *out) MUST_CHECK;

#endif
