/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of regions, counted in few places. */
#include "offload_filter.h"

struct span {
	uint64_t first;
	uint64_t count; /* of lines */
};

static struct span span_of(const struct offload_filter *f, uint64_t offset,
			   uint64_t len_bytes)
{
	uint64_t first = offset >> f->line_shift;
	uint64_t last = (offset + len_bytes - 1) >> f->line_shift;

	return (struct span){first, last - first + 1};
}

void offload_filter_init(struct offload_filter *f, uint32_t line_shift)
{
	*f = (struct offload_filter){.line_shift = line_shift};
}

static unsigned place(uint32_t region, uint64_t line)
{
	uint64_t h = (line + ((uint64_t)region << 40)) * 0x9e3779b97f4a7c15ull;

	return (unsigned)(h >> (64 - 11));
}

STATIC_ASSERT(FILTER_LINES == 1 << 11, "place() makes 11 bits");

bool offload_filter_conflicts(const struct offload_filter *f, unsigned kind,
			      uint32_t region, uint64_t offset,
			      uint64_t len_bytes)
{
	unsigned other = 1 - kind;
	struct span s;

	if (f->count[other] == 0)
		return false;
	s = span_of(f, offset, len_bytes);
	if (f->wide[other] || s.count > FILTER_SPAN_MAX)
		return true;
	for (uint64_t i = 0; i < s.count; i++)
		if (f->line[other][place(region, s.first + i)])
			return true;
	return false;
}

static void change(struct offload_filter *f, unsigned kind, uint32_t region,
		   uint64_t offset, uint64_t len_bytes, int by)
{
	struct span s = span_of(f, offset, len_bytes);

	f->count[kind] += (uint32_t)by;
	if (s.count > FILTER_SPAN_MAX) {
		f->wide[kind] += (uint32_t)by;
		return;
	}
	for (uint64_t i = 0; i < s.count; i++)
		f->line[kind][place(region, s.first + i)] += (uint32_t)by;
}

void offload_filter_add(struct offload_filter *f, unsigned kind,
			uint32_t region, uint64_t offset, uint64_t len_bytes)
{
	change(f, kind, region, offset, len_bytes, 1);
}

void offload_filter_remove(struct offload_filter *f, unsigned kind,
			   uint32_t region, uint64_t offset, uint64_t len_bytes)
{
	change(f, kind, region, offset, len_bytes, -1);
}
