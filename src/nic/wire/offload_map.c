/* SPDX-License-Identifier: Apache-2.0 */
/* The rings' layout: sizes, places, header. */
#include "offload_map.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"

static const struct layout_kind kind = {
	.name = "offload rings",
	.magic = OFFLOAD_MAGIC,
	.major = OFFLOAD_MAJOR,
	.minor = OFFLOAD_MINOR,
	.header_size =
		sizeof(struct layout_header) + sizeof(struct offload_geometry),
};

static bool is_pow2_in(uint64_t v, uint64_t min, uint64_t max)
{
	return v >= min && v <= max && (v & (v - 1)) == 0;
}

int offload_map_make(uint64_t entries, uint64_t wdata_bytes,
		     uint64_t rdata_bytes, struct offload_map *out)
{
	struct offload_map m = {0};

	if (!is_pow2_in(entries, OFFLOAD_ENTRIES_MIN, OFFLOAD_ENTRIES_MAX) ||
	    !is_pow2_in(wdata_bytes, OFFLOAD_DATA_MIN, OFFLOAD_DATA_MAX) ||
	    !is_pow2_in(rdata_bytes, OFFLOAD_DATA_MIN, OFFLOAD_DATA_MAX))
		return -EINVAL;
	m.entries = (uint32_t)entries;
	m.mask = (uint32_t)entries - 1;
	m.wdata_bytes = wdata_bytes;
	m.rdata_bytes = rdata_bytes;
	m.status_at = sizeof(struct offload_preamble);
	m.meta_at = align_up(m.status_at + entries, CACHE_LINE);
	m.wdata_at = align_up(m.meta_at + entries * sizeof(struct offload_meta),
			      4096);
	m.rdata_at = m.wdata_at + wdata_bytes;
	m.total_bytes = m.rdata_at + rdata_bytes;
	*out = m;
	return 0;
}

void offload_preamble_init(struct offload_preamble *p,
			   const struct offload_map *map, const char *creator)
{
	layout_header_init(&p->header, &kind, map->total_bytes, creator);
	p->geometry.entries = le32_put(map->entries);
	p->geometry.wdata_bytes = le64_put(map->wdata_bytes);
	p->geometry.rdata_bytes = le64_put(map->rdata_bytes);
}

int offload_preamble_check(const struct offload_preamble *p,
			   uint64_t avail_bytes, struct offload_map *out)
{
	struct layout_info info;
	struct offload_map m;
	int err = layout_header_check(&p->header, avail_bytes, &kind, &info);

	if (err)
		return err;
	if (offload_map_make(le32_get(p->geometry.entries),
			     le64_get(p->geometry.wdata_bytes),
			     le64_get(p->geometry.rdata_bytes), &m) != 0 ||
	    m.total_bytes != info.total_size)
		return error_set(-EBADMSG, "offload rings of impossible size");
	*out = m;
	return 0;
}
