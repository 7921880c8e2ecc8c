/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paper's programs, as the pages that they touch. What they compute in
 * between is set by how often they fault far: a dry run, in which far memory
 * takes no time, counts faults and touches.
 */
#include <errno.h>

#include "paging_priv.h"

enum {
	SCALE = 1024,
	LOCAL_MIN = 24, /* pages: windows and reclaim need some */
	BURST_LEAF_PAGES = 4,
	SCAN_ROUNDS = 6,
	POPULAR_ROUNDS = 8, /* touches per page */
	GRAPH_ROUNDS = 4,
	GRAPH_VERTEX_PERCENT = 15, /* of the set; the rest are edges */
	CALIBRATION_PERCENT = 50,  /* local */
};

/*
 * Working sets and threads: [O] 5.1. Faults: k-means 6,400 per second, 46.7 %
 * more than quicksort, the most of all ([O] 5.2); the others are ASSUMED below
 * quicksort, memcached's far below ("less frequent"). Quicksort's share of
 * writes is FITTED to the mix of [O] 5.3, more than 60 % loads and about 10 %
 * unmapped stores; the others are ASSUMED: ETC has 30 GETs per SET, TPC-C
 * writes about as often as it reads.
 */
const struct paging_program paging_programs[] = {
	{"quicksort", PAGING_QUICKSORT, 4096, 1, 4363, 60, 0.097},
	{"kmeans", PAGING_SCANS, 2048, 1, 6400, 0, 0.142},
	{"memcached", PAGING_POPULAR, 4096, 1, 2000, 3, 0.072},
	{"pagerank", PAGING_GRAPH, 14336, 4, 1000, 50, 0.115},
	{"betweenness", PAGING_GRAPH, 14336, 4, 800, 30, 0.063},
	{"voltdb", PAGING_POPULAR, 7168, 8, 250, 50, 0.041},
};
const unsigned paging_program_count = ARRAY_LEN(paging_programs);

static uint32_t set_pages(const struct paging *p)
{
	uint32_t scale = p->cfg.scale ? p->cfg.scale : SCALE;

	return (uint32_t)((uint64_t)p->cfg.program->set_mb * 256 / scale /
			  p->cfg.program->workers);
}

static void fill(struct paging_memory *m, uint32_t pages)
{
	for (uint32_t i = 0; i < pages; i++)
		paging_memory_touch(m, i, true);
}

/* ---- what they touch ----------------------------------------------------- */

static bool writes(struct paging_worker *w, struct rng *r)
{
	return sim_rand_below(r, 100) < w->p->cfg.program->write_percent;
}

/*
 * A part that is sorted without going through it again. Real ones go on until
 * a few lines are left; what fits into local memory costs them no fault, so
 * faults come in bursts. The paper has no more than the average, so unless
 * bursts are asked for the time of those levels is spread over all of it.
 */
static uint32_t leaf_pages(const struct paging_worker *w)
{
	return w->p->cfg.bursts ? BURST_LEAF_PAGES
				: set_pages(w->p) * CALIBRATION_PERCENT / 100;
}

/* Two hands go towards each other; then each side by itself. */
static void quicksort(struct paging_worker *w, struct rng *r, uint32_t lo,
		      uint32_t hi)
{
	uint32_t a = lo, b = hi, quarter, pivot;

	while (a < b) {
		paging_memory_touch(w->memory, a++, writes(w, r));
		if (a < b)
			paging_memory_touch(w->memory, --b, writes(w, r));
	}
	if (hi - lo <= leaf_pages(w))
		return;
	quarter = (hi - lo) / 4;
	pivot = lo + quarter + sim_rand_below(r, 2 * quarter + 1);
	quicksort(w, r, lo, pivot);
	quicksort(w, r, pivot, hi);
}

static void scans(struct paging_memory *m, uint32_t pages)
{
	for (unsigned k = 0; k < SCAN_ROUNDS; k++)
		for (uint32_t i = 0; i < pages; i++)
			paging_memory_touch(m, i, false);
}

