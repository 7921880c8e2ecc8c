/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of translation and protection that a program's memory needs in the
 * switch, and how even it lies on memory nodes. Areas have any size, and so
 * many of them whatever the threads; their bytes grow with threads. Each is a
 * part of the shipped arena (memnode/arena.h) of the node that has least; that
 * rule for several nodes is the paper's, and here only. Rules are those of the
 * shipped tables: one for each node, and rights (switch/rights.h), to whole
 * parts, as the lead tells the switch of an owner's. Pages of one size, the
 * rivals, need one rule for each.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/rng.h"
#include "memnode/arena.h"
#include "mfig.h"
#include "mfig_costs.h"
#include "switch/rights.h"
#include "wire/coherence_wire.h"

enum {
	NODES_MAX = 64,
	DOMAIN = 1,
};

#define MIB 1048576ull
#define GIB 1073741824ull

const char *const mfig_placement_names[MFIG_PLACEMENTS] = {
	[MFIG_PARTS] = "MIND",
	[MFIG_2M_PAGES] = "2 MB pages",
	[MFIG_1G_PAGES] = "1 GB pages",
};

struct nodes {
	uint64_t bytes[NODES_MAX]; /* that are used by areas or pages */
	struct arena arena[NODES_MAX];
	unsigned count;
};

static unsigned least(const struct nodes *n)
{
	unsigned best = 0;

	for (unsigned i = 1; i < n->count; i++)
		if (n->bytes[i] < n->bytes[best])
			best = i;
	return best;
}

static double jain(const struct nodes *n)
{
	double sum = 0, squares = 0;

	for (unsigned i = 0; i < n->count; i++) {
		sum += (double)n->bytes[i];
		squares += (double)n->bytes[i] * (double)n->bytes[i];
	}
	return squares > 0 ? sum * sum / (n->count * squares) : 1;
}

static uint32_t area_count(enum mfig_work work)
{
	return (uint32_t)(work == MFIG_TF   ? mfig_costs.vma_tf
			  : work == MFIG_GC ? mfig_costs.vma_gc
					    : mfig_costs.vma_m);
}

/* Sizes from one to 2^16, by their order of magnitude, in units that make the
 * sum `total`; the same sizes for any number of threads. */
static uint64_t *draw_areas(uint32_t count, uint64_t total, uint64_t seed)
{
	uint64_t *area = calloc(count, sizeof(*area));
	uint64_t sum = 0;
	struct rng rng;

	if (!area)
		return NULL;
	rng_init_stream(&rng, seed, 7);
	for (uint32_t i = 0; i < count; i++) {
		area[i] = 1 + rng_below(&rng, 1ull << rng_below(&rng, 17));
		sum += area[i];
	}
	for (uint32_t i = 0; i < count; i++) {
		double bytes = (double)area[i] * (double)total / (double)sum;

		area[i] = (uint64_t)bytes / COHERENCE_PAGE_BYTES *
				  COHERENCE_PAGE_BYTES +
			  COHERENCE_PAGE_BYTES;
	}
	return area;
}

static int place_area(struct nodes *n, struct rights *rights, uint64_t bytes)
{
	unsigned node = least(n);
	struct arena_part part;
	int err = arena_take(&n->arena[node], bytes, &part);

	if (err)
		return err;
	n->bytes[node] += part.bytes;
	return rights_set(rights, DOMAIN,
			  (coherence_arena(node) + part.at) >>
				  COHERENCE_PAGE_SHIFT,
			  part.bytes >> COHERENCE_PAGE_SHIFT, COH_WRITE);
}

static int place_areas(struct nodes *n, const uint64_t *area, uint32_t count,
		       double *rules)
{
	struct rights rights = {0};
	int err = rights_init(&rights);

	for (unsigned i = 0; !err && i < n->count; i++)
		err = arena_init(&n->arena[i], 1ull << COHERENCE_NODE_SHIFT,
				 count);
	for (uint32_t i = 0; !err && i < count; i++)
		err = place_area(n, &rights, area[i]);
	*rules = rights.count + n->count;
	rights_release(&rights);
	for (unsigned i = 0; i < n->count; i++)
		arena_release(&n->arena[i]);
	return err;
}

/* Areas share pages with their neighbours; each page goes where least is. */
static double place_pages(struct nodes *n, const uint64_t *area, uint32_t count,
			  uint64_t page)
{
	uint64_t total = 0, pages;

	for (uint32_t i = 0; i < count; i++)
		total += area[i];
	pages = (total + page - 1) / page;
	for (uint64_t i = 0; i < pages; i++)
		n->bytes[least(n)] += page;
	return (double)pages;
}

int mfig_rules_run(enum mfig_work work, enum mfig_placement placement,
		   uint32_t threads, uint64_t seed, struct mfig_rules *out)
{
	struct nodes n = {.count = (unsigned)mfig_costs.blades};
	uint32_t count = area_count(work);
	uint64_t *area =
		draw_areas(count, mfig_costs.thread_bytes * threads, seed);
	int err = area ? 0 : -ENOMEM;

	if (!err && placement == MFIG_PARTS)
		err = place_areas(&n, area, count, &out->rules);
	else if (!err)
		out->rules =
			place_pages(&n, area, count,
				    placement == MFIG_2M_PAGES ? 2 * MIB : GIB);
	out->jain = jain(&n);
	free(area);
	return err;
}
