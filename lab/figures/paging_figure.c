/* SPDX-License-Identifier: Apache-2.0 */
/* ODRP's figures: the points that they are made of, and what the paper states
 * in numbers. */
#include <stdio.h>
#include <string.h>

#include "figures.h"
#include "pageframe/pframe_chain.h"
#include "paging_costs.h"

enum {
	TASKS = 4, /* quicksorts of one client */
	QUICK_SCALE = 8192,
	MANY = 24, /* workers */
	DEEP = 4,  /* operations of each, for throughput */
	ALL = 8,   /* clients */
};

struct paging_figure_options {
	struct figure_options f;
	uint64_t seed;
};

static struct paging_row *add(struct figure_run *r, const char *series,
			      uint32_t x, enum page_mode mode)
{
	struct paging_row *q = figure_add(r, NULL, series, x);

	q->mode = page_mode_name(mode);
	q->cfg = (struct paging_config){
		.mode = mode,
		.clients = 1,
		.workers = 1,
		.cores = 1,
		.depth = 1,
		.seed = ((const struct paging_figure_options *)r->options)
				->seed,
		.scale = r->options->quick ? QUICK_SCALE : 0,
	};
	return q;
}

/* ---- programs ------------------------------------------------------------ */

static struct paging_row *add_program(struct figure_run *r, const char *series,
				      uint32_t x, enum page_mode mode)
{
	struct paging_row *q = add(r, series, x, mode);

	q->cfg.work = PAGING_PROGRAM;
	q->cfg.program = &paging_programs[0];
	q->cfg.local_percent = 50;
	return q;
}

/* Quicksorts on four clients, one core at the node. */
static int plan_1(struct figure_run *r)
{
	static const enum page_mode modes[] = {PAGE_STATIC, PAGE_DYNAMIC_1M,
					       PAGE_TWO_SIDED};

	for (unsigned m = 0; m < ARRAY_LEN(modes); m++)
		for (uint32_t each = 1; each <= 5;
		     each += r->options->quick ? 4 : 1) {
			struct paging_row *q =
				add_program(r, page_mode_name(modes[m]),
					    4 * each, modes[m]);

			q->cfg.clients = 4;
			q->cfg.workers = each;
		}
	return 0;
}

static void add_one_of_7(struct figure_run *r, unsigned program, uint32_t local,
			 enum page_mode mode, bool frees)
{
	const struct paging_program *g = &paging_programs[program];
	struct paging_row *q = add_program(r, "", local, mode);

	snprintf(q->p.series, sizeof(q->p.series), "%s %s%s", g->name, q->mode,
		 frees ? ", freed" : "");
	q->cfg.frees = frees;
	q->p.panel = g->name;
	q->cfg.program = g;
	q->cfg.workers = g->workers;
	q->cfg.clients = r->options->quick ? 2 : ALL;
	q->cfg.local_percent = local;
	/* With one core the smallest pieces never come to an end; the paper
	 * gave them more, too. */
	if (mode == PAGE_DYNAMIC_4K)
		q->cfg.cores = 3;
}

/* All programs, eight clients. */
static int plan_7(struct figure_run *r)
{
	static const enum page_mode modes[] = {PAGE_STATIC, PAGE_DYNAMIC_1M,
					       PAGE_DYNAMIC_4K, PAGE_TWO_SIDED,
					       PAGE_CHAIN};

	for (unsigned g = 0; g < paging_program_count; g++)
		for (uint32_t local = 50; local <= 75; local += 25)
			for (unsigned m = 0; m < ARRAY_LEN(modes); m++)
				add_one_of_7(r, g, local, modes[m], false);
	/* What pieces of 1 MB lose to fragments, and what discards cost. */
	for (unsigned g = 0; g < paging_program_count; g++) {
		add_one_of_7(r, g, 50, PAGE_STATIC, true);
		add_one_of_7(r, g, 50, PAGE_DYNAMIC_1M, true);
		add_one_of_7(r, g, 50, PAGE_CHAIN, true);
	}
	return 0;
}

