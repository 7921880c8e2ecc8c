/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the ODRP paper states in numbers, beside ours. A claim is made only from
 * points that were run.
 */
#include <stdio.h>
#include <string.h>

#include "paging_figure.h"

static const struct paging_point *find(const struct paging_figure *f,
				       const char *figure, const char *series,
				       uint32_t x)
{
	for (uint32_t i = 0; i < f->count; i++) {
		const struct paging_point *p = &f->point[i];

		if (!p->err && p->x == x && strcmp(p->figure, figure) == 0 &&
		    strcmp(p->series, series) == 0)
			return p;
	}
	return NULL;
}

enum value {
	ELAPSED,
	MOPS,
	MEAN_US,
	UTILISATION,
	CORES,
};

static double value_of(const struct paging_point *p, enum value v)
{
	switch (v) {
	case ELAPSED:
		return p->res.elapsed_ms;
	case MOPS:
		return p->res.mops;
	case MEAN_US:
		return p->res.mean_us;
	case UTILISATION:
		return p->res.utilisation;
	case CORES:
		break;
	}
	return p->res.cores;
}

/* A claim that is a value, or with `under` the ratio of two. */
struct claim_row {
	const char *figure;
	uint32_t x;
	const char *series;
	const char *under; /* NULL: the value itself */
	enum value value;
	const char *name;
	double published;
	int sense;
	double bound;
};

static const struct claim_row rows[] = {
	{"1", 20, "dynamic-1m", "static", ELAPSED, "run time, 20 tasks", 1.82,
	 0, 0},
	{"1", 20, "two-sided", "static", ELAPSED, "run time, 20 tasks", 4.18, 0,
	 0},
	{"1", 20, "two-sided", NULL, CORES, "cores, 20 tasks", 1, 0, 0},
	{"7", 50, "pagerank static", NULL, UTILISATION, "utilisation", 0.583, 0,
	 0},
	{"7", 50, "quicksort dynamic-1m", NULL, UTILISATION, "utilisation",
	 0.55, 0, 0},
	{"7", 50, "kmeans dynamic-1m", NULL, UTILISATION, "utilisation", 0.95,
	 0, 0},
	{"7", 50, "quicksort chain", NULL, UTILISATION, "utilisation", 1, 1,
	 0.99},
	{"7", 50, "quicksort dynamic-1m", "quicksort static", ELAPSED,
	 "run time", 1.243, 0, 0},
	{"7", 50, "quicksort two-sided", "quicksort static", ELAPSED,
	 "run time", 2.424, 0, 0},
	{"7", 75, "quicksort dynamic-4k", "quicksort static", ELAPSED,
	 "run time, 75 %", 1.801, 0, 0},
	{"8 and 9", 8, "two-sided", "static", ELAPSED, "run time, 8 clients",
	 6.05, 0, 0},
	{"8 and 9", 8, "dynamic-1m", "static", ELAPSED, "run time, 8 clients",
	 3.34, 0, 0},
	{"8 and 9", 8, "two-sided, 16 cores", "chain", ELAPSED,
	 "run time, 8 clients", 1.673, 0, 0},
	{"8 and 9", 8, "dynamic-1m, 10 cores", "chain", ELAPSED,
	 "run time, 8 clients", 1.464, 0, 0},
	{"8 and 9", 4, "chain", "static", ELAPSED, "run time, 4 clients", 1.057,
	 0, 0},
	{"8 and 9", 8, "chain", "static", ELAPSED, "run time, 8 clients", 1.146,
	 -1, 1.15},
	{"8 and 9", 8, "chain", "static", MOPS, "throughput, 8 clients", 0.873,
	 1, 0.87},
	{"8 and 9", 8, "chain, bursts", "static, bursts", ELAPSED,
	 "run time, 8 clients", 1.146, -1, 1.15},
	{"8 and 9", 8, "chain, bursts", "static, bursts", MOPS,
	 "throughput, 8 clients", 0.873, 1, 0.87},
	{"10", 24, "load (chain)", "READ (static)", MOPS, "rate, 24 workers",
	 0.921, 0, 0},
	{"10", 192, "load (chain)", "READ (static)", MOPS, "rate, 192 workers",
	 0.921, 0, 0},
	{"11", 1, "READ (static)", NULL, MEAN_US, "us, 1 worker", 2.9, 0, 0},
	{"11", 1, "WRITE (static)", NULL, MEAN_US, "us, 1 worker", 2.9, 0, 0},
	{"11", 1, "load (chain)", NULL, MEAN_US, "us, 1 worker", 5.5, 0, 0},
	{"11", 1, "mapped store (chain)", NULL, MEAN_US, "us, 1 worker", 4.6, 0,
	 0},
	{"11", 1, "unmapped store (chain)", NULL, MEAN_US, "us, 1 worker", 9.4,
	 0, 0},
	{"11", 1, "load (two-sided)", "READ (static)", MEAN_US,
	 "latency, 1 worker", 3.8, 0, 0},
	{"12", 0, "naive", NULL, MEAN_US, "us", 35.9, 0, 0},
	{"12", 1, "+ store decision", NULL, MEAN_US, "us", 34.0, 0, 0},
	{"12", 2, "+ table address", NULL, MEAN_US, "us", 31.6, 0, 0},
	{"12", 3, "+ recycling", NULL, MEAN_US, "us", 15.6, 0, 0},
	{"12", 4, "+ endian swap", NULL, MEAN_US, "us", 9.4, 0, 0},
};

