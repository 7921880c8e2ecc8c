/* SPDX-License-Identifier: Apache-2.0 */
/* The paper's figures as points; paging_claim.c compares. */
#include "paging_figure.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "frame/frame_chain.h"
#include "paging_costs.h"

enum {
	TASKS = 4, /* quicksorts of one client */
	QUICK_SCALE = 8192,
	MANY = 24, /* workers */
	DEEP = 4,  /* operations of each, for throughput */
	ALL = 8,   /* clients */
};

/* What a figure is being made of. */
struct plan {
	struct paging_figure *f;
	bool quick;
	uint64_t seed;
};

static struct paging_point *add(struct plan *p, const char *figure,
				const char *along, uint32_t x,
				const char *series)
{
	struct paging_point *q = &p->f->point[p->f->count];

	ASSERT(p->f->count < PAGING_POINTS_MAX);
	p->f->count++;
	q->figure = figure;
	q->along = along;
	q->x = x;
	snprintf(q->series, sizeof(q->series), "%s", series);
	q->cfg = (struct paging_config){
		.clients = 1,
		.workers = 1,
		.cores = 1,
		.depth = 1,
		.seed = p->seed,
		.scale = p->quick ? QUICK_SCALE : 0,
	};
	return q;
}

/* ---- programs ------------------------------------------------------------ */

static struct paging_point *add_program(struct plan *p, const char *figure,
					const char *along, uint32_t x,
					const char *series, enum page_mode mode)
{
	struct paging_point *q = add(p, figure, along, x, series);

	q->cfg.mode = mode;
	q->cfg.work = PAGING_PROGRAM;
	q->cfg.program = &paging_programs[0];
	q->cfg.local_percent = 50;
	return q;
}

/* Quicksorts on four clients, one core at the node. */
static void figure_1(struct plan *p)
{
	static const enum page_mode modes[] = {PAGE_STATIC, PAGE_DYNAMIC_1M,
					       PAGE_TWO_SIDED};

	for (unsigned m = 0; m < ARRAY_LEN(modes); m++)
		for (uint32_t each = 1; each <= 5; each += p->quick ? 4 : 1) {
			struct paging_point *q =
				add_program(p, "1", "tasks", 4 * each,
					    page_mode_name(modes[m]), modes[m]);

			q->cfg.clients = 4;
			q->cfg.workers = each;
		}
}

static void add_one_of_7(struct plan *p, unsigned program, uint32_t local,
			 enum page_mode mode)
{
	const struct paging_program *g = &paging_programs[program];
	struct paging_point *q =
		add_program(p, "7", "% local", local, "", mode);

	snprintf(q->series, sizeof(q->series), "%s %s", g->name,
		 page_mode_name(mode));
	q->cfg.program = g;
	q->cfg.workers = g->workers;
	q->cfg.clients = p->quick ? 2 : ALL;
	q->cfg.local_percent = local;
	/* With one core the smallest pieces never come to an end; the paper
	 * gave them more, too. */
	if (mode == PAGE_DYNAMIC_4K)
		q->cfg.cores = 3;
}

/* All programs, eight clients. */
static void figure_7(struct plan *p)
{
	static const enum page_mode modes[] = {PAGE_STATIC, PAGE_DYNAMIC_1M,
					       PAGE_DYNAMIC_4K, PAGE_TWO_SIDED,
					       PAGE_CHAIN};

	for (unsigned g = 0; g < paging_program_count; g++)
		for (uint32_t local = 50; local <= 75; local += 25)
			for (unsigned m = 0; m < ARRAY_LEN(modes); m++)
				add_one_of_7(p, g, local, modes[m]);
}

static const struct {
	const char *name;
	enum page_mode mode;
	bool enough; /* cores */
	bool bursts;
	const char *figure;
} scaling[] = {
	{"static", PAGE_STATIC, false, false, "8 and 9"},
	{"chain", PAGE_CHAIN, false, false, "8 and 9"},
	{"dynamic-1m", PAGE_DYNAMIC_1M, false, false, "8 and 9"},
	{"dynamic-1m, 10 cores", PAGE_DYNAMIC_1M, true, false, "8 and 9"},
	{"two-sided", PAGE_TWO_SIDED, false, false, "8 and 9"},
	{"two-sided, 16 cores", PAGE_TWO_SIDED, true, false, "8 and 9"},
	{"static, bursts", PAGE_STATIC, false, true, "8 and 9"},
	{"chain, bursts", PAGE_CHAIN, false, true, "8 and 9"},
};

static uint32_t enough(enum page_mode mode)
{
	return (uint32_t)(mode == PAGE_TWO_SIDED ? paging_costs.two_sided_cores
						 : paging_costs.dynamic_cores);
}