static const struct {
	const char *name;
	enum page_mode mode;
	bool enough; /* cores */
	bool bursts;
	bool frees;
} scaling[] = {
	{"static", PAGE_STATIC, false, false, false},
	{"chain", PAGE_CHAIN, false, false, false},
	{"dynamic-1m", PAGE_DYNAMIC_1M, false, false, false},
	{"dynamic-1m, 10 cores", PAGE_DYNAMIC_1M, true, false, false},
	{"two-sided", PAGE_TWO_SIDED, false, false, false},
	{"two-sided, 16 cores", PAGE_TWO_SIDED, true, false, false},
	{"static, bursts", PAGE_STATIC, false, true, false},
	{"chain, bursts", PAGE_CHAIN, false, true, false},
	{"static, freed", PAGE_STATIC, false, false, true},
	{"chain, freed", PAGE_CHAIN, false, false, true},
	{"dynamic-1m, freed", PAGE_DYNAMIC_1M, false, false, true},
	{"dynamic-1m, 10 cores, freed", PAGE_DYNAMIC_1M, true, false, true},
	{"two-sided, 16 cores, freed", PAGE_TWO_SIDED, true, false, true},
};

static uint32_t enough(enum page_mode mode)
{
	return (uint32_t)(mode == PAGE_TWO_SIDED ? paging_costs.two_sided_cores
						 : paging_costs.dynamic_cores);
}

/* Four quicksorts on each of one to eight clients. */
static int plan_8_9(struct figure_run *r)
{
	for (unsigned i = 0; i < ARRAY_LEN(scaling); i++)
		for (uint32_t n = 1; n <= ALL; n *= r->options->quick ? 8 : 2) {
			struct paging_row *q = add_program(r, scaling[i].name,
							   n, scaling[i].mode);

			q->cfg.clients = n;
			q->cfg.workers = TASKS;
			q->cfg.bursts = scaling[i].bursts;
			q->cfg.frees = scaling[i].frees;
			if (scaling[i].enough)
				q->cfg.cores = enough(scaling[i].mode);
		}
	return 0;
}

/* ---- operations ---------------------------------------------------------- */

static const struct {
	const char *name;
	enum page_mode mode;
	enum paging_work work;
	uint32_t without;
} kinds[] = {
	{"READ (static)", PAGE_STATIC, PAGING_LOAD, 0},
	{"WRITE (static)", PAGE_STATIC, PAGING_MAPPED, 0},
	{"load (chain)", PAGE_CHAIN, PAGING_LOAD, 0},
	{"mapped store (chain)", PAGE_CHAIN, PAGING_MAPPED, 0},
	{"unmapped store (chain)", PAGE_CHAIN, PAGING_UNMAPPED, 0},
	/* What a ConnectX can execute: docs/chains.md. */
	{"load (client counts)", PAGE_CHAIN, PAGING_LOAD, PAGE_CLIENT_INDICES},
	{"mapped store (client counts)", PAGE_CHAIN, PAGING_MAPPED,
	 PAGE_CLIENT_INDICES},
	{"unmapped store (client counts)", PAGE_CHAIN, PAGING_UNMAPPED,
	 PAGE_CLIENT_INDICES},
	{"load (two-sided)", PAGE_TWO_SIDED, PAGING_LOAD, 0},
	{"store (two-sided)", PAGE_TWO_SIDED, PAGING_MAPPED, 0},
	{"allocation (dynamic-1m)", PAGE_DYNAMIC_1M, PAGING_ALLOCATE, 0},
	{"allocation (dynamic-4k)", PAGE_DYNAMIC_4K, PAGING_ALLOCATE, 0},
};

enum {
	KINDS_ONE_SIDED = 8, /* the first of them need no core */
};

static struct paging_row *add_kind(struct figure_run *r, unsigned kind,
				   uint32_t clients, uint32_t workers)
{
	struct paging_row *q =
		add(r, kinds[kind].name, clients * workers, kinds[kind].mode);

	q->cfg.work = kinds[kind].work;
	q->cfg.without = kinds[kind].without;
	q->cfg.clients = clients;
	q->cfg.workers = workers;
	return q;
}

/* As many as there can be, on one client and on all. */
static int plan_10(struct figure_run *r)
{
	for (unsigned k = 0; k < KINDS_ONE_SIDED; k++) {
		add_kind(r, k, 1, MANY)->cfg.depth = DEEP;
		if (!r->options->quick)
			add_kind(r, k, ALL, MANY)->cfg.depth = DEEP;
	}
	return 0;
}