static struct paging_claim *next(struct paging_figure *f)
{
	ASSERT(f->claims < PAGING_CLAIMS_MAX);
	return &f->claim[f->claims++];
}

static void judge_row(struct paging_figure *f, const struct claim_row *r)
{
	const struct paging_point *a = find(f, r->figure, r->series, r->x);
	const struct paging_point *b =
		r->under ? find(f, r->figure, r->under, r->x) : NULL;
	struct paging_claim *c;
	double here;

	if (!a || (r->under && !b))
		return;
	here = value_of(a, r->value);
	if (b && value_of(b, r->value) > 0)
		here /= value_of(b, r->value);
	c = next(f);
	*c = (struct paging_claim){.figure = r->figure,
				   .here = here,
				   .published = r->published,
				   .sense = r->sense,
				   .bound = r->bound};
	snprintf(c->name, sizeof(c->name), "%s%s%s: %s", r->series,
		 r->under ? " / " : "", r->under ? r->under : "", r->name);
}

/* The first and the last step do not stand at one x. */
static void judge_ablation(struct paging_figure *f)
{
	const struct paging_point *naive = find(f, "12", "naive", 0);
	const struct paging_point *best = find(f, "12", "+ endian swap", 4);
	struct paging_claim *c;

	if (!naive || !best || naive->res.mean_us <= 0)
		return;
	c = next(f);
	*c = (struct paging_claim){.figure = "12",
				   .here = best->res.mean_us /
					   naive->res.mean_us,
				   .published = 9.4 / 35.9,
				   .sense = -1,
				   .bound = 0.27};
	snprintf(c->name, sizeof(c->name), "all optimisations / naive");
}

static void judge_programs(struct paging_figure *f)
{
	for (unsigned g = 0; g < paging_program_count; g++) {
		const struct paging_program *p = &paging_programs[g];
		const struct paging_point *a, *b;
		char series[PAGING_SERIES_MAX];
		struct paging_claim *c;

		snprintf(series, sizeof(series), "%s chain", p->name);
		a = find(f, "7", series, 50);
		snprintf(series, sizeof(series), "%s static", p->name);
		b = find(f, "7", series, 50);
		if (!a || !b)
			continue;
		c = next(f);
		*c = (struct paging_claim){.figure = "7",
					   .here = a->res.elapsed_ms /
						   b->res.elapsed_ms,
					   .published = 1 + p->overhead,
					   .sense = -1,
					   .bound = 1.15};
		snprintf(c->name, sizeof(c->name),
			 "%s chain / static: run time", p->name);
	}
}

void paging_figure_judge(struct paging_figure *f)
{
	f->claims = 0;
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		judge_row(f, &rows[i]);
	judge_ablation(f);
	judge_programs(f);
}

bool paging_claim_holds(const struct paging_claim *c)
{
	if (c->sense > 0)
		return c->here >= c->bound;
	return c->sense == 0 || c->here <= c->bound;
}
