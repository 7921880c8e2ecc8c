/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The circle of loads: all lines of an arena in random order, each of which
 * says where the next one is, so that neither a prefetcher nor a short circle
 * helps.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/rng.h"
#include "probe_priv.h"

/* A random order of `count` lines; NULL: no memory. */
static uint32_t *shuffle(uint32_t count)
{
	uint32_t *order = malloc(count * sizeof(*order));
	struct rng rng;

	if (!order)
		return NULL;
	rng_init(&rng, 1);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t k = (uint32_t)rng_below(&rng, i + 1);

		order[i] = k < i ? order[k] : i;
		order[k] = i;
	}
	return order;
}

static uint64_t **line_at(const struct probe_arena *a, uint32_t index)
{
	return (uint64_t **)(void *)(a->memory + (uint64_t)index * CACHE_LINE);
}

/*
 * Lines are written in the order in which they will be followed, so that caches
 * have what they have after a whole round: the lines that come last. A circle
 * that is swapped together in place leaves lines of any part of it in the
 * caches, and a window that is shorter than a round finds them there: a sixth
 * of its first loads were no loads of memory.
 */
int probe_circle_link(const struct probe_arena *a, uint64_t ***first)
{
	uint32_t count = (uint32_t)(a->bytes / CACHE_LINE);
	uint32_t *order = shuffle(count);

	if (!order)
		return error_set(-ENOMEM, "no memory for the probe");
	for (uint32_t i = 0; i < count; i++)
		*line_at(a, order[i]) =
			(uint64_t *)line_at(a, order[(i + 1) % count]);
	*first = line_at(a, order[0]);
	free(order);
	return 0;
}