static int plan_11(struct figure_run *r)
{
	for (unsigned k = 0; k < ARRAY_LEN(kinds); k++) {
		(void)add_kind(r, k, 1, 1);
		(void)add_kind(r, k, 1, MANY);
	}
	return 0;
}

static int plan_12(struct figure_run *r)
{
	static const struct {
		const char *name;
		uint32_t without;
	} steps[] = {
		{"naive", PAGE_WITHOUT_DECISION | PAGE_WITHOUT_ADDRESS |
				  PAGE_WITHOUT_RECYCLE | PAGE_WITHOUT_SWAP},
		{"+ store decision", PAGE_WITHOUT_ADDRESS |
					     PAGE_WITHOUT_RECYCLE |
					     PAGE_WITHOUT_SWAP},
		{"+ table address", PAGE_WITHOUT_RECYCLE | PAGE_WITHOUT_SWAP},
		{"+ recycling", PAGE_WITHOUT_SWAP},
		{"+ endian swap", 0},
		/* All four, the third as published. */
		{"client counts", PAGE_CLIENT_INDICES},
	};

	for (uint32_t i = 0; i < ARRAY_LEN(steps); i++) {
		struct paging_row *q = add(r, steps[i].name, i, PAGE_CHAIN);

		q->cfg.work = PAGING_UNMAPPED;
		q->cfg.without = steps[i].without;
		/* Long enough for some dozens of the slowest. */
		q->cfg.span_ps = 4000000000ull;
	}
	return 0;
}

/* ---- what was published ------------------------------------------------- */

/* From half of what was published to twice that: of a value, of what it is
 * above 1, of what it is below 1. */
#define AROUND(value)  value, (value) / 2.0, (value)*2.0
#define ABOVE(ratio)   ratio, 1 + ((ratio)-1) / 2.0, 1 + ((ratio)-1) * 2.0
#define BELOW(share)   share, 1 - (1 - (share)) * 2.0, 1 - (1 - (share)) / 2.0
#define AT_MOST(ratio) ratio, 0, ratio
/* What chains cost must not exceed what was published, and a point at which
 * they hardly cost anything puts no load on them: it shows nothing of what they
 * do under one, so less than half is short, too. */
#define COSTS(ratio) ratio, 1 + ((ratio)-1) / 2.0, ratio
#define KEEPS(share) share, share, 1 - (1 - (share)) / 2.0
/* A constant was chosen so that it comes out: no claim can be shown by it. */
#define FITTED(value) value, 0, 0