/* Four quicksorts on each of one to eight clients. */
static void figure_8_9(struct plan *p)
{
	for (unsigned i = 0; i < ARRAY_LEN(scaling); i++)
		for (uint32_t n = 1; n <= ALL; n *= p->quick ? 8 : 2) {
			struct paging_point *q =
				add_program(p, scaling[i].figure, "clients", n,
					    scaling[i].name, scaling[i].mode);

			q->cfg.clients = n;
			q->cfg.workers = TASKS;
			q->cfg.bursts = scaling[i].bursts;
			if (scaling[i].enough)
				q->cfg.cores = enough(scaling[i].mode);
		}
}

/* ---- operations ---------------------------------------------------------- */

static const struct {
	const char *name;
	enum page_mode mode;
	enum paging_work work;
} kinds[] = {
	{"READ (static)", PAGE_STATIC, PAGING_LOAD},
	{"WRITE (static)", PAGE_STATIC, PAGING_MAPPED},
	{"load (chain)", PAGE_CHAIN, PAGING_LOAD},
	{"mapped store (chain)", PAGE_CHAIN, PAGING_MAPPED},
	{"unmapped store (chain)", PAGE_CHAIN, PAGING_UNMAPPED},
	{"load (two-sided)", PAGE_TWO_SIDED, PAGING_LOAD},
	{"store (two-sided)", PAGE_TWO_SIDED, PAGING_MAPPED},
	{"allocation (dynamic-1m)", PAGE_DYNAMIC_1M, PAGING_ALLOCATE},
	{"allocation (dynamic-4k)", PAGE_DYNAMIC_4K, PAGING_ALLOCATE},
};

enum {
	KINDS_ONE_SIDED = 5, /* the first of them need no core */
};

static struct paging_point *add_kind(struct plan *p, const char *figure,
				     unsigned kind, uint32_t clients,
				     uint32_t workers)
{
	struct paging_point *q =
		add(p, figure, "workers", clients * workers, kinds[kind].name);

	q->cfg.mode = kinds[kind].mode;
	q->cfg.work = kinds[kind].work;
	q->cfg.clients = clients;
	q->cfg.workers = workers;
	return q;
}

/* As many as there can be, on one client and on all. */
static void figure_10(struct plan *p)
{
	for (unsigned k = 0; k < KINDS_ONE_SIDED; k++) {
		add_kind(p, "10", k, 1, MANY)->cfg.depth = DEEP;
		if (!p->quick)
			add_kind(p, "10", k, ALL, MANY)->cfg.depth = DEEP;
	}
}

static void figure_11(struct plan *p)
{
	for (unsigned k = 0; k < ARRAY_LEN(kinds); k++) {
		(void)add_kind(p, "11", k, 1, 1);
		(void)add_kind(p, "11", k, 1, MANY);
	}
}

static void figure_12(struct plan *p)
{
	static const struct {
		const char *name;
		uint32_t without;
	} steps[] = {
		{"naive", FRAME_WITHOUT_DECISION | FRAME_WITHOUT_ADDRESS |
				  FRAME_WITHOUT_RECYCLE | FRAME_WITHOUT_SWAP},
		{"+ store decision", FRAME_WITHOUT_ADDRESS |
					     FRAME_WITHOUT_RECYCLE |
					     FRAME_WITHOUT_SWAP},
		{"+ table address", FRAME_WITHOUT_RECYCLE | FRAME_WITHOUT_SWAP},
		{"+ recycling", FRAME_WITHOUT_SWAP},
		{"+ endian swap", 0},
	};

	for (uint32_t i = 0; i < ARRAY_LEN(steps); i++) {
		struct paging_point *q =
			add(p, "12", "optimisations", i, steps[i].name);

		q->cfg.mode = PAGE_CHAIN;
		q->cfg.work = PAGING_UNMAPPED;
		q->cfg.without = steps[i].without;
		/* Long enough for some dozens of the slowest. */
		q->cfg.span_ps = 4000000000ull;
	}
}

int paging_figure_plan(struct paging_figure *f, const char *which, bool quick,
		       uint64_t seed)
{
	static const struct {
		const char *names;
		void (*plan)(struct plan *p);
	} figures[] = {
		{" 1 ", figure_1},   {" 7 ", figure_7},	  {" 8 9 ", figure_8_9},
		{" 10 ", figure_10}, {" 11 ", figure_11}, {" 12 ", figure_12},
	};
	struct plan p = {.f = f, .quick = quick, .seed = seed};
	char name[16];

	f->count = f->claims = 0;
	snprintf(name, sizeof(name), " %.8s ", which);
	for (unsigned i = 0; i < ARRAY_LEN(figures); i++)
		if (strcmp(which, "all") == 0 || strstr(figures[i].names, name))
			figures[i].plan(&p);
	return f->count ? 0 : -EINVAL;
}