/* Popular pages are not neighbours. A cubed uniform number is near enough to
 * Zipf's law: half of all touches go to an eighth of the pages. */
static uint32_t popular(struct rng *r, uint32_t pages)
{
	double u = (double)(rng_u64(r) >> 11) * 0x1p-53;
	uint32_t rank = (uint32_t)(u * u * u * pages);

	return (uint32_t)((uint64_t)rank * 2654435761u % pages);
}

static void random_touches(struct paging_worker *w, struct rng *r,
			   uint32_t pages)
{
	for (uint32_t i = 0; i < POPULAR_ROUNDS * pages; i++) {
		uint32_t page = popular(r, pages);

		paging_memory_touch(w->memory, page, writes(w, r));
	}
}

static void graph(struct paging_worker *w, struct rng *r, uint32_t pages)
{
	uint32_t vertices = u32_max(pages * GRAPH_VERTEX_PERCENT / 100, 1);

	for (unsigned k = 0; k < GRAPH_ROUNDS; k++)
		for (uint32_t i = vertices; i < pages; i++) {
			paging_memory_touch(w->memory, i, false);
			paging_memory_touch(w->memory,
					    sim_rand_below(r, vertices),
					    writes(w, r));
		}
}

static void run(struct paging_worker *w, uint32_t pages)
{
	const struct paging_program *g = w->p->cfg.program;
	struct rng r;

	/* The same in the dry run and in the other one. */
	sim_rand_init(&r, w->p->cfg.seed, 500 + w->index);
	switch (g->pattern) {
	case PAGING_QUICKSORT:
		quicksort(w, &r, 0, pages);
		break;
	case PAGING_SCANS:
		scans(w->memory, pages);
		break;
	case PAGING_POPULAR:
		random_touches(w, &r, pages);
		break;
	case PAGING_GRAPH:
		graph(w, &r, pages);
		break;
	}
}

/* ---- life ---------------------------------------------------------------- */

/* With half of the memory local, whatever this run has: a program computes as
 * much either way. */
static uint64_t touch_ps(struct paging_worker *w, uint32_t pages)
{
	uint64_t per_s = w->p->cfg.program->faults_per_s;
	uint32_t half = u32_max(pages * CALIBRATION_PERCENT / 100, LOCAL_MIN);
	uint64_t ps = 0;

	if (paging_memory_open(w, pages, half, &w->memory))
		return 0;
	paging_memory_dry(w->memory, true);
	fill(w->memory, pages);
	paging_memory_restart(w->memory);
	run(w, pages);
	ps = SIM_S / per_s * paging_memory_faults(w->memory) /
	     u64_max(paging_memory_touches(w->memory), 1);
	paging_memory_close(w->memory);
	w->memory = NULL;
	return ps;
}

int paging_program_open(struct paging_worker *w)
{
	uint32_t pages = set_pages(w->p);
	uint32_t local = pages * w->p->cfg.local_percent / 100;
	uint64_t ps = touch_ps(w, pages);
	int err = paging_memory_open(w, pages, u32_max(local, LOCAL_MIN),
				     &w->memory);

	if (!err)
		paging_memory_set_touch_ps(w->memory, ps);
	return err;
}

void paging_program_main(void *arg)
{
	struct paging_worker *w = arg;
	struct paging *p = w->p;

	/* What it works on is there before its time counts. */
	fill(w->memory, set_pages(p));
	paging_memory_settle(w->memory);
	paging_memory_restart(w->memory);
	p->preparing--;
	while (!p->is_measuring && !p->err)
		sim_fiber_sleep_ps(p->sim, SIM_US);
	sim_fiber_sleep_ps(p->sim, sim_rand_below(&w->rand, 1000) * SIM_US);
	w->begun_ps = sim_now_ps(p->sim);
	run(w, set_pages(p));
	paging_memory_settle(w->memory);
	w->ended_ps = sim_now_ps(p->sim);
	p->res->faults += paging_memory_faults(w->memory);
	p->running--;
}