static const struct figure_claim claims[] = {
	{"1", "run time, 20 tasks", "elapsed_ms", "dynamic-1m", 20, "static",
	 20, ABOVE(1.82), "x", ""},
	{"1", "run time, 20 tasks", "elapsed_ms", "two-sided", 20, "static", 20,
	 ABOVE(4.18), "x", ""},
	{"1", "cores, 20 tasks", "cores", "two-sided", 20, NULL, 0, 1, 0.9, 0,
	 "", ""},
	{"1", "cores, 20 tasks", "cores", "dynamic-1m", 20, NULL, 0, 1, 0.9, 0,
	 "", ""},
	{"1", "utilisation, 20 tasks", "utilisation", "dynamic-1m", 20,
	 "two-sided", 20, BELOW(0.76), "x", ""},
	{"7", "utilisation", "utilisation", "pagerank static", 50, NULL, 0,
	 AT_MOST(0.583), "", ""},
	{"7", "utilisation", "utilisation", "quicksort dynamic-1m, freed", 50,
	 NULL, 0, BELOW(0.55), "", ""},
	{"7", "utilisation", "utilisation", "kmeans dynamic-1m, freed", 50,
	 NULL, 0, BELOW(0.95), "", ""},
	{"7", "utilisation", "utilisation", "quicksort chain", 50, NULL, 0, 1,
	 0.99, 0, "", ""},
	{"7", "cores", "cores", "quicksort dynamic-1m", 50, NULL, 0, 1, 0.9, 0,
	 "", ""},
	{"7", "cores", "cores", "quicksort two-sided", 50, NULL, 0, 1, 0.9, 0,
	 "", ""},
	{"7", "run time", "elapsed_ms", "quicksort dynamic-1m", 50,
	 "quicksort static", 50, ABOVE(1.243), "x", ""},
	{"7", "run time", "elapsed_ms", "quicksort dynamic-1m, freed", 50,
	 "quicksort static, freed", 50, ABOVE(1.243), "x", ""},
	{"7", "run time", "elapsed_ms", "quicksort chain, freed", 50,
	 "quicksort static, freed", 50, COSTS(1.097), "x", ""},
	{"7", "run time", "elapsed_ms", "quicksort two-sided", 50,
	 "quicksort static", 50, ABOVE(2.424), "x", ""},
	{"7", "run time", "elapsed_ms", "pagerank dynamic-1m", 50,
	 "pagerank chain", 50, ABOVE(1.154), "x", ""},
	{"7", "run time, 75 %", "elapsed_ms", "quicksort dynamic-4k", 75,
	 "quicksort static", 75, ABOVE(1.801), "x", ""},
	{"8 9", "run time, 8 clients", "elapsed_ms", "two-sided", 8, "static",
	 8, ABOVE(6.05), "x", ""},
	{"8 9", "run time, 8 clients", "elapsed_ms", "dynamic-1m", 8, "static",
	 8, ABOVE(3.34), "x", ""},
	{"8 9", "cores, 1 client", "cores", "two-sided", 1, NULL, 0, 1, 0.9, 0,
	 "", ""},
	{"8 9", "cores, 1 client", "cores", "dynamic-1m", 1, NULL, 0, 1, 0.9, 0,
	 "", ""},
	{"8 9", "utilisation, 8 clients", "utilisation", "dynamic-1m, freed", 8,
	 NULL, 0, BELOW(0.77), "", ""},
	{"8 9", "run time, 8 clients", "elapsed_ms", "dynamic-1m, freed", 8,
	 "static, freed", 8, ABOVE(3.34), "x", ""},
	{"8 9", "run time, 8 clients", "elapsed_ms",
	 "dynamic-1m, 10 cores, freed", 8, "chain, freed", 8, ABOVE(1.464), "x",
	 ""},
	{"8 9", "run time, 8 clients", "elapsed_ms",
	 "two-sided, 16 cores, freed", 8, "chain, freed", 8, ABOVE(1.673), "x",
	 ""},
	{"8 9", "run time, 8 clients", "elapsed_ms", "chain, freed", 8,
	 "static, freed", 8, COSTS(1.146), "x", ""},
	{"8 9", "utilisation, 8 clients", "utilisation", "chain", 8, "static",
	 8, AROUND(3), "x", ""},
	{"8 9", "run time, 8 clients", "elapsed_ms", "two-sided, 16 cores", 8,
	 "chain", 8, ABOVE(1.673), "x", ""},
	{"8 9", "run time, 8 clients", "elapsed_ms", "dynamic-1m, 10 cores", 8,
	 "chain", 8, ABOVE(1.464), "x", ""},
	{"8 9", "run time, 4 clients", "elapsed_ms", "chain", 4, "static", 4,
	 COSTS(1.057), "x", ""},
	{"8 9", "run time, 8 clients", "elapsed_ms", "chain", 8, "static", 8,
	 COSTS(1.146), "x", ""},
	{"8 9", "throughput, 8 clients", "mops", "chain", 8, "static", 8,
	 KEEPS(0.873), "x", ""},
	{"8 9", "run time, 8 clients", "elapsed_ms", "chain, bursts", 8,
	 "static, bursts", 8, COSTS(1.146), "x", ""},
	{"8 9", "throughput, 8 clients", "mops", "chain, bursts", 8,
	 "static, bursts", 8, KEEPS(0.873), "x", ""},
	{"10", "rate, 24 workers", "mops", "load (chain)", 24, "READ (static)",
	 24, FITTED(0.921), "x", "chain_wr_ps was fitted to it"},
	{"10", "rate, 192 workers", "mops", "load (chain)", 192,
	 "READ (static)", 192, FITTED(0.921), "x",
	 "chain_wr_ps was fitted to it"},
	{"10", "rate, 24 workers", "mops", "unmapped store (chain)", 24,
	 "mapped store (chain)", 24, AT_MOST(1), "x", "the lowest of all"},
	{"11", "1 worker", "mean_us", "READ (static)", 1, NULL, 0, AROUND(2.9),
	 "us", ""},
	{"11", "1 worker", "mean_us", "WRITE (static)", 1, NULL, 0, AROUND(2.9),
	 "us", ""},
	{"11", "1 worker", "mean_us", "load (chain)", 1, NULL, 0, FITTED(5.5),
	 "us", "chain_order_ps was fitted to it"},
	{"11", "1 worker", "mean_us", "mapped store (chain)", 1, NULL, 0,
	 FITTED(4.6), "us", "chain_order_ps was fitted to it"},
	{"11", "1 worker", "mean_us", "unmapped store (chain)", 1, NULL, 0,
	 AROUND(9.4), "us", ""},
	{"11", "1 worker", "mean_us", "unmapped store (client counts)", 1, NULL,
	 0, AROUND(9.4), "us", "what a ConnectX can execute"},
	{"11", "latency, 1 worker", "mean_us", "load (two-sided)", 1,
	 "READ (static)", 1, FITTED(3.8), "x",
	 "the server's time was fitted to it"},
	{"11", "24 workers over one", "mean_us", "load (two-sided)", 24,
	 "load (two-sided)", 1, AROUND(10), "x", "an order of magnitude"},
	{"11", "24 workers over one", "mean_us", "allocation (dynamic-1m)", 24,
	 "allocation (dynamic-1m)", 1, AROUND(10), "x",
	 "an order of magnitude"},
	{"12", "latency", "mean_us", "naive", 0, NULL, 0, AROUND(35.9), "us",
	 ""},
	{"12", "latency", "mean_us", "+ store decision", 1, NULL, 0,
	 AROUND(34.0), "us", ""},
	{"12", "latency", "mean_us", "+ table address", 2, NULL, 0,
	 AROUND(31.6), "us", ""},
	{"12", "latency", "mean_us", "+ recycling", 3, NULL, 0, AROUND(15.6),
	 "us", ""},
	{"12", "latency", "mean_us", "+ endian swap", 4, NULL, 0, AROUND(9.4),
	 "us", "chain_sge_ps was fitted to what it saves"},
	{"12", "latency", "mean_us", "client counts", 5, NULL, 0, FITTED(9.4),
	 "us", "what a ConnectX can execute; chain_sge_ps as above"},
	{"12", "all optimisations", "mean_us", "+ endian swap", 4, "naive", 0,
	 AROUND(9.4 / 35.9), "x", ""},
};

