/* SPDX-License-Identifier: Apache-2.0 */
/* Places in the arena of shared memory. */
#include "arena.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int arena_init(struct arena *a, uint64_t size_bytes, unsigned max)
{
	*a = (struct arena){.size_bytes = size_bytes, .max = max};
	a->parts = calloc(max, sizeof(*a->parts));
	return a->parts ? 0 : -ENOMEM;
}

void arena_release(struct arena *a)
{
	free(a->parts);
	a->parts = NULL;
}

uint64_t arena_round(uint64_t size_bytes)
{
	uint64_t bytes = ARENA_STEP;

	ASSERT(size_bytes && size_bytes <= 1ull << 62);
	if (size_bytes > ARENA_STEP_MAX)
		return align_up(size_bytes, ARENA_STEP_MAX);
	while (bytes < size_bytes)
		bytes *= 2;
	return bytes;
}

int arena_take(struct arena *a, uint64_t size_bytes, struct arena_part *out)
{
	uint64_t bytes = arena_round(size_bytes), at = 0;
	uint64_t align = u64_min(bytes, ARENA_STEP_MAX);
	unsigned i = 0;

	if (a->count == a->max || bytes > a->size_bytes)
		return -ENOSPC;
	for (; i < a->count; i++) {
		at = align_up(at, align);
		if (at + bytes <= a->parts[i].at)
			break;
		at = a->parts[i].at + a->parts[i].bytes;
	}
	at = align_up(at, align);
	if (at > a->size_bytes - bytes)
		return -ENOSPC;
	memmove(a->parts + i + 1, a->parts + i,
		(a->count - i) * sizeof(*a->parts));
	*out = a->parts[i] = (struct arena_part){at, bytes};
	a->count++;
	a->taken_bytes += bytes;
	return 0;
}

int arena_take_at(struct arena *a, const struct arena_part *part)
{
	unsigned i = 0;

	if (a->count == a->max || !part->bytes || part->at % ARENA_STEP ||
	    part->bytes % ARENA_STEP || part->bytes > a->size_bytes ||
	    part->at > a->size_bytes - part->bytes)
		return -EEXIST;
	while (i < a->count && a->parts[i].at + a->parts[i].bytes <= part->at)
		i++;
	if (i < a->count && a->parts[i].at < part->at + part->bytes)
		return -EEXIST;
	memmove(a->parts + i + 1, a->parts + i,
		(a->count - i) * sizeof(*a->parts));
	a->parts[i] = *part;
	a->count++;
	a->taken_bytes += part->bytes;
	return 0;
}

void arena_give(struct arena *a, uint64_t at)
{
	unsigned i = 0;

	while (i < a->count && a->parts[i].at != at)
		i++;
	ASSERT(i < a->count);
	a->taken_bytes -= a->parts[i].bytes;
	a->count--;
	memmove(a->parts + i, a->parts + i + 1,
		(a->count - i) * sizeof(*a->parts));
}
