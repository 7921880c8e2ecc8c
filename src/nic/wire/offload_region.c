/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of pieces, and requests to them. */
#include "offload_region.h"

#include <errno.h>

/* Whether its pieces hold all of the region. */
static bool is_covered(const struct offload_region_config *r)
{
	uint64_t stripes = r->size_bytes >> r->stripe_shift;
	uint64_t stripe = 1ull << r->stripe_shift;

	if (r->piece_count == 1)
		return r->piece[0].size_bytes >= r->size_bytes;
	for (uint32_t i = 0; i < r->piece_count; i++) {
		uint64_t whole = stripes / r->piece_count +
				 (i < stripes % r->piece_count);
		uint64_t rest = i == stripes % r->piece_count
					? r->size_bytes & (stripe - 1)
					: 0;

		if (r->piece[i].size_bytes < whole * stripe + rest)
			return false;
	}
	return true;
}

int offload_region_check(const struct offload_region_config *r,
			 uint32_t node_count)
{
	if (r->piece_count == 0 || r->piece_count > OFFLOAD_NODES_MAX ||
	    r->err > 0 || r->err < -255 || r->size_bytes >> 48 ||
	    (r->piece_count > 1 &&
	     (r->stripe_shift < 8 || r->stripe_shift > 40)))
		return -EINVAL;
	for (unsigned i = 0; i < r->piece_count; i++)
		if (r->piece[i].node >= node_count)
			return -EINVAL;
	return is_covered(r) ? 0 : -EINVAL;
}

struct offload_spot offload_region_spot(const struct offload_region_config *r,
					uint64_t far, uint64_t len_bytes)
{
	uint64_t stripe, inside;

	if (r->piece_count == 1)
		return (struct offload_spot){0, far, len_bytes};
	stripe = far >> r->stripe_shift;
	inside = far & ((1ull << r->stripe_shift) - 1);
	return (struct offload_spot){
		.piece = (uint32_t)(stripe % r->piece_count),
		.offset = (stripe / r->piece_count << r->stripe_shift) + inside,
		.len_bytes =
			u64_min(len_bytes, (1ull << r->stripe_shift) - inside),
	};
}

int offload_request_kind(const struct offload_meta *m)
{
	if (m->rw_type != OFFLOAD_READ && m->rw_type != OFFLOAD_WRITE)
		return -EBADMSG;
	return m->rw_type == OFFLOAD_WRITE ? OFFLOAD_WR : OFFLOAD_RD;
}

int offload_request_check(const struct offload_meta *m,
			  const struct offload_map *map,
			  const struct offload_region_config *regions,
			  uint32_t region_count)
{
	const struct offload_region_config *r;
	bool is_write = m->rw_type == OFFLOAD_WRITE;
	uint64_t ring = is_write ? map->wdata_bytes : map->rdata_bytes;
	uint64_t near = is_write ? m->req_addr : m->resp_addr;
	uint64_t far = is_write ? m->resp_addr : m->req_addr;

	if (m->region >= region_count)
		return EBADF;
	r = &regions[m->region];
	if (m->len_bytes == 0 || m->len_bytes > ring / 2)
		return EMSGSIZE;
	if (near > ring - m->len_bytes)
		return EINVAL;
	if (far > r->size_bytes || m->len_bytes > r->size_bytes - far)
		return ERANGE;
	return is_write && r->is_read_only ? EACCES : 0;
}