static void judge_programs(struct figure_run *r)
{
	for (unsigned g = 0; g < paging_program_count; g++) {
		const struct paging_program *p = &paging_programs[g];
		const struct paging_row *a, *b;
		char series[FIGURE_SERIES_MAX], what[FIGURE_SERIES_MAX];

		snprintf(series, sizeof(series), "%s chain", p->name);
		a = figure_find(r, NULL, series, 50);
		snprintf(series, sizeof(series), "%s static", p->name);
		b = figure_find(r, NULL, series, 50);
		snprintf(what, sizeof(what), "%s chain / static: run time",
			 p->name);
		if (a && b)
			figure_claim_add(r,
					 &(struct figure_claim){
						 .what = what,
						 .published = 1 + p->overhead,
						 .least = 1 + p->overhead / 2,
						 .most = 1 + p->overhead,
						 .unit = "x",
						 .note = ""},
					 a->res.elapsed_ms / b->res.elapsed_ms);
	}
}

/* ---- the system --------------------------------------------------------- */

static const struct figure figures[] = {
	{"1", "quicksorts on four clients, one core at the node", "tasks", 0,
	 "elapsed_ms cores", plan_1, NULL, NULL},
	{"7", "programs on eight clients", "% local", FIGURE_BARS,
	 "elapsed_ms utilisation", plan_7, judge_programs, NULL},
	{"8 9", "four quicksorts on each client", "clients",
	 FIGURE_LOG_X | FIGURE_LOG_Y, "elapsed_ms mops", plan_8_9, NULL, NULL},
	{"10", "most operations per second", "workers", FIGURE_BARS, "mops",
	 plan_10, NULL, NULL},
	{"11", "latency of operations", "workers", FIGURE_BARS | FIGURE_LOG_Y,
	 "mean_us", plan_11, NULL, NULL},
	{"12", "an unmapped store, with one optimisation after the other",
	 "optimisations", FIGURE_BARS, "mean_us", plan_12, NULL, NULL},
	{.name = NULL},
};

