/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which bytes are being read and written, roughly: a counting filter over lines
 * of the regions. It never misses an overlap; it may see one where there is
 * none, which costs a wait and nothing else.
 */
#ifndef AQ_WIRE_OFFLOAD_FILTER_H
#define AQ_WIRE_OFFLOAD_FILTER_H

#include "base/base.h"

enum {
	FILTER_LINES = 2048,
	/* Lines are as long as requests of the usual size: 256 bytes for an
	 * engine that counts them one by one, 64 for registers. */
	FILTER_LINE_SHIFT = 8,
	FILTER_REGISTER_SHIFT = 6,
	FILTER_SPAN_MAX = 32, /* lines; wider ranges overlap with everything */
	FILTER_KINDS = 2,     /* reads, writes */
};

struct offload_filter {
	uint32_t line_shift;
	uint32_t count[FILTER_KINDS];
	/* Requests that count as overlapping with everything: wide ranges, and
	 * requests of applications that have not mixed reads and writes for a
	 * while, for which lines are not worth their cost. */
	uint32_t wide[FILTER_KINDS];
	/* Of one request several lines may be in one place. */
	uint32_t line[FILTER_KINDS][FILTER_LINES];
};

/* An empty one, with lines of 1 << line_shift bytes. */
void offload_filter_init(struct offload_filter *f, uint32_t line_shift);

/* Whether a request of this kind may overlap with one of the other kind. */
bool offload_filter_conflicts(const struct offload_filter *f, unsigned kind,
			      uint32_t region, uint64_t offset,
			      uint64_t len_bytes);
void offload_filter_add(struct offload_filter *f, unsigned kind,
			uint32_t region, uint64_t offset, uint64_t len_bytes);
void offload_filter_remove(struct offload_filter *f, unsigned kind,
			   uint32_t region, uint64_t offset,
			   uint64_t len_bytes);

/* The same without lines. */
static inline void offload_filter_add_wide(struct offload_filter *f,
					   unsigned kind)
{
	f->count[kind]++;
	f->wide[kind]++;
}

static inline void offload_filter_remove_wide(struct offload_filter *f,
					      unsigned kind)
{
	f->count[kind]--;
	f->wide[kind]--;
}

#endif