#define C(member, name, decimals) \
	FIGURE_COLUMN(struct paging_row, member, name, decimals)

#define R(name, decimals) C(res.name, #name, decimals)
#define JSON		  FIGURE_JSON_ONLY

static const struct figure_column columns[] = {
	C(p.series, "series", 0),
	C(p.x, "x", 0),
	C(mode, "mode", JSON),
	C(cfg.clients, "clients", JSON),
	C(cfg.workers, "workers", JSON),
	R(ops, JSON),
	R(mops, 3),
	R(mean_us, 2),
	R(p99_us, 2),
	R(elapsed_ms, 2),
	R(cores, 2),
	R(utilisation, 3),
	R(faults, 0),
	R(loads, 0),
	C(res.mapped, "mapped_stores", 0),
	C(res.unmapped, "unmapped_stores", 0),
	C(res.discards, "discards", 0),
	C(res.steps, "chain_steps", JSON),
	R(failed, JSON),
	C(p.err, "error", JSON),
	{.name = NULL},
};

static int point(void *row)
{
	struct paging_row *q = row;

	q->cfg.fabric = q->p.fabric;
	return paging_run(&q->cfg, &q->res);
}

static const char *wrong(const void *row)
{
	return ((const struct paging_row *)row)->res.failed
		       ? "a page was not what was stored"
		       : NULL;
}

static void print_constants(void)
{
	static const struct model_constant rows[] = {
		PAGING_COSTS(MODEL_CONSTANT)};

	model_constants_print(rows, ARRAY_LEN(rows), NULL);
}

static int take_constants(void *args, const char *word)
{
	((struct figure_options *)args)->print = print_constants;
	return 0;
}

static const struct paging_figure_options defaults = {.f = {.jobs = 1},
						      .seed = 1};

static const struct opt options[] = {
	OPT_U64(struct paging_figure_options, seed, "seed", "N", 0, UINT64_MAX,
		"of all randomness (1)"),
	FIGURE_OPTION_FABRIC,
	OPT_CALL(take_constants, "constants", NULL,
		 "only print what the node's processor costs"),
	OPT_END,
};

#define OF_ALL "seed fabric constants"

/* Operations take microseconds; there is nothing to be made smaller. */
static const struct figure_takes takes[] = {
	{"1", OF_ALL " quick"}, {"7", OF_ALL " quick"},	 {"8", OF_ALL " quick"},
	{"9", OF_ALL " quick"}, {"10", OF_ALL " quick"}, {"11", OF_ALL},
	{"12", OF_ALL},		{NULL, OF_ALL " quick"}, {NULL, NULL},
};

const struct figure_system paging_figures = {
	.name = "paging",
	.source = "ODRP, NSDI 2025",
	.summary = "Far paging at the scale of the ODRP paper: up to eight "
		   "clients with up to 24 workers and\none memory node, on the "
		   "model of its hardware. Page stores, chains and the page "
		   "server\nare the shipped code.",
	.figures = figures,
	.columns = columns,
	.claims = claims,
	.claim_count = ARRAY_LEN(claims),
	.options = options,
	.defaults = &defaults.f,
	.takes = takes,
	.options_bytes = sizeof(defaults),
	.row_bytes = sizeof(struct paging_row),
	.run = figure_points_run,
	.point = point,
	.result_at = offsetof(struct paging_row, res),
	.result_bytes = sizeof(struct paging_result),
	.wrong = wrong,
};

int paging_figure_cmd(const struct sim_fabric_choice *fabrics, int argc,
		      char **argv)
{
	return figure_cmd(&paging_figures, fabrics, argc, argv);
}
